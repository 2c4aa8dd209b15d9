# SPDX-License-Identifier: BSD-3-Clause
"""Two sides with other addresses, numbers and keys than any file has."""
import ipaddress

from wire import Packet, mapped


def psn_near(rng):
    """near the wrap or near half of the space, often"""
    return rng.choice([rng.randrange(1 << 24), (-rng.randrange(1, 12)) & 0xFFFFFF,
                       rng.randrange(4), (0x7FFFFF + rng.randrange(-3, 4))])


def eui64(mac):
    b = [int(x, 16) for x in mac.split(':')]
    b = [b[0] ^ 2] + b[1:3] + [0xFF, 0xFE] + b[3:]
    return str(ipaddress.IPv6Address(bytes([0xFE, 0x80, 0, 0, 0, 0, 0, 0] + b)))


class World:
    def __init__(self, rng):
        self.rng = rng
        self.sides = {}
        used = {0, 1, 0xFFFFFF}
        for name, kinds in (('A', ('RC', 'UC', 'UD', 'XRCI')), ('B', ('RC', 'UC', 'UD', 'XRCT'))):
            mac = ':'.join('%02x' % x for x in
                           [rng.choice([0x00, 0x02, 0x06, 0xB8])] +
                           [rng.randrange(256) for _ in range(5)])
            qpn = {}
            for k in kinds:
                n = 0
                while n in used:
                    n = rng.choice([rng.randrange(2, 0xFFFFFF), rng.randrange(2, 64)])
                used.add(n)
                qpn[k] = n
            self.sides[name] = {
                'mac': mac,
                'ipv4': '%d.%d.%d.%d' % (rng.choice([10, 172, 192, 100]), rng.randrange(256),
                                         rng.randrange(256), rng.randrange(1, 255)),
                'ipv6': str(ipaddress.IPv6Address(0x20010DB8 << 96 | rng.getrandbits(64))),
                'linklocal': eui64(mac), 'qpn': qpn}
        self.mtu = rng.choice([256, 256, 512, 1024, 2048, 4096])
        self.pkey = rng.choice([0xFFFF, 0x8000 | rng.randrange(1, 0x8000)])
        self.qkey = rng.getrandbits(31)
        self.epsn = psn_near(rng)
        self.msn = rng.choice([0, 5, 0xFFFFFF, rng.randrange(1 << 24)])
        self.min_rnr = rng.randrange(32)
        # large enough for whatever a message may be, and not a multiple of a page
        self.mr = {'rkey': rng.randrange(1, 60000) << 8 | rng.randrange(256),
                   'va': rng.choice([0x1000, rng.getrandbits(47) & ~0xFFF,
                                     (1 << 64) - (1 << 20)]),
                   'length': 8 * self.mtu + rng.choice([0, 8, 24, 4096])}

    def context(self):
        b = self.sides['B']
        return {
            **self.sides, 'path_mtu': self.mtu, 'pkey_table': ['0x%04x' % self.pkey],
            'qkey_ud': '0x%x' % self.qkey, 'B_expected_psn': '0x%x' % self.epsn,
            'B_msn': self.msn, 'B_min_rnr_timer': self.min_rnr,
            'B_mr': {'rkey': '0x%x' % self.mr['rkey'], 'va': '0x%x' % self.mr['va'],
                     'length': self.mr['length'],
                     'access': 'LOCAL_WRITE|REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC'},
            'B_rc_access': 'REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC',
            'B_gid_table': ['IPv4 %s (RoCEv2)' % b['ipv4'], 'IPv6 %s (RoCEv2)' % b['ipv6'],
                            'IB GID %s (RoCEv1)' % b['linklocal'],
                            'IB GID %s (RoCEv1)' % mapped(b['ipv4'])],
            'default': 'generated'}

    def address(self, side, kind):
        s = self.sides[side]
        if kind == 'v4':
            return s['ipv4']
        if kind == 'v6':
            return s['ipv6']
        return mapped(s['ipv4']) if kind == 'v1m' else s['linklocal']

    def packet(self, op, psn, eths=None, payload=b'', kind='v4', to='B', qpn=None, **bth):
        """a packet of a connection, from the other side"""
        of = 'A' if to == 'B' else 'B'
        return Packet(kind[:2], self.sides[to]['mac'], self.sides[of]['mac'],
                      self.address(of, kind), self.address(to, kind), op, psn,
                      self.sides[to]['qpn']['RC'] if qpn is None else qpn, self.pkey, eths,
                      payload, **bth)

    def reth(self, off, length, rkey=None):
        return {'va': (self.mr['va'] + off) & (1 << 64) - 1,
                'rkey': self.mr['rkey'] if rkey is None else rkey, 'dmalen': length}
