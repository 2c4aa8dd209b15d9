#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ipoib_test.py ROCID STREAM: netdevs of IP over InfiniBand (RFC 4391) of rocids in two namespaces, on both ends
of a veth: what the kernels do on them, and what is on the wire. Needs root."""
import sys

from netlab import Lab, ping, settle, transfer, veth, wait_for

MTU = 2200


def netdev(namespace, name, mtu=2044):
    wait_for(f'{name}, up, with MTU {mtu}', lambda: any(
        f' {name}: ' in link and f'mtu {mtu} ' in link and 'LOWER_UP' in link
        for link in namespace.output('ip -o link').splitlines()))


def host(lab, namespace, name, number, options=('--ipoib', '0')):
    """A rocid on `eth`, whose rib0 has 10.8.0.NUMBER and fd08::NUMBER."""
    r = lab.rocid(namespace, name, ['--share', 'eth', *options])
    netdev(namespace, 'rib0')
    namespace.run(f'ip addr add 10.8.0.{number}/24 dev rib0; ip addr add fd08::{number}/64 dev rib0 nodad')
    return r


def two_hosts(lab):
    a, b = lab.namespace(), lab.namespace()
    veth(a, 'eth', b, 'eth')
    for n in a, b:
        n.run(f'ip link set eth mtu {MTU}')
        settle(n, 'eth')
    return a, b


def main():
    with Lab(*sys.argv[1:3]) as lab:
        a, b = two_hosts(lab)
        ra, rb = host(lab, a, 'a', 1), host(lab, b, 'b', 2)
        settle(a, 'rib0')
        settle(b, 'rib0')
        ping(a, '10.8.0.2')
        ping(b, 'fd08::1')
        transfer(b, a, '10.8.0.2', 1 << 20)
        transfer(a, b, 'fd08::1', 1 << 20)


main()
