#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""validate.py [--src ADDRESS]... [--mtu BYTES] [--waive RULE]... FILE.pcap...

Judges captures of RoCE traffic. Every RoCE frame: its ICRC, against the oracle. The frames that are
ours (sent from one of the --src MAC or IP addresses; without --src all of them): tshark's decode
without a complaint, and the rules of conformance.md that a capture can show. Exit status 1 with a
sentence for each complaint, 2 when nothing could be judged; an empty capture is a complaint.

The oracle's folder is $SHARED_DIR/oracle, or oracle/ in ../shared beside the checkout.
"""
import argparse
import os
import subprocess
import sys
import zlib
from bisect import bisect_right
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
from rocewire import parse, read_pcap

MAX_PRINTED = 20     # complaints of a file
ORACLE_ALL = 200     # so many frames of a file go through the bitwise oracle, then every
ORACLE_EVERY = 50    # 50th: the others take the same masking and zlib's CRC-32
NOT_RC = {0x64: 'UD_SEND_ONLY', 0x65: 'UD_SEND_ONLY_WITH_IMM', 0x81: 'CNP'}  # headers only are judged
# Guesses at what lies in the payload complain about random bytes.
HEURISTICS = ('eth_over_ib', 'mellanox_eoib', 'sdp_infiniband', 'fc_infiniband', 'rpcrdma_infiniband',
              'smb_direct_infiniband', 'iser_infiniband', 'nvme_rdma', 'lnet_ib', 'smcr_infiniband')


def oracle_folder():
    shared = os.environ.get('SHARED_DIR') or Path(__file__).resolve().parents[2].parent / 'shared'
    return Path(shared) / 'oracle'


def load_oracle():
    sys.path.insert(0, str(oracle_folder()))
    try:
        import rocepkt
    except ImportError:
        sys.exit(f'validate: no oracle in {oracle_folder()}: set SHARED_DIR')
    return rocepkt


def ahead(psn, ref):
    """psn - ref as a signed 24-bit number (BTH-15)."""
    return ((psn - ref + 0x800000) & 0xffffff) - 0x800000


class Message:
    """One message in flight: a SEND, a WRITE, or the responses to one READ request."""

    def __init__(self, p, want=None):
        self.kind, self.want, self.got = p.op.kind, want, 0
        self.first, self.frame = p.psn, p.number


class Flow:
    """What one side sends to one QP of the other: requests, and responses to `peer`."""

    def __init__(self, key, mtu, ours):
        self.key, self.mtu, self.ours, self.sport = key, mtu, ours, None
        self.seen = 0            # number of the last frame
        # requests
        self.next = self.start = None
        self.sent = {}           # PSN -> (opcode, body) of requests, to compare retransmissions
        self.open = None         # Message that is not complete
        self.ends = []           # PSN of the last packet of each message, counted from start
        self.reads = {}          # PSN -> dmalen of each READ request, retries too
        self.first_reads = {}    # PSN -> (dmalen, packets) of READ requests seen the first time
        self.retransmitted = 0
        # responses
        self.peer = None         # Flow that these responses answer
        self.msn = None
        self.resp = None         # READ response Message that is not complete
        self.resp_next = None
        self.answered = set()    # PSNs of READ responses
        self.fatal = False       # a NAK other than a PSN sequence error went out

    def packets(self, length):
        return max(1, -(-length // self.mtu)) if self.mtu else None

    def covers(self, psn):
        return self.next is not None and 0 <= ahead(psn, self.start) < ahead(self.next, self.start)


class Judge:
    """Follows all flows of one capture and collects complaints about ours."""

    def __init__(self, args, path, mtu):
        self.args, self.path, self.mtu = args, path, mtu
        self.flows, self.complaints = {}, []
        self.ours, self.others = Counter(), Counter()
        self.naks = 0

    def is_ours(self, p):
        return not self.args.src or p.src in self.args.src or p.smac in self.args.src

    def complain(self, p, rule, sentence):
        if rule in self.args.waive or not self.is_ours(p):
            return
        name = p.op.name if p.op else f'opcode {p.code:#04x}'
        self.complaints.append(f'frame {p.number} ({p.src} to {p.dst} QP {p.dqpn:#x}, {name}, '
                               f'PSN {p.psn}): {rule}: {sentence}')

    def flow(self, p):
        key = (p.net, p.src, p.dst, p.dqpn)
        if key not in self.flows:
            self.flows[key] = Flow(key, self.mtu, self.is_ours(p))
        return self.flows[key]

    def packet(self, p):
        name = p.op.name if p.op else NOT_RC.get(p.code, hex(p.code))
        (self.ours if self.is_ours(p) else self.others)[name] += 1
        for rule, sentence in p.faults:
            self.complain(p, rule, sentence)
        if not p.op:
            if p.code not in NOT_RC:
                self.complain(p, 'BTH-17', 'this opcode is reserved')
            return
        f = self.flow(p)
        self.header(p, f)
        self.length(p, f)
        (self.response if p.op.response else self.request)(p, f)
        f.seen = p.number

    def header(self, p, f):
        if p.net != 'v1':
            if f.sport not in (None, p.sport):
                self.complain(p, 'UDP-08', f'source port {p.sport} after {f.sport} on the same QP')
            f.sport = p.sport
        if p.pkey & 0x7fff == 0:
            self.complain(p, 'BTH-11', f'P_Key {p.pkey:#06x} is invalid')
        if p.dqpn in (0, 1, 0xffffff):
            self.complain(p, 'BTH-12', f'destination QP {p.dqpn:#x} in an RC packet')
        if p.op.response and (p.ackreq or p.se):
            self.complain(p, 'RSP-50', 'AckReq or SE is set in a response')
        if p.se and not (p.op.last and ('imm' in p.op.exts or p.op.kind == 'send')):
            self.complain(p, 'BTH-09', 'SE is set')
        if not p.op.response and p.op.last and not p.ackreq:
            self.complain(p, 'BTH-13', 'AckReq is not set in the last packet of a message')

    def length(self, p, f):
        """REQ-01, REQ-42: all packets of a message but the last carry exactly the path MTU."""
        n = len(p.payload)
        if not p.op.payload:
            return
        if not p.op.last:
            if f.mtu is None and n in (256, 512, 1024, 2048, 4096):
                f.mtu = n
            if n != f.mtu:
                self.complain(p, 'REQ-01', f'{n} bytes of payload; the path MTU is {f.mtu}')
        elif f.mtu and n > f.mtu or not p.op.first and not n:
            self.complain(p, 'REQ-01', f'{n} bytes of payload in the last packet of a message')

    # --- requests ------------------------------------------------------------------

    def request(self, p, f):
        if f.next is None:
            f.start = f.next = p.psn
        gap = ahead(p.psn, f.next)
        if gap < 0:
            self.retransmission(p, f)
            return
        if gap > 0:
            self.complain(p, 'REQ-03', f'PSN {p.psn} follows {(f.next - 1) & 0xffffff}: '
                                       f'{gap} are missing')
            f.open = None
        used = 1
        if p.op.kind == 'read':
            used = f.packets(p.dmalen) or 1
            f.reads[p.psn] = p.dmalen
            f.first_reads[p.psn] = (p.dmalen, used)
        f.sent[p.psn] = (p.code, zlib.crc32(p.body), p.va)
        f.next = (p.psn + used) & 0xffffff
        self.sequence(p, f)

    def sequence(self, p, f):
        """The order of FIRST, MIDDLE, LAST, ONLY, and the sum of a message's payloads."""
        if p.op.first:
            if f.open:
                self.complain(p, 'RSP-05', f'begins inside the message of frame {f.open.frame}')
            f.open = Message(p, p.dmalen if p.op.kind == 'write' else None)
        elif not f.open or f.open.kind != p.op.kind:
            self.complain(p, 'RSP-05', 'continues a message that nothing began')
            f.open = None
            return
        f.open.got += len(p.payload)
        if f.open.want is not None and (f.open.got > f.open.want or
                                        p.op.last and f.open.got != f.open.want):
            self.complain(p, 'RSP-11', f'the message has {f.open.got} bytes of payload so far, '
                                       f'its DMALen is {f.open.want}')
        if p.op.last:
            f.ends.append((p.psn - f.start) & 0xffffff)
            f.open = None

    def retransmission(self, p, f):
        f.retransmitted += 1
        if p.op.kind == 'read':
            f.reads[p.psn] = p.dmalen
            self.read_retry(p, f)
            return
        old = f.sent.get(p.psn)
        if not old:
            self.complain(p, 'REQ-48', 'sent again, but no request had this PSN')
        elif old[:2] != (p.code, zlib.crc32(p.body)):
            self.complain(p, 'REQ-48', 'sent again with another opcode, header or payload')

    def read_retry(self, p, f):
        """REQ-39: the remainder of an earlier request, at the PSN of the missing packet."""
        for psn, (dmalen, packets) in f.first_reads.items():
            skip = ahead(p.psn, psn)
            if not 0 <= skip < packets:
                continue
            va = f.sent[psn][2] + skip * (f.mtu or 0)
            if p.va != va or p.dmalen != dmalen - skip * (f.mtu or 0):
                self.complain(p, 'REQ-39', f'asks for {p.dmalen} bytes at {p.va:#x}; the rest of '
                                           f'READ {psn} is {dmalen - skip * (f.mtu or 0)} at {va:#x}')
            return
        self.complain(p, 'REQ-39', 'is no part of an earlier READ request')

    # --- responses -----------------------------------------------------------------

    def pair(self, p, f):
        """The flow that a response answers. QPNs do not tell it; PSNs, being random, do."""
        if f.peer and f.peer.covers(p.psn):
            return f.peer
        fits = [g for g in self.flows.values()
                if g.key[:3] == (p.net, p.dst, p.src) and g.covers(p.psn)]
        if not fits:
            self.complain(p, 'RSP-23', 'answers a PSN that the peer has not sent')
            return None
        f.peer = max(fits, key=lambda g: g.seen)
        f.peer.mtu = f.mtu = f.peer.mtu or f.mtu
        return f.peer

    def response(self, p, f):
        g = self.pair(p, f)
        if not g:
            return
        if 'aeth' in p.op.exts:
            self.aeth(p, f, g)
        if p.op.kind == 'read_resp':
            self.read_response(p, f, g)

    def aeth(self, p, f, g):
        kind, code = p.syndrome >> 5 & 3, p.syndrome & 31
        if p.syndrome & 0x80 or kind == 2 or kind == 3 and code > 4:
            self.complain(p, 'REQ-46', f'AETH syndrome {p.syndrome:#04x} is reserved')
        if kind and p.op.kind == 'read_resp':
            self.complain(p, 'REQ-43', f'AETH syndrome {p.syndrome:#04x} is no ACK')
        self.naks += bool(kind) and self.is_ours(p)
        f.fatal |= kind == 3 and code != 0
        if f.msn is not None and ahead(p.msn, f.msn) < 0:
            self.complain(p, 'RSP-25', f'MSN {p.msn} after {f.msn}')
        f.msn = p.msn
        least = bisect_right(g.ends, (p.psn - g.start) & 0xffffff) if not kind else 0
        if not least <= p.msn <= len(g.ends):
            self.complain(p, 'RSP-25', f'MSN {p.msn}; {least} messages end at or before PSN '
                                       f'{p.psn}, {len(g.ends)} have been sent')

    def read_response(self, p, f, g):
        f.answered.add(p.psn)
        if p.op.first:
            if p.psn not in g.reads:
                self.complain(p, 'RSP-28', 'begins a response at a PSN that no READ request has')
                f.resp = None
                return
            f.resp = Message(p, g.reads[p.psn])
        elif not f.resp or p.psn != f.resp_next:
            self.complain(p, 'RSP-28', 'continues no READ response')
            f.resp = None
            return
        f.resp.got += len(p.payload)
        f.resp_next = (p.psn + 1) & 0xffffff
        if f.resp.got > f.resp.want or p.op.last and f.resp.got != f.resp.want:
            self.complain(p, 'RSP-28', f'{f.resp.got} bytes of READ response so far, '
                                       f'{f.resp.want} were asked for')
        if p.op.last:
            f.resp = None

    def finish(self):
        """READs that were never answered, messages that were never finished."""
        for f in self.flows.values():
            if not f.ours:
                continue
            if f.open:
                self.complaints.append(f'the message that begins in frame {f.open.frame} has no end')
            if not f.peer or f.fatal:
                continue
            for psn, (dmalen, packets) in f.peer.first_reads.items():
                missing = [k for k in range(packets) if (psn + k) & 0xffffff not in f.answered]
                if missing:
                    self.complaints.append(
                        f'RSP-28: the READ of {dmalen} bytes at PSN {psn} from {f.key[2]} was '
                        f'answered without packet {missing[0]} of {packets}')


