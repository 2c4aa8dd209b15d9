# SPDX-License-Identifier: BSD-3-Clause
"""Payloads of IP over InfiniBand (RFC 4391): what a netdev sends to another."""
import ipaddress
import struct

IPOIB_QKEY = 0x80000B1B
LLADDR_OPTIONS = {133: 1, 134: 1, 135: 1, 136: 2, 137: 2}   # RFC 4861 4.1 to 4.5
FIXED = {133: 8, 134: 16, 135: 24, 136: 24, 137: 40}


def gid_of(address):
    """of the port that sends: its IPv6 address or its IPv4 address, mapped"""
    a = ipaddress.ip_address(address)
    return a.packed if a.version == 6 else bytes(10) + b'\xff\xff' + a.packed


def lladdr(rng, gid):
    """reserved, QPN, GID"""
    return bytes([rng.choice([0, rng.randrange(256)])]) + rng.randrange(2, 0xFFFFFF).to_bytes(3, 'big') + gid


def arp(rng, said):
    """a request, a reply, an announcement, a probe; or RARP, whose target is the sender"""
    rarp = rng.random() < .3
    op = rng.choice([3, 4] if rarp else [1, 2])
    sender_ip = rng.choice([bytes(4), rng.randbytes(4)])
    target = rng.choice([bytes(20), said, b'\0' + rng.randbytes(19)])
    packet = struct.pack('!HHBBH', 32, 0x0800, 20, 4, op) + said + sender_ip + target + rng.randbytes(4)
    return 'rarp' if rarp else 'arp', (0x8035 if rarp else 0x0806), packet + bytes(rng.choice([0, 3]))


def checksum(octets):
    octets += bytes(len(octets) % 2)
    total = sum(struct.unpack('!%dH' % (len(octets) // 2), octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def nd(rng, said):
    """each of the five messages, with its link-layer address or none, among other options"""
    kind = rng.choice(sorted(FIXED))
    body = bytearray(bytes([kind, 0, 0, 0]) + rng.randbytes(FIXED[kind] - 4))
    options = [bytes([5, 1, 0, 0, 0, 0, 5, 220]), bytes([14, 1]) + rng.randbytes(6), bytes([25, 3]) + rng.randbytes(22)]
    options = rng.sample(options, rng.randrange(3))
    if rng.random() < .8:
        options.insert(rng.randrange(len(options) + 1), bytes([LLADDR_OPTIONS[kind], 3, 0, 0]) + said)
    body += b''.join(options)
    src, dst = b'\xfe\x80' + rng.randbytes(14), rng.choice([b'\xff\x02', b'\xfe\x80']) + rng.randbytes(14)
    body[2:4] = struct.pack('!H', checksum(src + dst + struct.pack('!II', len(body), 58) + bytes(body)))
    return 'nd%d' % kind, 0x86DD, struct.pack('!IHBB', 6 << 28, len(body), 58, 255) + src + dst + bytes(body)


def ip(rng, _):
    if rng.random() < .5:
        return 'ip4', 0x0800, b'\x45' + rng.randbytes(rng.randrange(19, 80))
    return 'ip6', 0x86DD, b'\x60' + rng.randbytes(5) + b'\x11' + rng.randbytes(rng.randrange(33, 80))


def payload(rng, address):
    """(name, octets) of a datagram from a port with that address"""
    name, kind, packet = rng.choice([arp, arp, nd, nd, ip])(rng, lladdr(rng, gid_of(address)))
    return name, struct.pack('!HH', kind, rng.choice([0, rng.randrange(1 << 16)])) + packet
