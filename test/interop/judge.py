# SPDX-License-Identifier: BSD-3-Clause
"""The rules of doc/rules.tsv that a capture beside one side can show: what that side sends is all there,
what comes to it may have lost, doubled or overtaken frames on its way.

That side may not have seen yet what the capture shows, so what has arrived and been acknowledged are
upper bounds here, and no rule complains of what was only too late to be known."""
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter

from rocewire import CNP

NOT_RC = {0x64: 'UD_SEND_ONLY', 0x65: 'UD_SEND_ONLY_WITH_IMM', 0x81: 'CNP'}  # headers only are judged
SEQUENCE_NAK = 0x60
# IBA Table 46, in milliseconds.
RNR_MS = (655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92, 2.56, 3.84,
          5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68,
          491.52)
EARLY = 0.9          # of a time-out: clocks differ, and a capture's stamps are late
SPURIOUS_S = 0.1     # acknowledged so long ago, and sent again


UC_OPS = ('SEND_FIRST', 'SEND_MIDDLE', 'SEND_LAST', 'SEND_LAST_IMM', 'SEND_ONLY', 'SEND_ONLY_IMM',
          'WRITE_FIRST', 'WRITE_MIDDLE', 'WRITE_LAST', 'WRITE_LAST_IMM', 'WRITE_ONLY', 'WRITE_ONLY_IMM')
NOT_RC.update({0x20 + i: 'UC_' + name for i, name in enumerate(UC_OPS)})


def ahead(psn, ref):
    """psn - ref as a signed 24-bit number (BTH-15)."""
    return ((psn - ref + 0x800000) & 0xffffff) - 0x800000


class Message:
    """One message in flight: a SEND, a WRITE, or the responses to one READ request."""

    def __init__(self, p, want=None):
        self.kind, self.want, self.got = p.op.kind, want, 0
        self.first, self.frame = p.psn, p.number


class Read:
    """A READ or ATOMIC request, as it was sent or taken the first time."""

    def __init__(self, p, packets):
        self.psn, self.packets, self.va, self.rkey, self.dmalen = p.psn, packets, p.va, p.rkey, p.dmalen
        self.got = 0             # responses: that came, in order, or that were sent

    @property
    def end(self):
        return (self.psn + self.packets) & 0xffffff


