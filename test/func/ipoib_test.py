#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ipoib_test.py ROCID STREAM PART ROCICTL SHARED: netdevs of IP over InfiniBand (RFC 4391) of rocids in namespaces, on both ends
of a veth, of memif or of an emulated link, or on a bridge: what the kernels do on them. Needs root."""
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

from netlab import Lab, PATIENCE_S, checksum, ping, settle, skip, transfer, veth, wait_for

MTU = 2200
GROUP_PORT = 7777


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


def mac_of(namespace, name):
    return namespace.output(f'ip -o link show {name}').split('link/ether ')[1].split()[0]


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


def group_sender(family, name='rib0'):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(name))
    else:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                     struct.pack('@4s4si', b'\0' * 4, b'\0' * 4, socket.if_nametoindex(name)))
    return s


def member(group, name='rib0'):
    """A socket that receives what comes to the group, in the namespace of the caller."""
    v6 = ':' in group
    family = socket.AF_INET6 if v6 else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((group if not v6 else '', GROUP_PORT))
    if v6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                     socket.inet_pton(family, group) + struct.pack('@I', socket.if_nametoindex(name)))
    else:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                     socket.inet_aton(group) + struct.pack('@4si', b'\0' * 4, socket.if_nametoindex(name)))
    s.settimeout(0.2)
    return s


def multicast(sender, receiver, group, out='rib0', into='rib0'):
    """A datagram to the group arrives where a program has joined it."""
    family = socket.AF_INET6 if ':' in group else socket.AF_INET
    to, got = sender.inside(lambda: group_sender(family, out)), receiver.inside(lambda: member(group, into))
    until = time.monotonic() + PATIENCE_S
    while True:
        to.sendto(b'to all of ' + group.encode(), (group, GROUP_PORT))
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
    """Addresses and MTUs of the netdev, its MTU of 4092, and its carrier, which is the port's."""
    a, b = two_hosts(lab, 4300)
    for n, name in (a, 'a'), (b, 'b'):
        r = rocid(lab, n, name, ['--ipoib', '0,mtu=4092'], 4092)
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
    a.run('ip link set rib0 address 02:11:22:33:44:55')
    ping(b, '10.8.0.1')
    a.run('ip addr add 10.80.0.1/24 dev lo; ip link set lo up')
    b.run('ip route add 10.80.0.0/24 via 10.8.0.1')
    ping(b, '10.80.0.1')
    Lab.ask(r, 'set port 1 down')
    wait_for('no carrier', lambda: 'LOWER_UP' not in b.output('ip -o link show rib0'))
    Lab.ask(r, 'set port 1 up')
    netdev(b, 'rib0', 1300)
    ping(b, '10.8.0.1')
    assert counts(r)['sessions'] == 1, counts(r)


def renew(host, r, name='rib0', of=None, down=lambda now: True):
    """The netdev's session ends, because the port carries too little, and another begins."""
    host.run('ip link set eth mtu 1500')
    wait_for('no session over a small MTU', lambda: not counts(r)['up'])
    assert down(counts(r)), counts(r)
    host.run(f'ip link set eth mtu {MTU}')
    netdev(of or host, name)
    wait_for('another session', lambda: counts(r)['up'])


def sessions(lab):
    """What an administrator set on the netdev outlasts the session, which begins again when the port's MTU changes."""
    a, b, ra = pair(lab)
    ping(b, '10.8.0.1')
    a.run('ip link set rib0 address 02:11:22:33:44:55')
    ping(b, '10.8.0.1')
    wait_for('packets', lambda: counts(ra)['rx'] > 1)
    before = counts(ra)
    renew(a, ra, of=a, down=lambda now: now['rx'] >= before['rx'] and now['tx'] >= before['tx'] and not now['neighbours'])
    after = counts(ra)
    assert after['rx'] >= before['rx'] and after['tx'] >= before['tx'], (before, after) # the netdev's, not a session's
    assert '02:11:22:33:44:55' in a.output('ip link show rib0')
    ping(b, '10.8.0.1')
    a.run('ip link set rib0 down; ip link set rib0 name other; ip link set other up')
    ping(b, '10.8.0.1')
    wait_for('its new name', lambda: counts(ra)['netdev'] == 'other')
    renew(a, ra, 'other')
    ping(b, '10.8.0.1')
    assert counts(ra)['netdev'] == 'other'


def looked(r, mtu):
    wait_for(f'MTU {mtu}', lambda: counts(r)['mtu'] == mtu)


