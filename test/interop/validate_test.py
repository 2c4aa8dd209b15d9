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


def judged(frames, src=(US,), tshark=False, **more):
    """@return the judge of a capture with these frames, a second apart or at the times given."""
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / 'x.pcap'
        data = struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
        for n, f in enumerate(frames):
            t, f = f if isinstance(f, tuple) else (n, f)
            data += struct.pack('<IIII', int(t), round(t % 1 * 1e6), len(f), len(f)) + f
        path.write_bytes(data)
        args = dict({'mtu': None, 'timeout': None, 'retry': None, 'rd_atomic': None, 'corrupt': False, 'silent': False, 'ecn': False,
                     'broken_off': False},
                    **more)
        judge, _ = validate.judge_file(path, Namespace(src=list(src), waive=[], tshark=tshark, **args),
                                      ORACLE)
        return judge


def complaints(frames, src=(US,), tshark=False, **more):
    return '\n'.join(judged(frames, src, tshark, **more).complaints)


def ours_again(frame, ecn):
    """The frame with another ECN field, which the ICRC does not cover."""
    f = bytearray(frame)
    f[15] = f[15] & 0xFC | ecn
    f[24:26] = bytes(2)
    f[24:26] = struct.pack('!H', ORACLE.csum(bytes(f[14:34])))
    return bytes(f)


def cnp(psn=0, rest=bytes(16), **kw):
    return ours(0x81, psn, rest, **{'tos': 192, 'm': 0, 'b': 1, **kw})


def trial(damage=None, second=1, **ip):
    """As a capture on the sender's netdev shows it: two frames of a run, not yet cut."""
    rest = b'rocigso2' + b'12345678' + bytes(224)
    parts = [bytearray(frame(US, PEER, ORACLE.bth(0xFE, psn, 0) + rest, ident=i, **ip))
             for i, psn in enumerate((0, second))]
    if damage is not None:
        parts[damage][-1] ^= 1
    head = ORACLE.ip4(US, PEER, 8 + 512, **ip) + ORACLE.udp(0xC123, 512)
    return bytes(parts[0][:14] + head + parts[0][42:] + parts[1][42:])


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

    def test_trial(self):
        self.assertEqual(complaints(good() + [trial()], tshark=True), '')
        for damage in 0, 1:
            self.assertEqual(complaints(good() + [trial(damage)]).count('the ICRC is wrong'), 1)
        self.assertNotEqual(complaints(good() + [trial(second=0)]), '')
        self.assertIn('TTL is 0', complaints(good() + [trial(ttl=0)]))
        self.finds('reserved', good() + [ours(0xFE, 0, b'rocigso1' + b'12345678')])

    def test_ip(self):
        for rule, change in (('IP4-09', {'flags': 0}), ('IP4-05', {'tos': 2}), ('IP4-12', {'ttl': 0}),
                             ('IP4-16', {'bad_csum': True}), ('UDP-10', {'sport': 0x1000}),
                             ('UDP-08', {'sport': 0xC124})):
            self.finds(rule, reply(1, ours(0x07, 101, bytes(256), **change)))

    def ecn(self, frames):
        return complaints(frames, ecn=True)

    def test_ecn(self):
        """All packets of ours are ECT(0), CNPs are not; what the peer sends is its own business."""
        frames = [ours_again(f, 2) if f[26:30] == bytes((192, 168, 77, 1)) else f for f in good()]
        self.assertEqual(self.ecn(frames), '')
        self.assertIn('IP4-05', complaints(frames))
        for n in 0, 4, 8:
            for ecn in 0, 1, 3:
                self.assertIn('IP4-06', self.ecn(frames[:n] + [ours_again(frames[n], ecn)] + frames[n + 1:]))
        frames.insert(3, cnp())
        self.assertEqual(self.ecn(frames), '')
        self.assertIn('CNP-14', complaints(frames))
        frames[3] = cnp(tos=192 | 2)
        self.assertIn('a CNP is not ECN-capable', self.ecn(frames))

    def test_cnp(self):
        for rule, bad in (('CNP-02', cnp(m=1)), ('CNP-02', cnp(a=1)), ('CNP-02', cnp(psn=7)),
                          ('CNP-03', cnp(rest=bytes(12))), ('CNP-03', cnp(rest=bytes(15) + b'\1')),
                          ('BTH-03', cnp(f=1))):
            self.assertIn(rule, self.ecn([bad]))
        self.assertEqual(self.ecn([cnp(b=0)]), '')

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

    def test_uc(self):
        """UC by its sender: consecutive PSNs, whole messages, no ACK asked for, none given."""
        uc = [ours(0x20, 100, bytes(256)), ours(0x22, 101, bytes(8)), ours(0x24, 102, b'four')]
        self.assertEqual(complaints(uc), '')
        self.finds('UC-02', [uc[0], ours(0x22, 101, bytes(8), a=1)])
        self.finds('REQ-03', [uc[0], ours(0x22, 103, bytes(8))])
        self.finds('UC-01', [uc[0], ours(0x24, 101, b'four')])
        self.finds('UC-01', [uc[2], ours(0x22, 103, bytes(8))])
        self.assertEqual(complaints([theirs(0x24, 102, b'four')], silent=True), '')
        self.assertIn('UC-02', complaints(uc, silent=True))
        self.assertEqual(complaints([theirs(0x24, 102, b'four'), cnp()], silent=True, ecn=True), '')

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

    def test_broken_off(self):
        """What is missing is nobody's fault then; what is there is judged."""
        for frames in ([], good()[:2]):
            self.assertEqual(complaints(frames, broken_off=True), '')
        self.assertIn('RSP-05', complaints(reply(1, ours(0x01, 101, bytes(256))), broken_off=True))

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


