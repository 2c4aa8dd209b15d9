#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ipoib_bridge_test.py ROCID STREAM PART: the netdev of IP over InfiniBand is a port of a Linux bridge, with hosts in
other namespaces on it. Peers know all of them by one link-layer address. Needs root."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys

from ipoib_test import Sink, addresses, counts, multicast, netdev, rocid, two_hosts
from netlab import Lab, PATIENCE_S, ping, settle, skip, transfer, veth, wait_for

SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23


# --- hosts ------------------------------------------------------------------------------------

def bridge(host, number, *options):
    """rib0 becomes a port of br0, which has the host's addresses."""
    host.run(f'ip link add br0 type bridge {" ".join(options)}; ip link set br0 up; ip link set rib0 master br0')
    addresses(host, 'br0', number)


def guest(lab, host, number):
    """A namespace on the bridge, its addresses as an administrator gives them: IPv6 looks for duplicates."""
    n = lab.namespace()
    veth(host, f'v{number}', n, 'eth')
    host.run(f'ip link set v{number} mtu 2044 master br0')
    n.run('sysctl -qw net.ipv4.conf.eth.arp_notify=1 net.ipv6.conf.eth.ndisc_notify=1')
    n.run(f'ip link set eth mtu 2044; ip addr add 10.8.0.{number}/24 dev eth; ip addr add fd08::{number}/64 dev eth')
    settle(n, 'eth')
    return n


def bridged_pair(lab, *options):
    """a has the bridge, b is a peer. @return both and a's rocid"""
    a, b = two_hosts(lab)
    a.run('ip tuntap add rib0 mode tap')  # it stays a port of the bridge while rocid is away
    ra = rocid(lab, a, 'a')
    rb = rocid(lab, b, 'b')
    bridge(a, 1, *options)
    addresses(b, 'rib0', 2)
    return a, b, ra, rb


def link_local(namespace, name):
    return next(word.split('/')[0] for word in namespace.output(f'ip -6 -o addr show dev {name} scope link').split()
                if word.startswith('fe80'))


def give(namespace, name, number):
    """Adds addresses and announces them: the kernel does so for those of IPv6."""
    namespace.run(f'sysctl -qw net.ipv6.conf.{name}.ndisc_notify=1; '
                  f'ip addr add 10.8.0.{number}/24 dev {name}; ip addr add fd08::{number}/64 dev {name}')
    settle(namespace, name)

    def announce():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind((name, 0))
            mac, ip = s.getsockname()[4], socket.inet_aton(f'10.8.0.{number}')
            return s.send(b'\xff' * 6 + mac + struct.pack('!HHHBBH', 0x806, 1, 0x800, 6, 4, 1) + mac + ip + bytes(6) + ip)

    namespace.inside(announce)


def take(namespace, name, number):
    namespace.run(f'ip addr del 10.8.0.{number}/24 dev {name}; ip addr del fd08::{number}/64 dev {name}')


def duplicate(namespace, name, address):
    """The kernel finds that another host has it."""
    namespace.run(f'ip addr add {address}/64 dev {name}')
    wait_for(f'a duplicate of {address}', lambda: any(
        f' {address}/64 ' in line and 'dadfailed' in line
        for line in namespace.output(f'ip -6 -o addr show dev {name}').splitlines()))
    namespace.run(f'ip addr del {address}/64 dev {name}')


# --- the wire ---------------------------------------------------------------------------------

class Wire:
    """The ARP and ND messages of RFC 4391 that arrive at a port."""

    def __init__(self, namespace):
        def raw():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            s.bind(('eth', 3))
            s.settimeout(0.2)
            return s

        self.socket = namespace.inside(raw)

    def frames(self):
        """Those of datagrams that came so far: Ethernet, IPv6, UDP, BTH of a UD SEND, DETH, type."""
        while True:
            try:
                frame = self.socket.recv(10000)
            except TimeoutError:
                return
            if frame[12:14] == b'\x86\xdd' and frame[20] == 17 and frame[56:58] == b'\x12\xb7' and frame[62] == 0x64:
                yield frame

    def messages(self):
        """@return (type, who says so, IP packet or ARP) of each."""
        found = []
        for frame in self.frames():
            kind, body = struct.unpack('!H', frame[82:84])[0], frame[86:-4]
            if kind == 0x806 or (kind == 0x86dd and body[6] == 58 and body[40] in (135, 136)):
                found.append((kind, frame[22:38], body))
        return found

    def check(self, sender):
        """Each names the queue pair and the GID of the netdev that sent it. @return the IP addresses of ARP senders"""
        known = socket.inet_pton(socket.AF_INET6, sender['gid']), sender['qpn']
        senders, nd = set(), 0
        for kind, gid, body in self.messages():
            if kind == 0x806:
                assert body[:6] == struct.pack('!HHBB', 32, 0x800, 20, 4), body
                qpn, said = struct.unpack('!I', body[8:12])[0], body[12:28]
                senders.add(socket.inet_ntoa(body[28:32]))
            elif len(body) >= 88 and body[64] in (1, 2):
                assert body[65:68] == b'\x03\0\0', body
                qpn, said = struct.unpack('!I', body[68:72])[0], body[72:88]
                nd += 1
            else:
                continue
            assert said == gid and (said, qpn) == known, (body, known)
        assert nd, 'no ND'
        return senders


