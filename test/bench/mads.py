#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""mads.py NETDEV OUR-MAC MAC FROM TO RATE [ETHERTYPE]: sends RATE frames per second from an address of ours to QP1
at address TO: MADs that end a connection which does not exist. Says "sending", and when it is terminated how many
per second there were. With another Ethertype, which nobody takes, the sender costs as much, and the receiver
nothing."""
import signal
import socket
import struct
import sys
import time
import zlib

IPV4 = 0x0800
ROCE_PORT = 4791
UD_SEND_ONLY = 100
GSI_QKEY = 0x80010000
DREQ = 0x15
TICK_S = 0.002


def checksum(head):
    total = sum(struct.unpack('!10H', head))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def mad():
    head = struct.pack('!BBBBHHQHHI', 1, 7, 2, 3, 0, 0, 0x1234, DREQ, 0, 0)
    return (head + struct.pack('!II', 0x111111, 0x222222)).ljust(256, b'\0')


def packet(source, to):
    """From the IP header to the ICRC (IBA 7.8.1, CA17-22)."""
    bth = struct.pack('!BBHII', UD_SEND_ONLY, 0, 0xFFFF, 1, 0)
    body = bth + struct.pack('!II', GSI_QKEY, 1) + mad()
    udp = struct.pack('!HHHH', 0xC000, ROCE_PORT, 8 + len(body) + 4, 0)
    addresses = socket.inet_aton(source) + socket.inet_aton(to)
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 28 + len(body) + 4, 0, 0x4000, 64, 17, 0) + addresses
    sum_ = struct.pack('!H', checksum(ip))
    masked = bytearray(b'\xff' * 8 + ip + udp + body)
    for at in (9, 16, 18, 19, 34, 35, 40):     # TOS, TTL, both checksums, the BTH's reserved byte
        masked[at] = 0xFF
    return ip[:10] + sum_ + ip[12:] + udp + body + struct.pack('<I', zlib.crc32(masked))


def main():
    netdev, ours, theirs, source, to, rate, *kind = sys.argv[1:]
    kind = int(kind[0], 0) if kind else IPV4
    frame = b''.join(bytes.fromhex(m.replace(':', '')) for m in (theirs, ours)) + struct.pack('!H', kind)
    frame += packet(source, to)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((netdev, 0))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print('sending', flush=True)
    begin, sent = time.monotonic(), 0
    try:
        while True:
            due = int((time.monotonic() - begin) * int(rate))
            for _ in range(due - sent):
                s.send(frame)
            sent = max(due, sent)
            time.sleep(TICK_S)
    finally:
        print(sent / (time.monotonic() - begin), flush=True)


if __name__ == '__main__':
    main()
