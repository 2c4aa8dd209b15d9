#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""old_kernel_test.py ROCID STREAM: a port with --gso=auto that falls back to DPDK's own driver, as on an old
kernel (old_kernel.c), is opened again when its netdev is made again, by either driver. Needs root."""
import os
import sys

from netlab import Lab, veth, wait_for

OURS, DPDKS = ('net_ring_gso_e0', 'packet_gso'), ('net_af_packet_e0', 'net_af_packet')


class Scene:
    def __init__(self, lab):
        self.lab = lab
        self.old = os.environ['OLD_KERNEL'] = lab.path('old')
        self.a, self.b = lab.namespace(), lab.namespace()
        self.link()
        self.kernel(old=True)
        self.ra = lab.rocid(self.a, 'a', ['--share', 'e0', '--gso=auto'], idle='adaptive')
        self.rb = lab.rocid(self.b, 'b', ['--share', 'e0', '--gso=no'])
        self.stream = lab.stream(self.ra, 1, 1, self.rb, 1, 1)

    def kernel(self, old):
        if old:
            with open(self.old, 'w'):
                pass
        else:
            os.remove(self.old)

    def link(self):
        veth(self.a, 'e0', self.b, 'e0')
        for i, namespace in enumerate((self.a, self.b)):
            namespace.run(f'ip addr add 10.8.0.{i + 1}/24 dev e0')

    def device(self):
        return self.lab.ask(self.ra, 'show port 1')['device']

    def replace(self):
        self.a.run('ip link del e0')
        self.link()
        for daemon in self.ra, self.rb:
            wait_for('the port', lambda d=daemon: self.lab.ask(d, 'show ports')['ports'][0]['state'] == 'ACTIVE')

    def goes_on(self, by):
        self.stream.more(300)
        device = self.device()
        assert (device['name'], device['driver']) == by, device
        assert ('runs' in device) == (by == OURS), device
        assert device['wakes_workers'] == 'through its socket', device
        assert device['opackets'] > 300 and device['ipackets'] > 300, device


def main():
    with Lab(*sys.argv[1:3]) as lab:
        s = Scene(lab)
        s.goes_on(by=DPDKS)
        s.replace()
        s.goes_on(by=DPDKS)
        s.kernel(old=False)
        s.replace()
        s.goes_on(by=OURS)
        s.kernel(old=True)
        s.replace()
        s.goes_on(by=DPDKS)


main()
