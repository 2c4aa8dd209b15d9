#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""replaced_test.py ROCID STREAM [OPTION...]: a shared netdev is deleted and made again, under traffic, while
its port has two workers and an emulated link that is told other things than at the start; and while the new
one cannot be opened for a reason that passes. The daemons get the OPTIONs too. Needs root."""
import os
import socket
import sys
import time

from netlab import Lab, veth, wait_for

LINK = 'spread=random'
TOLD = 'nth=1000,spread=random'
PORT = 4791
BESIDE = 'net_af_xdp0,iface=x0'


def port_of(lab, daemon, number=1):
    return lab.ask(daemon, 'show ports')['ports'][number - 1]


def state(lab, daemon):
    return port_of(lab, daemon)['state']


def impairment(lab, daemon):
    return lab.ask(daemon, 'show port 1')['link']['impair']


class Scene:
    def __init__(self, lab, options):
        self.lab = lab
        self.a, self.b = lab.namespace(), lab.namespace()
        veth(self.a, 'e0', self.b, 'e0')
        self.addresses()
        two = ['--workers', '2', '--migrate', 'off', '--impair', 'e0,' + LINK]
        self.ra = lab.rocid(self.a, 'a', ['--share', 'e0', *options, *two], workers=2)
        # The other end sleeps in one of both runs: who is woken too early is woken again.
        self.rb = lab.rocid(self.b, 'b', ['--share', 'e0', *options], idle='adaptive' if options else 'yield')
        self.stream = lab.stream(self.ra, 1, 1, self.rb, 1, 1)

    def addresses(self):
        self.a.run('ip addr add 10.8.0.1/24 dev e0')
        self.b.run('ip addr add 10.8.0.2/24 dev e0')

    def goes_on(self):
        for daemon in self.ra, self.rb:
            wait_for('the port', lambda d=daemon: state(self.lab, d) == 'ACTIVE')
        self.stream.more(300)

    def forget_events(self):
        self.stream.poll(1)
        self.stream.seen = [line for line in self.stream.seen if not line.startswith('event ')]

    def said(self):
        with open(self.lab.path('a.log')) as f:
            return f.read()

    def under_traffic(self):
        assert impairment(self.lab, self.ra) == LINK
        assert 'done' in self.lab.ask(self.ra, 'set port 1 impair nth=1000')
        for _ in range(2):
            self.a.run('ip link del e0')
            veth(self.a, 'e0', self.b, 'e0')
            self.addresses()
            self.goes_on()
            assert impairment(self.lab, self.ra) == TOLD
        self.lab.stream(self.ra, 1, 1, self.rb, 1, 1).more(100)

    def blocked(self, netdev):
        """A socket of somebody's that has the port there which rocid wants."""
        def body():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, netdev.encode())
            s.bind(('0.0.0.0', PORT))
            return s
        return self.a.inside(body)

    def cannot_be_opened(self):
        self.stream.pause()
        for _ in range(2):
            told = self.said().count('is taken')
            self.forget_events()
            self.a.run('ip link del e0')
            self.stream.event('A', 1, 'port is down')
            veth(self.a, 'e9', self.b, 'e0')
            with self.blocked('e9'):
                self.a.run('ip link set e9 down; ip link set e9 name e0; ip link set e0 up')
                self.addresses()
                wait_for('its reason', lambda: self.said().count('is taken') > told)
                assert state(self.lab, self.ra) == 'DOWN'
                assert self.stream.ask('port A')[0] == 'DOWN'
                assert 'done' in self.lab.ask(self.ra, 'set port 1 impair nth=999')
                time.sleep(2)  # it is tried again in that time
            self.stream.event('A', 1, 'port is active')
            assert self.said().count('is taken') == told + 1  # not each time that it is tried
            assert impairment(self.lab, self.ra) == 'nth=999,spread=random'
            self.goes_on_again()

    def goes_on_again(self):
        self.stream.resume()
        self.goes_on()
        self.stream.pause()


def beside_small_buffers(lab, options):
    """AF_XDP makes all packet buffers of the daemon too small for path MTU 4096."""
    n = lab.namespace()
    n.run('ip link add x0 type veth peer name x1; ip link add e0 mtu 4200 type veth peer name e1 mtu 4200')
    n.run('for i in x0 x1 e0 e1; do ip link set $i up; done')
    try:
        daemon = lab.rocid(n, 'xdp', [*options, '--share', 'e0'], eal=['--vdev', BESIDE])
    except AssertionError:
        with open(lab.path('xdp.log')) as f:
            text = f.read()
        if 'net_af_xdp' not in text:
            raise
        print('no AF_XDP here: ' + text.splitlines()[-1])
        return
    wait_for('the port', lambda: port_of(lab, daemon, 2)['state'] == 'ACTIVE')
    assert port_of(lab, daemon, 2)['path_mtu'] == 2048
    n.run('ip link set e1 mtu 9000; ip link set e0 mtu 9000; ip link set e0 mtu 8000')
    assert port_of(lab, daemon, 2)['path_mtu'] == 2048


def main():
    rocid, stream, *options = sys.argv[1:]
    with Lab(rocid, stream) as lab:
        if '--gso=no' not in options:  # whose driver needs larger ones
            beside_small_buffers(lab, options)
        s = Scene(lab, options)
        for act in s.under_traffic, s.cannot_be_opened:
            print(act.__name__, flush=True)
            act()


main()
