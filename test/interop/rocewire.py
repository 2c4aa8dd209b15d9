# SPDX-License-Identifier: BSD-3-Clause
"""Captures and RoCE frames as the validator sees them; shares no code with the product."""
import ipaddress
import struct
from dataclasses import dataclass, field

UDP_PORT = 4791
CNP = 0x81
# Trials of runs of frames (doc/decisions/0155): opcodes for manufacturers, and a name.
TRIAL, ANSWER, TRIAL_NAME, TRIAL_LEN = 0xFE, 0xFF, b'rocigso2', 256
EXT_LEN = {'reth': 16, 'aeth': 4, 'imm': 4, 'ieth': 4, 'atomiceth': 28, 'atomicack': 8}


@dataclass(frozen=True)
class Op:
    """A row of the opcode table (IBA Table 35), RC only."""
    name: str
    kind: str            # send, write, read, read_resp, ack, atomic, atomic_ack
    first: bool
    last: bool
    exts: tuple = ()

    @property
    def response(self):
        return self.kind in ('read_resp', 'ack', 'atomic_ack')

    @property
    def waits(self):
        """Answered by more than an ACK."""
        return self.kind in ('read', 'atomic')

    @property
    def payload(self):
        return self.kind in ('send', 'write', 'read_resp')


def _rc_ops():
    t = {}
    for base, kind in ((0x00, 'send'), (0x06, 'write')):
        reth = ('reth',) if kind == 'write' else ()
        k = kind.upper()
        t[base] = Op(f'{k}_FIRST', kind, True, False, reth)
        t[base + 1] = Op(f'{k}_MIDDLE', kind, False, False)
        t[base + 2] = Op(f'{k}_LAST', kind, False, True)
        t[base + 3] = Op(f'{k}_LAST_WITH_IMM', kind, False, True, ('imm',))
        t[base + 4] = Op(f'{k}_ONLY', kind, True, True, reth)
        t[base + 5] = Op(f'{k}_ONLY_WITH_IMM', kind, True, True, reth + ('imm',))
    t[0x0C] = Op('READ_REQUEST', 'read', True, True, ('reth',))
    t[0x0D] = Op('READ_RESP_FIRST', 'read_resp', True, False, ('aeth',))
    t[0x0E] = Op('READ_RESP_MIDDLE', 'read_resp', False, False)
    t[0x0F] = Op('READ_RESP_LAST', 'read_resp', False, True, ('aeth',))
    t[0x10] = Op('READ_RESP_ONLY', 'read_resp', True, True, ('aeth',))
    t[0x11] = Op('ACKNOWLEDGE', 'ack', True, True, ('aeth',))
    t[0x12] = Op('ATOMIC_ACK', 'atomic_ack', True, True, ('aeth', 'atomicack'))
    t[0x13] = Op('CMP_SWAP', 'atomic', True, True, ('atomiceth',))
    t[0x14] = Op('FETCH_ADD', 'atomic', True, True, ('atomiceth',))
    t[0x16] = Op('SEND_LAST_WITH_INV', 'send', False, True, ('ieth',))
    t[0x17] = Op('SEND_ONLY_WITH_INV', 'send', True, True, ('ieth',))
    return t


RC_OPS = _rc_ops()


@dataclass
class Packet:
    number: int          # of the frame, as tshark counts
    net: str             # v4, v6, v1
    smac: str
    src: str
    dst: str
    faults: list = field(default_factory=list)   # (rule, sentence) seen while parsing
    time: float = 0.0    # seconds
    ecn: int = 0
    dip: str = ''        # of a Fast CNP: the address in its option
    options: bytes = b''     # the Destination Options header, if there is one
    becn: int = 0
    sport: int = 0
    code: int = 0
    trial: bool = False
    op: Op = None
    se: int = 0
    m: int = 0
    pad: int = 0
    pkey: int = 0
    dqpn: int = 0
    ackreq: int = 0
    psn: int = 0
    va: int = 0
    rkey: int = 0
    dmalen: int = 0
    syndrome: int = 0
    msn: int = 0
    orig: int = 0
    body: bytes = b''    # from the end of the BTH to the last payload byte, as sent
    payload: bytes = b''

    def fault(self, rule, sentence):
        self.faults.append((rule, sentence))


