#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ipoib_ip6_test.py ROCID STREAM PART: IPv6 over a netdev of IP over InfiniBand: autoconfiguration by a router, and
captured datagrams that come again with changes. Needs root."""
import json
import random
import shutil
import socket
import struct
import subprocess
import sys
import zlib

from ipoib_bridge_test import Wire, link_local
from ipoib_test import Forger, addresses, counts, mac_of, pair, rocid, two_hosts
from netlab import Lab, PATIENCE_S, checksum, ping, skip, wait_for

ETHER, IP6, UDP, BTH, DETH = 14, 40, 8, 12, 8
ICRC = 4


# --- a router -----------------------------------------------------------------------------------

def advertisement(mac, source):
    """RFC 4861 4.2: a router for 1,800 s, an MTU, and a prefix on the link to make addresses of."""
    prefix = socket.inet_pton(socket.AF_INET6, 'fd77::')
    message = (struct.pack('!BBHBBHII', 134, 0, 0, 64, 0, 1800, 0, 0) + b'\x01\x01' + mac +
               struct.pack('!BBHI', 5, 1, 0, 1500) +
               struct.pack('!BBBBIII', 3, 4, 64, 0xC0, 86400, 14400, 0) + prefix)
    to = socket.inet_pton(socket.AF_INET6, 'ff02::1')
    pseudo = source + to + struct.pack('!II', len(message), 58)
    message = message[:2] + struct.pack('!H', checksum(pseudo + message)) + message[4:]
    return (b'\x33\x33\0\0\0\x01' + mac + b'\x86\xdd' +
            struct.pack('!IHBB', 0x60000000, len(message), 58, 255) + source + to + message)


def advertise(router):
    def send():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(('rib0', 0))
            mac = s.getsockname()[4]
            return s.send(advertisement(mac, socket.inet_pton(socket.AF_INET6, link_local(router, 'rib0'))))

    router.inside(send)


def autoconf(lab):
    """A router's advertisement gives the other host an address, a route by the router's link-layer address, and an MTU."""
    a, b, _ = pair(lab)
    a.run('sysctl -qw net.ipv6.conf.rib0.accept_ra=2')
    b.run('sysctl -qw net.ipv6.conf.all.forwarding=1; ip addr add fd77::2/64 dev rib0 nodad; '
          'ip addr add fd99::1/128 dev lo')
    advertise(b)
    wait_for('an address', lambda: 'fd77::' in a.output('ip -6 -o addr show dev rib0 scope global -tentative'))
    own = bytes.fromhex(mac_of(a, 'rib0').replace(':', ''))
    made = socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, 'fd77::')[:8] + bytes([own[0] ^ 2]) +
                            own[1:3] + b'\xff\xfe' + own[3:])
    assert made in a.output('ip -6 -o addr show dev rib0'), made
    route = a.output('ip -6 route show default')
    assert f'via {link_local(b, "rib0")} dev rib0 proto ra' in route and 'mtu 1500' in route, route
    ping(a, 'fd77::2', 5)
    ping(a, 'fd99::1', 5)  # beyond the router
    ping(b, made, 5)
    router = next(line.split() for line in a.output('ip -6 neigh show dev rib0').splitlines()
                  if line.startswith(link_local(b, 'rib0') + ' '))
    assert 'router' in router, router


def udp(lab):
    """Datagrams of iperf3 by IPv6, of which none is lost at a rate that any machine has: the receiver's socket holds
    those of two seconds."""
    if not shutil.which('iperf3'):
        skip('needs iperf3')
    a, b, _ = pair(lab)
    server = subprocess.Popen(b.command(['iperf3', '-s', '-1', '-B', 'fd08::2']), stdout=subprocess.DEVNULL)
    wait_for('iperf3', lambda: ':5201 ' in b.output('ss -Htln'))
    out = subprocess.run(a.command(['iperf3', '-J', '-u', '-6', '-b', '500k', '-l', '1400', '-t', '4', '-c', 'fd08::2']),
                         capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    end = json.loads(out)['end']['sum']
    assert server.wait(PATIENCE_S) == 0
    assert end['packets'] > 100 and end['lost_packets'] == 0, end


# --- captures that come again -------------------------------------------------------------------

def seal(frame):
    """With the ICRC of what it is now (A17.3.3)."""
    body = bytearray(frame[ETHER:-ICRC])
    body[0] |= 0x0F
    body[1:4] = b'\xff' * 3
    body[7] = 0xFF
    body[IP6 + 6:IP6 + 8] = b'\xff\xff'
    body[IP6 + UDP + 4] = 0xFF
    return frame[:-ICRC] + struct.pack('<I', zlib.crc32(b'\xff' * 8 + body))


def resized(frame, n):
    """Its lengths say that it has @p n octets more, or fewer, of payload."""
    end = len(frame) - ICRC
    frame = bytearray(frame[:end + min(n, 0)] + bytes(max(n, 0)) + bytes(ICRC))
    for at in ETHER + 4, ETHER + IP6 + 4:
        frame[at:at + 2] = struct.pack('!H', struct.unpack('!H', frame[at:at + 2])[0] + n)
    return bytes(frame)


def changed(rng, frame):
    """Some octets of what RFC 4391 defines are others, or it is shorter or longer; mostly with a valid ICRC."""
    first = ETHER + IP6 + UDP + BTH + DETH
    if rng.random() < .3:
        frame = resized(frame, 4 * rng.randrange(max(-9, (first - len(frame) + 2 * ICRC) // 4), 9))
    frame = bytearray(frame)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(first - DETH, len(frame) - ICRC)
        frame[at] = rng.choice([0, 0xFF, frame[at] ^ 1 << rng.randrange(8), rng.randrange(256)])
    return seal(bytes(frame)) if rng.random() < .9 else bytes(frame)


def mutated(lab):
    """What one host sent comes again from its own port, 4,000 times with changes. The netdev's session stays the same, bad
    messages are dropped for what is wrong with them, and both hosts reach each other as before."""
    a, b = two_hosts(lab)
    rocid(lab, a, 'a', ['--ipoib', '0', '--gso=no'])
    rb = rocid(lab, b, 'b', ['--ipoib', '0', '--gso=no'])
    wire = Wire(b)
    addresses(a, 'rib0', 1)
    addresses(b, 'rib0', 2)
    for address in '10.8.0.2', 'fd08::2':
        ping(a, address, 2)
    seen = list(wire.frames())
    kinds = {frame[82:84] for frame in seen}
    assert kinds == {b'\x08\0', b'\x08\x06', b'\x86\xdd'}, kinds
    before, forger, rng = counts(rb), Forger(a, counts(rb)), random.Random(4391)
    for i in range(4000):
        forger.socket.send(changed(rng, rng.choice(seen)))
        if i % 100 == 99:
            ping(b, '10.8.0.1')  # rocid has taken them
    now = counts(rb)
    assert now['sessions'] == before['sessions'], now
    for reason in 'bad_arp', 'bad_nd', 'forged', 'type', 'bad_ip':
        assert now[reason] > before[reason], (reason, now)
    theirs = counts(rb)['neighbours']
    assert theirs < 1000, theirs
    for x, y in (a, 2), (b, 1):
        ping(x, f'10.8.0.{y}', 3)
        ping(x, f'fd08::{y}', 3)


def main():
    with Lab(*sys.argv[1:3]) as lab:
        {'autoconf': autoconf, 'udp': udp, 'mutated': mutated}[sys.argv[3]](lab)


if __name__ == '__main__':
    main()
