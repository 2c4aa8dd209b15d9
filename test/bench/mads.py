#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""mads.py NETDEV OUR-MAC MAC FROM TO RATE [ETHERTYPE]: sends RATE frames per second from an address of ours to QP1
at address TO: MADs that end a connection which does not exist. Says "sending", and when it is terminated how many
per second there were. With another Ethertype, which nobody takes, the sender costs as much, and the receiver
nothing."""
import os
import signal
import socket
import struct
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'func'))
from mad_packet import cm_mad, packet  # noqa: E402

IPV4 = 0x0800
DREQ = 0x15
TICK_S = 0.002


def main():
    netdev, ours, theirs, source, to, rate, *kind = sys.argv[1:]
    kind = int(kind[0], 0) if kind else IPV4
    frame = b''.join(bytes.fromhex(m.replace(':', '')) for m in (theirs, ours)) + struct.pack('!H', kind)
    frame += packet(source, to, cm_mad(DREQ, 0x1234, struct.pack('!II', 0x111111, 0x222222)))
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
