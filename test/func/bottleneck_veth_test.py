#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""bottleneck_veth_test.py ROCID RPERF [--gso]: the bottleneck of bottleneck_test.py in front of a shared netdev.
Two workers send, and their queue pairs move to where their packets arrive; with --gso whole runs cross the veth. Needs
root."""
import sys
import bottleneck_test as bottleneck
from netlab import Lab, settle, veth
from rocid import ask, check, wait_until

IP = '10.7.0.1', '10.7.0.2'
WORKERS = 2


class Daemon:
    """As carry() knows them."""

    def __init__(self, process):
        self.socket = process.socket

    def ask(self, line):
        return ask(self, line)


def workers(daemon):
    """Queue pairs of each worker."""
    return [w['qps'] for w in daemon.ask('show workers')['workers']]


def judge(rperf, daemons):
    # proves CNP-01, CNP-06, CNP-11: CNPs find their queue pairs, whichever worker they are at
    off = bottleneck.carry(rperf, daemons, 'off')
    check(off['later']['dropped'] > 500 and not any(off['np_cnp_sent']), f'off: {off}')

    def on_each_worker(on):
        check(sum(on['seen']) == bottleneck.QPS and all(on['seen']), f'a worker has no queue pair: {on}')
    bottleneck.keeps_the_queue(rperf, daemons, off, lambda: workers(daemons[0]), on_each_worker)


def main(rocid, rperf, *gso):
    with Lab(rocid, None) as lab:
        spaces = [lab.namespace() for _ in IP]
        veth(spaces[0], 'e0', spaces[1], 'e0')
        processes = []
        for i, n in enumerate(spaces):
            n.run(f'ip addr add {IP[i]}/24 dev e0')
            settle(n, 'e0')
        for i, n in enumerate(spaces):
            many = WORKERS if i == 0 else 1     # a rate is that of one queue
            options = ['--share', 'e0', *gso] + (['--workers', str(many)] if many > 1 else ['--impair', '0,seed=1'])
            processes.append(lab.rocid(n, 'ab'[i], options, workers=many))
        daemons = [Daemon(p) for p in processes]
        said = daemons[1].ask(f'set port 1 impair {bottleneck.LINK % "egress"}')
        check('done' in said, f'{said}')
        wait_until(lambda: all(d.ask('show ports')['ports'][0]['state'] == 'ACTIVE' for d in daemons), 'no link')
        judge(rperf, daemons)
        print('moves:', bottleneck.worker_stat(daemons[0], 'qps_given'))


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