class Flow:
    """What one side sends to one QP of the other: requests, and responses to `peer`."""

    def __init__(self, key, mtu, ours, start):
        self.key, self.mtu, self.ours, self.sport = key, mtu, ours, None
        self.seen = 0            # number of the last frame
        # requests as they are sent
        self.start = self.next = start
        self.sent = {}           # PSN -> (opcode, SE, body) of requests, to compare retransmissions
        self.open = None         # Message that is not complete
        self.cursor = start      # after the last one, retransmissions too
        self.retransmitted = 0
        # requests as the other side takes them
        self.expect = start      # all before it arrived, in order
        self.ends = []           # PSN of the last packet of each message, counted from start
        self.asked = {}          # PSN -> dmalen of each READ request that is to be answered
        self.atomics = set()     # PSNs of ATOMIC requests
        self.reads = []          # Read, as taken
        self.reads_answered = 0  # so many of them have all their responses
        self.arrivals = Counter()  # of each PSN
        self.early = None        # the highest PSN that came out of sequence
        # what came back
        self.una = start
        self.first_reads = []    # Read, as sent
        self.reads_out = []      # those that lack responses
        self.progress_at = self.rewind_at = 0.0
        self.passed = {}         # PSN -> when it was acknowledged
        self.causes = 0          # NAKs and implied NAKs that have not led to a retry
        self.retries = 0         # since the last progress
        self.rnr = None          # [PSN, earliest time, causes before it]
        self.gap_at = None       # when a response came that shows others to be lost
        # responses
        self.peer = None         # Flow that these responses answer
        self.msn = 0
        self.acked = None        # PSN of the newest ACK
        self.rnr_naks, self.sequence_naks = Counter(), Counter()     # of each PSN
        self.resp = None         # READ response Message that is not complete
        self.resp_next = None
        self.answered = set()    # PSNs of READ and ATOMIC responses
        self.results = {}        # PSN -> original value that an ATOMIC was answered with
        self.fatal = False       # a NAK other than a PSN sequence error went out

    def packets(self, length):
        return max(1, -(-length // self.mtu)) if self.mtu else None

    def covers(self, psn):
        return 0 <= ahead(psn, self.start) < ahead(self.next, self.start)

    def behind(self, psn):
        return (psn - self.start) & 0xffffff


def first_psns(packets):
    """Flow key -> its first PSN: the first frame that arrives need not be the first that was sent."""
    start = {}
    for p in packets:
        if p.op and not p.op.response:
            k = flow_key(p)
            if k not in start or ahead(p.psn, start[k]) < 0:
                start[k] = p.psn
    return start


def flow_key(p):
    return p.net, p.src, p.dst, p.dqpn


class Judge:
    """Follows all flows of one capture and collects complaints about ours."""

    def __init__(self, args, path, mtu, packets=()):
        self.args, self.path, self.mtu = args, path, mtu
        self.flows, self.complaints = {}, []
        self.starts = first_psns(packets)
        self.rules = {}          # rule -> [count, first sentence], notes too
        self.ours, self.others = Counter(), Counter()
        self.naks = 0
        self.uc = {}             # flow -> PSN of the last packet, and the kind of an open message
        self.timeout_s = 4.096e-6 * 2 ** args.timeout if args.timeout else None

    def is_ours(self, p):
        return not self.args.src or p.src in self.args.src or p.smac in self.args.src

    def note(self, p, rule, sentence):
        """Not against the rules, or not for sure; only listed."""
        if rule in self.args.waive or not self.is_ours(p):
            return None
        name = p.op.name if p.op else f'opcode {p.code:#04x}'
        text = (f'frame {p.number} ({p.src} to {p.dst} QP {p.dqpn:#x}, {name}, PSN {p.psn}): '
                f'{rule}: {sentence}')
        self.rules.setdefault(rule, [0, text])[0] += 1
        return text

    def complain(self, p, rule, sentence):
        text = self.note(p, rule, sentence)
        if text:
            self.complaints.append(text)

    def flow(self, p):
        key = flow_key(p)
        if key not in self.flows:
            self.flows[key] = Flow(key, self.mtu, self.is_ours(p), self.starts.get(key, p.psn))
        return self.flows[key]

    def packet(self, p):
        name = p.op.name if p.op else 'TRIAL' if p.trial else NOT_RC.get(p.code, hex(p.code))
        (self.ours if self.is_ours(p) else self.others)[name] += 1
        for rule, sentence in p.faults:
            self.complain(p, rule, sentence)
        if p.trial:
            return
        self.ecn(p)
        if not p.op:
            if p.code not in NOT_RC:
                self.complain(p, 'BTH-17', 'this opcode is reserved')
            elif p.code >> 5 == 1 and self.is_ours(p):
                self.unreliable(p, UC_OPS[p.code & 31])
            return
        f = self.flow(p)
        self.header(p, f)
        self.length(p, f)
        (self.response if p.op.response else self.request)(p, f)
        f.seen = p.number

    def ecn(self, p):
        """Beside the side that sent it no switch has marked it yet."""
        capable = self.args.ecn and p.net != 'v1' and p.code != CNP
        if p.code == CNP and not self.args.ecn:
            self.complain(p, 'CNP-14', 'a CNP although congestion management is off')
        if p.ecn == (2 if capable else 0) or p.net == 'v1':
            return
        rule = {'v4': 'IP4-06' if capable else 'IP4-05', 'v6': 'IP6-02'}[p.net]
        why = 'a port that manages congestion sends ECT(0)' if capable else \
            'a CNP is not ECN-capable' if p.code == CNP else 'although congestion management is off'
        self.complain(p, rule, f'ECN is {p.ecn}: {why}')

    def unreliable(self, p, name):
        """UC as it is sent: PSNs without a gap, messages one after the other, no ACK asked for."""
        kind, part = name.split('_')[:2]
        last = self.uc.get(flow_key(p))
        self.uc[flow_key(p)] = (p.psn, kind if part in ('FIRST', 'MIDDLE') else None)
        if p.ackreq:
            self.complain(p, 'UC-02', 'it asks for an ACK')
        if last and p.psn != (last[0] + 1) & 0xffffff:
            self.complain(p, 'REQ-03', f'PSN {p.psn} after {last[0]}')
        if last and (kind if part in ('MIDDLE', 'LAST') else None) != last[1]:
            self.complain(p, 'UC-01', f'{name} after {"the middle of a " + last[1] if last[1] else "a whole message"}')

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

    # --- requests, as they are sent --------------------------------------------------

    def request(self, p, f):
        used = (f.packets(p.dmalen) or 1) if p.op.kind == 'read' else 1
        gap = ahead(p.psn, f.next)
        if gap >= 0:
            self.new_request(p, f, gap, used)
        else:
            if ahead(p.psn, f.cursor) < 0:
                self.rewind(p, f)
            self.retransmission(p, f)
        f.cursor = (p.psn + used) & 0xffffff
        self.arrive(p, f, used)

    def new_request(self, p, f, gap, used):
        if gap > 0:
            self.complain(p, 'REQ-03', f'PSN {p.psn} follows {(f.next - 1) & 0xffffff}: '
                                       f'{gap} are missing')
            f.open = None
        if f.una == f.next:
            f.progress_at = p.time      # the timer starts with it
        if p.op.waits:
            f.reads_out.append(Read(p, used))
            if p.op.kind == 'read':
                f.first_reads.append(f.reads_out[-1])
            if self.args.rd_atomic and len(f.reads_out) > self.args.rd_atomic:
                self.complain(p, 'REQ-08', f'request number {len(f.reads_out)} that waits for responses; '
                                           f'max_rd_atomic is {self.args.rd_atomic}')
        f.sent[p.psn] = (p.code, p.se, zlib.crc32(p.body))
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
            f.open = None

    def rewind(self, p, f):
        """The requester goes back: where to, why, and how often already."""
        if ahead(p.psn, f.una) > 0:
            self.complain(p, 'REQ-24', f'goes back to this PSN, although {f.una} is the oldest '
                                       'unacknowledged')
        elif p.time - f.passed.get(p.psn, p.time) > SPURIOUS_S:
            self.note(p, 'REQ-24', 'goes back to this PSN, acknowledged '
                                   f'{1000 * (p.time - f.passed[p.psn]):.0f} ms ago')
        waited = p.time - max(f.progress_at, f.rewind_at)
        f.rewind_at = p.time
        if f.rnr and p.psn == f.rnr[0] and not self.before_rnr(f, p, waited):
            if p.time < f.rnr[1]:
                self.complain(p, 'REQ-29', f'goes back {1000 * (f.rnr[1] - p.time):.3f} ms too soon '
                                           'after an RNR NAK')
            f.rnr = None
            return
        if not self.timeout_s or waited < EARLY * self.timeout_s:
            if f.causes:
                f.causes -= 1
            elif self.timeout_s:
                self.complain(p, 'REQ-22', f'goes back after {1000 * waited:.1f} ms without a NAK; the '
                                           f'time-out is {1000 * self.timeout_s:.1f} ms')
        elif f.gap_at:
            self.note(p, 'REQ-39', f'goes back for a gap in the READ responses that it saw '
                                   f'{1000 * (p.time - f.gap_at):.0f} ms ago')
        f.gap_at = None
        f.retries += 1
        if self.args.retry and f.retries > self.args.retry:
            self.complain(p, 'REQ-25', f'goes back for the {f.retries}th time without progress; '
                                       f'retry_cnt is {self.args.retry}')

    def before_rnr(self, f, p, waited):
        """It went back for what came before the RNR NAK, of which it does not know yet."""
        if p.time >= f.rnr[1]:
            return False
        if f.rnr[2]:
            f.rnr[2] -= 1
            return True
        return bool(self.timeout_s) and waited >= EARLY * self.timeout_s

    def retransmission(self, p, f):
        f.retransmitted += 1
        if p.op.kind == 'read':
            self.read_retry(p, f)
            return
        old = f.sent.get(p.psn)
        if not old:
            self.complain(p, 'REQ-48', 'sent again, but no request had this PSN')
        elif old != (p.code, p.se, zlib.crc32(p.body)):
            self.complain(p, 'REQ-48', 'sent again with another opcode, header or payload')

    def read_retry(self, p, f):
        """REQ-39: the remainder of an earlier request, at the PSN of the missing packet."""
        for r in reversed(f.first_reads):
            skip = ahead(p.psn, r.psn)
            if not 0 <= skip < r.packets:
                continue
            left, va = r.dmalen - skip * (f.mtu or 0), r.va + skip * (f.mtu or 0)
            if (p.va, p.rkey, p.dmalen) != (va, r.rkey, left):
                self.complain(p, 'REQ-39', f'asks for {p.dmalen} bytes at {p.va:#x} with key {p.rkey:#x}; '
                                           f'the rest of READ {r.psn} is {left} at {va:#x}, {r.rkey:#x}')
            return
        self.complain(p, 'REQ-39', 'is no part of an earlier READ request')

    # --- requests, as they are taken --------------------------------------------------

    def arrive(self, p, f, used):
        """RSP-01: what comes in order is taken, what came before is a duplicate, the rest is lost."""
        f.arrivals[p.psn] += 1
        late = ahead(p.psn, f.expect)
        if late > 0:
            f.early = p.psn if f.early is None or ahead(p.psn, f.early) > 0 else f.early
            return
        if p.op.kind == 'read':
            f.asked[p.psn] = p.dmalen
        elif p.op.kind == 'atomic':
            f.atomics.add(p.psn)
        if late < 0:
            return
        f.expect = (p.psn + used) & 0xffffff
        if p.op.waits:
            f.reads.append(Read(p, used))
        if p.op.last:
            f.ends.append(f.behind(p.psn))

    # --- what comes back to the requester ----------------------------------------------

    def came_back(self, p, f):
        """What the responses to f tell its sender: progress, or a reason to go back."""
        if p.op.kind in ('read_resp', 'atomic_ack'):
            r = next((r for r in f.reads_out if 0 <= ahead(p.psn, r.psn) < r.packets), None)
            if not r:
                return
            self.acknowledge(p, f, r.psn)
            if p.psn == f.una and r is f.reads_out[0]:
                r.got += 1
                if r.got == r.packets:
                    f.reads_out.pop(0)
                self.acknowledge(p, f, (p.psn + 1) & 0xffffff)
            elif ahead(p.psn, f.una) > 0:
                self.cause(f)       # REQ-39: responses are missing
                f.gap_at = f.gap_at or p.time
            return
        kind = p.syndrome >> 5 & 3
        upto = (p.psn + (kind == 0)) & 0xffffff
        self.acknowledge(p, f, upto)
        if ahead(upto, f.una) > 0 or p.syndrome & 0x7f == SEQUENCE_NAK:
            self.cause(f)           # REQ-38, REQ-28
        elif kind == 1 and p.psn == f.una and not f.rnr:
            f.retries = 0           # REQ-31: the peer is alive
            f.rnr = [p.psn, p.time + RNR_MS[p.syndrome & 31] / 1000, f.causes]

    @staticmethod
    def cause(f):
        """Two at most: one may be known to us before the requester has acted on the other."""
        f.causes = min(f.causes + 1, 2)

    @staticmethod
    def acknowledge(p, f, upto):
        """All before upto arrived, except for what lies behind a READ that lacks responses."""
        if f.reads_out:
            limit = (f.reads_out[0].psn + f.reads_out[0].got) & 0xffffff
            upto = limit if ahead(upto, limit) > 0 else upto
        if ahead(upto, f.una) <= 0 or ahead(upto, f.next) > 0:
            return
        while f.una != upto:
            f.passed[f.una] = p.time
            f.una = (f.una + 1) & 0xffffff
        f.progress_at, f.retries, f.gap_at = p.time, 0, None
        if f.rnr and ahead(f.una, f.rnr[0]) > 0:
            f.rnr = None

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
        elif p.op.kind == 'atomic_ack':
            self.atomic_response(p, f, g)
        elif p.op.kind == 'ack':
            self.acknowledgement(p, f, g)
        self.came_back(p, g)

    def aeth(self, p, f, g):
        kind, code = p.syndrome >> 5 & 3, p.syndrome & 31
        if p.syndrome & 0x80 or kind == 2 or kind == 3 and code > 4:
            self.complain(p, 'REQ-46', f'AETH syndrome {p.syndrome:#04x} is reserved')
        if kind and p.op.kind != 'ack':
            self.complain(p, 'REQ-43', f'AETH syndrome {p.syndrome:#04x} is no ACK')
        self.naks += bool(kind) and self.is_ours(p)
        f.fatal |= kind == 3 and code != 0
        # A response to a duplicate READ or ATOMIC may carry the MSN of its time.
        if p.op.kind == 'ack':
            if ahead(p.msn, f.msn) < 0:
                self.complain(p, 'RSP-25', f'MSN {p.msn} after {f.msn}')
            f.msn = p.msn
        least = (bisect_left if kind else bisect_right)(g.ends, g.behind(p.psn))
        if not least <= p.msn <= len(g.ends):
            self.complain(p, 'RSP-25', f'MSN {p.msn}; {least} messages end at or before PSN '
                                       f'{p.psn}, {len(g.ends)} have come')

    def acknowledgement(self, p, f, g):
        kind = p.syndrome >> 5 & 3
        if kind == 0:
            if ahead(p.psn, g.expect) >= 0:
                self.complain(p, 'RSP-23', f'acknowledges this PSN, although {g.expect} has not come')
            if f.acked is not None and ahead(p.psn, f.acked) < 0:
                self.complain(p, 'RSP-39', f'acknowledges this PSN after {f.acked}')
            else:
                f.acked = p.psn
        elif kind != 2:
            self.negative(p, f, g, kind)
        g.reads_answered = next((n for n in range(g.reads_answered, len(g.reads))
                                 if g.reads[n].got < g.reads[n].packets), len(g.reads))
        if g.reads_answered < len(g.reads):
            r = g.reads[g.reads_answered]
            if ahead(p.psn, r.end) >= (0 if kind == 0 else 1):
                self.complain(p, 'RSP-27', f'overtakes the responses to the READ at PSN {r.psn}')

    def negative(self, p, f, g, kind):
        """A NAK: of kind 1 (RNR) or 3. Only as many as the packets that they answer: more than one
        packet may have come before the first is dealt with."""
        if ahead(p.psn, g.expect) > 0:
            self.complain(p, 'RSP-02', f'does not acknowledge what is before {g.expect}')
        if f.acked is not None and ahead(p.psn, f.acked) <= 0:
            self.complain(p, 'RSP-02', f'a NAK of this PSN, although {f.acked} is acknowledged')
        came = g.arrivals[p.psn]
        if kind == 1:
            f.rnr_naks[p.psn] += 1
            if f.rnr_naks[p.psn] > came:
                self.complain(p, 'RSP-16', f'RNR NAK number {f.rnr_naks[p.psn]}, but this PSN came '
                                           f'{came} times')
        elif p.syndrome & 0x7f == SEQUENCE_NAK:
            f.sequence_naks[p.psn] += 1
            if f.sequence_naks[p.psn] > 1 + came:
                self.complain(p, 'RSP-03', f'sequence NAK number {f.sequence_naks[p.psn]}, but this PSN '
                                           f'came {came} times')
            # A request refused by an RNR NAK is not known here to be missing.
            if not f.rnr_naks and (g.early is None or ahead(g.early, p.psn) < 0):
                self.complain(p, 'RSP-01', 'a sequence NAK, but nothing has come out of sequence')
            if f.rnr_naks[p.psn]:
                self.note(p, 'RSP-18', 'a sequence NAK behind an RNR NAK of the same PSN')

    def answers(self, p, f, g):
        if ahead(p.psn, g.expect) >= 0:
            self.complain(p, 'RSP-23', f'answers this PSN, although {g.expect} has not come')
        if p.psn not in f.answered:
            f.answered.add(p.psn)
            n = bisect_right(g.reads, g.behind(p.psn), key=lambda r: g.behind(r.psn)) - 1
            if n >= 0 and ahead(g.reads[n].end, p.psn) > 0:
                g.reads[n].got += 1

    def atomic_response(self, p, f, g):
        self.answers(p, f, g)
        if p.psn not in g.atomics:
            self.complain(p, 'RSP-36', 'answers a PSN that no ATOMIC has')
        elif f.results.setdefault(p.psn, p.orig) != p.orig:
            self.complain(p, 'RSP-36', f'says {p.orig:#x}, but {f.results[p.psn]:#x} the first time')

    def read_response(self, p, f, g):
        self.answers(p, f, g)
        goes_on = f.resp and p.psn == f.resp_next and not p.op.first
        if not goes_on and p.psn not in g.asked:
            self.complain(p, 'RSP-28', 'begins a response at a PSN that no READ request has' if p.op.first
                          else 'continues no READ response')
            f.resp = None
            return
        if not goes_on:
            if not p.op.first:
                self.complain(p, 'RSP-43', 'begins the responses to a READ request')
            f.resp = Message(p, g.asked[p.psn])
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
            for r in f.peer.reads:
                missing = [k for k in range(r.packets) if (r.psn + k) & 0xffffff not in f.answered]
                if missing:
                    self.complaints.append(
                        f'RSP-28: the request for {r.dmalen} bytes at PSN {r.psn} from {f.key[2]} was '
                        f'answered without packet {missing[0]} of {r.packets}')
