# SPDX-License-Identifier: BSD-3-Clause
"""Bytes of RoCE frames, written from IBA 9, A17.3 and CA17-22 alone: nothing of the product."""
import ipaddress
import struct
import zlib

ACK, NAK_SEQ, NAK_INV, NAK_ACC, NAK_OP = 0x1F, 0x60, 0x61, 0x62, 0x63
PSN_MASK = 0xFFFFFF

# BTH opcode -> names of the headers after it, and whether payload may follow (IBA Table 35)
_BASE = {
    0x00: ('', 1), 0x01: ('', 1), 0x02: ('', 1), 0x03: ('immdt', 1), 0x04: ('', 1),
    0x05: ('immdt', 1), 0x06: ('reth', 1), 0x07: ('', 1), 0x08: ('', 1), 0x09: ('immdt', 1),
    0x0A: ('reth', 1), 0x0B: ('reth immdt', 1), 0x0C: ('reth', 0), 0x0D: ('aeth', 1),
    0x0E: ('', 1), 0x0F: ('aeth', 1), 0x10: ('aeth', 1), 0x11: ('aeth', 0),
    0x12: ('aeth atomicacketh', 0), 0x13: ('atomiceth', 0), 0x14: ('atomiceth', 0),
    0x16: ('ieth', 1), 0x17: ('ieth', 1), 0x1C: ('feth reth', 0), 0x1D: ('reth', 1)}
RESPONSES = range(0x0D, 0x13)
HEADERS = {}
for _op, (_names, _payload) in _BASE.items():
    HEADERS[_op] = (_names.split(), _payload)
    if _op <= 0x0B:
        HEADERS[0x20 | _op] = HEADERS[_op]
    if _op <= 0x14 or _op in (0x1C, 0x1D):
        _x = [] if _op in RESPONSES else ['xrceth']
        HEADERS[0xA0 | _op] = (_x + _names.split(), _payload)
HEADERS[0x64] = (['deth'], 1)
HEADERS[0x65] = (['deth', 'immdt'], 1)
HEADERS[0x81] = (['cnp_reserved'], 0)


def _eth(name, f):
    if name == 'cnp_reserved':
        return f['bytes']
    fmt, keys = {
        'reth': ('!QII', ('va', 'rkey', 'dmalen')), 'aeth': ('!I', None), 'deth': ('!II', None),
        'immdt': ('!I', ('value',)), 'ieth': ('!I', ('rkey',)), 'xrceth': ('!I', ('srqn',)),
        'feth': ('!I', None), 'atomicacketh': ('!Q', ('orig',)),
        'atomiceth': ('!QIQQ', ('va', 'rkey', 'swap_add', 'cmp'))}[name]
    if name == 'aeth':
        return struct.pack(fmt, f['syndrome'] << 24 | f['msn'])
    if name == 'deth':
        return struct.pack(fmt, f['qkey'], f.get('resv', 0) << 24 | f['src_qp'])
    if name == 'feth':
        return struct.pack(fmt, f['sel'] << 4 | f['plt'])
    return struct.pack(fmt, *(f[k] for k in keys))


def mac_bytes(s):
    return bytes(int(x, 16) for x in s.split(':'))


def mapped(ip4):
    return '::ffff:' + ip4


