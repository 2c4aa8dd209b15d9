# SPDX-License-Identifier: BSD-3-Clause
"""A model of the RC responder, written from RSP-* of conformance, and random requesters for it."""
import struct

from wire import NAK_ACC, NAK_INV, NAK_SEQ, opcode_of
from world import psn_near

MASK = 0xFFFFFF
CMP_SWAP, FETCH_ADD = 0x13, 0x14
FLUSH, ATOMIC_WRITE = 0x1C, 0x1D
ONCE = (CMP_SWAP, FETCH_ADD, FLUSH, ATOMIC_WRITE)       # never executed again
RIGHTS = 'LOCAL_WRITE|REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC|FLUSH_GLOBAL'


def u64(v):
    """Files may say it either way, and JSON has no largest number."""
    return v if v & 1 else '0x%x' % v


def diff(a, b):
    d = (a - b) & MASK
    return d - (1 << 24) if d & 0x800000 else d


class Reply:
    def __init__(self):
        self.tx, self.alternatives, self.cqes = [], [], []


class Responder:
    """what a QP of B owes to each packet"""

    def __init__(self, world, setup):
        self.w = world
        self.mtu = setup['path_mtu']
        self.epsn = int(str(setup['B_expected_psn']), 0)
        self.msn = setup['B_msn']
        self.rnr_timer = setup['B_min_rnr_timer']
        self.recv_len = setup['recv_len']
        self.kept = setup['max_dest_rd_atomic']
        self.posted = list(range(setup['recv_wqes']))
        self.posts = len(self.posted)
        self.taken = None               # the WQE of the open SEND
        self.open, self.state = None, 'RTS'
        self.nak_sent = self.rnr_sent = False
        self.got = self.left = self.at = self.total = 0
        self.ring = []                  # of READs and ATOMICs, to answer again: RSP-37
        self.newest = (self.epsn - 1) & MASK    # SEND or WRITE packet
        self.memory = bytearray(world.mr['length'])

    def post(self, n):
        self.posted += range(self.posts, self.posts + n)
        self.posts += n

    def aeth(self, psn, syndrome):
        return {'opcode': 0x11, 'psn': psn & MASK, 'syndrome': syndrome, 'msn': self.msn,
                'dest_qp': self.w.sides['A']['qpn']['RC'], 'payload_len': 0, 'ackreq': 0, 'se': 0,
                'pad': 0, 'pkey': self.w.pkey}

    def ack(self, psn):
        return self.aeth(psn, 'ack')

    def flush(self, r):
        if self.taken is not None:
            r.cqes.append({'opcode': 'RECV', 'status': 'WR_FLUSH_ERR', 'recv_index': self.taken})
        r.cqes += [{'status': 'WR_FLUSH_ERR', 'recv_index': i} for i in self.posted]
        self.posted, self.taken, self.state = [], None, 'ERR'

    def fatal(self, r, syndrome):
        r.tx = [self.aeth(self.epsn, syndrome)]
        self.flush(r)
        return r

    def receive(self, p):
        r = Reply()
        if self.state == 'ERR':
            return r
        d = diff(p.psn, self.epsn)
        if d > 0:
            nak = self.aeth(self.epsn, NAK_SEQ)
            if self.rnr_sent:
                r.alternatives = [[nak]]                        # RSP-18
            elif not self.nak_sent:
                r.tx = [nak]
                self.nak_sent = True
            return r
        if d < 0:
            return self.duplicate(r, p)
        return self.expected(r, p)

    # --- the expected packet ------------------------------------------------------------------

    def expected(self, r, p):
        kind = 'SEND' if p.op <= 5 else 'WRITE' if p.op <= 0xB else 'READ' if p.op == 0xC else \
            'ONCE' if p.op in ONCE else None
        first = p.op in (0, 4, 5, 6, 0xA, 0xB, 0xC) + ONCE
        last = p.op in (2, 3, 4, 5, 8, 9, 0xA, 0xB, 0xC) + ONCE
        imm = 'immdt' in p.eths
        n = len(p.payload)
        if kind is None or (self.open if first else self.open != kind):
            return self.fatal(r, NAK_INV)                       # RSP-05..07, VAL-05
        if kind == 'READ':
            return self.read(r, p)
        if kind == 'ONCE':
            return {FLUSH: self.flush_memory, ATOMIC_WRITE: self.atomic_write}.get(p.op, self.atomic)(r, p)
        if ((kind == 'SEND' and first) or imm and kind == 'WRITE') and self.taken is None:
            if not self.posted:
                r.tx = [self.aeth(self.epsn, 0x20 | self.rnr_timer)]    # RSP-16, RSP-17
                self.rnr_sent = True
                return r
            self.taken = self.posted.pop(0)
            self.got = 0
        if n > self.mtu or (not last and n != self.mtu) or (last and not first and not n):
            return self.fatal(r, NAK_INV)                       # RSP-09
        if kind == 'SEND' and self.got + n > self.recv_len:     # RSP-20
            r.cqes = [{'status': 'LOC_LEN_ERR', 'recv_index': self.taken}]
            self.taken = None
            return self.fatal(r, NAK_INV)
        if kind == 'WRITE' and not self.write(p, first, last):
            return self.fatal(r, self.why)
        self.got += n if kind == 'SEND' else 0
        self.newest = self.epsn
        self.epsn = (self.epsn + 1) & MASK
        self.nak_sent = self.rnr_sent = False
        self.open = None if last else kind
        if last:
            self.msn = (self.msn + 1) & MASK
            if kind == 'SEND' or imm:
                c = {'opcode': 'RECV' if kind == 'SEND' else 'RECV_RDMA_WITH_IMM',
                     'status': 'SUCCESS', 'recv_index': self.taken,
                     'byte_len': self.got if kind == 'SEND' else self.total, 'solicited': p.se}
                if imm:
                    c['imm'] = '0x%08x' % p.eths['immdt']['value']
                r.cqes.append(c)
                self.taken = None
        if p.a:
            r.tx = [self.ack(p.psn)]
        return r

    def write(self, p, first, last):
        if first:
            h = p.eths['reth']
            self.at, self.left, self.total = h['va'] - self.w.mr['va'], h['dmalen'], h['dmalen']
            self.why = NAK_ACC
            if h['dmalen'] and (h['rkey'] != self.w.mr['rkey'] or self.at < 0 or
                                self.at + h['dmalen'] > len(self.memory)):
                return False
        n = len(p.payload)
        self.why = NAK_INV
        if n != self.left if last else n > self.left:           # RSP-11
            return False
        if n:
            self.memory[self.at:self.at + n] = p.payload
        self.at, self.left = self.at + n, self.left - n
        return True

    def responses(self, psn, at, length, msn):
        n = max(1, -(-length // self.mtu))
        out = []
        for i in range(n):
            part = min(self.mtu, length - i * self.mtu)
            op = 0x10 if n == 1 else 0x0D if not i else 0x0F if i == n - 1 else 0x0E
            x = {'opcode': op, 'psn': (psn + i) & MASK, 'payload_len': part,
                 'dest_qp': self.w.sides['A']['qpn']['RC'], 'pad': -part & 3,
                 'payload': self.memory[at + i * self.mtu:at + i * self.mtu + part].hex()
                 if part else ''}
            if op != 0x0E:
                x['syndrome'] = 'ack'
                if msn is not None:
                    x['msn'] = msn
            out.append(x)
        return out

    def read(self, r, p):
        h = p.eths['reth']
        at = h['va'] - self.w.mr['va']
        if h['dmalen'] > 1 << 31:
            return self.fatal(r, NAK_INV)
        if not self.kept:
            return self.fatal(r, NAK_INV)
        if h['dmalen'] and (h['rkey'] != self.w.mr['rkey'] or at < 0 or
                            at + h['dmalen'] > len(self.memory)):
            return self.fatal(r, NAK_ACC)
        self.msn = (self.msn + 1) & MASK
        r.tx = self.responses(p.psn, at, h['dmalen'], self.msn)
        self.remember((p.psn, len(r.tx), h['rkey'], h['va'], h['dmalen'], None))
        return r

    def remember(self, entry):
        self.ring = (self.ring + [entry])[-self.kept:]
        self.epsn = (entry[0] + entry[1]) & MASK
        self.nak_sent = self.rnr_sent = False

    def atomic_ack(self, psn, orig, msn):
        x = {'opcode': 0x12, 'psn': psn, 'syndrome': 'ack', 'payload_len': 0, 'pad': 0, 'ackreq': 0, 'se': 0,
             'dest_qp': self.w.sides['A']['qpn']['RC'], 'pkey': self.w.pkey, 'orig': u64(orig)}
        if msn is not None:
            x['msn'] = msn
        return x

    def atomic(self, r, p):
        """RSP-32, RSP-33, RSP-34, RSP-36"""
        h = p.eths['atomiceth']
        at = h['va'] - self.w.mr['va']
        if not self.kept:
            return self.fatal(r, NAK_INV)                       # RSP-30
        if h['rkey'] != self.w.mr['rkey'] or at < 0 or at + 8 > len(self.memory):
            return self.fatal(r, NAK_ACC)                       # RSP-13
        if at % 8:
            return self.fatal(r, NAK_INV)
        orig, = struct.unpack('<Q', self.memory[at:at + 8])     # of this machine, little-endian
        if p.op == FETCH_ADD:
            new = (orig + h['swap_add']) & ((1 << 64) - 1)
        else:
            new = h['swap_add'] if orig == h['cmp'] else orig
        self.memory[at:at + 8] = struct.pack('<Q', new)
        self.msn = (self.msn + 1) & MASK
        self.remember((p.psn, 1, h['rkey'], h['va'], 8, orig))
        r.tx = [self.atomic_ack(p.psn, orig, self.msn)]
        return r

    def read_ack(self, psn, msn):
        """FLU-02, FLU-09"""
        x = self.aeth(psn, 'ack')
        x['opcode'] = 0x10
        if msn is None:
            del x['msn']
        return x

    def flush_memory(self, r, p):
        """FLU-01..05"""
        h, f = p.eths['reth'], p.eths['feth']
        at = h['va'] - self.w.mr['va']
        if not self.kept:
            return self.fatal(r, NAK_INV)                       # FLU-03
        whole = f['sel'] == 1
        if (h['dmalen'] or whole) and (h['rkey'] != self.w.mr['rkey'] or f['plt'] & 2):
            return self.fatal(r, NAK_ACC)                       # FLU-04
        if not whole and h['dmalen'] and (at < 0 or at + h['dmalen'] > len(self.memory)):
            return self.fatal(r, NAK_ACC)
        return self.once(r, p, 'flush')

    def atomic_write(self, r, p):
        """FLU-08"""
        h = p.eths['reth']
        at = h['va'] - self.w.mr['va']
        if not self.kept:
            return self.fatal(r, NAK_INV)
        if h['rkey'] != self.w.mr['rkey'] or at < 0 or at + 8 > len(self.memory):
            return self.fatal(r, NAK_ACC)
        if h['va'] % 8:
            return self.fatal(r, NAK_INV)
        self.memory[at:at + 8] = p.payload
        return self.once(r, p, 'word')

    def once(self, r, p, what):
        h = p.eths['reth']
        self.msn = (self.msn + 1) & MASK
        self.remember((p.psn, 1, h['rkey'], h['va'], h['dmalen'], what))
        r.tx = [self.read_ack(p.psn, self.msn)]
        return r

    # --- duplicates ------------------------------------------------------------------------------

    def duplicate(self, r, p):
        if p.op == 0xC:
            h = p.eths['reth']
            for psn, n, rkey, va, length, orig in self.ring:
                i = diff(p.psn, psn)
                off = h['va'] - va
                if orig is None and 0 <= i < n and rkey == h['rkey'] and off == i * self.mtu and \
                        0 <= off and off + h['dmalen'] <= length:
                    r.tx = self.responses(p.psn, h['va'] - self.w.mr['va'], h['dmalen'], None)
            return r                                            # RSP-40
        if p.op in (CMP_SWAP, FETCH_ADD):                       # RSP-36, RSP-38: saved, not executed
            r.tx = [self.atomic_ack(psn, orig, None) for psn, _, _, _, _, orig in self.ring
                    if psn == p.psn and isinstance(orig, int)]
            return r
        if p.op in (FLUSH, ATOMIC_WRITE):                       # FLU-06, FLU-09
            what = 'flush' if p.op == FLUSH else 'word'
            r.tx = [self.read_ack(psn, None) for psn, _, _, _, _, orig in self.ring
                    if psn == p.psn and orig == what]
            return r
        if p.op > 0xC:
            return r
        ack = self.ack(self.epsn - 1)                           # RSP-39
        others = [[self.ack(self.newest)]]
        if p.a:
            r.tx, r.alternatives = [ack], others
        else:
            r.alternatives = [[ack]] + others
        return r


class RandomRequests:
    """a requester that loses, repeats, hurries, and now and then breaks the rules"""
    model = Responder

    def __init__(self, world, index):
        self.w, self.rng = world, world.rng
        r = self.rng
        self.kind = r.choice(['v4', 'v4', 'v6', 'v1', 'v1m'])
        mtu = r.choice([m for m in (256, 512, 1024, 2048, 4096) if m <= world.mtu] + [256] * 3)

        self.setup = {'B_msn': r.choice([0, 0, world.msn, 0xFFFFFF]),
                      'B_expected_psn': psn_near(r), 'path_mtu': mtu,
                      'recv_wqes': r.choice([0, 1, 1, 2, 5]), 'recv_len': r.choice([4096, 4 * mtu]),
                      'B_min_rnr_timer': r.randrange(32),
                      'max_dest_rd_atomic': r.choice([1, 2, 4, 16]),
                      'B_mr_access': RIGHTS, 'B_rc_access': RIGHTS + '|FLUSH_PERSISTENT'}
        self.m = self.model(world, self.setup)
        self.name = 'responder_%s_%d' % (self.kind, index)
        self.steps, self.history, self.left = [], [], []
        self.psn = self.m.epsn
        if r.random() < .3:
            v = r.getrandbits(64)
            self.setup['B_memory_u64'] = u64(v)
            self.m.memory[:8] = struct.pack('<Q', v)
        self.setup = {k: v for k, v in self.setup.items()
                      if k in ('B_expected_psn', 'B_msn', 'path_mtu', 'max_dest_rd_atomic',
                               'B_memory_u64', 'recv_wqes', 'recv_len', 'B_min_rnr_timer',
                               'B_mr_access', 'B_rc_access')}

    def packet(self, op, psn, eths, payload, **kw):
        p = self.w.packet(op, psn, eths, payload, kind=self.kind, **kw)
        p.ident = 0
        return p

    def atomic(self, **wrong):
        """often of the first word, which each step compares, and often of the value that is there"""
        r, w = self.rng, self.w
        off = r.choice([0, 0, 0, 8, 8 * r.randrange(w.mr['length'] // 8)])
        there, = struct.unpack('<Q', bytes(self.m.memory[off:off + 8]))
        p = self.packet(r.choice([CMP_SWAP, FETCH_ADD]), self.psn, {'atomiceth': {
            'va': w.mr['va'] + off, 'rkey': w.mr['rkey'], 'cmp': r.choice([there, there, there ^ 1 << 63]),
            'swap_add': r.choice([1, (1 << 64) - 1, r.getrandbits(64)]), **wrong}}, b'', a=1)
        self.psn = (self.psn + 1) & MASK
        return p

    def flush(self, **wrong):
        r, w = self.rng, self.w
        n = r.choice([0, 1, 64, w.mr['length']])
        p = self.packet(FLUSH, self.psn, {'feth': {'plt': 1, 'sel': r.randrange(2), **wrong},
                                          'reth': w.reth(0, n)}, b'', a=1)
        self.psn = (self.psn + 1) & MASK
        return p

    def atomic_write(self, off=0):
        p = self.packet(ATOMIC_WRITE, self.psn, {'reth': self.w.reth(off, 8)}, self.rng.randbytes(8), a=1)
        self.psn = (self.psn + 1) & MASK
        return p

    def longest_send(self):
        return self.m.recv_len

    def message(self):
        """packets of one good message, with its PSNs"""
        r, w, mtu = self.rng, self.w, self.m.mtu
        kind = r.choice(['SEND', 'SEND', 'WRITE', 'WRITE', 'READ', 'ATOMIC', 'FLUSH',
                         'ATOMIC_WRITE'])
        if kind == 'ATOMIC':
            return [self.atomic()]
        if kind == 'FLUSH':
            return [self.flush()]
        if kind == 'ATOMIC_WRITE':
            return [self.atomic_write(r.choice([0, 0, 8]))]
        n = r.choice([0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 3, 3 * mtu + 5])
        if kind == 'SEND':
            n = min(n, self.longest_send())
        off = r.choice([0, 0, 8, r.randrange(w.mr['length'] - n + 1)])
        if kind == 'READ':
            p = self.packet(0xC, self.psn, {'reth': w.reth(off, n)}, b'', a=1)
            self.psn = (self.psn + max(1, -(-n // mtu))) & MASK
            return [p]
        imm = r.random() < .3
        se = r.randrange(2) if imm or kind == 'SEND' else 0
        parts = [r.randbytes(min(mtu, n - i)) for i in range(0, n, mtu)] or [b'']
        out = []
        for i, part in enumerate(parts):
            first, last = i == 0, i == len(parts) - 1
            op = opcode_of(kind, first, last, imm)
            eths = {}
            if kind == 'WRITE' and first:
                eths['reth'] = w.reth(off, n)
            if imm and last:
                eths['immdt'] = {'value': r.getrandbits(32)}
            out.append(self.packet(op, self.psn, eths, part, a=1 if last else r.choice([0, 0, 1]),
                                   se=se if last else 0))
            self.psn = (self.psn + 1) & MASK
        return out

    def step(self, p, frame=None, reply=None):
        r = self.m.receive(p) if reply is None else reply
        s = {'rx': (frame or p.build()[0]).hex(), 'tx': r.tx}
        if r.alternatives:
            s['tx_alternatives'] = r.alternatives
        s['cqes'] = r.cqes
        s['qp_state'] = self.m.state
        s['expected_psn'] = self.m.epsn
        s['memory_u64'] = u64(struct.unpack('<Q', bytes(self.m.memory[:8]))[0])
        self.steps.append(s)

    def wrong(self):
        """something that must not be taken"""
        r = self.rng
        p = self.packet(0x04, self.m.epsn, {}, b'zzzz', a=1)
        what = r.randrange(4)
        if what == 0:
            p.icrc_mode = 'flip%d' % r.randrange(32)
        elif what == 1:
            p.pkey ^= 1
        elif what == 2:
            p.src = {'v4': '198.51.100.1', 'v6': '2001:db8:ffff::1'}.get(p.kind, 'fe80::dead')
        else:
            p.dest_qp ^= 1 << 20
        self.step(p, reply=Reply())

    def again(self):
        """a duplicate; of a READ perhaps only a part, or with another key"""
        r = self.rng
        p = r.choice(self.history)
        if diff(p.psn, self.m.epsn) >= 0:
            return
        if p.op & 0x1F == 0xC and r.random() < .6:
            h = dict(p.eths['reth'])
            n = max(1, -(-h['dmalen'] // self.m.mtu))
            i = r.randrange(n)
            h['va'] += i * self.m.mtu
            h['dmalen'] = max(0, h['dmalen'] - i * self.m.mtu)
            if r.random() < .2:
                h['rkey'] ^= 1
            elif r.random() < .2 and h['dmalen'] > 1:
                h['dmalen'] -= r.randrange(h['dmalen'])
            elif r.random() < .1:
                h['va'] -= 1
            p = self.packet(0xC, p.psn + i, {'reth': h}, b'', a=1)
        self.step(p)

    def breach(self):
        """a request that ends the connection"""
        r, w, m = self.rng, self.w, self.m
        psn = m.epsn
        choice = r.randrange(12)
        if choice > 9:                              # FLU-04, FLU-08
            if m.open:
                return
            self.psn = psn
            p = self.atomic_write(4) if choice == 10 else self.flush(plt=3, sel=1)
        elif choice > 7:                              # RSP-13, RSP-32
            if m.open:
                return
            self.psn = psn
            p = self.atomic(va=w.mr['va'] + (4 if choice == 8 else (w.mr['length'] + 7) // 8 * 8))
        elif choice > 5:                              # RSP-09, RSP-11, RSP-20, inside a message
            if not m.open:
                return
            op = (2 if m.open == 'SEND' else 8) - r.randrange(2)
            n = r.choice([0, m.mtu + 4, m.mtu - 4] if op in (1, 7) else [0, m.mtu + 1])
            p = self.packet(op, psn, {}, bytes(n), a=1)
        elif choice == 0:                             # RSP-05: does not belong here
            op = r.choice([1, 2, 7, 8]) if not m.open else r.choice([0, 4, 6, 0xA, 0xC, FETCH_ADD])
            n = m.mtu if op in (0, 1, 6, 7) else 8
            eths = {'reth': w.reth(0, 3 * m.mtu if op == 6 else 8)} if op in (6, 0xA, 0xC) else {}
            if op == FETCH_ADD:
                eths = self.atomic().eths
            p = self.packet(op, psn, eths, b'' if op in (0xC, FETCH_ADD) else bytes(n), a=1)
        elif choice == 1:                           # RSP-06
            op = {'SEND': r.choice([7, 8]), 'WRITE': r.choice([1, 2])}.get(m.open, 7)
            p = self.packet(op, psn, {}, bytes(m.mtu), a=1)
        elif choice == 2:                           # VAL-05
            p = self.packet(r.choice([0x15, 0x18, 0x1F]), psn, {}, b'', a=1)
        elif m.open:
            return
        elif choice == 3:                           # RSP-13
            p = self.packet(0xA, psn, {'reth': w.reth(w.mr['length'] - 7, 8)}, bytes(8), a=1)
        elif choice == 4:
            p = self.packet(0xC, psn, {'reth': w.reth(0, 8, w.mr['rkey'] ^ 1)}, b'', a=1)
        else:                                       # RSP-11
            p = self.packet(0xA, psn, {'reth': w.reth(0, 12)}, bytes(8), a=1)
        self.step(p)

    def next(self):
        """the packet that the responder waits for: the sender goes on from there"""
        if not self.left:
            self.psn = self.m.epsn
            self.left = self.message()
        p = self.left[0]
        before = self.m.epsn
        self.step(p)
        if self.m.epsn != before:
            self.history.append(self.left.pop(0))

    def ahead(self):
        p = self.left[0] if self.left else self.packet(4, self.m.epsn, {}, b'1234', a=1)
        q = self.packet(0x04, p.psn + self.rng.choice([1, 1, 2, 1000, 1 << 22]), {},
                        b'abcd', a=1)
        self.step(q)

    def post(self):
        n = self.rng.choice([1, 1, 2])
        self.m.post(n)
        self.steps.append({'post_recv': n})

    def run(self):
        for _ in range(self.rng.randrange(3, 25)):
            x = self.rng.random()
            if self.m.state == 'ERR':
                self.step(self.packet(4, self.m.epsn, {}, b'late', a=1))
                break
            if x < .62:
                self.next()
            elif x < .74 and self.history:
                self.again()
            elif x < .82:
                self.ahead()
            elif x < .87:
                self.wrong()
            elif x < .98:
                self.post()
            else:
                self.breach()
        return {'name': self.name, 'side': 'responder', 'rule': 'RSP-*', 'setup': self.setup,
                'steps': self.steps or [{'tx': []}]}


