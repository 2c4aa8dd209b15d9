#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tap_test.py ROCID STREAM IDLE: two daemons in two namespaces, joined by memif, each with a tap netdev:
the kernels' ARP, neighbour discovery, ping and TCP beside RoCE on the same ports, and GIDs by
`ip addr`. Needs root."""
import sys

from netlab import Lab, ping, settle, transfer, wait_for

MACS = ['02:00:00:00:aa:01', '02:00:00:00:aa:02']
NEW_MAC = '02:00:00:00:aa:77'


def memif(lab, role, mac):
    return ['--vdev', f'net_memif0,role={role},id=0,socket={lab.path("link")},socket-abstract=no,'
            f'bsize=4608,mac={mac}']


def tap_of(namespace, name, mac, mtu):
    """The netdev is there and up, with the port's MAC and MTU."""
    wait_for(f'{name} with {mac} and MTU {mtu}', lambda: any(
        f' {name}: ' in link and mac in link and f'mtu {mtu} ' in link and 'UP' in link
        for link in namespace.output('ip -o link').splitlines()))


def start(lab, idle):
    a, b = lab.namespace(), lab.namespace()
    ra = lab.rocid(a, 'a', ['--mtu', '0,4300', '--tap', '0'], memif(lab, 'server', MACS[0]), idle)
    rb = lab.rocid(b, 'b', ['--mtu', '0,4300', '--tap', '0=east'], memif(lab, 'client', MACS[1]), idle)
    tap_of(a, 'roci0', MACS[0], 4300)
    tap_of(b, 'east', MACS[1], 4300)
    a.run('ip addr add 10.7.0.1/24 dev roci0; ip addr add fd07::1/64 dev roci0 nodad')
    b.run('ip addr add 10.7.0.2/24 dev east; ip addr add fd07::2/64 dev east nodad')
    settle(a, 'roci0')
    settle(b, 'east')
    return a, b, ra, rb


def addresses_are_gids(stream):
    assert stream.ask('gid A 10.7.0.1') == ['1']
    a6, b6 = stream.ask('gid A fd07::1'), stream.ask('gid B fd07::2')
    assert 'none' not in (a6 + b6), (a6, b6)
    assert stream.ask('gid A 10.7.0.2') == ['none']
    assert stream.ask('port A') == ['ACTIVE', '4096']
    return a6[0], b6[0]


def neighbours_by_arp(a, b):
    """The kernels found each other through the taps: nothing else knows the MACs."""
    ping(a, '10.7.0.2')
    ping(b, 'fd07::1')
    assert MACS[1] in a.output('ip neigh show 10.7.0.2 dev roci0')
    assert MACS[0] in b.output('ip -6 neigh show fd07::1 dev east')


def kernel_beside_roce(a, b, stream):
    ping(a, '10.7.0.2', 20)
    transfer(b, a, '10.7.0.2', 4 << 20)
    transfer(a, b, 'fd07::1', 4 << 20)
    stream.more(500)


def netdev_is_deleted(lab, a, stream):
    """Its GIDs go and come with it, its MAC stays; RoCE, which does not need it, goes on."""
    a.run('ip link del roci0')
    stream.more(100)
    tap_of(a, 'roci0', NEW_MAC, 4300)
    a.run('ip addr add 10.7.0.1/24 dev roci0')
    wait_for('its former GID', lambda: stream.ask('gid A 10.7.0.1') == ['1'])
    ping(a, '10.7.0.2')
    stream.more(100)


def netdev_gets_another_mac(a, b, stream):
    a.run(f'ip link set roci0 address {NEW_MAC}')
    ping(b, '10.7.0.1')
    assert NEW_MAC in b.output('ip neigh show 10.7.0.1 dev east')
    stream.more(100)


def main():
    with Lab(*sys.argv[1:3]) as lab:
        a, b, ra, rb = start(lab, sys.argv[3])
        # RoCE is the first to need a neighbour: no ping has gone before it.
        stream = lab.stream(ra, 1, 1, rb, 1, 1)
        gids6 = addresses_are_gids(stream)
        over_ip6 = lab.stream(ra, 1, gids6[0], rb, 1, gids6[1])
        neighbours_by_arp(a, b)
        kernel_beside_roce(a, b, stream)
        over_ip6.more(100)
        netdev_gets_another_mac(a, b, stream)
        netdev_is_deleted(lab, a, stream)
        over_ip6.more(100)


main()