def moved(lab):
    """Into another namespace: the netdev's session begins again there."""
    a, b, ra = pair(lab)
    away = lab.namespace()
    ping(b, '10.8.0.1')
    a.run(f'ip link set rib0 netns {away.pid}')
    away.run('ip link set rib0 up')
    netdev(away, 'rib0')
    addresses(away, 'rib0', 1)
    ping(b, '10.8.0.1')
    ping(b, 'fd08::1')
    renew(a, ra, of=away)
    ping(b, 'fd08::1')
    away.run('ip link del rib0')
    netdev(a, 'rib0')
    a.run(f'ip link set rib0 netns {away.pid} name eth')  # as containers have it; here that is the port's name
    away.run('ip link set eth up')
    netdev(away, 'eth')
    addresses(away, 'eth', 1)
    ping(b, '10.8.0.1')
    assert f'mtu {MTU} ' in a.output('ip link show eth'), a.output('ip link show eth')
    # Its queue pair is the only one: what was before went with its session, and received nothing after its memory.
    assert len(Lab.ask(ra, 'show qps')['qps']) == 1, Lab.ask(ra, 'show qps')
    assert not [e for e in Lab.ask(ra, 'show errors')['errors'] if e['what'] == 'failed'], Lab.ask(ra, 'show errors')
    goes_with_its_namespace(lab, a, away)
    ping(a, '10.8.0.2')
    stays_behind(lab)


def goes_with_its_namespace(lab, host, away):
    """A container's last process ends, and with it its namespace, which rocid does not keep: the kernel deletes a veth
    in it, whose other end is the witness. The netdev is made again at home."""
    host.run('ip link add witness type veth peer name inside')
    host.run(f'ip link set inside netns {away.pid}')
    lab.namespaces.remove(away)
    away.close()
    wait_for('the end of the namespace', lambda: 'witness' not in host.output('ip -o link'))
    netdev(host, 'rib0')
    addresses(host, 'rib0', 1)


def stays_behind(lab):
    """A rocid that may not enter another namespace says so."""
    rocid_path, wrapper = lab.rocid_path, Path(lab.path('confined'))
    wrapper.write_text(f'#!/bin/sh\nexec setpriv --bounding-set -sys_admin {Path(rocid_path).resolve()} "$@"\n')
    wrapper.chmod(0o755)
    lab.rocid_path = str(wrapper)
    a, away = lab.namespace(), lab.namespace()
    a.run('ip link add eth type veth peer name eth1; ip link set eth mtu 2200 up; ip link set eth1 up')
    r = rocid(lab, a, 'confined')
    lab.rocid_path = rocid_path
    a.run(f'ip link set rib0 netns {away.pid}')
    wait_for('a sentence', lambda: 'give rocid CAP_SYS_ADMIN' in counts(r)['said'])


# proves IPB-13: the kernel cannot refuse an MTU that the port does not carry
def mtu_put_back(lab):
    a, b, ra = pair(lab)
    a.run('ip link set rib0 mtu 9000')
    netdev(a, 'rib0', 2044)
    wait_for('a sentence about it', lambda: 'has MTU 2044 again' in counts(ra)['said'])
    big_ping(b, '10.8.0.1', 20000)
    a.run('ip link set eth mtu 4300') # now it carries more
    wait_for('another session', lambda: counts(ra)['up'] and not counts(ra)['said'])
    a.run('ip link set rib0 mtu 1500')
    looked(ra, 1500)
    a.run('ip link set rib0 mtu 9000')
    netdev(a, 'rib0', 1500)
    a.run('ip link set rib0 mtu 4092')
    looked(ra, 4092)
    netdev(a, 'rib0', 4092)


def left_by_another():
    """A netdev that stays, by a program whose packets have longer headers, as those of virtual machines do."""
    set_netdev, set_persist, set_header = 0x400454ca, 0x400454cb, 0x400454d8
    tap_with_header = 0x0002 | 0x1000 | 0x4000
    fd = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(fd, set_netdev, struct.pack('16sH22x', b'rib0', tap_with_header))
    fcntl.ioctl(fd, set_header, struct.pack('@i', 12))
    fcntl.ioctl(fd, set_persist, 1)
    os.close(fd)
    return True


