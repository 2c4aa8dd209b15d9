# SPDX-License-Identifier: BSD-3-Clause
"""Packets of RoCEv2 over IPv4 from one QP1 to another, made by hand."""
import socket
import struct
import zlib

ROCE_PORT = 4791
UD_SEND_ONLY = 100
GSI_QKEY = 0x80010000
MAD_LEN = 256
HEADERS = 20 + 8 + 12 + 8


def checksum(head):
    total = sum(struct.unpack('!10H', head))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def cm_mad(attribute, tid, data):
    head = struct.pack('!BBBBHHQHHI', 1, 7, 2, 3, 0, 0, tid, attribute, 0, 0)
    return (head + data).ljust(MAD_LEN, b'\0')


def packet(source, to, mad):
    """From the IP header to the ICRC (IBA 7.8.1, CA17-22)."""
    bth = struct.pack('!BBHII', UD_SEND_ONLY, 0, 0xFFFF, 1, 0)
    body = bth + struct.pack('!II', GSI_QKEY, 1) + mad
    udp = struct.pack('!HHHH', 0xC000, ROCE_PORT, 8 + len(body) + 4, 0)
    addresses = socket.inet_aton(source) + socket.inet_aton(to)
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 28 + len(body) + 4, 0, 0x4000, 64, 17, 0) + addresses
    masked = bytearray(b'\xff' * 8 + ip + udp + body)
    for at in (9, 16, 18, 19, 34, 35, 40):     # TOS, TTL, both checksums, the BTH's reserved byte
        masked[at] = 0xFF
    return ip[:10] + struct.pack('!H', checksum(ip)) + ip[12:] + udp + body + struct.pack('<I', zlib.crc32(masked))