WRITE_LEN = 600


def write(psn, first=100):
    """Packet of a WRITE of 600 bytes that begins at `first`."""
    k = psn - first
    body = ORACLE.reth(0x1000, 7, WRITE_LEN) if k == 0 else b''
    return ours((6, 7, 8)[k], psn, body + bytes((256, 256, 88)[k]), a=int(k == 2))


def send(psn):
    return ours(0x04, psn, b'abcd', a=1)


def read(psn, length=600, skip=0, va=0x3000, rkey=9):
    return ours(0x0C, psn, ORACLE.reth(va + 256 * skip, rkey, length - 256 * skip), a=1)


def answer(psn, msn, first=False, last=False, size=256):
    """A response to a READ of ours."""
    code = 0x10 if first and last else 0x0D if first else 0x0F if last else 0x0E
    return theirs(code, psn, (ack(psn, msn) if first or last else b'') + bytes(size))


def their_ack(psn, msn, syndrome=0x1f):
    return theirs(0x11, psn, ack(psn, msn, syndrome))


# The other way round: the peer asks and we answer.
def their_send(psn):
    return theirs(0x04, psn, b'abcd', a=1)


def their_read(psn, length=600, skip=0):
    return theirs(0x0C, psn, ORACLE.reth(0x2000 + 256 * skip, 9, length - 256 * skip), a=1)


def our_ack(psn, msn, syndrome=0x1f):
    return ours(0x11, psn, ack(psn, msn, syndrome))


def our_answer(psn, msn, first=False, last=False, size=256):
    code = 0x10 if first and last else 0x0D if first else 0x0F if last else 0x0E
    return ours(code, psn, (ack(psn, msn) if first or last else b'') + bytes(size))


