#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""libfabric_test.py ROCID ROCI-RUN: libfabric, as Debian has it, between two machines and without settings.

fi_info names the addresses of the netdev, and fi_pingpong checks its data over each kind of endpoint. Needs root."""
import re
import shutil
import subprocess
import sys

from cluster import Cluster, Lab, PATIENCE_S, wait_for
from netlab import skip
from rocid import ask, check

KINDS = 'verbs -e msg', 'verbs;ofi_rxm -e rdm', 'verbs -e dgram', 'verbs;ofi_rxd -e rdm'
SIZES = 64, 4096, 1 << 20
DATAGRAM = 4096
# Either end of fi_pingpong may see a work request flushed when the other disconnects. No message is lost: in captures of
# two such runs all SENDs of both ends were acknowledged 0.3 and 13 ms before the DREQ. So what is flushed should be a
# receive that stayed posted, when libfabric's own thread disconnects; nobody has followed it inside libfabric.
DISCONNECTED = 'Work Request Flushed Error'
TRIES = 5
CONTROL_PORT = ':B9E8 '  # 47592, in hexadecimal as /proc/net/tcp has it


def start(machine, run, line):
    command = ['env', 'LC_ALL=C', f'ROCI_SOCKET={machine.daemon.socket}', run, *line]
    return subprocess.Popen(machine.namespace.command(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def listens(machine):
    with open(f'/proc/{machine.namespace.pid}/net/tcp', encoding='ascii') as table:
        return any(CONTROL_PORT in line and ' 0A ' in line for line in table)


def info(machine, run):
    """A list of all: the addresses of the netdev, and no loopback address."""
    said = start(machine, run, ['fi_info', '-p', 'verbs', '-v']).communicate(timeout=PATIENCE_S)[0]
    check(f'src_addr: fi_sockaddr_in://{machine.address}:0' in said, said)
    check('127.0.0.1' not in said, said)
    for kind in 'FI_EP_MSG', 'FI_EP_DGRAM', 'FI_EP_RDM':
        check(f'type: {kind}' in said, f'{kind}: {said}')


def pingpong(machines, run, kind, size):
    for _ in range(TRIES):
        wrong = pingpong_once(machines, run, kind, size)
        if not (wrong and DISCONNECTED in wrong):
            break
    check(not wrong, wrong)


def pingpong_once(machines, run, kind, size):
    """None, or what was wrong."""
    line = ['fi_pingpong', '-c', '-I', '20', '-S', str(size), '-p', *kind.split()]
    server = start(machines[0], run, line)
    client = None
    try:
        wait_for('fi_pingpong to listen', lambda: server.poll() is not None or listens(machines[0]))
        client = start(machines[1], run, [*line, machines[0].address])
        said = client.communicate(timeout=PATIENCE_S)[0]
        heard = server.communicate(timeout=PATIENCE_S)[0]
    finally:
        for p in server, client:
            if p and p.poll() is None:
                p.kill()
                p.communicate()
    if not client.returncode and not server.returncode and re.search(r'^\S+ +20 ', said, re.M):
        return None
    return f'{line}: {client.returncode}: {said}\n-- server {server.returncode}: {heard}'


def main():
    rocid, run = sys.argv[1:]
    if not shutil.which('fi_pingpong'):
        skip('fi_pingpong is not installed (libfabric-bin)')
    with Lab(rocid, None) as lab:
        machines = Cluster(lab, 2).machines
        info(machines[0], run)
        for kind in KINDS:
            for size in SIZES:
                if 'dgram' in kind and size > DATAGRAM:
                    continue
                before = machines[1].packets()
                pingpong(machines, run, kind, size)
                check(machines[1].packets() - before >= 20, f'{kind} {size}: not by rocid')
                print(f'ok   {kind} {size}', flush=True)
        for m in machines:
            wait_for('nothing to be left', lambda d=m.daemon: not ask(d, 'show sessions')['sessions'])


if __name__ == '__main__':
    main()
