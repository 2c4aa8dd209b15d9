#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""mad_storm_test.py ROCID LIBRARY-FOLDER: a host that sends QP1 whatever it likes, by the thousand: datagrams of all
lengths, other classes, forged sources, duplicates, messages of connections that it guesses. The programs beside them
connect as before, a connection of theirs stays, and rocid's memory does not grow. Needs root."""
import json
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from mad_packet import cm_mad, packet  # noqa: E402
from netlab import PATIENCE_S, Lab, skip, veth, wait_for  # noqa: E402
from rocid import ask, check  # noqa: E402

MTU = 9000              # datagrams may be longer than any path MTU
OURS, THEIRS, NOBODY = '10.9.0.1', '10.9.0.2', '10.9.{}.{}'
REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR = range(0x10, 0x1B)
PORT, NEIGHBOUR, CLOSED = 7471, 7174, 7999
MEMORY_MAX = 48 << 20   # bytes that rocid may take beside what it has: all connections with their answers


def mac_of(namespace):
    return bytes.fromhex(json.loads(namespace.output('ip -j link show e0'))[0]['address'].replace(':', ''))


class Attacker:
    def __init__(self, namespace, mac):
        def body():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            s.bind(('e0', 0))
            return s
        self.socket = namespace.inside(body)
        self.head = mac + mac_of(namespace) + b'\x08\x00'
        self.random = random.Random(1)

    def send(self, mad, source=OURS):
        self.socket.send(self.head + packet(source, THEIRS, mad))

    def word(self):
        return self.random.getrandbits(32)


def request(number, qpn, port=PORT, timeout=20, source=OURS):
    gids = b''.join(bytes(10) + b'\xff\xff' + socket.inet_aton(a) for a in (source, THEIRS))
    cma = struct.pack('!BBH', 0, 4 << 4, 40000)
    cma += b''.join(bytes(12) + socket.inet_aton(a) for a in (source, THEIRS))
    data = struct.pack('!IIQQII', number, 0, 0x106 << 16 | port, 0x0200000000000009, 0, 0)
    data += struct.pack('!III', qpn << 8 | 1, 1, timeout << 3)
    data += struct.pack('!IHBB', 0x123456 << 8 | timeout << 3 | 7, 0xFFFF, 3 << 4 | 7, 15 << 4)
    data += struct.pack('!HH', 0xFFFF, 0xFFFF) + gids + struct.pack('!IBBBB', 3, 0, 64, 1 << 3, 18 << 3)
    return cm_mad(REQ, number, data.ljust(140, b'\0') + cma)


# --- storms: generators of (MAD, source) --------------------------------------------------------------------------------


def lengths(a):
    """Each more often than QP1 has receives."""
    for n in 8000, 4124, 4120, 4096, 2048, 260, 252, 24, 4, 0:
        for _ in range(600):
            yield bytes(n), OURS


def classes(a):
    """Of the subnet, of performance, of vendors; Get, Set and answers; other versions."""
    for management in 0x01, 0x03, 0x04, 0x06, 0x08, 0x30, 0x81, 0xFF:
        for method in 0x01, 0x02, 0x03, 0x81, 0x12:
            for version in 0, 1, 2, 255:
                for _ in range(16):
                    yield struct.pack('!BBBBHHQHHI', version, management, 1, method, 0, 0, a.word(), 0x15, 0, 0).ljust(256, b'\0'), OURS


def guesses(a):
    """Messages of all kinds with ids that may be somebody's, from both ends' addresses."""
    for i in range(20000):
        data = struct.pack('!III', a.word(), a.word(), a.random.getrandbits(24) << 8)
        yield cm_mad(a.random.randint(REQ, APR), a.word(), data + a.random.randbytes(200)), OURS if i % 2 else THEIRS


def duplicates(a):
    """The program accepts the first, and rocid has answered all of them."""
    first = request(1, 0x900)
    for _ in range(40000):
        yield first, OURS