class Requester(unittest.TestCase):
    """Of our own requests, beside our side of a lossy path."""
    TIMEOUT = 14        # 67 ms

    def check(self, frames, what='', **more):
        found = complaints(frames, **dict({'timeout': self.TIMEOUT, 'mtu': MTU}, **more))
        self.assertIn(what, found)
        if not what:
            self.assertEqual(found, '')

    def test_sequence_nak(self):
        self.check([(0, send(100)), (0, send(101)), (.001, their_ack(100, 0, 0x60)), (.002, send(100)),
                    (.002, send(101)), (.003, their_ack(101, 2))])

    def test_timeout(self):
        self.check([(0, send(100)), (.068, send(100)), (.2, send(100)), (.21, their_ack(100, 1))])

    def test_goes_back_too_soon(self):
        self.check([(0, send(100)), (.03, send(100))], 'REQ-22')
        # one NAK, but twice
        self.check([(0, send(100)), (0, send(101)), (.001, their_ack(100, 0, 0x60)), (.002, send(100)),
                    (.002, send(101)), (.003, send(100))], 'REQ-22')
        # the timer starts again with progress
        self.check([(0, send(100)), (0, send(101)), (.06, their_ack(100, 1)), (.07, send(101))], 'REQ-22')

    def test_goes_back_not_far_enough(self):
        self.check([(0, send(100)), (0, send(101)), (.1, send(101))], 'REQ-24')

    def test_acknowledged_long_ago(self):
        judge = judged([(0, send(100)), (0, send(101)), (.001, their_ack(100, 1)), (.2, send(100))],
                       timeout=self.TIMEOUT)
        self.assertEqual(judge.complaints, [])
        self.assertEqual(judge.rules['REQ-24'][0], 1)

    def test_retries_without_end(self):
        frames = [(0.1 * n, send(100)) for n in range(8)]
        self.check(frames, retry=7)
        self.check(frames + [(.9, send(100))], 'REQ-25', retry=7)
        self.check(frames + [(.8, their_ack(100, 1)), (.8, send(101)), (.9, send(101))], retry=7)

    def test_rnr(self):
        # code 20: 10.24 ms
        def early(t):
            return [(0, send(100)), (.001, their_ack(100, 0, 0x34)), (t, send(100)), (t, their_ack(100, 1))]
        self.check(early(.012))
        self.check(early(.010), 'REQ-29')
        # a later sequence NAK changes nothing; an earlier one may be acted on first
        nak = (.001, their_ack(100, 0, 0x60))
        self.check(early(.010)[:2] + [nak] + early(.010)[2:], 'REQ-29')
        self.check(early(.010)[:1] + [nak] + early(.010)[1:])

    def test_another_packet(self):
        again = [(0, write(n)) for n in (100, 101, 102)]
        self.check(again + [(.1, write(n)) for n in (100, 101, 102)])
        for wrong in (ours(0x07, 100, bytes(256)), ours(0x06, 100, ORACLE.reth(0x1001, 7, 600) + bytes(256)),
                      ours(0x06, 100, ORACLE.reth(0x1000, 7, 600) + bytes(255) + b'x')):
            self.check(again + [(.1, wrong)], 'REQ-48')

    def test_read_retry(self):
        begin = [(0, read(100)), (.001, answer(100, 1, first=True)),
                 (.002, answer(102, 1, last=True, size=88))]
        end = [(.004, answer(101, 1, first=True)), (.004, answer(102, 1, last=True, size=88))]
        self.check(begin + [(.003, read(101, skip=1))] + end)
        self.check(begin + [(.003, read(101, skip=1, va=0x3001))] + end, 'REQ-39')
        self.check(begin + [(.003, read(101, skip=1, rkey=8))] + end, 'REQ-39')
        self.check(begin + [(.003, read(101, length=601, skip=1))] + end, 'REQ-39')
        # not before it is known that something is missing
        self.check(begin[:2] + [(.003, read(101, skip=1))] + end, 'REQ-22')
        # beyond what is missing
        self.check(begin + [(.003, read(102, skip=2))], 'REQ-24')

    def test_ack_behind_a_read(self):
        begin = [(0, read(100)), (0, send(103)), (.001, their_ack(103, 2))]
        self.check(begin + [(.002, read(100)), (.002, send(103))])
        self.check(begin + [(.002, send(103))], 'REQ-24')

    def test_late_for_a_gap(self):
        judge = judged([(0, read(100)), (.001, answer(101, 1)), (.2, read(100))], mtu=MTU,
                       timeout=self.TIMEOUT)
        self.assertEqual((judge.complaints, judge.rules['REQ-39'][0]), ([], 1))

    def test_reads_outstanding(self):
        two = [(0, read(100, 8)), (0, read(101, 8))]
        self.check(two, rd_atomic=2)
        self.check(two + [(0, read(102, 8))], 'REQ-08', rd_atomic=2)
        self.check(two + [(0, answer(100, 1, True, True, 8)), (0, read(102, 8))], rd_atomic=2)