# proves IPB-16: the kernel of the other host notices nothing
def restart(lab):
    a, b = two_hosts(lab)
    # It and its addresses stay while rocid is away. One that is up has its administrator's MAC, or an earlier rocid's.
    a.run('ip tuntap add rib0 mode tap; ip link set rib0 address 02:11:22:33:44:01 up')
    b.inside(left_by_another)
    rocid(lab, a, 'a')
    rb = rocid(lab, b, 'b')
    assert mac_of(a, 'rib0') == '02:11:22:33:44:01' and mac_of(b, 'rib0') == mac_of(b, 'eth')
    addresses(a, 'rib0', 1)
    addresses(b, 'rib0', 2)
    b.run('ip addr add 10.8.0.3/24 dev rib0')
    ping(a, '10.8.0.2')
    ping(a, 'fd08::2')
    mac = a.output('ip neigh show 10.8.0.2 dev rib0').split()[2]
    b.run('ip link set rib0 address 02:11:22:33:44:55')
    for how in signal.SIGKILL, signal.SIGTERM:
        rb.send_signal(how)
        rb.wait(PATIENCE_S)
        lab.processes.remove(rb)
        began = time.monotonic()
        heard = a.inside(arp_socket)
        rb = rocid(lab, b, 'b')
        back = time.monotonic()
        announced(heard, '10.8.0.3', '10.8.0.2')
        ping(a, '10.8.0.2')
        print(f'restart: {back - began:.1f} s, first answer {time.monotonic() - back:.1f} s later')
        ping(a, 'fd08::2')
        assert a.output('ip neigh show 10.8.0.2 dev rib0').split()[2] == mac
        assert '02:11:22:33:44:55' in b.output('ip link show rib0')


def arp_socket():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x806))
    s.bind(('rib0', 0x806))
    return s


def announced(s, *wanted):
    """Of each of its addresses the host tells that it has another QPN."""
    missing, until = {socket.inet_aton(ip) for ip in wanted}, time.monotonic() + PATIENCE_S
    while missing:
        s.settimeout(max(until - time.monotonic(), 0.01))
        message = s.recv(100)
        if message[14:18] == message[24:28]: # it names itself
            missing.discard(message[14:18])
    s.close()


def partitions(lab):
    """Two P_Keys are two networks."""
    options = ['--ipoib', '0,pkey=0x8001', '--ipoib', '0,pkey=0x8002']
    a, b, ra = pair(lab, options)
    for n, number in (a, 1), (b, 2):
        netdev(n, 'rib1')
        addresses(n, 'rib1', number, 9)
    ping(a, '10.8.0.2')
    ping(a, '10.9.0.2')
    ping(b, 'fd09::1')
    b.run('ip addr add 10.9.0.55/24 dev rib0; ip addr add 10.8.0.55/24 dev rib1')
    b.run('sysctl -qw net.ipv4.conf.all.arp_ignore=1')
    assert a.inside(lambda: reaches('10.9.0.2'))
    joined(a, 'ff12:401b:8001::ffff:ffff')
    joined(a, 'ff12:401b:8002::ffff:ffff')
    assert not a.inside(lambda: reaches('10.9.0.55'))
    # A netdev whose P_Key the port has no longer is not in another network: it has no session.
    index = next(p['index'] for p in Lab.ask(ra, 'show pkeys')['pkeys'] if p['port'] == 1 and p['pkey'] == '0x8002')
    Lab.ask(ra, f'set port 1 pkey {index} 0x8003')
    wait_for('a sentence', lambda: 'is not in the table' in counts(ra, 1)['said'] and not counts(ra, 1)['up'])
    ping(a, '10.8.0.2')
    Lab.ask(ra, f'set port 1 pkey {index} 0x8002')
    ping(a, '10.9.0.2')


def reaches(address):
    """Whether anybody there answers TCP, be it with a reset, before the kernel gives up to look for it."""
    with socket.socket() as s:
        s.settimeout(PATIENCE_S)
        try:
            s.connect((address, 1))
        except ConnectionRefusedError:
            pass
        except OSError as e:
            assert e.errno == errno.EHOSTUNREACH, e
            return False
        return True


# proves IPB-17: groups are joined where the port is, by MLD of its kernel
def memif(lab):
    """The link is memory; the kernels of both ends have taps of the ports."""
    a, b = lab.namespace(), lab.namespace()
    for i, (n, role) in enumerate([(a, 'server'), (b, 'client')], 1):
        vdev = (f'net_memif0,role={role},id=0,socket={lab.path("link")},socket-abstract=no,bsize=4608,'
                f'mac=02:00:00:00:aa:0{i}')
        lab.rocid(n, role, ['--mtu', f'0,{MTU}', '--tap', '0=eth', '--ipoib', '0'], ['--vdev', vdev])
    for i, n in enumerate((a, b), 1):
        netdev(n, 'rib0')
        addresses(n, 'rib0', i)
    ping(a, '10.8.0.2')
    ping(b, 'fd08::1')
    big_ping(a, 'fd08::2', 65507)
    transfer(b, a, '10.8.0.2', 8 << 20)
    multicast(a, b, 'ff15::77')


