# SPDX-License-Identifier: BSD-3-Clause
"""A model of the RC requester, written from REQ-* of conformance, and random responders for it."""
from wire import NAK_ACC, NAK_INV, NAK_OP, NAK_SEQ, opcode_of
from world import psn_near

MASK = 0xFFFFFF
RNR_USEC = [655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560,
            3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840,
            245760, 327680, 491520]
ONCE = {'FLUSH': 0x1C, 'ATOMIC_WRITE': 0x1D}    # answered by a READ response of no bytes
ATOMICS = {'ATOMIC_CMP_AND_SWP': (0x13, 'COMP_SWAP'), 'ATOMIC_FETCH_AND_ADD': (0x14, 'FETCH_ADD')}
STATUS = {NAK_INV: 'REM_INV_REQ_ERR', NAK_ACC: 'REM_ACCESS_ERR', NAK_OP: 'REM_OP_ERR'}


class Request:
    """A posted work request. PSNs are counted from the first of the sequence, without a wrap."""

    def __init__(self, wr_id, opcode, length, flags, first, mtu, imm):
        self.wr_id, self.opcode, self.length, self.flags, self.imm = \
            wr_id, opcode, length, flags, imm
        self.first, self.n = first, max(1, -(-length // mtu))
        self.once = opcode in ONCE
        if self.once:
            self.n = 1
        # answered by more than an ACK
        self.read = opcode == 'RDMA_READ' or opcode in ATOMICS or self.once
        self.end = first + self.n
        self.request_at = None          # READ: where the newest request began
        self.operands = None            # ATOMIC: compare or add, swap

    def cqe(self, status):
        name = {'SEND': 'SEND', 'SEND_WITH_IMM': 'SEND', 'RDMA_READ': 'RDMA_READ'}
        c = {'status': status, 'wr_id': self.wr_id}
        if status == 'SUCCESS':
            c['opcode'] = self.opcode if self.once else \
                ATOMICS[self.opcode][1] if self.operands else name.get(self.opcode, 'RDMA_WRITE')
            if self.read and not self.once:
                c['byte_len'] = self.length
        return c


class Requester:
    def __init__(self, world, setup, posts):
        self.w, self.mtu, self.posts = world, setup['path_mtu'], posts
        self.psn0 = setup['A_sq_psn']
        self.setup = setup
        self.payload = {}
        self.una = self.at = self.sent = 0
        self.head = 0                   # oldest request that is not complete
        self.out = []                   # READs whose responses are due
        self.retries, self.rnr = setup['retry_cnt'], setup['rnr_retry']
        self.retrying, self.state = False, 'RTS'
        self.refused = None             # PSN and syndrome of a fatal NAK after a READ
        self.rto = False

    def psn(self, x):
        return (self.psn0 + x) & MASK

    def owner(self, x):
        return next(q for q in self.posts if q.first <= x < q.end)

    # --- sending ------------------------------------------------------------------------------

    def packet(self, q, x):
        off = (x - q.first) * self.mtu
        p = {'psn': self.psn(x), 'dest_qp': self.w.sides['B']['qpn']['RC'], 'pkey': self.w.pkey}
        base = {'va': '0x%x' % self.w.mr['va'], 'rkey': '0x%x' % self.w.mr['rkey']}
        if q.operands:
            add, swap = q.operands
            fetch_add = q.opcode == 'ATOMIC_FETCH_AND_ADD'
            p.update(base, opcode=ATOMICS[q.opcode][0], payload_len=0, ackreq=1,
                     swap_add='0x%x' % (add if fetch_add else swap), cmp='0x%x' % (0 if fetch_add else add))
            return p
        if q.once:
            data = self.payload.get(q.wr_id, bytes(8)) if q.opcode == 'ATOMIC_WRITE' else b''
            p.update(base, opcode=ONCE[q.opcode], payload=data.hex(), payload_len=len(data), ackreq=1,
                     dmalen=q.length)
            return p
        if q.read:
            p.update(opcode=0x0C, payload_len=0, va='0x%x' % (self.w.mr['va'] + off),
                     rkey=base['rkey'], dmalen=q.length - off, ackreq=1)
            return p
        first, last = x == q.first, x == q.end - 1
        kind = 'WRITE' if q.opcode.startswith('RDMA_WRITE') else 'SEND'
        n = q.length - off if last else self.mtu
        imm = q.opcode.endswith('_IMM')
        p.update(opcode=opcode_of(kind, first, last, imm), payload_len=n, pad=-n & 3)
        data = self.payload.get(q.wr_id, bytes(q.length))
        p['payload'] = data[off:off + n].hex()
        if kind == 'WRITE' and first:
            p.update(base, dmalen=q.length)                     # REQ-06
        if last:
            p['ackreq'] = 1                                     # BTH-13
            if imm:
                p['imm'] = '0x%08x' % q.imm
        p['se'] = int(last and 'SOLICITED' in q.flags and (kind == 'SEND' or imm))  # BTH-09
        return p

    def send(self):
        """all that may go now"""
        tx = []
        end = self.posts[-1].end
        while self.state == 'RTS' and self.at < end:
            q = self.owner(self.at)
            if 'FENCE' in q.flags and self.at == q.first and self.out:
                break                                           # REQ-10
            if q.read and len(self.out) >= self.setup['max_rd_atomic']:
                break                                           # REQ-08
            tx.append(self.packet(q, self.at))
            if q.read:
                self.out.append(q)
                q.request_at = self.at
                self.at = q.end
            else:
                self.at += 1
            self.sent = max(self.sent, self.at)
        return tx

    def back(self):
        self.at, self.out = self.una, []

    # --- what comes back ------------------------------------------------------------------------

    def progress(self, una):
        if una > self.una:
            self.una = una
            self.retrying = False
            self.retries, self.rnr = self.setup['retry_cnt'], self.setup['rnr_retry']  # REQ-27, -31
            self.at = max(self.at, una)
            if self.refused and una > self.refused[0]:
                self.refused = None

    def fail(self, status):
        q = self.posts[self.head]
        cqes = [q.cqe(status)] + [x.cqe('WR_FLUSH_ERR') for x in self.posts[self.head + 1:]]
        self.head, self.state = len(self.posts), 'ERR'
        return cqes

    def retry(self):
        if not self.retries:
            return self.exceeded()
        self.retries -= 1
        self.back()
        self.retrying = True
        return []

    def exceeded(self):
        """REQ-26, or REQ-34 when only what a fatal NAK refused is left (decision 0008)"""
        if not self.refused:
            return self.fail('RETRY_EXC_ERR')
        x, syndrome = self.refused
        cqes, _ = self.through(x)
        return cqes + self.fail(STATUS[syndrome] if self.una == x else 'RETRY_EXC_ERR')

    def implied(self):
        """REQ-38, once until there is progress"""
        return [] if self.retrying else self.retry()

    def through(self, x):
        """PSNs below x are acknowledged: -> completions, whether a READ lies in the way"""
        cqes = []
        while self.head < len(self.posts) and self.una < x:
            q = self.posts[self.head]
            if q.read:
                return cqes, True
            self.progress(min(x, q.end))
            if self.una == q.end:
                cqes += self.done(q)
        return cqes, False

    def done(self, q):
        self.head += 1
        return [q.cqe('SUCCESS')] if 'SIGNALED' in q.flags else []

    def ack(self, x):
        cqes, stopped = self.through(x + 1)
        return cqes + (self.implied() if stopped else [])

    def nak(self, x, syndrome):
        cqes, stopped = self.through(x)
        if stopped:
            if syndrome in STATUS:
                self.refused = x, syndrome
            return cqes + self.implied()
        if syndrome == NAK_SEQ:
            return cqes + self.retry()
        if syndrome & 0x60 == 0x20:
            if not self.rnr:
                return cqes + self.fail('RNR_RETRY_EXC_ERR')    # REQ-30
            if self.setup['rnr_retry'] != 7:
                self.rnr -= 1
            self.retries = self.setup['retry_cnt']
            self.back()
            return cqes
        return cqes + self.fail(STATUS[syndrome])

    def response(self, x):
        """a good READ response for PSN x"""
        q = self.owner(x)
        cqes, _ = self.through(q.first)
        if x != self.una:
            return cqes + self.implied()                        # REQ-39
        self.progress(x + 1)
        if self.una == q.end:
            self.out.remove(q)
            cqes += self.done(q)
        return cqes


class RandomResponses:
    """a responder, and a network, that lose, repeat, refuse and wait"""
    model = Requester

    def __init__(self, world, index):
        self.w, self.rng = world, world.rng
        r = self.rng
        self.kind = r.choice(['v4', 'v4', 'v6', 'v1', 'v1m'])
        mtu = r.choice([m for m in (256, 512, 1024, 2048, 4096) if m <= world.mtu] + [256] * 3)
        self.setup = {'A_sq_psn': psn_near(r), 'path_mtu': mtu, 'retry_cnt': r.choice([0, 1, 2, 7]),
                      'rnr_retry': r.choice([0, 1, 2, 7]), 'timeout': r.choice([8, 10, 14, 17]),
                      'max_rd_atomic': r.choice([1, 2, 4, 16])}
        posts, self.payload, first, packets = [], {}, 0, r.randrange(1, 14)
        while first < packets:
            op = r.choice(['SEND', 'SEND', 'SEND_WITH_IMM', 'RDMA_WRITE', 'RDMA_WRITE_WITH_IMM',
                           'RDMA_READ', 'RDMA_READ', *ATOMICS, *ONCE])
            n = 8 if op in ATOMICS or op == 'ATOMIC_WRITE' else r.choice([0, 1, 4, mtu - 1, mtu, mtu + 1, 3 * mtu, 2 * mtu + 5])
            flags = [f for f, p in (('SIGNALED', .8), ('FENCE', .15), ('SOLICITED', .3))
                     if r.random() < p]
            q = Request(len(posts) + 1, op, n, flags, first, mtu, r.getrandbits(32))
            if not q.read and not q.once and n <= 256 and r.random() < .2:
                flags.append('INLINE')
            if op in ATOMICS:
                q.operands = r.getrandbits(64), r.getrandbits(64)
            if (not q.read or op == 'ATOMIC_WRITE') and r.random() < .5 and n:
                self.payload[q.wr_id] = r.randbytes(n)
            posts.append(q)
            first = q.end
        self.m = self.model(world, self.setup, posts)
        self.m.payload = self.payload
        self.name = 'requester_%s_%d' % (self.kind, index)
        self.steps, self.msn, self.losses = [], 0, 0

    def may_lose(self):
        """A requester may send less at once after a loss (it halves a window of 128, say), which
        the lists of packets do not allow for: few losses where much is outstanding."""
        return self.m.posts[-1].end - self.m.una <= 128 >> self.losses + 1

    def post(self, q):
        d = {'wr_id': q.wr_id, 'opcode': q.opcode, 'length': q.length, 'flags': q.flags}
        if q.opcode.endswith('_IMM'):
            d['imm'] = '0x%08x' % q.imm
        if q.operands:
            d['compare_add'], d['swap'] = ('0x%x' % v for v in q.operands)
        if q.opcode == 'FLUSH':
            d.update(plt=self.rng.randrange(1, 4), sel=self.rng.randrange(2))
        if q.wr_id in self.payload:
            d['payload'] = self.payload[q.wr_id].hex()
        return d

    def packet(self, op, x, syndrome=None, payload=b''):
        eths = {} if op == 0x0E else {'aeth': {'syndrome': syndrome, 'msn': self.msn}}
        return self.w.packet(op, self.m.psn(x), eths, payload, kind=self.kind, to='A')

    def step(self, p, cqes, **more):
        s = {'tx': self.tx, 'rx': p.build()[0].hex() if p else None, 'cqes': cqes,
             'qp_state': self.m.state, **more}
        self.steps.append(s)
        self.tx = self.m.send()

    # --- events -----------------------------------------------------------------------------------

    def outstanding(self):
        return range(self.m.una, self.m.sent)

    def in_order(self):
        """the answer that a good responder gives next, perhaps for several packets at once"""
        m = self.m
        q = m.owner(m.una)
        if q.read:
            self.good_response(m.una)
            return
        limit = m.una
        while limit < m.sent and not m.owner(limit).read:
            limit += 1
        x = self.rng.randrange(m.una, limit)
        self.msn = sum(1 for p in m.posts if p.end <= x + 1) & MASK
        self.step(self.packet(0x11, x, 0x1F), m.ack(x))

    def good_response(self, x):
        m, mtu = self.m, self.m.mtu
        q = m.owner(x)
        if q.operands:
            p = self.packet(0x12, x, 0x1F)
            p.eths['atomicacketh'] = {'orig': self.rng.getrandbits(64)}
            self.step(p, m.response(x))
            return
        if q.once:
            self.step(self.packet(0x10, x, 0x1F), m.response(x))
            return
        first, last = x == q.request_at, x == q.end - 1
        n = min(mtu, q.length - (x - q.first) * mtu)
        op = 0x10 if first and last else 0x0D if first else 0x0F if last else 0x0E
        p = self.packet(op, x, 0x1F, self.rng.randbytes(n))
        self.step(p, m.response(x))

    def lost_response(self):
        m = self.m
        reads = [x for x in self.outstanding() if m.owner(x).read and x > m.una and
                 m.owner(x) in m.out and (m.owner(x).operands or m.owner(x).once or x > m.owner(x).request_at)]
        if reads:
            self.good_response(self.rng.choice(reads))

    def any_ack(self):
        x = self.rng.choice(self.outstanding())
        self.step(self.packet(0x11, x, 0x1F), self.m.ack(x))

    def sequence_nak(self):
        m = self.m
        x = self.rng.choice(self.outstanding())
        self.step(self.packet(0x11, x, NAK_SEQ), m.nak(x, NAK_SEQ))

    def rnr_nak(self):
        m = self.m
        x = self.rng.choice(self.outstanding())
        if any(q.read for q in m.posts if m.una < q.end and q.first < x):
            return
        code = self.rng.randrange(32)
        tx = self.tx
        cqes = m.nak(x, 0x20 | code)
        self.tx = tx
        s = {'tx': self.tx, 'rx': self.packet(0x11, x, 0x20 | code).build()[0].hex(), 'cqes': cqes,
             'qp_state': m.state}
        self.steps.append(s)
        self.tx = []
        if m.state != 'RTS':
            return
        self.steps.append({'advance_us': [RNR_USEC[code], self.rng.choice(
            [None, RNR_USEC[code] * 2 + 10])], 'tx': m.send(), 'cqes': []})

    def fatal_nak(self):
        m = self.m
        x = self.rng.choice(self.outstanding())
        syndrome = self.rng.choice([NAK_INV, NAK_ACC, NAK_OP])
        self.step(self.packet(0x11, x, syndrome), m.nak(x, syndrome))

    def timeout(self):
        m = self.m
        t = 4.096 * 2 ** self.setup['timeout']
        if self.tx:
            self.step(None, [])
        if self.tx or not self.outstanding():
            return
        cqes = m.retry()
        self.steps.append({'advance_us': [t, 4 * t], 'tx': m.send(), 'cqes': cqes,
                           'qp_state': m.state})

    def ghost(self):
        """REQ-36, REQ-37, REQ-46, and what is not for this QP at all"""
        m, r = self.m, self.rng
        what = r.randrange(6)
        x = r.choice(self.outstanding())
        if what == 0:
            p = self.packet(0x11, m.sent + r.randrange(1000), 0x1F)
        elif what == 1:
            p = self.packet(0x11, m.una - 1 - r.randrange(1000), 0x1F)
        elif what == 2:
            p = self.packet(0x11, x, r.choice([0x40, 0x5F, 0x65, 0x7F]))
        elif what == 3:
            p = self.packet(0x11, x, 0x1F)
            p.icrc_mode = 'flip%d' % r.randrange(32)
        elif what == 4:
            p = self.packet(0x11, x, NAK_INV)
            p.src = {'v4': '198.51.100.1', 'v6': '2001:db8:ffff::1'}.get(p.kind, 'fe80::dead')
        else:
            p = self.packet(0x0D, m.una - 1, 0x1F, bytes(m.mtu))
        self.step(p, [])

    def run(self):
        r, m = self.rng, self.m
        self.tx = m.send()
        for _ in range(60):
            if m.state == 'ERR' or not self.outstanding():
                break
            x = r.random()
            event = self.in_order
            for p, e in ((.06, self.lost_response), (.12, self.any_ack), (.20, self.sequence_nak),
                         (.28, self.rnr_nak), (.30, self.fatal_nak), (.37, self.timeout),
                         (.45, self.ghost)):
                if x < p:
                    event = e
                    break
            if event != self.in_order and event != self.ghost:
                if not self.may_lose():
                    event = self.in_order
                else:
                    self.losses += 1
            event()
        self.steps.append({'tx': self.tx, 'rx': None, 'cqes': [], 'qp_state': m.state})
        return {'name': self.name, 'side': 'requester', 'rule': 'REQ-*', 'setup': self.setup,
                'posts': [self.post(q) for q in m.posts], 'steps': self.steps}


class Credits:
    """CRD-04..06: a fence holds SENDs back until credits are known; each ACK then brings more"""

    def __init__(self, world, index):
        self.w, self.rng = world, world.rng
        self.name = 'credits_%d' % index
        self.psn0 = psn_near(self.rng)

    def run(self):
        r, w = self.rng, self.w
        n = r.randrange(3, 12)
        ops = ['SEND', 'RDMA_READ'] + ['SEND'] * n
        posts = [{'wr_id': i, 'opcode': op, 'length': 4,
                  'flags': ['SIGNALED'] + (['FENCE'] if i == 2 else [])}
                 for i, op in enumerate(ops)]

        def tx(i):
            return {'opcode': 0x0C if ops[i] == 'RDMA_READ' else 4, 'psn': self.psn0 + i & MASK}

        def rx(op, i, code, msn, payload=b''):
            return w.packet(op, self.psn0 + i, {'aeth': {'syndrome': code, 'msn': msn}}, payload,
                            to='A').build()[0].hex()
        table = [0, 1, 2, 3, 4, 6, 8, 12]
        code = r.randrange(3)
        steps = [{'tx': [tx(0), tx(1)], 'rx': rx(0x11, 0, code, 1)},
                 {'tx': [], 'rx': rx(0x10, 1, 0x1F if r.random() < .1 else code, 2, b'data')}]
        unlimited = steps[1]['rx'] == rx(0x10, 1, 0x1F, 2, b'data')
        limit, done = 2 + table[code], 2            # in messages, of which SSN i + 1 is the i-th
        at = 2
        while done < n + 2:
            go = n + 2 if unlimited else min(n + 2, max(limit, done + 1))
            step = {'tx': [tx(i) for i in range(at, go)]}
            at = max(at, go)
            if at < n + 2:
                step['tx_allow_extra'] = [tx(at)]   # the one limited packet
            before, done = done, r.randrange(done, at) + 1
            code = r.choice([0, 0, 1, 2, 3, 4, 0x1F])
            step['rx'] = rx(0x11, done - 1, code, done)
            step['cqes'] = [{'wr_id': i, 'status': 'SUCCESS'} for i in range(before, done)]
            unlimited = code == 0x1F
            limit = max(limit, done + table[code]) if not unlimited else 0
            steps.append(step)
        steps.append({'tx': []})
        return {'name': self.name, 'side': 'requester', 'rule': 'CRD-04',
                'setup': {'A_sq_psn': self.psn0, 'max_rd_atomic': 1, 'timeout': 14}, 'posts': posts,
                'steps': steps}


class Patience:
    """REQ-25, REQ-26, REQ-30: as many retries as the attributes say, and not one more"""

    def __init__(self, world, index):
        self.w, self.rng = world, world.rng
        self.name = 'patience_%d' % index

    def run(self):
        r, w, psn = self.rng, self.w, psn_near(self.rng)
        n, timeout, code = r.choice([0, 1, 2, 3, 6, 7, 7]), r.choice([5, 10, 14]), r.randrange(32)
        rnr = r.random() < .5
        tx = [{'opcode': 4, 'psn': psn, 'payload_len': 4},
              {'opcode': 0x0A, 'psn': psn + 1 & MASK, 'payload_len': 4}]
        t = 4.096 * 2 ** timeout
        nak = w.packet(0x11, psn, {'aeth': {'syndrome': 0x20 | code, 'msn': 0}}, to='A')
        nak = nak.build()[0].hex()
        end = {'qp_state': 'ERR', 'cqes': [
            {'wr_id': 1, 'status': 'RNR_RETRY_EXC_ERR' if rnr else 'RETRY_EXC_ERR'},
            {'wr_id': 2, 'status': 'WR_FLUSH_ERR'}]}
        alive = {'qp_state': 'RTS', 'cqes': []}
        steps = [{'tx': tx, 'rx': nak if rnr else None, **(end if rnr and not n else alive)}]
        if rnr:
            for i in range(n if n < 7 else 20):     # 7: for ever
                more = {'rx': nak, **(end if n < 7 and i == n - 1 else alive)}
                steps.append({'advance_us': [RNR_USEC[code], None], 'tx': tx, **more})
        else:
            for i in range(n):
                steps.append({'advance_us': [t, 4 * t], 'tx': tx, **alive})
            steps.append({'advance_us': [t, 4 * t], 'tx': [], **end})
        return {'name': self.name, 'side': 'requester', 'rule': 'REQ-25, REQ-30',
                'setup': {'A_sq_psn': psn, 'retry_cnt': r.randrange(8) if rnr else n,
                          'rnr_retry': n if rnr else r.randrange(8), 'timeout': timeout},
                'posts': [{'wr_id': 1, 'opcode': 'SEND', 'length': 4, 'flags': ['SIGNALED']},
                          {'wr_id': 2, 'opcode': 'RDMA_WRITE', 'length': 4, 'flags': []}],
                'steps': steps}