def strangers(a):
    """From sources that nobody answers for, half of them to a port where a program listens."""
    for i in range(4000):
        source = NOBODY.format(1 + i // 200, 1 + i % 200)
        yield request(0x10000 + i, 0x2000 + i, PORT if i % 2 else CLOSED, source=source), source


def requests(a):
    """Of one host, more than there is room for, whose answers are repeated every millisecond."""
    for i in range(30000):
        yield request(0x100000 + i, 0x10000 + i, PORT, timeout=0), OURS


def datagram_services(a):
    for i in range(20000):
        cma = struct.pack('!BBH', 0, 4 << 4, 40000)
        cma += b''.join(bytes(12) + socket.inet_aton(x) for x in (OURS, THEIRS))
        yield cm_mad(SIDR_REQ, i, struct.pack('!IIQ', i, 0xFFFF0000, 0x111 << 16 | PORT) + cma), OURS


STORMS = lengths, classes, guesses, duplicates, strangers, requests, datagram_services

# --- what must go on ---------------------------------------------------------------------------------------------------


class Programs:
    def __init__(self, lab, namespace, daemon, libraries):
        self.lab, self.namespace, self.daemon = lab, namespace, daemon
        self.env = ['env', f'LD_LIBRARY_PATH={libraries}', f'ROCI_SOCKET={daemon.socket}', 'LC_ALL=C']

    def start(self, line, **how):
        p = subprocess.Popen(self.namespace.command([*self.env, *line.split()]), stdin=subprocess.DEVNULL,
                             stdout=how.get('stdout', subprocess.DEVNULL), stderr=subprocess.STDOUT, text=True)
        self.lab.processes.append(p)
        return p

    def listening(self, port):
        return any(str(port) in str(r) for r in ask(self.daemon, 'show cm listeners')['cm_listeners'])

    def serve(self, line, port):
        p = self.start(line)
        wait_for(f'{line} to listen', lambda: self.listening(port))
        return p

    def established(self):
        return [r for r in ask(self.daemon, 'show cm connections')['cm_connections'] if r['state'] == 'established']

    def connect(self, storm):
        p = self.start(f'rping -c -a {THEIRS} -p {NEIGHBOUR} -V -C 3', stdout=subprocess.PIPE)
        said = p.communicate(timeout=PATIENCE_S)[0]
        check(p.returncode == 0, f'{storm}: a program beside it cannot connect: {said}')


def resident(daemon):
    kib = re.search(r'VmRSS:\s+(\d+)', Path(f'/proc/{daemon.pid}/status').read_text())
    return int(kib.group(1)) << 10


def main():
    rocid, libraries = sys.argv[1:]
    if not shutil.which('rping'):
        skip('rping is not installed (rdmacm-utils)')
    with Lab(rocid, None) as lab:
        a, b = lab.namespace(), lab.namespace()
        veth(a, 'e0', b, 'e0')
        for n, address in (a, OURS), (b, THEIRS):
            n.run(f'ip link set e0 mtu {MTU}; ip address add {address}/16 dev e0')
        daemon = lab.rocid(b, 'b', ['--share', 'e0'])
        attacker = Attacker(a, mac_of(b))
        programs = Programs(lab, b, daemon, libraries)
        programs.serve(f'rping -s -a {THEIRS} -P -p {NEIGHBOUR}', NEIGHBOUR)
        programs.start(f'rping -c -a {THEIRS} -C 1000000000 -p {NEIGHBOUR}')
        wait_for('a connection', lambda: len(programs.established()) == 2)
        kept = {r['id'] if 'id' in r else str(r) for r in programs.established()}
        before = resident(daemon)
        for storm in STORMS:
            attacked = programs.serve(f'rping -s -a {THEIRS} -P -p {PORT}', PORT)
            for mad, source in storm(attacker):
                attacker.send(mad, source)
            programs.connect(storm.__name__)
            attacked.kill()
            attacked.wait()
            left = {r['id'] if 'id' in r else str(r) for r in programs.established()}
            check(kept <= left, f'{storm.__name__}: of {kept} are left {left}')
            more = resident(daemon) - before
            print(f'ok   {storm.__name__}: {more >> 10} KiB more', flush=True)
            check(more < MEMORY_MAX, f'{storm.__name__}: rocid takes {more} bytes more')


if __name__ == '__main__':
    main()
