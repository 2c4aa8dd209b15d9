#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""unprivileged.py ROCID ROCICTL SURVIVOR: rocid as a user who is not root, with the capabilities that
doc/man/rocid.8 names and with fewer. Wants root, to become somebody else, and a network namespace."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from rocid import PATIENCE_S, RING_PAIR, Rocid, check, eal_args

SKIP = 77
AF_XDP = 44  # of Linux; this Python may not know it
NOBODY, STRANGER = '65534', '65533'
EAL = [*eal_args(64), '--no-telemetry']
SHARE = ['--share', 'roci-a']


def become(user, caps=''):
    held = '-all' + ''.join(f',+{c}' for c in caps.split())
    return ['setpriv', '--reuid', user, '--regid', user, '--clear-groups', '--inh-caps', held,
            '--ambient-caps', held, '--bounding-set', held]


def rocid(binary, folder, caps, args, eal=()):
    return Rocid(binary, folder, args=args, eal=EAL + list(eal), before=become(NOBODY, caps))


def serves(binary, folder, caps, args, eal=()):
    daemon = rocid(binary, folder, caps, args, eal)
    check(daemon.wait_ready(), f'{args} {eal} with {caps or "nothing"}: {daemon.said()}')
    with open(f'/proc/{daemon.pid}/status') as f:
        uid = next(line.split()[1] for line in f if line.startswith('Uid:'))
    check(uid == NOBODY, f'runs as {uid}')
    daemon.ask('version')
    return daemon


def ends(daemon):
    daemon.check_ends()
    daemon.log.truncate(0)


def refused(binary, folder, caps, args, word, eal=()):
    daemon = rocid(binary, folder, caps, args, eal)
    check(not daemon.wait_ready(), f'{args} works with {caps or "nothing"}')
    check(daemon.process.wait(PATIENCE_S) == 1 and word in daemon.said(), daemon.said())
    daemon.log.truncate(0)


def test_programs(binary, program, survivor, folder):
    daemon = serves(binary, folder, '', RING_PAIR + ['--socket-mode', '0600'])
    own = subprocess.run(become(NOBODY) + [survivor, daemon.socket], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=PATIENCE_S)
    check(own.returncode == 0, f'a program of the same user: {own}')
    for command, word in (([survivor, daemon.socket], 'no permission'),
                          ([program, '--socket', daemon.socket, 'version'], 'permission denied')):
        r = subprocess.run(become(STRANGER) + command, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=PATIENCE_S)
        check(r.returncode == 1 and word in r.stderr, f'a stranger: {r}')
    ends(daemon)


def has_af_xdp():
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError:
        return False
    return True


def main():
    if os.getuid() or not shutil.which('setpriv'):
        print('SKIP: wants root and setpriv')
        return SKIP
    if 'ROCI_NETNS' not in os.environ:
        if subprocess.run(['unshare', '--net', 'true']).returncode:
            print('SKIP: no network namespace can be made')
            return SKIP
        os.execvpe('unshare', ['unshare', '--net', *sys.argv], {**os.environ, 'ROCI_NETNS': '1'})
    binary, program, survivor = sys.argv[1:]
    subprocess.run('ip link add roci-a type veth peer name roci-b && ip link set roci-b up && '
                   'ip addr add 192.0.2.1/24 dev roci-a && ip link set roci-a up', shell=True,
                   check=True)
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        os.chmod(folder, 0o777)
        os.environ['XDG_RUNTIME_DIR'] = folder
        test_programs(binary, program, survivor, folder)
        memif = f'net_memif0,role=server,id=0,socket={folder}/memif,socket-abstract=no,bsize=4608'
        ends(serves(binary, folder, '', [], ['--vdev', memif]))
        ends(serves(binary, folder, 'net_raw net_admin', SHARE + ['--gso=no']))
        refused(binary, folder, '', SHARE, 'CAP_NET_RAW')
        refused(binary, folder, '', SHARE + ['--gso=no'], 'CAP_NET_RAW')
        refused(binary, folder, 'net_raw', SHARE + ['--gso=no'], 'CAP_NET_ADMIN')
        ends(serves(binary, folder, 'net_raw', SHARE))
        ends(serves(binary, folder, 'net_raw', SHARE + ['--gso']))
        refused(binary, folder, '', SHARE + ['--gso'], 'CAP_NET_RAW')
        if not has_af_xdp():
            print('this kernel has no AF_XDP: not tried')
            return 0
        xdp = ['--vdev', 'net_af_xdp0,iface=roci-a']
        refused(binary, folder, 'net_raw net_admin bpf', ['--share', '0=roci-a'], 'CAP_SYS_ADMIN', xdp)
        ends(serves(binary, folder, 'net_raw net_admin sys_admin ipc_lock', ['--share', '0=roci-a'], xdp))
    return 0


if __name__ == '__main__':
    sys.exit(main())
