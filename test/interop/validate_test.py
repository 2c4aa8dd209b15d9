#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A validator that cannot complain proves nothing: break a good capture in each way it looks for."""
import struct
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import validate

if not validate.oracle_folder().is_dir():
    print(f'skipped: no oracle in {validate.oracle_folder()}')
    sys.exit(77)
ORACLE = validate.load_oracle()
US, PEER = '192.168.77.1', '192.168.77.2'
MTU = 256


def frame(src, dst, bth, rest=b'', sport=0xC123, pad=b'', **ip):
    """One RoCEv2 frame; rest is what follows the BTH. Sealed with a right ICRC."""
    t = bth + rest + pad + bytes(4)
    mac = ['02:00:00:00:00:01', '02:00:00:00:00:02']
    if src == PEER:
        mac.reverse()
    udp_len = 8 + len(t)
    return ORACLE.seal(ORACLE.eth(mac[1], mac[0], 0x0800) + ORACLE.ip4(src, dst, udp_len, **ip) +
                       ORACLE.udp(sport, len(t)) + t)


def ours(op, psn, rest=b'', **kw):
    ip = {k: kw.pop(k) for k in ('flags', 'tos', 'ttl', 'bad_csum') if k in kw}
    sport, pad = kw.pop('sport', 0xC123), kw.pop('padding', b'')
    kw.setdefault('pad', len(pad))
    return frame(US, PEER, ORACLE.bth(op, psn, 0x22, **kw), rest, sport, pad, **ip)


def theirs(op, psn, rest=b'', **kw):
    return frame(PEER, US, ORACLE.bth(op, psn, 0x11, **kw), rest, 0xC456)


def ack(psn, msn, syndrome=0x1f):
    return ORACLE.aeth(syndrome, msn)


def good():
    """A WRITE of 600 bytes, a SEND of 5, and a READ of 300 by the peer."""
    reth = ORACLE.reth(0x1000, 7, 600)
    return [
        ours(0x06, 100, reth + bytes(256)),
        ours(0x07, 101, bytes(256)),
        ours(0x08, 102, bytes(88), a=1),
        theirs(0x11, 102, ack(102, 1)),
        ours(0x04, 103, b'hello', a=1, padding=bytes(3)),
        theirs(0x11, 103, ack(103, 2)),
        theirs(0x0C, 500, ORACLE.reth(0x2000, 9, 300), a=1),
        ours(0x0D, 500, ack(500, 1) + bytes(256)),
        ours(0x0F, 501, ack(501, 1) + bytes(44)),
    ]


def complaints(frames, src=(US,), tshark=False):
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / 'x.pcap'
        data = struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
        for n, f in enumerate(frames):
            data += struct.pack('<IIII', n, 0, len(f), len(f)) + f
        path.write_bytes(data)
        args = Namespace(src=list(src), mtu=None, waive=[], tshark=tshark, corrupt=False, timeout=None,
                         retry=None, rd_atomic=None)
        judge, _ = validate.judge_file(path, args, ORACLE)
        return '\n'.join(judge.complaints)


def reply(index, new):
    frames = good()
    frames[index:index + 1] = new if isinstance(new, list) else [new]
    return frames


