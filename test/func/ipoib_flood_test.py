#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ipoib_flood_test.py ROCID STREAM PART: programs without privileges, on a netdev of IP over InfiniBand or in a container
on its bridge, send to more groups, or join more, than a netdev can have. Needs root."""
import signal
import socket
import subprocess
import sys
import time

from ipoib_bridge_test import bridged_pair, guest
from ipoib_test import GROUP_PORT, counts, group_sender, looked, member, multicast, pair
from netlab import Lab, PATIENCE_S, ping, wait_for

NOBODY = '''
import os, socket, struct, sys, time
os.setgid(65534)
os.setuid(65534)
index, n = socket.if_nametoindex(sys.argv[1]), int(sys.argv[2])
'''
SEND = NOBODY + '''
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack('@4s4si', bytes(4), bytes(4), index))
print('', flush=True)
while True:
    for i in range(n):
        try:
            s.sendto(b'x', (f'239.{i >> 16}.{i >> 8 & 255}.{i & 255}', 9))
        except OSError:
            pass
'''
JOIN = NOBODY + '''
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for i in range(n):
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                 socket.inet_pton(socket.AF_INET6, f'ff15::{i + 1:x}') + struct.pack('@I', index))
print('', flush=True)
time.sleep(3600)
'''


class Program:
    """Runs until the end of the block."""

    def __init__(self, namespace, source, name, n):
        self.process = subprocess.Popen(namespace.command([sys.executable, '-c', source, name, str(n)]), stdout=subprocess.PIPE)
        assert self.process.stdout.readline(), 'nobody cannot begin'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()


def met(r):
    """How many packets to groups the netdev has dealt with, at least: it drops most."""
    return sum(counts(r)[name] for name in ('tx_group', 'evicted', 'queue_full', 'unresolved'))


def survives(a, b, r, lab, sender, name):
    """While nobody sends to ever more groups: packets flow, and the netdev's memberships and MTU are followed."""
    ping(a, '10.8.0.2')
    at = 'br0' if sender is not a else 'rib0'
    before = counts(r)
    with Program(sender, SEND, name, 100000):
        wait_for('many groups', lambda: met(r) > 3000)
        ping(b, '10.8.0.1')
        multicast(b, a, '239.250.1.2', into=at)
        a.run('ip link set rib0 mtu 1800')
        looked(r, 1800)
        wait_for('more groups', lambda: met(r) > 100000)
        assert r.poll() is None and counts(r)['sessions'] == before['sessions'], counts(r)
        assert counts(r)['neighbours'] <= 1000, counts(r)
    ping(a, '10.8.0.2')
    ping(b, 'fd08::1')
    multicast(a, b, '239.250.1.3', out=at)
    print(counts(r))


def groups(lab):
    a, b, r = pair(lab)
    survives(a, b, r, lab, a, 'rib0')


def bridged(lab):
    a, b, r, _ = bridged_pair(lab)
    survives(a, b, r, lab, guest(lab, a, 50), 'eth')


def members(lab):
    """nobody joins more groups than a netdev receives: the host is found by neighbour discovery, also by an address that
    it gets later, and a program that was there before receives its group."""
    a, b, _ = pair(lab)
    rb = lab.processes[-1]
    multicast(a, b, '239.1.2.3')
    with b.inside(lambda: member('239.1.2.9')) as early:
        wait_for('a membership', lambda: 'ff12:401b:ffff::f01:209' in b.output('ip -6 maddr show dev eth'))
        with Program(b, JOIN, 'rib0', 300):
            wait_for('the limit', lambda: counts(rb)['groups'] == 256 and counts(rb)['groups_missing'] > 0)
            b.run('ip addr add fd08::abcd:ef01/64 dev rib0 nodad')
            for address in 'fd08::2', 'fd08::abcd:ef01':
                a.run('ip neigh flush dev rib0')
                ping(a, address)
            to, until = a.inside(lambda: group_sender(socket.AF_INET)), time.monotonic() + PATIENCE_S
            while True:
                to.sendto(b'x', ('239.1.2.9', GROUP_PORT))
                try:
                    assert early.recv(10) == b'x'
                    break
                except TimeoutError:
                    assert time.monotonic() < until, 'nothing for the group that was joined before'
            to.close()
    wait_for('the end of the groups', lambda: counts(rb)['groups'] < 20 and not counts(rb)['groups_missing'])


def main():
    with Lab(*sys.argv[1:3]) as lab:
        {'groups': groups, 'bridged': bridged, 'members': members}[sys.argv[3]](lab)


if __name__ == '__main__':
    main()