# --- parts ------------------------------------------------------------------------------------

# proves IPB-04, IPB-05: of bridged hosts, too
def hosts(lab):
    """All of them reach each other, whoever begins; duplicates are found in both directions."""
    a, b, ra, rb = bridged_pair(lab)
    from_a, from_b = Wire(b), Wire(a)
    c, d = guest(lab, a, 50), guest(lab, a, 51)
    ping(b, '10.8.0.50')
    ping(c, 'fd08::2')
    ping(d, '10.8.0.2')
    ping(b, 'fd08::51')
    ping(b, '10.8.0.1')
    ping(b, 'fd08::1')
    ping(a, '10.8.0.2')
    ping(a, 'fd08::2')
    for address in '10.8.0.51', 'fd08::51', '10.8.0.1', 'fd08::1':
        ping(c, address)
    ping(c, link_local(b, 'rib0'))
    b.run(f'ip route add {link_local(c, "eth")}/128 dev rib0')  # its other netdevs have that network, too
    ping(b, link_local(c, 'eth'))
    wait_for('its counters', lambda: counts(ra)['bridged'] >= 6)
    senders = from_a.check(counts(ra))
    assert {'10.8.0.1', '10.8.0.50', '10.8.0.51'} <= senders, senders
    assert '10.8.0.2' in from_b.check(counts(rb))
    duplicate(c, 'eth', 'fd08::2')
    duplicate(b, 'rib0', 'fd08::50')
    duplicate(b, 'rib0', 'fd08::1')
    ping(b, 'fd08::50')
    b.run('sysctl -qw net.ipv4.conf.all.arp_notify=1')
    before = counts(ra)['duplicate']
    b.run('ip addr add 10.8.0.50/24 dev rib0; ip link set rib0 down; ip link set rib0 up')
    wait_for('a duplicate', lambda: counts(ra)['duplicate'] > before)
    bad = {k: v for k, v in counts(ra).items() if v and k in ('looped', 'forged', 'displaced', 'bad_arp', 'bad_nd')}
    assert not bad, bad


def tcp(lab):
    """Segments that the kernels leave to the netdevs: veths carry them whole, across the bridge."""
    a, b, ra, rb = bridged_pair(lab)
    c = guest(lab, a, 50)
    for there, here in ('10.8.0.2', '10.8.0.50'), ('fd08::2', 'fd08::50'):
        transfer(b, c, there, 8 << 20)
        transfer(c, b, here, 8 << 20)
    transfer(b, a, '10.8.0.2', 8 << 20)
    transfer(a, b, 'fd08::1', 8 << 20)
    for r in ra, rb:
        wait_for('segments', lambda r=r: counts(r)['cut'] > 50 and counts(r)['merged'] > 50)
        bad = {k: v for k, v in counts(r).items() if v and k in ('bad_offload', 'too_long', 'bad_ip', 'looped')}
        assert not bad, bad
    c.run('ip link set eth mtu 1300')
    transfer(b, c, '10.8.0.2', 2 << 20)
    transfer(c, b, '10.8.0.50', 2 << 20)


# proves IPB-13: of the netdev's MTU, though its port carries more
def mtu(lab):
    """A host on the bridge has a larger MTU than the netdev. The bridge drops its long packets, but not the frames that
    are to be cut: these leave in segments no longer than the netdev's MTU."""
    a, b = two_hosts(lab, 4300)
    ra = rocid(lab, a, 'a', ['--ipoib', '0', '--gso=no'])  # which would put segments together again
    rocid(lab, b, 'b', ['--ipoib', '0,mtu=4092'], 4092)
    bridge(a, 1)
    addresses(b, 'rib0', 2)
    c = guest(lab, a, 50)
    a.run('ip link set v50 mtu 4092')
    c.run('ip link set eth mtu 4092')
    ping(c, '10.8.0.2')
    wire = Wire(b)
    flow = Sink(c, b, '10.8.0.2')
    flow.source.send(bytes(1 << 17))
    wait_for('segments', lambda: counts(ra)['cut'] > 0)
    longest = max(len(frame) for frame in wire.frames())
    # Ethernet, IPv6, UDP, BTH, DETH, type, IP, ICRC
    assert 2000 < longest <= 14 + 40 + 8 + 12 + 8 + 4 + 2044 + 4, longest
    flow.close()


def groups(lab):
    """Those that the host and others on the bridge have joined; and theirs."""
    a, b, ra, _ = bridged_pair(lab, 'mcast_querier 1')
    c = guest(lab, a, 50)
    for group in '239.1.2.3', 'ff15::1234':
        multicast(b, c, group, into='eth')
        multicast(c, b, group, out='eth')
    for group in '239.1.2.4', 'ff15::1235':
        multicast(b, a, group, into='br0')
        multicast(a, b, group, out='br0')
    wait_for('the end of the groups', lambda: counts(ra)['groups'] < 16)
    a.run('ip link set rib0 nomaster')
    wait_for('the netdev alone', lambda: 'ff12:601b:ffff::6a' not in a.output('ip -6 maddr show dev eth'))