def counts(r, netdev=0):
    """Of one of its netdevs: they are published when they are a moment old."""
    return Lab.ask(r, 'show ipoib')['ipoib'][netdev]


def emulated(lab):
    """Both ports of one rocid, which an emulated link connects and which loses frames; their netdevs are in two
    namespaces. The kernel that rocid is in has no part in it."""
    a, b = lab.namespace(), lab.namespace()
    r = lab.rocid(a, 'a', ['--ring-pair=loss=0.01,seed=3', '--gid', '0,fe80::1', '--gid', '1,fe80::2', '--mtu', f'0,{MTU}',
                           '--mtu', f'1,{MTU}', '--ipoib', '0', '--ipoib', '1'])
    for name in 'rib0', 'rib1':
        netdev(a, name)
    first = counts(r, 1)['qpn']
    a.run(f'ip link set rib1 netns {b.pid}')
    wait_for('its session', lambda: counts(r, 1)['up'] and counts(r, 1)['qpn'] != first)
    b.run('ip link set rib1 up')
    addresses(a, 'rib0', 1)
    addresses(b, 'rib1', 2)
    for address in '10.8.0.2', 'fd08::2':
        ping(a, address, 20)
    transfer(b, a, '10.8.0.2', 1 << 20)
    transfer(a, b, '10.8.0.1', 1 << 20)
    wait_for('its packets', lambda: all(n['rx'] > 500 for n in Lab.ask(r, 'show ipoib')['ipoib']))


class Iperf:
    """iperf3 from namespace a to b."""

    def __init__(self, a, b, address, *args):
        self.server = subprocess.Popen(b.command(['iperf3', '-s', '-1', '-B', address]), stdout=subprocess.DEVNULL)
        wait_for('iperf3', lambda: ':5201 ' in b.output('ss -Htln'))
        self.client = subprocess.Popen(a.command(['iperf3', '-J', '-c', address, *args]), stdout=subprocess.PIPE)

    def end(self):
        said = json.loads(self.client.communicate(timeout=PATIENCE_S)[0])
        self.server.wait(PATIENCE_S)
        assert 'error' not in said, said['error']
        return said


def offload(lab):
    """The kernel leaves checksums and segments to the netdev, both ways; iperf3 moves a known amount."""
    if not shutil.which('iperf3'):
        skip('there is no iperf3')
    a, b, ra = pair(lab)
    for address in '10.8.0.2', 'fd08::2':
        moved = Iperf(a, b, address, '-n', '16M').end()['end']['sum_sent']['bytes']
        assert moved >= 16 << 20, moved
        wait_for('frames that were cut', lambda: counts(ra)['cut'] > 50)
    moved = Iperf(a, b, '10.8.0.2', '-n', '16M', '-R').end()['end']['sum_sent']['bytes']
    assert moved >= 16 << 20, moved
    wait_for('frames that were put together', lambda: counts(ra)['merged'] > 50)
    Iperf(a, b, '10.8.0.2', '-n', '1M', '-u', '-b', '100M', '-l', '20000').end()
    wait_for('sane counters', lambda: counts(ra)['tx'] > 8000)
    bad = {k: v for k, v in counts(ra).items() if v and k in ('bad_offload', 'too_long', 'bad_ip', 'type', 'forged')}
    assert not bad, bad
    # A link MTU that changes under the kernel's connections: segments follow it.
    a.run('ip link set rib0 mtu 700')
    transfer(b, a, '10.8.0.2', 2 << 20)


def load(lab):
    """rocid is killed and started again, and ended and started, while TCP flows: it flows on."""
    a, b = two_hosts(lab)
    b.run('ip tuntap add rib0 mode tap')
    rocid(lab, a, 'a')
    rb = rocid(lab, b, 'b')
    addresses(a, 'rib0', 1)
    addresses(b, 'rib0', 2)
    ping(a, '10.8.0.2')
    received = Sink(a, b, '10.8.0.2')
    received.more(1 << 20)
    for how in signal.SIGKILL, signal.SIGTERM:
        rb.send_signal(how)
        rb.wait(PATIENCE_S)
        lab.processes.remove(rb)
        rb = rocid(lab, b, 'b')
        back, before = time.monotonic(), tcp_timeouts(a)
        received.more(1 << 20)
        timeouts = tcp_timeouts(a) - before
        print(f'load: flows again {time.monotonic() - back:.1f} s and {timeouts} time-outs after the netdev is back')
        # Within 5 s. TCP counts for us, as each time-out is twice as long as the one before: six are 12 s and more.
        assert timeouts < 6, timeouts
    received.close()


