#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""lossy_bridge_test.py LOSSY_BRIDGE: the bridge on real devices, in namespaces of its own."""
import ctypes
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

import cases

ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
SO_RCVBUFFORCE = 33               # SO_RCVBUF stops at net.core.rmem_max
TP_STATUS_VLAN_VALID = 16
MTU = 9000
LIMIT_S = 120
BATCH = 200                       # frames under way at most: a veth drops frames beyond 1000
DELAY_S = 2
BRIDGE = sys.argv[1]
MARKER = bytes(12) + b'\x88\xb6' + bytes(46)
ENDS = ('left', 'right')          # the users' ends; the bridge has left-br and right-br


def sh(*words):
    subprocess.run([str(w) for w in words], check=True)


def make_network():
    """Each user's end in a namespace of its own, or TCP between them would not take the wire."""
    sh('mount', '-t', 'tmpfs', 'tmpfs', '/run')
    for n, end in enumerate(ENDS, 1):
        sh('ip', 'netns', 'add', end)
        sh('ip', 'link', 'add', 'name', end, 'type', 'veth', 'peer', 'name', f'{end}-br')
        sh('ip', 'link', 'set', end, 'netns', end)
        sh('ip', 'link', 'set', f'{end}-br', 'mtu', MTU, 'arp', 'off', 'up')
        sh('ip', '-n', end, 'link', 'set', end, 'mtu', MTU, 'up')
        sh('ip', '-n', end, 'addr', 'add', f'10.1.1.{n}/24', 'dev', end)


class Inside:
    """Sockets made in this block belong to the namespace of one end; no other thread may run."""

    def __init__(self, end):
        self.end = end

    def __enter__(self):
        self.own = os.open('/proc/self/ns/net', os.O_RDONLY)
        other = os.open(f'/run/netns/{self.end}', os.O_RDONLY)
        setns(other)
        os.close(other)

    def __exit__(self, *_):
        setns(self.own)
        os.close(self.own)


def setns(fd):
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
        raise OSError(ctypes.get_errno(), 'setns')


def raw(end):
    with Inside(end):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        s.bind((end, 0))
    return s


def received(s):
    """A frame, with the VLAN tag that the kernel takes off."""
    f, aux, _, _ = s.recvmsg(70000, socket.CMSG_SPACE(20))
    for _, kind, data in aux:
        status, _, _, _, _, tci, tpid = struct.unpack_from('=IIIHHHH', data)
        if kind == PACKET_AUXDATA and status & TP_STATUS_VLAN_VALID:
            f = f[:12] + struct.pack('!HH', tpid, tci) + f[12:]
    return f


def roce(number, size=100):
    """A RoCEv2 frame as far as the bridge looks, with its number."""
    udp = struct.pack('!HHHH', 0xC000, 4791, size + 20, 0) + bytes(12)
    ip = struct.pack('!BBHHHBBHII', 0x45, 0, 40 + size, 0, 0x4000, 64, 17, 0, 0x0a010101, 0x0a010102)
    return bytes(12) + b'\x08\x00' + ip + udp + struct.pack('!I', number) + bytes(size - 4)


def other(number, size):
    return bytes(12) + b'\x88\xb5' + struct.pack('!I', number) + os.urandom(size - 4)


class Bridge:
    def __init__(self, *options):
        self.options = [str(o) for o in options]

    def __enter__(self):
        self.proc = subprocess.Popen([BRIDGE, *self.options, 'left-br', 'right-br'],
                                     stdout=subprocess.PIPE, text=True)
        assert 'ready' in self.proc.stdout.readline()
        return self

    def __exit__(self, *_):
        self.proc.send_signal(signal.SIGTERM)
        out, _ = self.proc.communicate(timeout=LIMIT_S)
        self.counts = [{what: int(n) for n, what in re.findall(r'(\d+) (\w+)', line)}
                       for line in out.splitlines()]
        assert self.proc.returncode == 0, out


