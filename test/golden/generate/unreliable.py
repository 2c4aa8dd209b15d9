# SPDX-License-Identifier: BSD-3-Clause
"""A model of the UC responder, written from UC-* of conformance, and random requesters for it."""
import struct

from responder import MASK, Reply, Responder, RandomRequests, u64

UC = 0x20


class UnreliableResponder(Responder):
    """what a UC QP of B makes of each packet; it never answers (UC-02)"""

    def abort(self, r):
        """UC-06: a receive WQE that the message has is the next one's"""
        self.open, self.got = None, 0

    def too_long(self, r):
        """UC-10: for its receive WQE, which is the next one's"""

    def receive(self, p):
        r = Reply()
        op = p.op - UC
        kind = 'SEND' if op <= 5 else 'WRITE'
        first, last = op in (0, 4, 5, 6, 0xA, 0xB), op in (2, 3, 4, 5, 8, 9, 0xA, 0xB)
        if p.psn != self.epsn or first:                         # UC-04, UC-07
            self.abort(r)
        if not first and self.open != kind:                     # UC-05
            return r
        if not self.accept(r, p, kind, first, last):            # UC-09, UC-10, UC-13
            self.abort(r)
            return r
        self.open = None if last else kind
        self.epsn = (p.psn + 1) & MASK
        return r

    def accept(self, r, p, kind, first, last):
        n, imm = len(p.payload), 'immdt' in p.eths
        if n > self.mtu or (not last and n != self.mtu) or (last and not first and not n):
            return False
        before = self.at, self.left, self.total, bytes(self.memory)
        if kind == 'WRITE' and not self.write(p, first, last):
            return False
        if (first if kind == 'SEND' else imm) and self.taken is None:
            if not self.posted:
                self.at, self.left, self.total, self.memory = *before[:3], bytearray(before[3])
                return False
            self.taken = self.posted.pop(0)
        if kind == 'SEND' and self.got + n > self.recv_len:
            self.too_long(r)
            return False
        self.got += n if kind == 'SEND' else 0
        if last and (kind == 'SEND' or imm):
            c = {'opcode': 'RECV' if kind == 'SEND' else 'RECV_RDMA_WITH_IMM', 'status': 'SUCCESS',
                 'recv_index': self.taken, 'byte_len': self.got if kind == 'SEND' else self.total,
                 'solicited': p.se}
            if imm:
                c['imm'] = '0x%08x' % p.eths['immdt']['value']
            r.cqes.append(c)
            self.taken = None
        return True


class UnreliableRequests(RandomRequests):
    """a requester whose packets are lost, doubled, late and wrong"""
    model = UnreliableResponder

    def __init__(self, world, index):
        super().__init__(world, index)
        self.name = 'uc_responder_%s_%d' % (self.kind, index)
        self.m.recv_len = self.setup['recv_len'] = self.rng.choice([self.m.mtu + 1, 2 * self.m.mtu, 4096])
        self.setup = {'qp_type': 'UC', **{k: v for k, v in self.setup.items() if k in (
            'B_expected_psn', 'path_mtu', 'B_memory_u64', 'recv_wqes', 'recv_len')}}

    def packet(self, op, psn, eths, payload, **kw):
        p = super().packet(op | UC, psn, eths, payload, **kw)
        p.dest_qp = self.w.sides['B']['qpn']['UC']
        return p

    def longest_send(self):
        return 4 * self.m.mtu                               # UC-10: harms nobody

    def message(self):
        """without READs and ATOMICs"""
        while True:
            psn = self.psn
            packets = super().message()
            if packets[0].op - UC <= 0xB:
                return packets
            self.psn = psn

    def step(self, p, frame=None, reply=None):
        r = self.m.receive(p) if reply is None else reply
        self.steps.append({'rx': p.build()[0].hex(), 'tx': [], 'cqes': r.cqes, 'qp_state': 'RTS',
                           'memory_u64': u64(struct.unpack('<Q', bytes(self.m.memory[:8]))[0])})

    def next(self):
        if not self.left:
            self.left = self.message()
        p = self.left.pop(0)
        self.history.append(p)
        self.step(p)

    def lose(self):
        if self.left:
            self.history.append(self.left.pop(0))

    def spoil(self):
        """a packet of the message with another length, key or address"""
        if not self.left:
            self.left = self.message()
        r, p = self.rng, self.left.pop(0)
        if 'reth' in p.eths and r.random() < .5:
            p.eths['reth'] = r.choice([self.w.reth(0, p.eths['reth']['dmalen'], self.w.mr['rkey'] ^ 1),
                                       self.w.reth(self.w.mr['length'] - 3, p.eths['reth']['dmalen']),
                                       self.w.reth(0, p.eths['reth']['dmalen'] + 1)])
        else:
            p.payload = bytes(r.choice([0, len(p.payload) + 4, self.m.mtu, self.m.mtu + 4]))
        self.step(p)

    def run(self):
        for _ in range(self.rng.randrange(3, 30)):
            x = self.rng.random()
            if x < .6:
                self.next()
            elif x < .67:
                self.lose()
            elif x < .74:
                self.spoil()
            elif x < .79:
                self.wrong()
            elif x < .85:
                self.left = self.message()      # UC-07: the open one is given up
            elif x < .91 and self.history:
                self.step(self.rng.choice(self.history))
            else:
                self.post()
        return {'name': self.name, 'side': 'responder', 'rule': 'UC-*', 'setup': self.setup,
                'steps': self.steps or [{'tx': []}]}