def tcp_timeouts(namespace):
    names, values = [line.split() for line in namespace.output('cat /proc/net/netstat').splitlines()
                     if line.startswith('TcpExt:')]
    return int(values[names.index('TCPTimeouts')])


def groups(lab):
    """More groups than a netdev can have: it says how many are missing, and receives them when others are left. One that
    the port cannot join is tried again."""
    a, b, _ = pair(lab)
    rb = lab.processes[-1]

    def join():
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        for i in range(300):
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                         socket.inet_pton(socket.AF_INET6, f'ff15::{i + 1:x}') +
                         struct.pack('@I', socket.if_nametoindex('rib0')))
        return s

    s = b.inside(join)
    wait_for('the limit', lambda: counts(rb)['groups'] == 256 and counts(rb)['groups_missing'] > 0)
    assert counts(rb)['groups_missing'] >= 300 - 256, counts(rb)
    assert 'receives 256 groups at most' in open(lab.path('b.log')).read()
    s.close()
    wait_for('the end of the groups', lambda: counts(rb)['groups'] < 20 and not counts(rb)['groups_missing'])
    multicast(a, b, 'ff15::1234')


def flood(lab):
    """Claims of more peers than the table holds, none of which the port's kernel finds. Those that are known stay, and
    neither a new one nor a group waits for them, also while they go on."""
    a, b, c = bridged(lab, 3)
    rocid(lab, a, 'a')
    rb = rocid(lab, b, 'b')
    rc = rocid(lab, c, 'c')
    for i, n in enumerate((a, b, c), 1):
        addresses(n, 'rib0', i)
    ping(a, '10.8.0.2')
    f = Forger(a, counts(rb))
    began = time.monotonic()
    for i in range(2500):
        gid = socket.inet_pton(socket.AF_INET6, f'fe80::bad:{i:x}')
        # One IP address: the kernel's own table would be full before ours.
        f.send_raw(struct.pack('!HH', 0x806, 0) + arp(lladdr(gid, 0x777), '10.8.0.77', '10.8.0.2'), gid)
        if i % 100 == 99:
            time.sleep(0.05)  # or the kernel drops its own answers
    wait_for('a full table', lambda: counts(rb)['evicted'] > 1000)
    assert counts(rb)['neighbours'] <= 1000, counts(rb)
    ping(b, '10.8.0.1')
    # 32 lookups begin at once, then 100 per second, and 64 of them go on; most of the claims wait for theirs.
    assert counts(rb)['unresolved'] <= 32 + 100 * (time.monotonic() - began) - 64, counts(rb)
    began = time.monotonic()
    ping(c, '10.8.0.2')
    print(f'flood: a new peer is found in {time.monotonic() - began:.1f} s, {counts(rb)}')
    steady_flood(f, b, c, rc)
    pauses(b, rb)


def steady_flood(f, sender, receiver, r):
    """While one claim per second comes, each of which takes the kernel three, the netdev is to send to new groups. The
    others' queues may be full: those of the flood before end only now."""
    groups = [f'239.8.7.{i + 1}' for i in range(8)]
    before = counts(r)['groups']
    got = receiver.inside(lambda: [member(g) for g in groups])
    wait_for('the memberships', lambda: counts(r)['groups'] >= before + len(groups))
    to = sender.inside(lambda: group_sender(socket.AF_INET))
    for i, group in enumerate(groups):
        gid = socket.inet_pton(socket.AF_INET6, f'fe80::5ea:{i:x}')
        f.send_raw(struct.pack('!HH', 0x806, 0) + arp(lladdr(gid, 0x777), '10.8.0.77', '10.8.0.2'), gid)
        time.sleep(1)
        to.sendto(b'x', (group, GROUP_PORT))
    for s in got:
        s.settimeout(PATIENCE_S)
        assert s.recv(10) == b'x'


def switches(thread):
    with open(f'/proc/{thread}/status', encoding='ascii') as file:
        return sum(int(line.split()[1]) for line in file if 'ctxt_switches' in line)


def pauses(host, r):
    """A session ends while its helper waits for an answer, which nobody takes; the thread pauses between attempts to open
    another, of which each takes it some twenty switches."""
    host.run('ip link set eth mtu 1500')
    wait_for('no session over a small MTU', lambda: not counts(r)['up'])
    thread = f'{r.pid}/task/{min(int(t) for t in os.listdir(f"/proc/{r.pid}/task") if comm(r.pid, t) == "rib0")}'
    wait_for('one thread', lambda: sum(comm(r.pid, t) == 'rib0' for t in os.listdir(f'/proc/{r.pid}/task')) == 1)
    before, began = switches(thread), time.monotonic()
    time.sleep(2)
    rate = (switches(thread) - before) / (time.monotonic() - began)
    print(f'pauses: {rate:.0f} switches per second')
    assert rate < 400, rate