def ip4_sum(h):
    s = sum(struct.unpack('!%dH' % (len(h) // 2), h))
    s = (s & 0xFFFF) + (s >> 16)
    return ~((s & 0xFFFF) + (s >> 16)) & 0xFFFF


class Packet:
    """All fields of a frame; what a test makes wrong it sets before build()."""

    def __init__(self, kind, dmac, smac, src, dst, op, psn, dest_qp, pkey, eths=None, payload=b'',
                 se=0, m=1, a=0):
        self.kind, self.dmac, self.smac, self.src, self.dst = kind, dmac, smac, src, dst
        self.op, self.psn, self.dest_qp, self.pkey = op, psn & PSN_MASK, dest_qp, pkey
        self.eths, self.payload, self.se, self.m, self.a = eths or {}, payload, se, m, a
        self.vlans, self.ethertype = [], None
        self.tclass, self.ident, self.ttl, self.flow = 0, 0x1234, 64, 0
        self.flags, self.frag, self.proto, self.ver, self.ihl = 2, 0, 17, None, 5
        self.l3_len = self.udp_len = None       # instead of the right ones
        self.csum_xor = 0
        self.sport, self.dport, self.ucs = 0xC123, 4791, 0
        self.next = None
        self.ext_header = b''                   # between IPv6 and UDP
        self.pad = None
        self.tver = self.fecn = self.becn = self.resv6 = self.resv7 = 0
        self.icrc_mode, self.cut, self.tail = 'good', 0, b''
        self.pad_bytes = None
        self.min60 = False

    def bth(self):
        pad = (-len(self.payload) & 3) if self.pad is None else self.pad
        return struct.pack('!BBHII', self.op, self.se << 7 | self.m << 6 | pad << 4 | self.tver,
                           self.pkey,
                           self.fecn << 31 | self.becn << 30 | self.resv6 << 24 | self.dest_qp,
                           self.a << 31 | self.resv7 << 24 | self.psn)

    def body(self):
        names = HEADERS.get(self.op, ([], 1))[0]
        b = self.bth() + b''.join(_eth(n, self.eths[n]) for n in names if n in self.eths)
        n = (-len(self.payload) & 3) if self.pad is None else self.pad
        fill = self.pad_bytes if self.pad_bytes is not None else b'\0' * n
        return b + self.payload + fill

    def l3(self, rest):
        """IP or GRH, and UDP, for `rest` bytes of BTH to ICRC"""
        if self.kind == 'v1':
            return self._ip6(rest, 0x1B if self.next is None else self.next)
        udp_len = 8 + rest if self.udp_len is None else self.udp_len
        udp = struct.pack('!HHHH', self.sport, self.dport, udp_len & 0xFFFF, self.ucs)
        if self.kind == 'v6':
            nh = 17 if self.next is None else self.next
            return self._ip6(len(self.ext_header) + 8 + rest, nh) + self.ext_header + udp
        opts = b'\x01' * (4 * (self.ihl - 5)) if self.ihl > 5 else b''
        tot = 20 + len(opts) + 8 + rest if self.l3_len is None else self.l3_len
        h = struct.pack('!BBHHHBBH', (self.ver if self.ver is not None else 4) << 4 | self.ihl,
                        self.tclass, tot & 0xFFFF, self.ident, self.flags << 13 | self.frag,
                        self.ttl, self.proto, 0)
        h += ipaddress.IPv4Address(self.src).packed + ipaddress.IPv4Address(self.dst).packed + opts
        return h[:10] + struct.pack('!H', ip4_sum(h) ^ self.csum_xor) + h[12:] + udp

    def _ip6(self, plen, nh):
        plen = plen if self.l3_len is None else self.l3_len
        ver = self.ver if self.ver is not None else 6
        return struct.pack('!IHBB', ver << 28 | self.tclass << 20 | self.flow, plen & 0xFFFF, nh,
                           self.ttl) + \
            ipaddress.IPv6Address(self.src).packed + ipaddress.IPv6Address(self.dst).packed

    def icrc(self, l3, body):
        """CA17-22, IBA 7.8.1, or one of the ways to get it wrong"""
        mode = self.icrc_mode
        p = bytearray(l3)
        if self.kind == 'v4':
            ones = [1, 8, 10, 11]
            udp = (self.ihl if self.ihl >= 5 else 5) * 4
        else:
            p[0] |= 0x0F
            ones = [1, 2, 3, 7]
            udp = 40 + len(self.ext_header)
        if self.kind != 'v1':
            ones += range(udp, udp + 8) if mode == 'whole_udp' else [udp + 6, udp + 7]
        for i in ones:
            p[i] = 0xFF
        b = bytearray(body)
        if mode != 'resv8a_covered':
            b[4] = 0xFF
        data = (b'' if mode == 'no_ff' else b'\xff' * 8) + bytes(p) + bytes(b)
        if mode == 'crc32c':
            v = _crc32c(data)
        else:
            v = zlib.crc32(data)
        if mode == 'not_complemented':
            v ^= 0xFFFFFFFF
        if mode.startswith('flip'):
            v ^= 1 << int(mode[4:])
        return struct.pack('>I' if mode == 'big_endian' else '<I', v)

    def build(self):
        """-> frame, offset of the ICRC"""
        eth = mac_bytes(self.dmac) + mac_bytes(self.smac)
        for tpid, pcp, vid in self.vlans:
            eth += struct.pack('!HH', tpid, pcp << 13 | vid)
        types = {'v4': 0x0800, 'v6': 0x86DD, 'v1': 0x8915}
        eth += struct.pack('!H', types[self.kind] if self.ethertype is None else self.ethertype)
        body = self.body()
        if self.cut:
            body = body[:len(body) - self.cut]
        l3 = self.l3(len(body) + 4)
        frame = eth + l3 + body
        at = len(frame)
        frame += self.icrc(l3, body) + self.tail
        if self.min60 and len(frame) < 60:
            frame += b'\0' * (60 - len(frame))
        return frame, at

    def fields(self):
        pad = (-len(self.payload) & 3) if self.pad is None else self.pad
        f = {'opcode': self.op, 'se': self.se, 'm': self.m, 'pad': pad, 'tver': self.tver,
             'pkey': self.pkey, 'dest_qp': self.dest_qp, 'ackreq': self.a, 'psn': self.psn,
             'payload_len': len(self.payload)}
        for name in HEADERS.get(self.op, ([], 1))[0]:
            if name == 'cnp_reserved':
                b = self.eths[name]['bytes']
                f[name] = {'zero_bytes': 16} if b == b'\0' * 16 else {}
            elif name in self.eths:
                f[name] = {k: ('0x%x' % v if k in ('va', 'rkey', 'qkey', 'swap_add', 'cmp', 'orig',
                                                   'value') else v)
                           for k, v in self.eths[name].items() if k != 'resv'}
        return f


def _crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def opcode_of(kind, first, last, imm=False):
    """RC SEND or WRITE"""
    op = {(1, 0): 0, (0, 0): 1, (0, 1): 2, (1, 1): 4}[(int(first), int(last))]
    return op + (6 if kind == 'WRITE' else 0) + (1 if imm and last else 0)
