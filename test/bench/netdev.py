# SPDX-License-Identifier: BSD-3-Clause
"""The netdev of IP over InfiniBand between two rocid on a veth pair, or two ports of one rocid, and the kernel's own
IP on the same pair with the same IP MTU, with and without segments that the veth carries whole. Each function
returns {(what, unit, size): figure}."""
import json
import os
import socket
import statistics
import struct
import time

from link import Failure
from peers import ADDRESS, NETDEV
from netlab import Lab, checksum, ping, settle, wait_for

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


def is_up(space, name):
    wait_for(name, lambda: 'LOWER_UP' in space.output(f'ip -o link show {name} 2>/dev/null || true'))


def ours(veth, build, gso, quick):
    """Two rocid, each with a worker that yields and the netdev's thread: four threads and the program that pings."""
    veth.set_mtu(PORT_MTU)
    with Lab(os.path.join(build, 'app/rocid/rocid'), '') as lab:
        for i, space in enumerate(veth.spaces):
            lab.rocid(space, f'r{i}', ['--share', NETDEV, '--ipoib', '0', '--gso' if gso else '--gso=no'])
            is_up(space, 'rib0')
            space.run(f'ip addr add {RIB_ADDRESS[i]}/24 dev rib0')
        ping(veth.spaces[1], RIB_ADDRESS[0])
        found = figures_of(veth, RIB_ADDRESS[0], quick)
    veth.set_mtu(4200)
    return found


def one_rocid(build, idle, quick):
    """Both ends of a veth are ports of one rocid, whose netdevs are in two namespaces: three threads and the program."""
    with Lab(os.path.join(build, 'app/rocid/rocid'), '') as lab:
        host, *ends = [lab.namespace() for _ in range(3)]
        host.run(f'ip link add {NETDEV} type veth peer name {NETDEV}1; '
                 f'for i in {NETDEV} {NETDEV}1; do ip link set $i mtu {PORT_MTU} up; done')
        for name in NETDEV, NETDEV + '1':
            settle(host, name)
        lab.rocid(host, 'both', ['--share', NETDEV, '--share', NETDEV + '1', '--ipoib', '0', '--ipoib', '1'], idle=idle)
        for i, end in enumerate(ends):
            is_up(host, f'rib{i}')
            host.run(f'ip link set rib{i} netns {end.pid}')
            end.run(f'ip link set rib{i} up')
            is_up(end, f'rib{i}')
            end.run(f'ip addr add {RIB_ADDRESS[i]}/24 dev rib{i}')
        ping(ends[1], RIB_ADDRESS[0])
        return {('ping', 'us', 56): round_trip(ends[1], RIB_ADDRESS[0], 100 if quick else 1000)}