def moves(lab):
    """Addresses move to another MAC on the bridge, to the host, and to a peer; packets follow."""
    a, b, _, _ = bridged_pair(lab)
    c, d = guest(lab, a, 50), guest(lab, a, 51)
    for address in '10.8.0.50', 'fd08::50':
        ping(b, address)
    c.run('ip link set eth address 02:11:22:33:44:55')
    settle(c, 'eth')
    for address in '10.8.0.50', 'fd08::50':
        ping(b, address)
    take(c, 'eth', 50)
    give(d, 'eth', 50)
    for address in '10.8.0.50', 'fd08::50', '10.8.0.51':
        ping(b, address)
    take(d, 'eth', 50)
    give(a, 'br0', 50)
    for address in '10.8.0.50', 'fd08::50':
        ping(b, address)
    take(a, 'br0', 50)
    give(b, 'rib0', 50)
    for address in '10.8.0.50', 'fd08::50':
        ping(a, address)
        ping(d, address)
    # The host leaves the bridge.
    a.run('ip link set rib0 nomaster; ip addr flush dev br0')
    addresses(a, 'rib0', 1)
    ping(b, '10.8.0.1')
    ping(b, 'fd08::1')


def restarted(lab, namespace, r, name, how):
    r.send_signal(how)
    r.wait(PATIENCE_S)
    lab.processes.remove(r)
    return rocid(lab, namespace, name)


# proves IPB-16: of hosts on a bridge, too
def restarts(lab):
    """The rocid of either end is killed, or ends, and comes back with another queue pair."""
    a, b, ra, rb = bridged_pair(lab, 'mcast_querier 1')
    c = guest(lab, a, 50)
    for n, address in (b, '10.8.0.50'), (b, 'fd08::50'), (c, '10.8.0.2'), (c, 'fd08::2'):
        ping(n, address)
    ra = restarted(lab, a, ra, 'a', signal.SIGKILL)
    for n, address in (b, '10.8.0.50'), (b, 'fd08::50'), (c, '10.8.0.2'), (c, 'fd08::2'):
        ping(n, address)  # c has not sent anything before
    restarted(lab, a, ra, 'a', signal.SIGTERM)
    for n, address in (c, '10.8.0.2'), (c, 'fd08::2'), (a, '10.8.0.2'), (b, 'fd08::1'):
        ping(n, address)
    restarted(lab, b, rb, 'b', signal.SIGKILL)
    addresses(b, 'rib0', 2)
    for n, address in (c, '10.8.0.2'), (c, 'fd08::2'), (b, '10.8.0.50'), (b, 'fd08::50'):
        ping(n, address)


def both(lab):
    """Bridges at both ends."""
    a, b, ra, rb = bridged_pair(lab)
    b.run('ip addr flush dev rib0')
    bridge(b, 2)
    c, d, e = guest(lab, a, 50), guest(lab, b, 60), guest(lab, b, 61)
    for n in c, a:
        for i in 60, 61, 2:
            ping(n, f'10.8.0.{i}')
            ping(n, f'fd08::{i}')
    for n in d, e, b:
        ping(n, '10.8.0.50')
        ping(n, 'fd08::50')
    transfer(c, d, '10.8.0.50', 4 << 20)
    transfer(d, c, 'fd08::60', 4 << 20)
    for r in ra, rb:
        assert not counts(r)['looped'] and not counts(r)['duplicate'], counts(r)


def dhcp(lab):
    """A client on the bridge asks for answers by broadcast, as RFC 4390 2.1 has it."""
    for tool in 'dnsmasq', 'udhcpc':
        if not shutil.which(tool):
            skip(f'there is no {tool}')
    a, b, _, _ = bridged_pair(lab)
    c = guest(lab, a, 50)
    c.run('ip addr flush dev eth')
    lab.processes.append(subprocess.Popen(b.command([
        'dnsmasq', '-k', '-C', '/dev/null', '-p', '0', '-i', 'rib0', '--leasefile-ro', '--dhcp-range=10.8.0.70,10.8.0.70,1h',
        '--pid-file=' + lab.path('pid'), '--user=root'])))
    script = lab.path('lease')
    with open(script, 'w', encoding='ascii') as file:
        file.write('#!/bin/sh\n[ "$1" = bound ] && ip addr add $ip/24 dev $interface\nexit 0\n')
    os.chmod(script, 0o755)
    c.run(f'timeout {PATIENCE_S} udhcpc -f -q -n -B -t 30 -T 1 -i eth -s {script}')
    assert '10.8.0.70/24' in c.output('ip -o addr show dev eth')
    ping(b, '10.8.0.70')


if __name__ == '__main__':
    with Lab(*sys.argv[1:3]) as lab_:
        {'hosts': hosts, 'tcp': tcp, 'mtu': mtu, 'groups': groups, 'moves': moves, 'restarts': restarts, 'both': both, 'dhcp': dhcp}[sys.argv[3]](lab_)