def through(frames, options, source='left', sink='right', held=0):
    """@return (what came out, the bridge's counts of both directions). Waits for a frame behind each batch,
    and for so many of ours where some are held back."""
    a, b = raw(source), raw(sink)
    got = []

    def until(done):
        end = time.monotonic() + LIMIT_S
        while not done() and time.monotonic() < end:
            if select.select([b], [], [], 1)[0]:
                got.append(received(b))

    with Bridge(*options) as bridge:
        for first in range(0, len(frames), BATCH):
            for f in frames[first:first + BATCH] + [MARKER]:
                a.send(f)
            seen = len(got)
            until(lambda: MARKER in got[seen:])
        until(lambda: len(ours(got)) >= held)
    a.close()
    b.close()
    return ours(got), bridge.counts


def ours(frames):
    """The kernels on both ends talk too; our frames have no MAC addresses."""
    return [f for f in frames if not any(f[:12]) and f != MARKER]


def numbers(frames):
    return [struct.unpack_from('!I', f, 54)[0] for f in frames if f[12:14] == b'\x08\x00']


class LossyBridge(unittest.TestCase):
    def test_loses_at_the_rate(self):
        sent = [roce(n) for n in range(20000)]
        got, counts = through(sent, ['--ab', 'drop=50000'])
        self.assertEqual(len(got) + counts[0]['drop'], 20000)
        self.assertTrue(850 < counts[0]['drop'] < 1150, counts)
        self.assertEqual((counts[0]['RoCE'], counts[0]['missed'], counts[0]['unsent']), (20000, 0, 0))
        self.assertEqual(numbers(got), sorted(numbers(got)))

    def test_same_seed_same_loss(self):
        sent = [roce(n) for n in range(2000)]
        rates = 'drop=50000,duplicate=20000'
        one, two, other_seed, back = (
            numbers(through(sent, ['--seed', s, '--ab', rates, '--ba', rates], source, sink)[0])
            for s, source, sink in ((5, 'left', 'right'), (5, 'left', 'right'), (6, 'left', 'right'),
                                    (5, 'right', 'left')))
        self.assertEqual(one, two)
        self.assertNotEqual(one, other_seed)
        self.assertNotEqual(one, back)

    def test_seeds_of_the_cases(self):
        """Those of cases.py make few frames meet what a case is for, in both directions."""
        def first(frames, seed, impairments):
            out = subprocess.run([BRIDGE, '--foretell', str(frames), '--seed', str(seed), '--ab', impairments,
                                  '--ba', impairments, 'a', 'b'], check=True, capture_output=True, text=True).stdout
            return [{kind: int(n) for n, kind in re.findall(r'(\d+) (\w+)', line)} for line in out.splitlines()]
        for seed in cases.SEEDS:
            for way in first(40, seed, cases.drop(0.1)):
                self.assertTrue(way['drop'], seed)
        kinds = re.findall(r'(\w+)=', cases.EVERYTHING)
        ways = first(200, cases.SEED_OF_EVERYTHING, cases.EVERYTHING)
        self.assertTrue(len(ways) == 2 and all(way[kind] for way in ways for kind in kinds), ways)

    def test_each_direction_has_its_own_rate(self):
        sent = [roce(n) for n in range(1000)]
        got, counts = through(sent, ['--ab', 'drop=1000000'], 'right', 'left')
        self.assertEqual(got, sent)
        self.assertEqual(counts[1]['drop'], 0)

    def test_the_rest_passes_untouched(self):
        sent = [other(n, size) for n, size in enumerate((46, 100, 1500, 4000, MTU) * 40)]
        tag = b'\x81\x00\x20\x05'
        sent += [f[:12] + tag + f[12:] for f in sent[:4]]
        got, counts = through(sent, ['--ab', 'drop=1000000'])
        self.assertEqual(got, sent)
        self.assertEqual((counts[0]['RoCE'], counts[0]['missed']), (0, 0))

    def test_jumbo_roce(self):
        sent = [roce(n, 4200) for n in range(200)]
        self.assertEqual(through(sent, [])[0], sent)

    def test_vlan_tag_of_roce(self):
        sent = [roce(n) for n in range(500)]
        tagged = [f[:12] + b'\x81\x00\x00\x05' + f[12:] for f in sent]
        _, counts = through(tagged, ['--ab', 'drop=500000'])
        self.assertEqual(counts[0]['RoCE'], 500)
        self.assertTrue(180 < counts[0]['drop'] < 320, counts)

    def test_duplicate(self):
        sent = [roce(n) for n in range(2000)]
        got, counts = through(sent, ['--ab', 'duplicate=100000'])
        self.assertEqual(len(got), 2000 + counts[0]['duplicate'])
        self.assertEqual(sorted(set(numbers(got))), list(range(2000)))

    def test_reorder(self):
        sent = [roce(n) for n in range(2000)]
        got, counts = through(sent, ['--ab', 'reorder=100000'], held=2000)
        order = numbers(got)
        self.assertEqual(sorted(order), list(range(2000)))
        self.assertNotEqual(order, sorted(order))
        self.assertTrue(counts[0]['reorder'] > 100, counts)
        self.assertTrue(max(abs(k - n) for k, n in enumerate(order)) < 20)

    def test_delay(self):
        """What the same plan with an hour's delay sends at once goes ahead, in order; the rest comes when
        its time is over. A pause of the machine mixes the two, but loses neither."""
        sent, begin = [roce(n) for n in range(20)], time.monotonic()
        got, counts = through(sent, ['--ab', 'delay=500000', '--delay-ms', DELAY_S * 1000], held=20)
        self.assertTrue(time.monotonic() - begin >= DELAY_S)
        order = numbers(got)
        prompt = numbers(through(sent, ['--ab', 'delay=500000', '--delay-ms', 3600000])[0])
        self.assertEqual(sorted(order), list(range(20)))
        self.assertTrue(0 < counts[0]['delay'] < 20)
        self.assertEqual(counts[0]['delay'], 20 - len(prompt))
        self.assertEqual([n for n in order if n in prompt], prompt)
        self.assertNotEqual(order, sorted(order))

    def test_corrupt(self):
        sent = [roce(n) for n in range(1000)]
        got, counts = through(sent, ['--ab', 'corrupt=100000'])
        wrong = [(f, g) for f, g in zip(sent, got) if f != g]
        self.assertEqual(len(got), 1000)
        self.assertEqual(len(wrong), counts[0]['corrupt'])
        for f, g in wrong:
            bits = sum(bin(x ^ y).count('1') for x, y in zip(f, g))
            self.assertEqual((bits, f[:42]), (1, g[:42]))

    def test_tcp_is_whole(self):
        """The kernel hands its segments over uncut and without checksums; both must survive."""
        data, got = os.urandom(4 << 20), bytearray()
        with Inside('right'):
            listener = socket.create_server(('10.1.1.2', 7777))
        with Inside('left'):
            client = socket.socket()
        with Bridge('--ab', 'drop=1000000', '--ba', 'drop=1000000') as bridge:
            def serve():
                conn, _ = listener.accept()
                while len(got) < len(data):
                    part = conn.recv(1 << 20)
                    if not part:
                        break
                    got.extend(part)
                conn.close()
            t = threading.Thread(target=serve, daemon=True)
            t.start()
            client.settimeout(LIMIT_S)
            client.connect(('10.1.1.2', 7777))
            client.sendall(data)
            t.join(LIMIT_S)
            client.close()
        listener.close()
        self.assertEqual(bytes(got), data)
        self.assertTrue(bridge.counts[0]['frames'] > 10)


def main():
    if os.geteuid() != 0:
        print('skipped: needs root for network namespaces')
        return 77
    if len(sys.argv) < 3:
        return subprocess.call(['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child',
                                '--mount-proc', sys.executable, __file__, BRIDGE, 'inside'])
    make_network()
    return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
