#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ipoib_test.py ROCID STREAM PART: netdevs of IP over InfiniBand (RFC 4391) of rocids in namespaces, on both ends
of a veth or on a bridge: what the kernels do on them, and what is on the wire. Needs root."""
import os
import signal
import socket
import struct
import sys
import time

from netlab import Lab, PATIENCE_S, checksum, ping, settle, transfer, veth, wait_for

MTU = 2200


# --- hosts ------------------------------------------------------------------------------------

def netdev(namespace, name, mtu=2044):
    wait_for(f'{name}, up, with MTU {mtu}', lambda: any(
        f' {name}: ' in link and f'mtu {mtu} ' in link and 'LOWER_UP' in link
        for link in namespace.output('ip -o link').splitlines()))


def addresses(namespace, name, number, net=8):
    namespace.run(f'ip addr add 10.{net}.0.{number}/24 dev {name}; '
                  f'ip addr add fd0{net}::{number}/64 dev {name} nodad')
    settle(namespace, name)


def rocid(lab, namespace, name, options=('--ipoib', '0'), mtu=2044):
    r = lab.rocid(namespace, name, ['--share', 'eth', *options])
    netdev(namespace, 'rib0', mtu)
    return r


def two_hosts(lab, mtu=MTU):
    a, b = lab.namespace(), lab.namespace()
    veth(a, 'eth', b, 'eth')
    for n in a, b:
        n.run(f'ip link set eth mtu {mtu}')
        settle(n, 'eth')
    return a, b


def pair(lab, options=('--ipoib', '0')):
    a, b = two_hosts(lab)
    ra = rocid(lab, a, 'a', options)
    rocid(lab, b, 'b', options)
    addresses(a, 'rib0', 1)
    addresses(b, 'rib0', 2)
    return a, b, ra


def joined(namespace, group):
    """IPB-11: on the port, where switches hear of it; before the netdev is up."""
    groups = namespace.output('ip -6 maddr show dev eth')
    assert group in groups, groups


# --- the kernels' traffic ------------------------------------------------------------------------

def big_ping(namespace, address, size):
    """One echo of `size` bytes, repeated until it is answered."""
    v6 = ':' in address
    body = os.urandom(size)

    def run():
        s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_RAW,
                          socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
        s.settimeout(1)
        head = struct.pack('!BBHHH', 128 if v6 else 8, 0, 0, 0x5243, size)
        if not v6:
            head = head[:2] + struct.pack('!H', checksum(head + body + b'\0' * (size & 1))) + head[4:]
        until = time.monotonic() + PATIENCE_S
        while True:
            if time.monotonic() > until:
                raise AssertionError(f'{address} does not answer a ping of {size} bytes')
            try:
                s.sendto(head + body, (address, 0))
                answer = s.recv(70000)[0 if v6 else 20:]
            except OSError:
                continue
            if answer[0] == (129 if v6 else 0) and answer[8:] == body:
                return True

    return namespace.inside(run)


def multicast(sender, receiver, group):
    """A datagram to the group arrives where a program has joined it, and is heard no more after it has left."""
    v6 = ':' in group
    family = socket.AF_INET6 if v6 else socket.AF_INET

    def join():
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.bind(('', 7777))
        if v6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                         socket.inet_pton(family, group) + struct.pack('@I', socket.if_nametoindex('rib0')))
        else:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                         socket.inet_aton(group) + struct.pack('@4si', b'\0' * 4, socket.if_nametoindex('rib0')))
        s.settimeout(0.2)
        return s

    def out():
        s = socket.socket(family, socket.SOCK_DGRAM)
        if v6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex('rib0'))
        else:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                         struct.pack('@4s4si', b'\0' * 4, b'\0' * 4, socket.if_nametoindex('rib0')))
        return s

    to, got = sender.inside(out), receiver.inside(join)
    until = time.monotonic() + PATIENCE_S
    while True:
        to.sendto(b'to all of ' + group.encode(), (group, 7777))
        try:
            assert got.recv(100) == b'to all of ' + group.encode()
            break
        except TimeoutError:
            assert time.monotonic() < until, f'nothing for {group} arrives'
    got.close()


# --- parts ----------------------------------------------------------------------------------------

# proves IPB-11, IPB-12, IPB-13, IPB-14
def basics(lab):
    a, b, ra = pair(lab)
    ping(a, '10.8.0.2')
    ping(b, 'fd08::1')
    # IPB-14: the interface identifier is that of the port
    link_local = [line.split()[3] for line in a.output('ip -6 -o addr show scope link').splitlines()
                  if ' eth ' in line or ' rib0 ' in line]
    assert len(link_local) == 2 and link_local[0] == link_local[1], link_local
    joined(a, 'ff12:401b:ffff::ffff:ffff')
    wait_for('counters of rib0', lambda: Lab.ask(ra, 'show ipoib')['ipoib'][0]['rx'] > 0)
    shown = Lab.ask(ra, 'show ipoib')['ipoib'][0]
    assert shown['netdev'] == 'rib0' and shown['up'] and shown['forged'] == 0, shown
    assert any(q['qpn'] == shown['qpn'] for q in Lab.ask(ra, 'show qps')['qps']), shown
    for size in 0, 1, 1000, 2016, 2017, 4000, 20001, 65507:
        big_ping(a, '10.8.0.2', size)
        big_ping(b, 'fd08::1', size)
    transfer(b, a, '10.8.0.2', 8 << 20)
    transfer(a, b, 'fd08::1', 8 << 20)
    multicast(a, b, '239.1.2.3')
    multicast(b, a, 'ff15::1234')
    multicast(a, b, '224.0.0.251')


def changes(lab):
    """Addresses and MTUs of the netdev, and its MTU of 4092."""
    a, b = two_hosts(lab, 4300)
    for n, name in (a, 'a'), (b, 'b'):
        rocid(lab, n, name, ['--ipoib', '0,mtu=4092'], 4092)
    addresses(a, 'rib0', 1)
    addresses(b, 'rib0', 2)
    big_ping(a, '10.8.0.2', 20000)
    for n in a, b:
        n.run('ip link set rib0 mtu 1300')
    big_ping(a, '10.8.0.2', 20000)
    big_ping(a, 'fd08::2', 20000)
    b.run('ip addr del 10.8.0.2/24 dev rib0; ip addr add 10.8.0.77/24 dev rib0')
    ping(a, '10.8.0.77')
    a.run('ip link set rib0 down')
    a.run('ip link set rib0 up')
    ping(b, '10.8.0.1')
    a.run('ip addr add 10.80.0.1/24 dev lo; ip link set lo up')
    b.run('ip route add 10.80.0.0/24 via 10.8.0.1')
    ping(b, '10.80.0.1')


# proves IPB-16: the kernel of the other host notices nothing
def restart(lab):
    a, b = two_hosts(lab)
    b.run('ip tuntap add rib0 mode tap') # it and its addresses stay while rocid is away
    rocid(lab, a, 'a')
    rb = rocid(lab, b, 'b')
    addresses(a, 'rib0', 1)
    addresses(b, 'rib0', 2)
    ping(a, '10.8.0.2')
    ping(a, 'fd08::2')
    mac = a.output('ip neigh show 10.8.0.2 dev rib0').split()[2]
    for how in signal.SIGKILL, signal.SIGTERM:
        rb.send_signal(how)
        rb.wait(PATIENCE_S)
        lab.processes.remove(rb)
        began = time.monotonic()
        rb = rocid(lab, b, 'b')
        back = time.monotonic()
        ping(a, '10.8.0.2')
        print(f'restart: {back - began:.1f} s, first answer {time.monotonic() - back:.1f} s later')
        ping(a, 'fd08::2')
        assert a.output('ip neigh show 10.8.0.2 dev rib0').split()[2] == mac


def partitions(lab):
    """Two P_Keys are two networks."""
    options = ['--ipoib', '0,pkey=0x8001', '--ipoib', '0,pkey=0x8002']
    a, b, _ = pair(lab, options)
    for n, number in (a, 1), (b, 2):
        netdev(n, 'rib1')
        addresses(n, 'rib1', number, 9)
    ping(a, '10.8.0.2')
    ping(a, '10.9.0.2')
    ping(b, 'fd09::1')
    b.run('ip addr add 10.9.0.55/24 dev rib0; ip addr add 10.8.0.55/24 dev rib1')
    b.run('sysctl -qw net.ipv4.conf.all.arp_ignore=1')
    joined(a, 'ff12:401b:8001::ffff:ffff')
    joined(a, 'ff12:401b:8002::ffff:ffff')
    failed = a.output('timeout 4 python3 -c "import socket; s = socket.socket(); s.settimeout(3); '
                      "s.connect(('10.9.0.55', 1))\" 2>&1 || true")
    assert 'No route to host' in failed or 'timed out' in failed, failed


def three_hosts(lab):
    """On one bridge, with loss."""
    switch, hosts = lab.namespace(), [lab.namespace() for _ in range(3)]
    switch.run(f'ip link add name switch mtu {MTU} type bridge mcast_snooping 0; ip link set switch up')
    for i, n in enumerate(hosts):
        veth(switch, f'p{i}', n, 'eth')
        switch.run(f'ip link set p{i} mtu {MTU} master switch')
        n.run(f'ip link set eth mtu {MTU}')
        settle(n, 'eth')
        rocid(lab, n, f'h{i}', ['--ipoib', '0', '--impair', '0,loss=0.01,seed=1'])
        addresses(n, 'rib0', i + 1)
    for n in hosts:
        for i in range(3):
            ping(n, f'10.8.0.{i + 1}', 5)
            ping(n, f'fd08::{i + 1}', 5)
    transfer(hosts[0], hosts[2], '10.8.0.1', 1 << 20)
    multicast(hosts[0], hosts[1], '239.1.2.3')


def main():
    with Lab(*sys.argv[1:3]) as lab:
        {'basics': basics, 'changes': changes, 'restart': restart, 'partitions': partitions,
         'three': three_hosts}[sys.argv[3]](lab)


main()
