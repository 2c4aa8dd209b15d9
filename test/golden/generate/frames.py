# SPDX-License-Identifier: BSD-3-Clause
"""Frames that arrive alone: good ones of every opcode, and each way to be wrong that conformance
names, with the result that the rules demand and, for drops, the counter that must move."""
import struct

import ipoib
from wire import HEADERS, NAK_ACC, NAK_INV, NAK_SEQ, RESPONSES

KINDS = ('v4', 'v6', 'v1', 'v1m')


def data(rng, n):
    return rng.randbytes(n)


class Frames:
    def __init__(self, world):
        self.w, self.rng = world, world.rng
        self.out, self.counters = [], {}

    def add(self, name, p, result='accept', counter=None, valid=True, **expect):
        frame, at = p.build()
        name = '%s_%d' % (name, len(self.out))
        if counter:
            self.counters[name] = counter
        icrc = frame[at:at + 4]
        self.out.append({
            'name': name, 'kind': p.kind, 'frame': frame.hex(), 'len': len(frame),
            'bth_fields': p.fields(), 'payload': p.payload.hex(), 'icrc_offset': at,
            'icrc_wire': icrc.hex(), 'icrc_u32_le': '0x%08x' % struct.unpack('<I', icrc),
            'icrc_valid': valid, 'expect': {'result': result, **expect}, 'note': ''})

    # --- good ones ------------------------------------------------------------------------

    def vary(self, p, vlan=True):
        """whatever a receiver must not look at"""
        r = self.rng
        p.tclass, p.ttl = r.choice([0, r.randrange(256)]), r.choice([64, 0, 1, 255])
        p.ident, p.flow = r.randrange(65536), r.choice([0, r.getrandbits(20)])
        p.sport, p.ucs = r.choice([0, r.randrange(65536)]), r.choice([0, r.randrange(65536)])
        p.m, p.fecn, p.becn = r.randrange(2), r.randrange(2), r.randrange(2)
        p.resv6, p.resv7 = r.choice([0, r.randrange(64)]), r.choice([0, r.randrange(128)])
        if p.kind != 'v4':
            p.ident = 0
        if vlan and r.random() < .25:
            p.vlans = [(0x8100, r.randrange(8), r.choice([0, r.randrange(1, 4095)]))]
        if HEADERS.get(p.op, ([], 0))[1] and r.random() < .3:
            p.pad_bytes = data(r, -len(p.payload) & 3)      # BTH-05: ignored
        if r.random() < .2:
            p.tail = data(r, r.randrange(1, 40))            # ETH-09
        p.min60 = r.random() < .5
        return p

    def length(self, first, last):
        m = self.w.mtu
        if not last:
            return m
        choice = [1, 2, 3, 4, 5, m - 1, m, self.rng.randrange(1, m)]
        return self.rng.choice(choice + ([0] if first else []))

    def eths(self, op, n, off=0):
        """extended headers of a good packet with n payload bytes"""
        w, r = self.w, self.rng
        e = {}
        for name in HEADERS[op][0]:
            if name == 'reth':
                total = n
                if op & 0x1F == 0x06:
                    total = n + r.randrange(1, 2 * w.mtu)
                elif op & 0x1F in (0x0C, 0x1C):
                    total = r.choice([0, 1, w.mtu, w.mtu + 1, r.randrange(4 * w.mtu)])
                elif op & 0x1F == 0x1D:
                    total = 8
                room = w.mr['length'] - total
                at = r.choice([0, room, r.randrange(room + 1)])
                if op & 0x1F == 0x1D:                           # FLU-08
                    at -= (w.mr['va'] + at) % 8 if at >= 8 else at - -w.mr['va'] % 8
                e['reth'] = w.reth(at, total)
                whole = e.get('feth', {}).get('sel') == 1       # FLU-05
                if not total and not whole and r.random() < .5:     # C9-88
                    e['reth'] = {'va': r.getrandbits(64), 'rkey': r.getrandbits(32), 'dmalen': 0}
            elif name == 'aeth':
                e['aeth'] = {'syndrome': r.randrange(32), 'msn': r.randrange(1 << 24)}
            elif name == 'atomiceth':
                e[name] = {'va': w.mr['va'] + 8 * r.randrange(64), 'rkey': w.mr['rkey'],
                           'swap_add': r.getrandbits(64), 'cmp': r.getrandbits(64)}
            elif name == 'deth':
                e[name] = {'qkey': w.qkey, 'src_qp': w.sides['A']['qpn']['UD'],
                           'resv': r.choice([0, r.randrange(256)])}
            elif name == 'immdt':
                e[name] = {'value': r.getrandbits(32)}
            elif name == 'ieth':
                # A window's, whose index is one of the table's and not the region's.
                key = r.randrange(1 << 8, 60000 << 8)
                e[name] = {'rkey': key ^ (1 << 9) if key >> 8 == w.mr['rkey'] >> 8 else key}
            elif name == 'xrceth':
                e[name] = {'srqn': r.randrange(1 << 24)}
            elif name == 'feth':
                e[name] = {'plt': r.randrange(1, 4), 'sel': r.randrange(2)}
            elif name == 'atomicacketh':
                e[name] = {'orig': r.getrandbits(64)}
            elif name == 'cnp_reserved':
                e[name] = {'bytes': r.choice([bytes(16), data(r, 16)])}
        return e

    def good(self, op, kind='v4', **bth):
        r, w = self.rng, self.w
        low = op & 0x1F
        if op == 0x81:
            p = w.packet(op, 0, self.eths(op, 0), kind=kind, to='A', **bth)
            p.becn = r.randrange(2)
            return p
        first = low in (0, 4, 5, 6, 0xA, 0xB, 0x17, 0xD, 0x10)
        last = low in (2, 3, 4, 5, 8, 9, 0xA, 0xB, 0x16, 0x17, 0xF, 0x10)
        n = self.length(first, last) if HEADERS[op][1] else 0
        if low == 0x1D:
            n = 8
        if op & 0xE0 == 0x60:
            n = min(n, 4096 - 40)       # UD-05, and the context's receive
        if low in (0x02, 0x03, 0x08, 0x09, 0x16, 0x0F) and not n:
            n = 1
        response = low in RESPONSES
        a = 0 if response else r.randrange(2)
        se = r.randrange(2) if low in (2, 3, 4, 5, 9, 0xB) else 0
        p = w.packet(op, w.epsn, self.eths(op, n), data(r, n), kind, 'A' if response else 'B', a=a,
                     se=se, **bth)
        return p

    def run_good(self):
        r, w = self.rng, self.w
        low = r.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] * 6 + [13, 14, 15, 16, 17] * 3 +
                       [0x12, 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D])
        kind = r.choice(KINDS)
        p = self.vary(self.good(low, kind))
        if low == 0x11:
            p.eths['aeth']['syndrome'] = r.choice([r.randrange(256), 0x1F, 0x60, 0x61, 0x2E])
        context = {}
        if low <= 0x0C and r.random() < .1:
            context['QP_state'] = r.choice(['RTR', 'SQD', 'RTS'])
        if low in (4, 5) and r.random() < .2:
            context['recv_len'] = max(1, len(p.payload))
        if low <= 0x0B and low not in (1, 2, 3, 7, 8, 9) and r.random() < .2:
            context['B_expected_psn'] = p.psn = r.randrange(1 << 24)
        if r.random() < .1:
            p.pkey &= 0x7FFF                                # VAL-08: limited to full
        self.add('rc_%02x' % low, p, **({'context': context} if context else {}))

    def run_other(self, op=None, kind=None):
        """of the other services, and CNPs"""
        r, w = self.rng, self.w
        op = op or r.choice([o for o in HEADERS if o >= 0x20])
        to = 'A' if op == 0x81 or (op & 0x1F in RESPONSES and op >= 0xA0) else 'B'
        q = w.sides[to]['qpn']
        qpn = {0x20: q['UC'], 0x60: q['UD'], 0x80: q['RC'],
               0xA0: q.get('XRCI', q.get('XRCT'))}[op & 0xE0]
        kind = kind or r.choice(KINDS)
        p = self.good(op, kind, qpn=qpn)
        if op in (0x64, 0x65) and r.random() < .3:
            p.dest_qp = 1
            p.eths['deth'].update(qkey=0x80010000, src_qp=1)
        self.vary(p)
        if p.dest_qp == 1:                              # random bytes are no MAD
            self.add('bad_mad_%02x' % op, p, 'drop_silent', reason='no MAD')
        elif op == 0x81 and p.kind == 'v1':             # which has no congestion management
            self.drop('cnp_v1', p, 'cnp_unmanaged')
        else:
            self.add('other_%02x' % op, p)

    def run_ipoib(self):
        """a datagram that the netdev of IP over InfiniBand passes on (RFC 4391)"""
        r, w = self.rng, self.w
        p = self.good(0x64, r.choice(KINDS), qpn=w.sides['B']['qpn']['UD'])
        p.eths['deth'].update(qkey=ipoib.IPOIB_QKEY)
        name, p.payload = ipoib.payload(r, p.src)
        self.add('ipoib_' + name, p, context={'qkey_ud': '0x%x' % ipoib.IPOIB_QKEY})

    # --- dropped ----------------------------------------------------------------------------

    def base(self, kind=None):
        """a SEND, WRITE or READ that would be executed"""
        kind = kind or self.rng.choice(KINDS)
        p = self.vary(self.good(self.rng.choice([0x04, 0x05, 0x0A, 0x0B, 0x0C, 0x00, 0x06]), kind))
        p.a = 1
        return p

    def drop(self, name, p, counter, valid=True, **expect):
        self.add('bad_' + name, p, 'drop_silent', counter, valid, reason=name, **expect)

    def run_dropped(self):
        getattr(self, self.rng.choice([n for n in dir(self) if n.startswith('drop_')]))()

    def drop_icrc(self):
        p = self.base()
        modes = ['no_ff', 'not_complemented', 'big_endian', 'crc32c', 'resv8a_covered'] + \
            ['flip%d' % self.rng.randrange(32)] * 3
        if p.kind != 'v1':
            modes.append('whole_udp')
        p.icrc_mode = self.rng.choice(modes)
        if p.icrc_mode == 'resv8a_covered' and p.fecn & p.becn and p.resv6 == 63:
            p.resv6 = 0
        self.drop('icrc_' + p.icrc_mode, p, 'icrc', False)

    def drop_flipped_bit(self):
        """any bit that the ICRC covers and no other check looks at"""
        p = self.base()
        p.tail, p.min60 = b'', False
        frame, at = p.build()
        n = len(p.payload) + (-len(p.payload) & 3)
        if not n:
            return
        f = bytearray(frame)
        f[at - 1 - self.rng.randrange(n)] ^= 1 << self.rng.randrange(8)
        name = 'bad_payload_bit_%d' % len(self.out)
        self.drop('payload_bit', p, 'icrc', False)
        self.out[-1]['frame'] = bytes(f).hex()
        self.out[-1]['name'] = name
        self.counters[name] = 'icrc'

    def drop_ip4(self):
        r = self.rng
        p = self.base('v4')
        what = r.choice(['ihl', 'version', 'checksum', 'mf', 'frag', 'df', 'reserved', 'long',
                         'short', 'proto', 'tiny'])
        p.tail, p.min60 = (b'', False) if what == 'long' else (p.tail, p.min60)
        frame, at = p.build()
        total = len(frame) - len(p.tail) - 14 - 4 * len(p.vlans)
        if p.min60 and len(frame) == 60:
            total = at + 4 - 14 - 4 * len(p.vlans)
        counter = {'ihl': 'ip4_ihl', 'version': 'ip_version', 'checksum': 'ip4_checksum',
                   'mf': 'ip4_fragment', 'frag': 'ip4_fragment', 'df': 'ip4_not_df',
                   'reserved': 'ip4_not_df', 'long': 'ip_length', 'short': 'udp_length',
                   'proto': 'ip_next_header', 'tiny': 'ip_length'}[what]
        if what == 'ihl':
            p.ihl = r.choice([4, 6, 7, 15])
        elif what == 'version':
            p.ver = r.choice([0, 5, 6, 15])
        elif what == 'checksum':
            p.csum_xor = r.choice([1 << r.randrange(16), 0x5555])
        elif what == 'mf':
            p.flags |= 1
        elif what == 'frag':
            p.frag = r.randrange(1, 1 << 13)
        elif what == 'df':
            p.flags = 0
        elif what == 'reserved':
            p.flags |= 4
        elif what == 'long':
            p.l3_len = total + r.choice([1, 4, 1000])
        elif what == 'short':
            p.l3_len = total - r.choice([1, 4, 8])
        elif what == 'tiny':
            p.l3_len = r.choice([0, 19, 20, 27])
        elif what == 'proto':
            p.proto = r.choice([1, 6, 16, 0x1B])
        # the packet is not what its ICRC was computed over when its lengths lie: it is not read
        self.drop('ip4_' + what, p, counter)

    def drop_ip6(self):
        r = self.rng
        p = self.base('v6')
        what = r.choice(['version', 'long', 'short', 'jumbo', 'next', 'hopbyhop'])
        if what in ('long', 'hopbyhop'):
            p.tail, p.min60 = b'', False
        frame, at = p.build()
        plen = at + 4 - 14 - 4 * len(p.vlans) - 40
        counter = {'version': 'ip_version', 'long': 'ip_length', 'short': 'udp_length',
                   'jumbo': 'ip_length', 'next': 'ip_next_header',
                   'hopbyhop': 'ip_next_header'}[what]
        if what == 'version':
            p.ver = r.choice([0, 4, 5, 7])
        elif what == 'long':
            p.l3_len = plen + r.choice([1, 4, 1000])
        elif what == 'short':
            p.l3_len = plen - r.choice([1, 4, 8])
        elif what == 'jumbo':
            p.l3_len = 0
        elif what == 'next':
            p.next = r.choice([6, 0x1B, 58, 59])
        else:
            p.next, p.ext_header = r.choice([0, 43, 60]), bytes([17, 0, 1, 4, 0, 0, 0, 0])
        self.drop('ip6_' + what, p, counter)

    def drop_grh(self):
        r = self.rng
        p = self.base(r.choice(['v1', 'v1m']))
        what = r.choice(['version', 'next', 'long', 'short'])
        if what == 'long':
            p.tail, p.min60 = b'', False
        frame, at = p.build()
        plen = at + 4 - 14 - 4 * len(p.vlans) - 40
        if what == 'version':
            p.ver = r.choice([0, 4, 7])
        elif what == 'next':
            p.next = r.choice([17, 0, 59])
        elif what == 'long':
            p.l3_len = plen + r.choice([1, 4, 100])
        else:
            p.l3_len = r.choice([0, 12, 15])
        self.drop('grh_' + what, p, {'version': 'ip_version', 'next': 'grh_next_header',
                                     'long': 'ip_length', 'short': 'bth_short'}[what])

    def drop_udp(self):
        r = self.rng
        p = self.base(r.choice(['v4', 'v6']))
        if r.random() < .5:
            p.dport = r.choice([4790, 4792, 0, 0xB712])
            self.drop('udp_port', p, 'udp_port')
            return
        frame, at = p.build()
        right = at + 4 - 14 - 4 * len(p.vlans) - (20 if p.kind == 'v4' else 40)
        p.udp_len = r.choice([0, 7, 8, right - 1, right + 1, right + 4, 0xFFFF])
        self.drop('udp_length', p, 'udp_length')

    def drop_ethernet(self):
        r = self.rng
        p = self.base()
        what = r.choice(['type', 'stacked', 'dmac', 'mcast', 'broadcast'])
        if what == 'type':
            p.ethertype = r.choice([0x0806, 0x8914, 0x88CC])
            counter = 'not_roce'
        elif what == 'stacked':
            p.vlans = [(r.choice([0x88A8, 0x8100]), 0, 5), (0x8100, 0, 6)]
            counter = 'vlan_stacked'
        else:
            p.dmac = {'dmac': '02:%02x:77:66:55:44' % r.randrange(256), 'mcast': '33:33:00:00:00:01',
                      'broadcast': 'ff:ff:ff:ff:ff:ff'}[what]
            counter = 'dmac'
        self.drop('eth_' + what, p, counter)

    def drop_address(self):
        r, w = self.rng, self.w
        p = self.base()
        what = r.choice(['dst', 'src', 'mcast_src', 'mcast_dst', 'vlan'])
        other = {'v4': '198.51.100.%d' % r.randrange(1, 255), 'v6': '2001:db8:ffff::%x' % r.getrandbits(16),
                 'v1': 'fe80::dead:%x' % r.getrandbits(16)}[p.kind]
        group = {'v4': '239.1.2.3', 'v6': 'ff0e::1:2', 'v1': 'ff12::9'}[p.kind]
        if what == 'dst':
            p.dst, counter = other, 'dgid'
        elif what == 'src':
            p.src, counter = other, 'qp_address'
        elif what == 'mcast_src':
            p.src, counter = group, 'sgid'
        elif what == 'mcast_dst':
            p.dst, counter = group, 'qpn_mcast'
        else:
            p.vlans, counter = [(0x8100, 0, r.randrange(1, 4095))], 'dgid'
            self.drop('VLAN without such a GID', p, counter, rule='ETH-07')
            return
        self.drop('address_' + what, p, counter)

    def drop_gid_type(self):
        r = self.rng
        kind = r.choice(['v6', 'v1', 'v1m'])
        p = self.base(kind)
        p.vlans = []
        if r.random() < .5:
            self.drop('gid_type', p, 'qp_address', rule='CA17-40/41')
            return
        p = self.base('v4')
        p.vlans = []
        self.drop('gid_type_of_the_qp', p, 'qp_address',
                  context={'QP_gid_type': r.choice(['IB GID', 'IPv6'])})

    def drop_bth(self):
        r, w = self.rng, self.w
        p = self.base()
        what = r.choice(['tver', 'qp0', 'unknown', 'mcast_qp', 'class', 'type', 'align', 'pad'])
        counter = {'tver': 'bth_tver', 'qp0': 'qp0', 'unknown': 'qpn_unknown',
                   'mcast_qp': 'qpn_mcast', 'class': 'opcode_class', 'type': 'qp_type',
                   'align': 'bth_align', 'pad': 'pad'}[what]
        if what == 'tver':
            p.tver = r.randrange(1, 16)
        elif what == 'qp0':
            p.dest_qp = 0
        elif what == 'unknown':
            p.dest_qp = w.sides['B']['qpn']['RC'] ^ 1 << r.randrange(24)
            if p.dest_qp in (0, 1, 0xFFFFFF) or \
                    p.dest_qp in w.sides['B']['qpn'].values() or \
                    p.dest_qp in w.sides['A']['qpn'].values():
                return
        elif what == 'mcast_qp':
            p.dest_qp = 0xFFFFFF
        elif what == 'class':
            p.op = r.choice([0x40, 0x44, 0x80, 0x82, 0x9F, 0xC0, 0xDF, 0xE4, 0xFF])
        elif what == 'type':
            p.op = r.choice([0x24, 0x20, 0x2A, 0x64, 0xA4, 0x3F, 0x60, 0x7F, 0xBF])
            p.payload = data(r, 64)
        elif what == 'align':
            p.pad, p.payload = 0, data(r, 1 + 4 * r.randrange(8) + r.randrange(3))
        else:
            p.op, p.payload, p.eths, p.pad = 0x04, b'', {}, r.randrange(1, 4)
            p.pad_bytes = b''
        if what not in ('pad', 'align'):
            p.pad_bytes = None
        elif what == 'align':
            p.op, p.eths, p.pad_bytes = 0x04, {}, b''
        self.drop('bth_' + what, p, counter)

    def drop_short(self):
        """VAL-18: cut in the extended headers"""
        op = self.rng.choice([0x06, 0x0A, 0x0B, 0x0C, 0x05, 0x13, 0x14, 0x1D, 0x17, 0x1C])
        p = self.vary(self.good(op, self.rng.choice(KINDS)))
        p.payload, p.pad_bytes = b'', None
        p.cut = 4 * self.rng.randrange(1, (len(p.body()) - 12) // 4 + 1)
        self.drop('header_short', p, 'header_short')

    def drop_extra(self):
        """BTH-07: payload where none may be"""
        p = self.vary(self.good(self.rng.choice([0x0C, 0x13, 0x14, 0x1C]), self.rng.choice(KINDS)))
        p.payload, p.pad_bytes = data(self.rng, 4 * self.rng.randrange(1, 8)), None
        self.drop('payload_of_a_request', p, 'pad')

    def drop_pkey(self):
        r = self.rng
        p = self.base()
        what = r.choice(['other', 'zero', 'limited'])
        context = {}
        if what == 'other':
            p.pkey ^= 1 << r.randrange(15)
        elif what == 'zero':
            p.pkey = r.choice([0, 0x8000])
            if r.random() < .5:
                context = {'context': {'pkey_table': ['0x8000']}}
        else:
            p.pkey &= 0x7FFF
            context = {'context': {'pkey_table': ['0x%04x' % p.pkey]}}
        if not p.pkey & 0x7FFF and what == 'limited':
            return
        self.drop('pkey_' + what, p, 'pkey', **context)

    def drop_state(self):
        r = self.rng
        if r.random() < .5:
            self.drop('qp_state', self.base(), 'qp_state',
                      context={'QP_state': r.choice(['RESET', 'INIT', 'ERR'])})
            return
        p = self.vary(self.good(r.choice([0x0D, 0x0E, 0x0F, 0x10, 0x11]), r.choice(KINDS)))
        self.drop('qp_state_of_a_response', p, 'qp_state',
                  context={'QP_state': r.choice(['RTR', 'INIT', 'ERR'])})

    def drop_ghost(self):
        p = self.vary(self.good(0x11, self.rng.choice(KINDS)))
        p.psn = (self.w.epsn + self.rng.randrange(1 << 22)) & 0xFFFFFF
        self.drop('ghost_ack', p, 'ghost_ack')

    def drop_aeth(self):
        """REQ-46: AETHs that say nothing; the runner has requests in flight for them"""
        r = self.rng
        for code in (0x40, 0x5F, 0x65, 0x7F, r.randrange(0x40, 0x60), r.randrange(0x65, 0x80)):
            p = self.vary(self.good(0x11, r.choice(KINDS)))
            p.eths['aeth']['syndrome'] = code | r.choice([0, 0x80])
            self.drop('aeth_reserved', p, 'aeth_reserved')

    def drop_duplicate(self):
        """RSP-38, RSP-40: READs and atomics that nothing is remembered of"""
        p = self.vary(self.good(self.rng.choice([0x0C, 0x13, 0x14]), self.rng.choice(KINDS)))
        p.psn = (p.psn - self.rng.choice([1, 2, 1 << 22])) & 0xFFFFFF
        self.drop('duplicate', p, 'psn_behind')  # the QP has executed nothing

    def drop_of_others(self):
        """frames for UC, UD, XRC and QP1 that are wrong before their QP is asked"""
        r, w = self.rng, self.w
        op = r.choice([0x24, 0x2A, 0x64, 0x65, 0xA4])
        qpn = {0x20: 'UC', 0x60: 'UD', 0xA0: 'XRCT'}[op & 0xE0]
        p = self.vary(self.good(op, r.choice(KINDS), qpn=w.sides['B']['qpn'][qpn]))
        if op == 0x64 and r.random() < .3:
            p.dest_qp = 1
        what = r.choice(['icrc', 'tver', 'dst', 'mcast'])
        if what == 'icrc':
            p.icrc_mode = 'flip%d' % r.randrange(32)
            self.drop('other_icrc', p, 'icrc', False)
        elif what == 'tver':
            p.tver = r.randrange(1, 16)
            self.drop('other_tver', p, 'bth_tver')
        elif what == 'dst':
            p.dst = {'v4': '198.51.100.9', 'v6': '2001:db8:ffff::9', 'v1': 'fe80::dead:9'}[p.kind]
            self.drop('other_dst', p, 'dgid')
        else:
            p.dst = {'v4': '239.1.2.3', 'v6': 'ff0e::1:2', 'v1': 'ff12::9'}[p.kind]
            self.drop('other_mcast', p, 'qpn_mcast')

    def drop_datagram(self):
        """UD and QP1: Q_Key, P_Key, opcode, no receive"""
        r, w = self.rng, self.w
        p = self.vary(self.good(r.choice([0x64, 0x65]), r.choice(KINDS), qpn=w.sides['B']['qpn']['UD']))
        qp1 = r.random() < .5
        if qp1:
            p.dest_qp = 1
            p.eths['deth'].update(qkey=0x80010000, src_qp=1)
        what = r.choice(['qkey', 'pkey', 'opcode', 'receive'])
        context = {}
        if what == 'qkey':
            p.eths['deth']['qkey'] ^= 1 << r.randrange(32)
        elif what == 'pkey':
            p.pkey ^= 1 << r.randrange(15)
            if p.pkey & 0x7FFF == w.pkey & 0x7FFF:
                return
            if not qp1:                                     # VAL-09: only the first is the QP's
                context = {'pkey_table': ['0x%04x' % w.pkey, '0x%04x' % (p.pkey | 0x8000)]}
        elif what == 'opcode':
            p.op, p.eths = 0x60 | r.choice([0, 1, 3, 6, 7, 0x1F]), {}
        else:
            context = {'recv_wqes': 0}
        counter = {'opcode': 'opcode_unsupported', 'receive': 'no_recv_wqe'}.get(what, what)
        self.drop('datagram_' + what, p, counter, **({'context': context} if context else {}))

    def drop_uc(self):
        """UC-05, UC-09, UC-10, UC-12, UC-13: what RC answers with a NAK"""
        r, w = self.rng, self.w
        op = r.choice([0x20, 0x24, 0x25, 0x26, 0x2A, 0x2B])
        p = self.vary(self.good(op, r.choice(KINDS), qpn=w.sides['B']['qpn']['UC']))
        p.psn = r.choice([p.psn, r.randrange(1 << 24)])     # UC-04
        what = r.choice(['torn', 'length', 'receive', 'key', 'access'])
        counter, context = 'request_length', {}
        write = 'reth' in p.eths
        if what == 'torn':
            p.op, p.eths, counter = r.choice([0x21, 0x22, 0x27, 0x28]), {}, 'message_torn'
            p.payload, p.pad_bytes = data(r, w.mtu), None
        elif what == 'length':
            n = r.choice([w.mtu + 4, w.mtu + 1] + ([0, 1, w.mtu - 4] if op in (0x20, 0x26) else []))
            p.payload, p.pad_bytes = data(r, n), None
            context = {'recv_len': 8192}
            if op != 0x26 and write:
                p.eths['reth'] = w.reth(0, n)
        elif what == 'receive':
            if op in (0x26, 0x2A):
                return
            counter, context = 'no_recv_wqe', {'recv_wqes': 0}
        elif not write or not p.eths['reth']['dmalen']:
            return
        elif what == 'key':
            counter = 'request_access'
            p.eths['reth']['rkey'] ^= 1 << r.randrange(16)
        else:
            counter = 'request_access'
            context = r.choice([{'B_rc_access': 'REMOTE_READ'}, {'B_mr_access': 'LOCAL_WRITE|REMOTE_READ'}])
        self.drop('uc_' + what, p, counter, **({'context': context} if context else {}))

    # --- answered with a NAK ----------------------------------------------------------------

    def nak(self, name, p, syndrome, **expect):
        self.add('nak_' + name, p, 'nak', None, True, syndrome=syndrome, **expect)

    def run_nak(self):
        getattr(self, self.rng.choice([n for n in dir(self) if n.startswith('nak_')]))()

    def nak_ahead(self):
        p = self.vary(self.good(self.rng.choice(list(range(0x0D)) + [0x13, 0x14, 0x17, 0x1C, 0x1D]),
                                self.rng.choice(KINDS)))
        p.psn = (p.psn + self.rng.choice([1, 2, 100, 1 << 22, (1 << 23) - 1])) & 0xFFFFFF
        self.nak('ahead', p, NAK_SEQ, nak_psn=self.w.epsn)

    def nak_reserved(self):
        p = self.base()
        p.op, p.eths, p.pad_bytes = self.rng.choice([0x15, 0x18, 0x19, 0x1A, 0x1B, 0x1E, 0x1F]), \
            {}, None
        self.nak('reserved', p, NAK_INV, alt='drop_silent')

    def nak_sequence(self):
        p = self.vary(self.good(self.rng.choice([1, 2, 3, 7, 8, 9]), self.rng.choice(KINDS)))
        self.nak('op_sequence', p, NAK_INV)

    def nak_length(self):
        r, m = self.rng, self.w.mtu
        op = r.choice([0x00, 0x06, 0x04, 0x0A])
        p = self.vary(self.good(op, r.choice(KINDS)))
        n = r.choice([m + 1, m + 4, 2 * m]) if op in (4, 0xA) else \
            r.choice([0, 1, m - 1, m - 4, m + 4])
        p.payload, p.pad_bytes = data(r, min(n, 4200)), None
        if len(p.payload) == m or (op in (4, 0xA) and len(p.payload) < m):
            return
        if op == 0x0A:
            p.eths['reth'] = self.w.reth(0, len(p.payload))
        elif op == 6:
            p.eths['reth'] = self.w.reth(0, 3 * m)
        self.nak('length', p, NAK_INV, context={'recv_len': 8192})

    def nak_dmalen(self):
        r = self.rng
        op = r.choice([0x06, 0x0A, 0x0B, 0x0C])
        p = self.vary(self.good(op, r.choice(KINDS)))
        if op == 0x0C:
            p.eths['reth'] = self.w.reth(0, r.choice([(1 << 31) + 1, 0xFFFFFFFF]))
        elif op == 0x06:
            p.eths['reth'] = self.w.reth(0, r.choice([self.w.mtu - 4, self.w.mtu - 1, 0]))
        else:
            n = len(p.payload)
            p.eths['reth'] = self.w.reth(0, r.choice([n + 1, n + 4, max(n - 1, 0) if n else 1]))
        self.nak('dmalen', p, NAK_INV)

    def nak_qp_access(self):
        op = self.rng.choice([0x06, 0x0A, 0x0B, 0x0C])
        p = self.vary(self.good(op, self.rng.choice(KINDS)))
        access = 'REMOTE_READ|REMOTE_ATOMIC' if op != 0x0C else 'REMOTE_WRITE'
        self.nak('qp_access', p, NAK_INV, context={'B_rc_access': access})

    def rkey_packet(self):
        while True:
            p = self.vary(self.good(self.rng.choice([0x06, 0x0A, 0x0B, 0x0C]),
                                    self.rng.choice(KINDS)))
            if p.eths['reth']['dmalen']:
                return p

    def nak_mr_access(self):
        p = self.rkey_packet()
        access = 'LOCAL_WRITE|REMOTE_READ' if p.op != 0x0C else 'LOCAL_WRITE|REMOTE_WRITE'
        self.nak('mr_access', p, NAK_ACC, context={'B_mr_access': access})

    def nak_rkey(self):
        p = self.rkey_packet()
        k = p.eths['reth']['rkey']
        p.eths['reth']['rkey'] = self.rng.choice(
            [k ^ 1 << self.rng.randrange(8), k ^ 1 << self.rng.randrange(8, 16), 0, k | 0x80000000])
        self.nak('rkey', p, NAK_ACC)

    def nak_range(self):
        r, mr = self.rng, self.w.mr
        p = self.rkey_packet()
        h = p.eths['reth']
        n = h['dmalen']
        h['va'] = r.choice([mr['va'] + mr['length'] - n + 1, mr['va'] - 1, mr['va'] + mr['length'],
                            (1 << 64) - n + 1, (1 << 64) - 1]) & (1 << 64) - 1
        if mr['va'] <= h['va'] and h['va'] + n <= mr['va'] + mr['length']:
            return
        self.nak('range', p, NAK_ACC)

    def nak_rd_atomic(self):
        p = self.vary(self.good(0x0C, self.rng.choice(KINDS)))
        self.nak('rd_atomic', p, NAK_INV, context={'max_dest_rd_atomic': 0})

    def nak_recv_len(self):
        r = self.rng
        while True:
            p = self.vary(self.good(r.choice([0, 4, 5]), r.choice(KINDS)))
            if len(p.payload) > 1:
                break
        self.nak('recv_len', p, NAK_INV, context={'recv_len': r.randrange(1, len(p.payload))})

    def nak_rnr(self):
        p = self.vary(self.good(self.rng.choice([0x00, 0x04, 0x05, 0x0B]), self.rng.choice(KINDS)))
        t = self.rng.randrange(32)
        context = {'recv_wqes': 0}
        if self.rng.random() < .5:
            context['B_min_rnr_timer'] = t
        else:
            t = self.w.min_rnr
        self.add('rnr', p, 'rnr_nak', None, True, syndrome=0x20 | t, nak_psn=self.w.epsn,
                 context=context)

    def duplicate(self):
        """RSP-39: not executed; acknowledged, perhaps"""
        p = self.vary(self.good(self.rng.choice(list(range(12))), self.rng.choice(KINDS)))
        p.psn = (p.psn - self.rng.choice([1, 2, 1000, 1 << 22])) & 0xFFFFFF
        if p.op in (1, 2, 3, 7, 8, 9):      # such a vector has no place in a message
            return
        self.add('duplicate', p)

    def run(self, n):
        kinds = [self.run_good] * 6 + [self.run_other] * 2 + [self.run_ipoib] + [self.run_dropped] * 6 + \
            [self.run_nak] * 5 + [self.duplicate]
        self.run_other(0x81, 'v4')                      # whatever the seed: the selftest makes one wrong
        while len(self.out) < n:
            self.rng.choice(kinds)()
        return self.out
