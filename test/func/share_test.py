#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""share_test.py ROCID STREAM [OPTION...]: two daemons in two namespaces, each on two veths, and traffic on both
pairs while addresses, links, MTUs, MACs and neighbours of the first change, and while it is deleted
and made again. The second must not notice. The daemons get the OPTIONs too.
Needs root."""
import sys

from netlab import Lab, ping, veth, wait_for


def addresses(a, b):
    a.run('ip addr add 10.8.0.1/24 dev e0; ip addr add 10.8.1.1/24 dev e1')
    b.run('ip addr add 10.8.0.2/24 dev e0; ip addr add 10.8.1.2/24 dev e1')


class Scene:
    def __init__(self, lab, options):
        self.lab = lab
        self.a, self.b = lab.namespace(), lab.namespace()
        for name in 'e0', 'e1':
            veth(self.a, name, self.b, name)
        addresses(self.a, self.b)
        self.ra = lab.rocid(self.a, 'a', ['--share', 'e0', '--share', 'e1', *options])
        self.rb = lab.rocid(self.b, 'b', ['--share', 'e0', '--share', 'e1', *options])
        self.one = lab.stream(self.ra, 1, 1, self.rb, 1, 1)
        self.two = lab.stream(self.ra, 2, 1, self.rb, 2, 1)
        assert self.one.ask('gid A 10.8.0.1') == ['1'] == self.two.ask('gid A 10.8.1.1')
        assert self.one.ask('gid A 10.8.1.1') == ['none']

    def first_port_is_active(self):
        self.one.event('A', 1, 'port is active')
        wait_for('the other end', lambda: self.one.ask('port B')[0] == 'ACTIVE')

    def both_go_on(self):
        self.one.more(100)
        self.two.more(100)

    # --- what happens to the first port ---

    def address_comes_and_goes(self):
        self.a.run('ip addr add 10.8.0.77/24 dev e0')
        self.one.event('A', 1, 'GID')
        wait_for('the GID', lambda: self.one.ask('gid A 10.8.0.77') != ['none'])
        assert self.two.ask('gid A 10.8.0.77') == ['none']
        index = self.one.ask('gid A 10.8.0.77')[0]
        extra = self.lab.stream(self.ra, 1, index, self.rb, 1, 1)
        self.a.run('ip addr del 10.8.0.77/24 dev e0')
        wait_for('its end', lambda: self.one.ask('gid A 10.8.0.77') == ['none'])
        extra.more(100)  # a QP holds on to its GID
        self.a.run('ip addr add 10.8.0.77/24 dev e0')
        wait_for('the same GID', lambda: self.one.ask('gid A 10.8.0.77') == [index])
        extra.more(100)
        extra.say('quit')
        self.a.run('ip addr del 10.8.0.77/24 dev e0')

    def address_in_use_goes(self):
        """And all neighbours with it; the peer's kernel gets no answer to ARP."""
        self.a.run('ip addr del 10.8.0.1/24 dev e0')
        wait_for('its end', lambda: self.one.ask('gid A 10.8.0.1') == ['none'])
        self.both_go_on()
        self.a.run('ip addr add 10.8.0.1/24 dev e0')
        wait_for('the same GID', lambda: self.one.ask('gid A 10.8.0.1') == ['1'])

    def link_goes_down(self):
        for namespace in self.b, self.a:  # the cable; our own end
            self.one.pause()
            namespace.run('ip link set e0 down')
            self.one.event('A', 1, 'port is down')
            assert self.one.ask('port A')[0] == 'DOWN'
            wait_for('the other end', lambda: self.one.ask('port B')[0] == 'DOWN')
            self.two.more(100)
            namespace.run('ip link set e0 up')
            self.first_port_is_active()
            assert self.one.ask('port A') == ['ACTIVE', '1024']
            self.one.resume()
            self.both_go_on()

    def administrator_sets_it_down(self):
        """The netdev's link stays up: the kernel's own traffic, the other port and the other end do not notice."""
        ask = lambda line: self.lab.ask(self.ra, line)
        self.one.pause()
        assert 'done' in ask('set port 1 down')
        self.one.event('A', 1, 'port is down')
        assert self.one.ask('port A')[0] == 'DOWN' and self.one.ask('port B')[0] == 'ACTIVE'
        assert [p['state'] for p in ask('show ports')['ports']] == ['DISABLED', 'ACTIVE']
        ping(self.a, '10.8.0.2')
        self.two.more(100)
        self.a.run('ip link set e0 down; ip link set e0 up')
        self.two.more(100)
        wait_for('the link', lambda: 'LOWER_UP' in self.a.output('ip link show e0'))
        assert self.one.ask('port A')[0] == 'DOWN'  # the kernel's link is not the administrator's word
        self.one.resume()  # packets are lost now: sent again, until the port is there
        wait_for('what is dropped', lambda: next(
            m for m in ask('metrics')['metrics'] if m['name'] == 'roci_worker_port_down')['samples'][0]['value'] > 10)
        assert 'done' in ask('set port 1 up')
        self.one.event('A', 1, 'port is active')
        self.both_go_on()
        assert [p['state'] for p in ask('show ports')['ports']] == ['ACTIVE', 'ACTIVE']

    def link_goes_down_under_traffic(self):
        self.b.run('ip link set e0 down')
        self.one.event('A', 1, 'port is down')
        self.b.run('ip link set e0 up')
        self.first_port_is_active()
        self.both_go_on()

    def mtu_rises(self):
        self.a.run('ip link set e0 mtu 4200')
        self.b.run('ip link set e0 mtu 4200')
        wait_for('path MTU', lambda: self.one.ask('port A') == ['ACTIVE', '4096'])
        wait_for('path MTU', lambda: self.one.ask('port B') == ['ACTIVE', '4096'])
        self.one.event('A', 1, 'port is active')
        assert self.two.ask('port A') == ['ACTIVE', '1024']
        jumbo = self.lab.stream(self.ra, 1, 1, self.rb, 1, 1, 4096)
        jumbo.more(100)
        jumbo.say('quit')
        self.a.run('ip link set e0 mtu 1500')
        self.b.run('ip link set e0 mtu 1500')
        wait_for('path MTU', lambda: self.one.ask('port A') == ['ACTIVE', '1024'])
        self.both_go_on()

    def macs_change(self):
        self.a.run('ip link set e0 address 02:00:00:00:bb:01')
        self.both_go_on()
        self.b.run('ip link set e0 address 02:00:00:00:bb:02')
        self.both_go_on()
        ping(self.a, '10.8.0.2')
        assert '02:00:00:00:bb:02' in self.a.output('ip neigh show 10.8.0.2 dev e0')

    def neighbours_are_forgotten(self):
        for namespace in self.a, self.b:
            namespace.run('ip neigh flush dev e0; ip neigh flush dev e1')
        self.both_go_on()

    def netdev_is_made_again(self):
        """A veth takes its other end with it: both daemons lose their port."""
        self.one.pause()
        self.a.run('ip link del e0')
        self.one.event('A', 1, 'port is down')
        self.two.more(100)
        veth(self.a, 'e0', self.b, 'e0')
        self.a.run('ip addr add 10.8.0.1/24 dev e0')
        self.b.run('ip addr add 10.8.0.2/24 dev e0')
        self.first_port_is_active()
        wait_for('the GIDs', lambda: self.one.ask('gid A 10.8.0.1') == ['1'] ==
                 self.one.ask('gid B 10.8.0.2'))
        self.one.resume()
        self.both_go_on()
        self.lab.stream(self.ra, 1, 1, self.rb, 1, 1).more(100)

    def second_port_was_told_nothing(self):
        self.two.poll(0.5)
        assert not [line for line in self.two.seen if line.startswith(('event A 2', 'event B 2'))]


def main():
    rocid, stream, *options = sys.argv[1:]
    with Lab(rocid, stream) as lab:
        s = Scene(lab, options)
        for act in (s.address_comes_and_goes, s.address_in_use_goes, s.link_goes_down, s.administrator_sets_it_down,
                    s.link_goes_down_under_traffic, s.mtu_rises, s.macs_change,
                    s.neighbours_are_forgotten, s.netdev_is_made_again,
                    s.second_port_was_told_nothing):
            print(act.__name__, flush=True)
            act()


main()