def read_pcap(path):
    """Yields (frame number, bytes, truncated, time in seconds) of a classic Ethernet pcap file."""
    with open(path, 'rb') as f:
        d = f.read()
    if len(d) < 24:
        raise ValueError('is no capture file')
    endian = {b'\xd4\xc3\xb2\xa1': '<', b'\x4d\x3c\xb2\xa1': '<',
              b'\xa1\xb2\xc3\xd4': '>', b'\xa1\xb2\x3c\x4d': '>'}.get(d[:4])
    if not endian:
        raise ValueError('is not a classic pcap file: convert it with editcap -F pcap')
    link = struct.unpack_from(endian + 'I', d, 20)[0] & 0xffff
    if link != 1:
        raise ValueError(f'has link type {link}: capture on an Ethernet device')
    unit = 1e9 if d[:4] in (b'\x4d\x3c\xb2\xa1', b'\xa1\xb2\x3c\x4d') else 1e6
    o, n = 24, 0
    while o + 16 <= len(d):
        sec, frac, cap, orig = struct.unpack_from(endian + 'IIII', d, o)
        o += 16
        n += 1
        yield n, d[o:o + cap], cap < orig or o + cap > len(d), sec + frac / unit
        o += cap


def _checksum(b):
    s = sum(struct.unpack(f'!{len(b) // 2}H', b))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return s


def _ip4(p, f):
    ver_ihl, tos, tot, _, frag, ttl, proto = struct.unpack_from('!BBHHHBB', f)
    if ver_ihl != 0x45:
        p.fault('IP4-01', f'version and IHL are {ver_ihl:#x}, not 0x45')
    p.ecn = tos & 3
    if frag != 0x4000:
        p.fault('IP4-09', f'flags and fragment offset are {frag:#06x}: only DF may be set')
    if not ttl:
        p.fault('IP4-12', 'TTL is 0')
    if _checksum(f[:20]) != 0xffff:
        p.fault('IP4-16', 'the IPv4 header checksum is wrong')
    return 20, tot - 20


def _ip6(p, f):
    word, plen, _, hop = struct.unpack_from('!IHBB', f)
    if word >> 28 != 6:
        p.fault('IP6-01', f'IP version is {word >> 28}')
    p.ecn = word >> 20 & 3
    if not hop:
        p.fault('IP6-07', 'hop limit is 0')
    return 40, plen


def _udp(p, f, l3_len):
    p.sport, _, ulen, csum = struct.unpack_from('!HHHH', f)
    if ulen != l3_len:
        p.fault('UDP-03', f'UDP length is {ulen}, the IP payload has {l3_len} bytes')
    if csum:
        p.fault('UDP-05', f'the UDP checksum is {csum:#06x}, not 0')
    if p.sport < 0xC000:
        p.fault('UDP-10', f'source port {p.sport} is below 0xC000')


def _cnp(p, t):
    """A17 Figure 6."""
    if t[1] or p.psn or p.ackreq:
        p.fault('CNP-02', f'a CNP has flags {t[1]:#04x}, PSN {p.psn} and AckReq {p.ackreq}: all must be 0')
    if len(t) != 12 + 16 or any(t[12:]):
        p.fault('CNP-03', f'{t[12:].hex()} follow the BTH of a CNP, not 16 bytes of 0')


def _options(p, header):
    """One option of a Fast CNP between paddings (RFC 8200 4.2)."""
    p.options, at, found = header, 2, []
    while at < len(header):
        if header[at] == 0:
            at += 1
            continue
        end = at + 2 + header[at + 1] if at + 1 < len(header) else len(header) + 1
        if end > len(header):
            p.fault('FCN-07', 'an option goes beyond its header')
            return
        if header[at] != 1:
            found.append((header[at], header[at + 2:end]))
        at = end
    if len(found) != 1 or len(found[0][1]) < 16:
        p.fault('FCN-03', f'{len(found)} options, not one with an address')
    else:
        p.dip = str(ipaddress.ip_address(found[0][1][-16:]))


def _bth(p, t):
    """t is the transport packet without its ICRC."""
    code, flags, p.pkey, dqpn, psn = struct.unpack_from('!BBHII', t)
    p.code, p.op = code, RC_OPS.get(code)
    p.se, p.m, p.pad = flags >> 7, flags >> 6 & 1, flags >> 4 & 3
    p.dqpn, p.ackreq, p.psn = dqpn & 0xffffff, psn >> 31, psn & 0xffffff
    if flags & 15:
        p.fault('BTH-02', f'TVer is {flags & 15}')
    p.becn = dqpn >> 30 & 1
    p.trial = code in (TRIAL, ANSWER) and t[12:20] == TRIAL_NAME
    if dqpn >> 24 & ~(0x40 if code == CNP else 0):
        p.fault('BTH-03', f'FECN, BECN and reserved bits are {dqpn >> 24:#04x}')
    if psn >> 24 & 0x7f:
        p.fault('BTH-03', f'reserved bits beside AckReq are {psn >> 24 & 0x7f:#04x}')
    if code == CNP:
        _cnp(p, t)
    if not p.op:
        return
    o = 12
    for ext in p.op.exts:
        if o + EXT_LEN[ext] > len(t):
            p.fault('VAL-18', f'{p.op.name} ends within its {ext}')
            return
        if ext == 'reth':
            p.va, p.rkey, p.dmalen = struct.unpack_from('!QII', t, o)
        elif ext == 'aeth':
            word, = struct.unpack_from('!I', t, o)
            p.syndrome, p.msn = word >> 24, word & 0xffffff
        elif ext == 'atomicack':
            p.orig, = struct.unpack_from('!Q', t, o)
        o += EXT_LEN[ext]
    end = len(t) - p.pad
    if end < o:
        p.fault('BTH-06', 'the pad count is larger than the payload')
        end = len(t)
    p.body, p.payload = t[12:end], t[o:end]
    if any(t[end:]):
        p.fault('BTH-05', f'pad bytes are {t[end:].hex()}, not 0')
    if p.pad != -len(p.payload) & 3:
        p.fault('BTH-05', f'pad count {p.pad} with {len(p.payload)} bytes of payload')
    if p.payload and not p.op.payload:
        p.fault('BTH-07', f'{p.op.name} carries {len(p.payload)} bytes of payload')