class Responder(unittest.TestCase):
    """Of our responses, beside our side of a lossy path."""

    def check(self, frames, what=''):
        found = complaints(frames, mtu=MTU)
        self.assertIn(what, found)
        if not what:
            self.assertEqual(found, '')

    def test_loss_of_requests(self):
        late = [their_send(101), our_ack(100, 0, 0x60), their_send(102), their_send(100), our_ack(100, 1),
                their_send(101), their_send(102), our_ack(102, 3)]
        self.check(late)
        self.check(late[:-1] + [our_ack(102, 2)], 'RSP-25')

    def test_acknowledges_what_is_missing(self):
        self.check([their_send(100), their_send(102), our_ack(102, 2), their_send(101)], 'RSP-23')
        self.check([their_send(100), their_send(102), our_ack(101, 1), their_send(101)], 'RSP-23')

    def test_old_ack(self):
        begin = [their_send(100), their_send(101), our_ack(101, 2), their_send(100)]
        self.check(begin + [our_ack(101, 2)])
        self.check(begin + [our_ack(100, 2)], 'RSP-39')

    def test_second_nak(self):
        begin = [their_send(100), their_send(102), our_ack(101, 1, 0x60), their_send(103)]
        self.check(begin + [their_send(101), our_ack(101, 2)])
        self.check(begin + [our_ack(101, 1, 0x60), their_send(101)], 'RSP-03')

    def test_nak_of_the_wrong_psn(self):
        begin = [their_send(100), our_ack(100, 1), their_send(102)]
        self.check(begin + [our_ack(102, 1, 0x60), their_send(101)], 'RSP-02')
        self.check(begin + [our_ack(100, 1, 0x60), their_send(101)], 'RSP-02')

    def test_nak_without_cause(self):
        self.check([their_send(100), their_send(101), our_ack(100, 1), our_ack(101, 1, 0x60)], 'RSP-01')
        # it was only late, but what overtook it was dropped
        self.check([their_send(100), their_send(102), their_send(101), our_ack(102, 2, 0x60)])

    def test_rnr_nak(self):
        begin = [their_send(100), our_ack(100, 0, 0x34)]
        self.check(begin + [their_send(100), our_ack(100, 0, 0x34), their_send(100), our_ack(100, 1)])
        self.check(begin + [our_ack(100, 0, 0x34)], 'RSP-16')
        judge = judged(begin + [their_send(101), our_ack(100, 0, 0x60)])
        self.assertEqual((judge.complaints, judge.rules['RSP-18'][0]), ([], 1))

    def test_overtaken_read(self):
        begin = [their_read(100), their_send(103), our_answer(100, 1, first=True)]
        rest = [our_answer(101, 1), our_answer(102, 1, last=True, size=88)]
        self.check(begin + rest + [our_ack(103, 2)])
        self.check(begin + [our_ack(103, 2)] + rest, 'RSP-27')

    def test_duplicate_read(self):
        begin = [their_read(100), our_answer(100, 1, first=True), our_answer(101, 1),
                 our_answer(102, 1, last=True, size=88), their_send(103), our_ack(103, 2),
                 their_read(101, skip=1)]
        self.check(begin + [our_answer(101, 1, first=True), our_answer(102, 1, last=True, size=88)])
        self.check(begin + [our_answer(101, 2), our_answer(102, 2, last=True, size=88)], 'RSP-43')
        self.check(begin + [our_answer(102, 1, last=True, size=88)], 'RSP-28')

    def test_answers_a_read_too_early(self):
        self.check([their_send(100), their_read(102, 8), our_answer(102, 1, True, True, 8), their_send(101)],
                   'RSP-23')

    def test_stream_cut_off(self):
        begin = [their_read(100), their_read(103), our_answer(100, 1, first=True), our_answer(101, 1),
                 our_answer(102, 1, last=True, size=88), our_answer(103, 2, first=True),
                 their_read(102, skip=2), our_answer(102, 2, True, True, 88)]
        rest = [our_answer(104, 2), our_answer(105, 2, last=True, size=88)]
        self.check(begin + [our_answer(103, 2, first=True)] + rest)
        self.check(begin + rest, 'RSP-28')


class Lossy(unittest.TestCase):
    def test_corrupt_frames_of_others(self):
        f = bytearray(their_ack(103, 2))
        f[-1] ^= 1
        frames = good()[:6] + [bytes(f)] + good()[6:]
        self.assertIn('the ICRC is wrong', complaints(frames))
        self.assertEqual(complaints(frames, corrupt=True), '')
        self.assertIn('the ICRC is wrong', complaints(frames, src=[PEER], corrupt=True))

    def test_list(self):
        judge = judged([their_send(100), our_ack(100, 0, 0x34), our_ack(100, 0, 0x34),
                        our_ack(100, 0, 0x34)])
        self.assertEqual(judge.rules['RSP-16'][0], 2)
        self.assertIn('frame 3 ', judge.rules['RSP-16'][1])


if __name__ == '__main__':
    unittest.main()