def comm(pid, thread):
    try:
        with open(f'/proc/{pid}/task/{thread}/comm', encoding='ascii') as file:
            return file.read().strip()
    except OSError: # it has ended
        return ''


class Sink:
    """A TCP connection from a to b, over which bytes flow without end."""

    def __init__(self, a, b, address):
        def listen():
            s = socket.create_server((address, 0))
            s.settimeout(PATIENCE_S)
            return s

        listener = b.inside(listen)
        self.source = a.inside(lambda: socket.create_connection(listener.getsockname(), PATIENCE_S))
        self.sink = listener.accept()[0]
        listener.close()
        self.sink.settimeout(PATIENCE_S)
        self.source.setblocking(False)

    def more(self, size):
        """That many bytes arrive from now on."""
        until = time.monotonic() + PATIENCE_S
        while size > 0:
            assert time.monotonic() < until, f'{size} bytes are missing'
            try:
                self.source.send(bytes(1 << 16))
            except BlockingIOError:
                pass
            self.sink.settimeout(0.01)
            try:
                size -= len(self.sink.recv(1 << 20))
            except TimeoutError:
                pass

    def close(self):
        self.source.close()
        self.sink.close()


# --- frames that nobody should send ---------------------------------------------------------------

def lladdr(gid, qpn):
    return struct.pack('!I', qpn) + gid


class Forger:
    """Sends UD datagrams to the QP of a netdev, from beside a rocid."""

    def __init__(self, namespace, target):
        link = namespace.output('ip -o link show dev eth')
        self.own = socket.inet_pton(socket.AF_INET6, next(
            word.split('/')[0] for word in namespace.output('ip -6 -o addr show dev eth scope link').split()
            if word.startswith('fe80')))
        self.mac = bytes.fromhex(link.split('link/ether ')[1][:17].replace(':', ''))
        self.gid = socket.inet_pton(socket.AF_INET6, target['gid'])
        self.to = self.gid[8:11] + self.gid[13:]
        self.to = bytes([self.to[0] ^ 2]) + self.to[1:]  # of the EUI-64
        self.qpn = target['qpn']

        def raw():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            s.bind(('eth', 0))
            return s

        self.socket = namespace.inside(raw)

    def send(self, payload, kind=0x0800, src=None, src_qp=0x777, pkey=0xffff, qkey=0x80000B1B, dst=None):
        body = struct.pack('!HH', kind, 0) + payload
        self.send_raw(body, src or self.own, src_qp, pkey, qkey, dst)

    def send_raw(self, body, src, src_qp=0x777, pkey=0xffff, qkey=0x80000B1B, dst=None):
        pad = -len(body) % 4
        deth = struct.pack('!II', qkey, src_qp)
        bth = struct.pack('!BBHII', 0x64, pad << 4, pkey, self.qpn, 0)
        rest = deth + body + bytes(pad)
        plen = 8 + len(bth) + len(rest) + 4
        udp = struct.pack('!HHH', 0xC000, 4791, plen)
        addresses_ = struct.pack('!HBB', plen, 17, 64) + src + (dst or self.gid)
        masked = (b'\xff' * 8 + b'\x6f\xff\xff\xff' + addresses_[:3] + b'\xff' + addresses_[4:] + udp + b'\xff\xff' +
                  bth[:4] + b'\xff' + bth[5:] + rest)
        frame = (self.to + self.mac + b'\x86\xdd' + b'\x60\0\0\0' + addresses_ + udp + b'\0\0' + bth + rest +
                 struct.pack('<I', zlib.crc32(masked)))
        self.socket.send(frame)


def arp(sender, sender_ip, target_ip):
    return (struct.pack('!HHBBH', 32, 0x800, 20, 4, 1) + sender + socket.inet_aton(sender_ip) + bytes(20) +
            socket.inet_aton(target_ip))


def advert(src, dst, target, option):
    """An unsolicited neighbour advertisement."""
    message = struct.pack('!BBHI', 136, 0, 0, 0x20000000) + target + option
    pseudo = src + dst + struct.pack('!II', len(message), 58)
    message = message[:2] + struct.pack('!H', checksum(pseudo + message)) + message[4:]
    return struct.pack('!IHBB', 0x60000000, len(message), 58, 255) + src + dst + message