def uncut(f):
    """@return the frames that a frame is on a wire: one, or the two of a trial, with PSN 0 and 1, which a
    capture on the sender's netdev shows before the kernel cuts it."""
    udp = 14 + {b'\x08\x00': 20, b'\x86\xdd': 40}.get(f[12:14], len(f))
    parts = [f[at:at + TRIAL_LEN] for at in (udp + 8, udp + 8 + TRIAL_LEN)]
    if len(f) != udp + 8 + 2 * TRIAL_LEN or any(
            p[0] != TRIAL or p[8:20] != bytes([0, 0, 0, i]) + TRIAL_NAME for i, p in enumerate(parts)):
        return [f]
    frames = []
    for i, part in enumerate(parts):
        ip, ports = bytearray(f[14:udp]), f[udp:udp + 4]
        if len(ip) == 20:
            number, = struct.unpack_from('!H', ip, 4)
            struct.pack_into('!H', ip, 2, 28 + TRIAL_LEN)
            struct.pack_into('!H', ip, 4, number + i & 0xFFFF)
            struct.pack_into('!H', ip, 10, 0)
            struct.pack_into('!H', ip, 10, ~_checksum(ip) & 0xFFFF)
        else:
            struct.pack_into('!H', ip, 4, 8 + TRIAL_LEN)
        frames.append(f[:14] + ip + ports + struct.pack('!HH', 8 + TRIAL_LEN, 0) + part)
    return frames


def parse(number, f):
    """@return the Packet in a frame, or None when it is no RoCE frame."""
    o, vlans = 12, 0
    while len(f) >= o + 2 and f[o:o + 2] in (b'\x81\x00', b'\x88\xa8') and vlans < 2:
        o, vlans = o + 4, vlans + 1
    etype, o = f[o:o + 2], o + 2
    ip = f[o:]
    if etype == b'\x08\x00' and len(ip) >= 28 and ip[9] == 17:
        net, src, dst, u = 'v4', ip[12:16], ip[16:20], (ip[0] & 15) * 4
    elif etype == b'\x86\xdd' and len(ip) >= 48 and ip[6] == 17:
        net, src, dst, u = 'v6', ip[8:24], ip[24:40], 40
    elif etype == b'\x86\xdd' and len(ip) >= 56 and ip[6] == 60 and ip[40] == 17:
        net, src, dst, u = 'v6', ip[8:24], ip[24:40], 40 + 8 * (ip[41] + 1)
    elif etype == b'\x89\x15' and len(ip) >= 40:
        net, src, dst, u = 'v1', ip[8:24], ip[24:40], 40
    else:
        return None
    if net != 'v1' and ip[u + 2:u + 4] != UDP_PORT.to_bytes(2, 'big'):
        return None
    p = Packet(number, net, f[6:12].hex(':'), str(ipaddress.ip_address(src)),
               str(ipaddress.ip_address(dst)))
    hdr, l3_len = (_ip4 if net == 'v4' else _ip6)(p, ip)
    if hdr + l3_len > len(ip):
        p.fault('IP4-07' if net == 'v4' else 'IP6-03', 'the IP length goes beyond the frame')
        return p
    if net == 'v6' and u > 40:
        _options(p, ip[40:u])
        l3_len -= u - 40
        hdr = u
    t = ip[u:hdr + l3_len]
    if net != 'v1':
        _udp(p, t, l3_len)
        t = t[8:]
    if len(t) < 16:
        p.fault('UDP-04', f'{len(t)} bytes are too few for BTH and ICRC')
        return p
    _bth(p, t[:-4])
    return p
