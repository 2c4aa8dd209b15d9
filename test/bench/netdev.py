# SPDX-License-Identifier: BSD-3-Clause
"""The netdev of IP over InfiniBand between two rocid on a veth pair, and the kernel's own IP on the same
pair with the same IP MTU, with and without segments that the veth carries whole. Each function returns
{(what, unit, size): figure}."""
import json
import os
import socket
import statistics
import struct
import time

from link import Failure
from peers import ADDRESS, NETDEV
from netlab import Lab, checksum, ping, wait_for

IP_MTU = 2044
PORT_MTU = 2200
RIB_ADDRESS = ('10.10.0.1', '10.10.0.2')


def round_trip(space, address, trips):
    """Of an ICMP echo of 56 bytes, as ping sends it: the median, us."""
    def run():
        s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        s.settimeout(2)
        found = []
        for seq in range(trips):
            head = struct.pack('!BBHHH', 8, 0, 0, 0x5243, seq)
            packet = head[:2] + struct.pack('!H', checksum(head + bytes(56))) + head[4:] + bytes(56)
            begin = time.monotonic()
            try:
                s.sendto(packet, (address, 0))
                while s.recv(200)[20] != 0:
                    pass
            except TimeoutError:
                continue
            found.append((time.monotonic() - begin) * 1e6)
        return found

    found = space.inside(run)
    if len(found) < trips / 2:
        raise Failure(f'{address} answered {len(found)} of {trips} pings')
    return statistics.median(found)


def figures_of(veth, address, quick):
    out = veth.talk('iperf3', ['iperf3', '-s', '-1'], ['iperf3', '-J', '-t', '1' if quick else '3', '-c', address], 5201)
    rate = json.loads(out)['end']['sum_received']['bits_per_second']
    return {('TCP', 'Gb/s', 65536): rate / 1e9,
            ('ping', 'us', 56): round_trip(veth.spaces[1], address, 100 if quick else 1000)}


def kernel(veth, segments, quick):
    """@param segments  whether the veth carries TCP's segments uncut"""
    veth.set_mtu(IP_MTU)
    switch = 'on' if segments else 'off'
    for space in veth.spaces:
        space.run(f'ethtool -K {NETDEV} tso {switch} gso {switch} gro {switch}')
    try:
        return figures_of(veth, ADDRESS[0], quick)
    finally:
        for space in veth.spaces:
            space.run(f'ethtool -K {NETDEV} tso on gso on gro on')
        veth.set_mtu(4200)


def ours(veth, build, gso, quick):
    veth.set_mtu(PORT_MTU)
    with Lab(os.path.join(build, 'app/rocid/rocid'), '') as lab:
        for i, space in enumerate(veth.spaces):
            lab.rocid(space, f'r{i}', ['--share', NETDEV, '--ipoib', '0', *['--gso'] * gso])
            wait_for('rib0', lambda s=space: 'LOWER_UP' in s.output('ip -o link show rib0 2>/dev/null || true'))
            space.run(f'ip addr add {RIB_ADDRESS[i]}/24 dev rib0')
        ping(veth.spaces[1], RIB_ADDRESS[0])
        found = figures_of(veth, RIB_ADDRESS[0], quick)
    veth.set_mtu(4200)
    return found