def hostile(lab):
    """Each kind of bad datagram has its counter; none changes what the kernel believes, nor the netdev's session."""
    a, b = two_hosts(lab, 4300)
    routed = socket.inet_pton(socket.AF_INET6, 'fd22::2')
    b.run('ip addr add fd22::2/64 dev eth nodad')
    for n in a, b:
        rb = rocid(lab, n, 'ab'[n is b])
    addresses(a, 'rib0', 1)
    addresses(b, 'rib0', 2)
    sessions_ = counts(rb)['sessions']
    ping(a, '10.8.0.2')
    ping(a, 'fd08::2')

    def believed():
        return {line.split()[0]: line.split()[2] for line in b.output('ip neigh show dev rib0').splitlines() if 'lladdr' in line}

    known = believed()
    f = Forger(a, counts(rb))
    stranger = socket.inet_pton(socket.AF_INET6, 'fe80::bad')
    a6, b6 = (socket.inet_pton(socket.AF_INET6, f'fd08::{i}') for i in (1, 2))
    option = b'\x02\x03\0\0' + lladdr(stranger, 0x777)
    own = lladdr(f.own, 0x777)
    cases = {
        'forged': [lambda: f.send(arp(lladdr(stranger, 0x777), '10.8.0.1', '10.8.0.2'), 0x806),
                   lambda: f.send(arp(lladdr(f.own, 0), '10.8.0.1', '10.8.0.2'), 0x806),
                   lambda: f.send(advert(a6, b6, a6, option), 0x86DD)],
        'bad_arp': [lambda: f.send(arp(own, '10.8.0.1', '10.8.0.2')[:-1], 0x806),
                    lambda: f.send(struct.pack('!H', 1) + arp(own, '10.8.0.1', '10.8.0.2')[2:], 0x806)],
        'bad_nd': [lambda: f.send(advert(a6, b6, a6, b'\x02\x01' + bytes(6)), 0x86DD),
                   lambda: f.send(advert(a6, b6, a6, b'\x02\x04' + bytes(22)), 0x86DD),
                   lambda: f.send(advert(a6, b6, a6, b'\x02\0' + bytes(22)), 0x86DD)],
        'off_link': [lambda: f.send(arp(own, '10.8.0.1', '10.8.0.2'), 0x806, dst=routed),
                     lambda: f.send(arp(lladdr(routed[:15] + b'\x01', 0x777), '10.8.0.1', '10.8.0.2'), 0x806,
                                    src=routed[:15] + b'\x01', dst=routed)],
        # More than 4,096 octets of payload: the port's frames may be so long, but no receive is.
        'too_long': [lambda: f.send(b'\x45' + bytes(4092)), lambda: f.send(b'\x45' + bytes(4099))],
        'short': [lambda: f.send_raw(b'\x08', f.own), lambda: f.send_raw(b'\x08\0\0', f.own)],
        'type': [lambda: f.send(bytes(60), 0x8847)],
        'bad_ip': [lambda: f.send(b'\x60' + bytes(59)), lambda: f.send(b'\x45' + bytes(18))],
    }
    before = counts(rb)
    for sends in cases.values():
        for send in sends:
            send()
    expected = {name: before[name] + len(sends) for name, sends in cases.items()}
    wait_for(f'counters {expected}', lambda: {name: counts(rb)[name] for name in cases} == expected)

    def dropped(reason):
        return sum(d['packets'] for d in Lab.ask(rb, 'show drops')['drops'] if d['reason'] == reason)

    f.send(bytes(60), pkey=0x8001)
    f.send(bytes(60), qkey=0x11111111)
    f.send(bytes(60), src=f.gid, src_qp=f.qpn)
    for reason in 'pkey', 'qkey', 'martian':
        wait_for(f'a drop by {reason}', lambda: dropped(reason) == 1)
    assert counts(rb)['sessions'] == sessions_, counts(rb)
    # On a slow machine the kernel has forgotten some.
    assert all(known[ip] == mac for ip, mac in believed().items() if ip in known), (known, believed())
    ping(b, '10.8.0.1')


# --- what else sees the netdev ----------------------------------------------------------------------