class Icrc:
    """Every frame's ICRC by the oracle's masking; the CRC itself bitwise or, to be done in time, zlib's
    CRC-32, which is the same function. A mismatch is always confirmed bitwise."""

    def __init__(self, oracle):
        self.oracle, self.count, self.bitwise = oracle, 0, 0

    def good(self, frame):
        self.count += 1
        masked, off = self.oracle.masked(frame)
        have = frame[off:off + 4]
        fast = zlib.crc32(masked).to_bytes(4, 'little')
        if have == fast and self.count > ORACLE_ALL and self.count % ORACLE_EVERY:
            return True
        self.bitwise += 1
        return self.oracle.icrc(frame)[0] == have


def tshark_complaints(path, args):
    """@return sentences of tshark about our RoCE frames."""
    ours = ' || '.join(f'eth.src == {s}' if s.count(':') == 5 and len(s) == 17 else
                       f'ipv6.src == {s}' if ':' in s else f'ip.src == {s}' for s in args.src)
    # 0x600000 is the severity "warning".
    bad = 'infiniband && (_ws.malformed || _ws.expert.severity >= 0x600000)'
    # UDP without a checksum over IPv6 is as it must be (A17.3.2.4, RFC 6935).
    cmd = ['tshark', '-n', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE', '-r', str(path), '-Y', f'{bad} && ({ours})' if ours else bad,
           '-T', 'fields', '-e', 'frame.number', '-e', '_ws.expert.message', '-e', '_ws.malformed']
    for h in HEURISTICS:
        cmd += ['--disable-heuristic', h]
    r = subprocess.run(cmd, capture_output=True, text=True)
    if r.returncode:
        return [f'tshark failed: {r.stderr.strip()}']
    return [f'tshark about frame {line.strip()}' for line in r.stdout.splitlines()]


