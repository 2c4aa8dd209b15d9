# SPDX-License-Identifier: BSD-3-Clause
"""Models of the UD responder and requester, written from UD-* of conformance, and who uses them."""
from world import psn_near

MASK = 0xFFFFFF
AREA = 40                               # UD-05
UD = 0x60


class RandomDatagrams:
    """datagrams from strangers: in no order (UD-04), of any protocol (VAL-14), some not for us"""

    def __init__(self, world, index):
        self.w, self.rng = world, world.rng
        r = self.rng
        self.name = 'ud_responder_%d' % index
        self.recv_len = r.choice([AREA - 1, AREA, AREA + world.mtu, AREA + r.randrange(world.mtu)])
        wqes = r.choice([0, 1, 2, 5])
        self.setup = {'qp_type': 'UD', 'recv_wqes': wqes, 'recv_len': self.recv_len}
        if r.random() < .5:
            self.setup['srq'] = True
        self.posted, self.posts = list(range(wqes)), wqes
        self.steps = []

    def packet(self):
        r, w = self.rng, self.w
        op, n = UD | r.choice([4, 5]), r.choice([0, 1, 3, w.mtu, r.randrange(w.mtu + 1)])
        eths = {'deth': {'qkey': w.qkey, 'src_qp': r.randrange(1 << 24), 'resv': r.randrange(256)}}
        if op & 1:
            eths['immdt'] = {'value': r.getrandbits(32)}
        p = w.packet(op, r.randrange(1 << 24), eths, r.randbytes(n), r.choice(['v4', 'v6', 'v1', 'v1m']),
                     qpn=w.sides['B']['qpn']['UD'], se=r.randrange(2), a=r.randrange(2))
        p.ident = 0
        if r.random() < .3:             # UD-14
            p.src = {'v4': '198.51.100.%d' % r.randrange(1, 255), 'v6': '2001:db8:ffff::1'}.get(p.kind, 'fe80::dead')
        return p

    def spoil(self, p):
        """what is dropped in front of the receive queue"""
        r = self.rng
        what = r.randrange(8)
        if what == 0:
            p.eths['deth']['qkey'] ^= 1 << r.randrange(32)  # VAL-16
        elif what == 1:
            p.pkey ^= 1 << r.randrange(15)                  # VAL-09
        elif what == 2:
            p.icrc_mode = 'flip%d' % r.randrange(32)
        elif what == 3:
            p.op, p.eths = UD | r.choice([0, 1, 2, 3, 6, 0x1F]), {}     # UD-01
        elif what == 4:
            p.op, p.eths = r.choice([0x04, 0x24]), {}       # VAL-04
        elif what == 5:
            p.tver = r.randrange(1, 16)
        elif what == 6:
            p.dest_qp = 0xFFFFFF                            # VAL-17
        else:
            p.dst = {'v4': '198.51.100.9', 'v6': '2001:db8:ffff::9'}.get(p.kind, 'fe80::dead:9')

    def take(self, p):
        """the completion of a good datagram, if there is any"""
        if not self.posted:
            return []                                       # UD-13
        c = {'opcode': 'RECV', 'recv_index': self.posted.pop(0)}
        if AREA + len(p.payload) > self.recv_len:
            return [{**c, 'status': 'LOC_LEN_ERR'}]         # UD-12 (decision 0090)
        c.update(status='SUCCESS', byte_len=AREA + len(p.payload), src_qp=p.eths['deth']['src_qp'],
                 solicited=p.se)
        if 'immdt' in p.eths:
            c['imm'] = '0x%08x' % p.eths['immdt']['value']
        return [c]

    def run(self):
        r = self.rng
        for _ in range(r.randrange(3, 20)):
            if r.random() < .2:
                n = r.choice([1, 1, 2])
                self.posted += range(self.posts, self.posts + n)
                self.posts += n
                self.steps.append({'post_recv': n})
                continue
            p, good = self.packet(), r.random() < .75
            if not good:
                self.spoil(p)
            self.steps.append({'rx': p.build()[0].hex(), 'tx': [], 'qp_state': 'RTS',
                               'cqes': self.take(p) if good else []})
        return {'name': self.name, 'side': 'responder', 'rule': 'UD-*', 'setup': self.setup,
                'steps': self.steps or [{'tx': []}]}