def captured(lab, ra, traffic):
    """What rocictl captures of some traffic: no frame that tshark finds wrong, no ICRC but good ones; all kinds of
    payload are there."""
    rocictl, shared = sys.argv[4:6]
    path, pcap = lab.path('all.pcapng'), lab.path('all.pcap')
    process = subprocess.Popen([rocictl, '--socket', ra.socket, 'capture', path], stderr=subprocess.PIPE)
    process.stderr.readline()
    traffic()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0, process.stderr.read()
    process.stderr.close()
    if not shutil.which('tshark'):
        print('no tshark: nobody else reads the capture')
        return
    out = subprocess.run(['tshark', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE', '-r', path, '-T', 'fields',
                          '-e', 'infiniband.bth.opcode', '-e', 'infiniband.deth.q_key', '-e', 'infiniband.payload',
                          '-e', '_ws.malformed'], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    lines = [line.split('\t') for line in out.splitlines()]
    ours = [line for line in lines if int(line[1] or '0', 0) == 0x80000B1B]
    assert len(ours) > 500 and all(line[0] == '100' and not line[3] for line in ours), lines[:10]
    print(f'tshark: {len(ours)} datagrams')
    oracle = os.path.join(shared, 'oracle', 'validate_pcap.py')
    if not os.path.exists(oracle):
        print('no oracle: ICRCs are not judged')
        return
    subprocess.run(['editcap', '-F', 'pcap', path, pcap], check=True, capture_output=True)
    words = subprocess.run([sys.executable, oracle, pcap], capture_output=True, text=True, check=True).stdout.split()
    good, bad = int(words[words.index('ok') + 1]), int(words[words.index('bad') + 1])
    assert good >= len(ours) and not bad, (good, bad, len(ours))


def faults(lab):
    """Captures see its traffic, and so do faults that are injected into its QP."""
    a, b, ra = pair(lab)

    def traffic():
        ping(a, '10.8.0.2')
        ping(b, 'fd08::1')
        transfer(b, a, '10.8.0.2', 1 << 20)
        multicast(a, b, '239.1.2.3')

    captured(lab, ra, traffic)
    done = Lab.ask(ra, f'inject qp {counts(ra)["qpn"]} drop tx count=3')
    assert 'error' not in done, done
    ping(a, '10.8.0.2', 5)
    hits = Lab.ask(ra, 'show counters')['counters']['injected_faults']
    assert hits == 3, hits


def dhcp(lab):
    """An ordinary client gets an address from an ordinary server. It asks for answers by broadcast, as RFC 4390 2.1 has
    it: its hardware address means nothing to others."""
    for tool in 'dnsmasq', 'udhcpc':
        if not shutil.which(tool):
            skip(f'there is no {tool}')
    a, b = two_hosts(lab)
    rocid(lab, a, 'a')
    rocid(lab, b, 'b')
    addresses(a, 'rib0', 1)
    server = subprocess.Popen(a.command(['dnsmasq', '-k', '-C', '/dev/null', '-p', '0', '-i', 'rib0', '--leasefile-ro',
                                         '--dhcp-range=10.8.0.50,10.8.0.50,1h', '--pid-file=' + lab.path('pid'),
                                         '--user=root']))
    lab.processes.append(server)
    script = lab.path('lease')
    with open(script, 'w', encoding='ascii') as file:
        file.write('#!/bin/sh\n[ "$1" = bound ] && ip addr add $ip/24 dev $interface\nexit 0\n')
    os.chmod(script, 0o755)
    b.run(f'timeout {PATIENCE_S} udhcpc -f -q -n -B -t 30 -T 1 -i rib0 -s {script}')
    assert '10.8.0.50/24' in b.output('ip -o addr show dev rib0')
    ping(a, '10.8.0.50')


def bridged(lab, n):
    """Hosts on one bridge."""
    switch, hosts = lab.namespace(), [lab.namespace() for _ in range(n)]
    switch.run(f'ip link add name switch mtu {MTU} type bridge mcast_snooping 0; ip link set switch up')
    for i, host in enumerate(hosts):
        veth(switch, f'p{i}', host, 'eth')
        switch.run(f'ip link set p{i} mtu {MTU} master switch')
        host.run(f'ip link set eth mtu {MTU}')
    for host in hosts:
        settle(host, 'eth')
    return hosts


def three_hosts(lab):
    """On one bridge, with loss."""
    hosts = bridged(lab, 3)
    for i, n in enumerate(hosts):
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
        {'basics': basics, 'changes': changes, 'sessions': sessions, 'mtu': mtu_put_back, 'moved': moved,
         'restart': restart, 'partitions': partitions,
         'three': three_hosts, 'memif': memif, 'emulated': emulated, 'offload': offload, 'load': load,
         'hostile': hostile, 'faults': faults, 'dhcp': dhcp, 'groups': groups, 'flood': flood}[sys.argv[3]](lab)


if __name__ == '__main__':
    main()