class Validator(unittest.TestCase):
    def finds(self, what, frames):
        found = complaints(frames)
        self.assertIn(what, found)

    def test_good(self):
        self.assertEqual(complaints(good(), tshark=True), '')

    def test_empty(self):
        self.finds('not one RoCE frame', [])

    def test_nothing_of_ours(self):
        self.assertIn('not one RoCE frame of ours', complaints(good(), src=['10.0.0.1']))

    def test_faults_of_others_are_not_ours(self):
        frames = good()
        frames[3] = frame(PEER, US, ORACLE.bth(0x11, 102, 0x11, a=1), ack(102, 1), 80, flags=0)
        self.assertEqual(complaints(frames), '')

    def test_icrc_of_anyone(self):
        for n in range(9):
            f = bytearray(good()[n])
            f[-1] ^= 1
            self.finds(f'frame {n + 1} from', reply(n, bytes(f)))

    def test_ip(self):
        for rule, change in (('IP4-09', {'flags': 0}), ('IP4-05', {'tos': 2}), ('IP4-12', {'ttl': 0}),
                             ('IP4-16', {'bad_csum': True}), ('UDP-10', {'sport': 0x1000}),
                             ('UDP-08', {'sport': 0xC124})):
            self.finds(rule, reply(1, ours(0x07, 101, bytes(256), **change)))

    def test_udp_checksum(self):
        f = bytearray(good()[1])
        f[40:42] = b'\x12\x34'
        self.finds('UDP-05', reply(1, bytes(f)))

    def test_bth(self):
        for rule, change in (('BTH-02', {'tver': 1}), ('BTH-03', {'resv7': 1}), ('BTH-03', {'b': 1}),
                             ('BTH-09', {'se': 1}), ('BTH-11', {'pkey': 0x8000})):
            self.finds(rule, reply(1, ours(0x07, 101, bytes(256), **change)))

    def test_pad(self):
        self.finds('BTH-05', reply(4, ours(0x04, 103, b'hello', a=1, padding=b'\0\0\1')))
        self.finds('BTH-05', reply(4, ours(0x04, 103, b'hello', a=1)))

    def test_ackreq(self):
        self.finds('BTH-13', reply(2, ours(0x08, 102, bytes(88))))
        self.finds('RSP-50', reply(8, ours(0x0F, 501, ack(501, 1) + bytes(44), a=1)))

    def test_reserved_opcode(self):
        self.finds('BTH-17', reply(1, ours(0x15, 101, bytes(256))))

    def test_payload_length(self):
        self.finds('REQ-01', reply(1, ours(0x07, 101, bytes(252))))
        self.finds('REQ-01', reply(2, ours(0x08, 102, bytes(260), a=1)))

    def test_psn_gap(self):
        self.finds('REQ-03', reply(4, ours(0x04, 104, b'hello', a=1, padding=bytes(3))))

    def test_dmalen(self):
        self.finds('RSP-11', reply(2, ours(0x08, 102, bytes(84), a=1)))

    def test_sequence(self):
        self.finds('RSP-05', reply(1, ours(0x01, 101, bytes(256))))
        self.finds('RSP-05', reply(2, ours(0x04, 102, bytes(88), a=1)))
        self.finds('has no end', good()[:2])

    def test_retransmission(self):
        again = good()
        again[4:4] = again[1:3]
        self.assertEqual(complaints(again), '')
        again[4] = ours(0x07, 101, bytes(255) + b'x')
        self.finds('REQ-48', again)

    def test_msn(self):
        # seen from the other side: the ACKs are ours
        frames = good()
        frames[5] = theirs(0x11, 103, ack(103, 1))
        self.assertIn('RSP-25', complaints(frames, src=[PEER]))
        frames[5] = theirs(0x11, 103, ack(103, 3))
        self.assertIn('RSP-25', complaints(frames, src=[PEER]))
        frames[5] = theirs(0x11, 103, ack(103, 2, 0x9f))
        self.assertIn('REQ-46', complaints(frames, src=[PEER]))
        frames[5] = theirs(0x11, 105, ack(105, 2))
        self.assertIn('RSP-23', complaints(frames, src=[PEER]))

    def test_read_response(self):
        self.finds('was answered without packet 1 of 2', good()[:8])
        self.finds('RSP-28', reply(8, ours(0x0F, 501, ack(501, 1) + bytes(40))))
        self.finds('RSP-28', reply(7, ours(0x0D, 501, ack(501, 1) + bytes(256))))
        self.finds('REQ-43', reply(8, ours(0x0F, 501, ack(501, 1, 0x60) + bytes(44))))

    def test_read_retry(self):
        retry = ORACLE.reth(0x2000 + 256, 9, 44)
        frames = good()
        frames[8:8] = [theirs(0x0C, 501, retry, a=1), ours(0x10, 501, ack(501, 1) + bytes(44))]
        self.assertEqual(complaints(frames[:-1]), '')
        frames[8] = theirs(0x0C, 501, ORACLE.reth(0x2000, 9, 44), a=1)
        self.assertIn('REQ-39', complaints(frames, src=[PEER]))

    def test_tshark(self):
        short = frame(US, PEER, ORACLE.bth(0x0C, 104, 0x22, a=1), bytes(4))
        self.assertIn('tshark about frame 10', complaints(good() + [short], tshark=True))


if __name__ == '__main__':
    unittest.main()
