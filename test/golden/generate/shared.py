# SPDX-License-Identifier: BSD-3-Clause
"""Receives that are not a queue pair's own, from SRQ-*, UC-06 and XRC-*: an SRQ under RC and UC, and the
XRC target, which finds one by the number in each request. And the XRC initiator."""
import copy

from requester import RandomResponses, Requester
from responder import MASK, RandomRequests, Responder
from unreliable import UnreliableRequests, UnreliableResponder
from wire import opcode_of

XRC = 0xA0
NAK_INV = 0x61


class SharedResponder(Responder):
    def flush(self, r):
        """SRQ-07: what is posted is for others"""
        posted, self.posted = self.posted, []
        super().flush(r)
        self.posted = posted

    def ack(self, psn):
        return self.aeth(psn, 0x1F)                         # SRQ-06


class SharedRequests(RandomRequests):
    model = SharedResponder

    def __init__(self, world, index):
        super().__init__(world, index)
        self.name = 'srq_' + self.name
        self.setup['srq'] = True


class SharedUnreliable(UnreliableResponder):
    def abort(self, r):
        """UC-06: its receive completes in error"""
        if self.taken is not None:
            r.cqes.append({'status': 'REM_INV_REQ_ERR', 'recv_index': self.taken})
            self.taken = None
        super().abort(r)

    def too_long(self, r):
        """UC-10, and RSP-20 of the receive, which is not kept"""
        r.cqes.append({'status': 'LOC_LEN_ERR', 'recv_index': self.taken})
        self.taken = None


class SharedUnreliableRequests(UnreliableRequests):
    model = SharedUnreliable

    def __init__(self, world, index):
        super().__init__(world, index)
        self.name = 'srq_' + self.name
        self.setup['srq'] = True

    def longer_than_its_receive(self):
        """UC-10, in every file instead of by chance"""
        m = self.m
        m.post(1)
        self.steps.append({'post_recv': 1})
        for at in range(0, m.recv_len + 1, m.mtu):
            n = min(m.mtu, m.recv_len + 1 - at)
            op = opcode_of('SEND', at == 0, at + n > m.recv_len, False)
            self.step(self.packet(op, self.psn, {}, b'z' * n))
            self.psn = (self.psn + 1) & MASK

    def run(self):
        self.longer_than_its_receive()
        return super().run()


class Target(SharedResponder):
    """RC's responder with other numbers"""

    def receive(self, p):
        q = copy.copy(p)
        q.op = p.op - XRC
        named = p.eths.get('xrceth', {}).get('srqn')
        takes = q.op in (0, 4, 5, 9, 0xB) and self.state == 'RTS' and p.psn == self.epsn and self.taken is None
        if takes and named != self.srqn and not (self.open and q.op in (0, 4, 5)) and \
                not (q.op == 9 and self.open != 'WRITE') and not (q.op == 0xB and self.open):
            r = self.unknown(q)                             # XRC-04
        else:
            r = super().receive(q)
        for tx in [r.tx] + r.alternatives:
            for x in tx:
                x['opcode'] += XRC
                x['dest_qp'] = self.w.sides['A']['qpn']['XRCI']
        for c in r.cqes:
            c['srqn'] = self.srqn                           # XRC-05
        return r

    def unknown(self, p):
        saved, self.posted = self.posted, []
        r = super().receive(p)
        self.posted = saved
        if r.tx and r.tx[0].get('syndrome', 0) == 0x20 | self.rnr_timer:
            self.rnr_sent = False
            r.tx = []
            self.fatal(r, NAK_INV)
        return r


class TargetRequests(RandomRequests):
    model = Target

    def __init__(self, world, index):
        self.srqn = world.rng.randrange(1, 1 << 24)
        super().__init__(world, index)
        self.m.srqn = self.srqn
        self.name = 'xrc_' + self.name
        self.setup['qp_type'] = 'XRCT'
        # The runner's SRQ is the one that the first SEND names.
        self.step(self.named(self.packet(0x04, self.m.epsn, {}, b'first', a=1), self.srqn))
        self.psn = self.m.epsn

    def named(self, p, srqn):
        p.eths['xrceth'] = {'srqn': srqn}
        return p

    def packet(self, op, psn, eths, payload, **kw):
        p = super().packet(XRC | op, psn, dict(eths), payload, **kw)
        p.dest_qp = self.w.sides['B']['qpn']['XRCT']
        takes = op <= 5 or op in (9, 0xB)
        wrong = self.rng.random() < .01 if takes else self.rng.random() < .5
        return self.named(p, self.srqn ^ 1 if wrong else self.srqn)


class Initiator(Requester):
    def packet(self, q, x):
        p = super().packet(q, x)
        p['opcode'] += XRC
        p['dest_qp'] = self.w.sides['B']['qpn']['XRCT']
        return p


class InitiatorResponses(RandomResponses):
    model = Initiator

    def __init__(self, world, index):
        super().__init__(world, index)
        self.name = 'xrc_' + self.name
        self.setup['qp_type'] = 'XRCI'

    def packet(self, op, x, syndrome=None, payload=b''):
        p = super().packet(op, x, syndrome, payload)
        p.op += XRC
        p.dest_qp = self.w.sides['A']['qpn']['XRCI']
        return p

    def post(self, q):
        return {**super().post(q), 'srqn': self.rng.randrange(1 << 24)}