def path_mtu(packets):
    """What the first packet of a longer message carries, or None when all messages are short."""
    for p in packets:
        if p.op and p.op.payload and p.op.first and not p.op.last:
            return len(p.payload)
    return None


def judge_file(path, args, oracle):
    icrc, complaints, packets = Icrc(oracle), [], []
    for n, frame, truncated in read_pcap(path):
        p = parse(n, frame)
        if not p:
            continue
        try:
            good = icrc.good(frame)
        except (ValueError, IndexError):    # no place for an ICRC
            good = False
        if truncated:
            complaints.append(f'frame {n} is cut off in the capture: capture with -s 0')
        elif not good:
            complaints.append(f'frame {n} from {p.src}: the ICRC is wrong')
        else:
            packets.append(p)
    judge = Judge(args, path, args.mtu or path_mtu(packets))
    judge.complaints += complaints
    for p in packets:
        judge.packet(p)
    judge.finish()
    if not judge.ours:
        judge.complaints.append('not one RoCE frame' + (' of ours' if args.src else '') +
                                ' was captured')
    judge.complaints += tshark_complaints(path, args) if args.tshark else []
    return judge, icrc


def summary(judge, icrc):
    def kinds(c):
        return ', '.join(f'{n} {k}' for k, n in sorted(c.items(), key=lambda x: -x[1]))
    again = sum(f.retransmitted for f in judge.flows.values()
                if f.ours)
    return (f'{judge.path}: {icrc.count} RoCE frames with ICRC checked ({icrc.bitwise} bitwise); '
            f'ours {sum(judge.ours.values())} ({kinds(judge.ours)}), {again} sent again, '
            f'{judge.naks} NAK; others {sum(judge.others.values())}; '
            f'{len(judge.complaints)} complaints')


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument('--src', action='append', default=[])
    ap.add_argument('--mtu', type=int)
    ap.add_argument('--waive', action='append', default=[])
    ap.add_argument('--no-tshark', dest='tshark', action='store_false')
    ap.add_argument('files', nargs='+', type=Path)
    args = ap.parse_args()
    oracle, bad = load_oracle(), False
    for path in args.files:
        try:
            judge, icrc = judge_file(path, args, oracle)
        except (OSError, ValueError) as e:
            print(f'{path}: {e}')
            return 2
        for c in judge.complaints[:MAX_PRINTED]:
            print(f'{path}: {c}')
        if len(judge.complaints) > MAX_PRINTED:
            print(f'{path}: {len(judge.complaints) - MAX_PRINTED} complaints more')
        print(summary(judge, icrc))
        bad |= bool(judge.complaints)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