class RandomPosts:
    """posts of a QP that waits for no answer: all packets at once, completions as they leave. A post
    that fails leaves the QP in SQE with the rest flushed (UC-11, UD-02)."""

    def __init__(self, world, index, service):
        self.w, self.rng, self.service = world, world.rng, service
        r = self.rng
        self.mtu = world.mtu if service == 'UD' else \
            r.choice([m for m in (256, 512, 1024, 2048, 4096) if m <= world.mtu])
        self.gid = r.choice(['IPv4', 'IPv6', 'IB GID', 'IB GID ::ffff:'])
        self.psn = psn_near(r)
        self.name = '%s_requester_%d' % (service.lower(), index)
        self.setup = {'qp_type': service, 'A_sq_psn': self.psn, 'path_mtu': self.mtu,
                      'QP_gid_type': self.gid}
        self.posts, self.tx, self.cqes, self.state = [], [], [], 'RTS'

    def send(self, q, data):
        """its packets"""
        m = self.mtu
        kind, imm = 'WRITE' if 'WRITE' in q['opcode'] else 'SEND', q.get('imm')
        parts = [data[i:i + m] for i in range(0, len(data), m)] or [b'']
        for i, part in enumerate(parts):
            first, last = i == 0, i == len(parts) - 1
            op = {(1, 0): 0, (0, 0): 1, (0, 1): 2, (1, 1): 4}[first, last] + (6 if kind == 'WRITE' else 0)
            x = {'opcode': (UD if self.service == 'UD' else 0x20) | op + (1 if imm and last else 0),
                 'psn': self.psn, 'payload': part.hex(), 'payload_len': len(part), 'pad': -len(part) & 3,
                 'ackreq': 0, 'pkey': self.w.pkey, 'dest_qp': self.w.sides['B']['qpn'][self.service],
                 'se': int(last and 'SOLICITED' in q['flags'] and (kind == 'SEND' or bool(imm)))}
            if imm and last:
                x['imm'] = imm
            if kind == 'WRITE' and first:
                x.update(va='0x%x' % self.w.mr['va'], rkey='0x%x' % self.w.mr['rkey'], dmalen=len(data))
            self.tx.append(x)
            self.psn = (self.psn + 1) & MASK

    def post(self, i):
        r = self.rng
        ops = ['SEND', 'SEND_WITH_IMM'] + (['RDMA_WRITE', 'RDMA_WRITE_WITH_IMM'] if self.service == 'UC' else [])
        m, op = self.mtu, r.choice(ops)
        n = r.choice([0, 1, 3, m - 1, m, r.randrange(m + 1)])
        if self.service == 'UC':
            n = r.choice([n, m + 1, 3 * m, 5 * m + 7])
        elif r.random() < .05:
            n = 4097 + r.randrange(1000)                    # UD-02: more than any MTU
        flags = [f for f, p in (('SIGNALED', .7), ('SOLICITED', .3), ('FENCE', .1)) if r.random() < p]
        q = {'wr_id': i, 'opcode': op, 'length': n, 'flags': flags}
        if op.endswith('_IMM'):
            q['imm'] = '0x%08x' % r.getrandbits(32)
        data = r.randbytes(n) if n and r.random() < .7 else bytes(n)
        if any(data):
            q['payload'] = data.hex()
        if n <= 256 and r.random() < .2:
            flags.append('INLINE')
        self.posts.append(q)
        if self.state == 'SQE':
            self.cqes.append({'wr_id': i, 'status': 'WR_FLUSH_ERR'})
        elif self.service == 'UD' and n > 4096:
            self.cqes.append({'wr_id': i, 'status': 'LOC_LEN_ERR'})
            self.state = 'SQE'
        else:
            self.send(q, data)
            if 'SIGNALED' in flags:
                self.cqes.append({'wr_id': i, 'status': 'SUCCESS',
                                  'opcode': 'SEND' if op.startswith('SEND') else 'RDMA_WRITE'})

    def run(self):
        for i in range(self.rng.randrange(1, 12)):
            self.post(i + 1)
        return {'name': self.name, 'side': 'requester', 'rule': 'UC-03, UD-04', 'setup': self.setup,
                'posts': self.posts, 'steps': [
                    {'tx': self.tx, 'cqes': self.cqes, 'qp_state': self.state}, {'tx': [], 'cqes': []}]}


class UcPosts(RandomPosts):
    def __init__(self, world, index):
        super().__init__(world, index, 'UC')


class UdPosts(RandomPosts):
    def __init__(self, world, index):
        super().__init__(world, index, 'UD')
