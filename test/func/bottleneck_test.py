#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""bottleneck_test.py ROCID RPERF: eight queue pairs send over an emulated link of 1 Gb/s whose queue holds less than
their windows. Without congestion control it overflows; marks are answered with CNPs; and DCQCN keeps it from
overflowing. Everything is counted, nothing is timed: a poll loop here may stand still for 60 ms at any time."""
import os
import subprocess
import sys
import tempfile
from inject_test import start_two
from rocid import PATIENCE_S, RING_PAIR, Rocid, check, eal_args, start, wait_until

QPS = 8
SIZE = 65536
MTU = 1024
MESSAGES = 400          # of each queue pair
PACKETS = QPS * MESSAGES * SIZE // MTU
LINK = 'rate=1G,queue=400K,red=5K:200K:0.01,mark=%s'
# A receiver that stands still for half a second sends no CNP, and all limits end meanwhile: then again.
TRIES = 5
COUNTERS = ('np_ecn_marked_roce_packets', 'np_cnp_sent', 'rp_cnp_handled', 'rp_cnp_ignored', 'retransmits')
MARKS = ('egress', 'ingress')[:int(os.environ.get('MARKS', 1))]   # where the link marks
# Of doc/congestion.md, for receivers in software.
DCQCN = ('dcqcn,line=1G,np_min_time_between_cnps=200,rp_time_reset=1000,rp_dce_tcp_rtt=250,rp_ai_rate=1,rp_hai_rate=5,'
         'rp_min_rate=1')


def state(daemons):
    """Counters of both, and of the link in front of the second."""
    found = {name: [d.ask('show counters')['counters'][name] for d in daemons] for name in COUNTERS}
    # CNPs that came when the queue pair had long been done: the receiver stood still meanwhile
    drops = {d['reason']: d['packets'] for d in daemons[0].ask('show drops')['drops']}
    found['late'] = sum(drops.get(why, 0) for why in ('cnp_idle', 'qp_state', 'qpn_unknown'))
    found.update(daemons[1].ask('show port 1')['link'])
    return found


def progress(daemon):
    """Packets acknowledged, by queue pair."""
    qpns = [q['qpn'] for q in daemon.ask('show qps')['qps']]
    return {n: daemon.ask(f'show qp {n}')['requester']['unacked_psn'] for n in qpns}


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(v * v for v in values))


def carry(rperf, daemons, cc, look=lambda: None):
    """What the traffic moved in all, what of it came after its first fifth, Jain's index meanwhile, and what @look
    saw then."""
    for d in daemons:
        said = d.ask(f'set port 1 cc {cc}')
        check('done' in said, f'{said}')
    a, b = daemons
    begin = state(daemons)
    p = subprocess.Popen([rperf, 'write', '-s', str(SIZE), '-q', str(QPS), '-n', str(MESSAGES), '-t', '16',
                          '-m', str(MTU), '-u', '18', '--both', '--socket', a.socket, '--peer-socket', b.socket],
                         stdout=subprocess.DEVNULL)

    def passed(part):
        return state(daemons)['packets'] - begin['packets'] >= part * PACKETS or p.poll() is not None
    wait_until(lambda: passed(0.2), 'nothing passes')
    first, before, seen = progress(a), state(daemons), look()
    wait_until(lambda: passed(0.6), 'nothing passes')
    second = progress(a)
    check(p.wait(PATIENCE_S) == 0, 'rociperf fails')

    def moved(since):
        now = state(daemons)
        found = {k: now[k] - since[k] for k in ('dropped', 'marked', 'overflow', 'late')}
        found.update({k: [y - x for x, y in zip(since[k], now[k])] for k in COUNTERS})
        return found
    def arrived():
        m = moved(begin)
        return m['rp_cnp_handled'][0] + m['late'] >= m['np_cnp_sent'][1]
    wait_until(arrived, lambda: f'CNPs are lost: {moved(begin)}')
    there = [(second[q] - first[q]) % 2**24 for q in first if q in second]
    found = {'later': moved(before), 'seen': seen, **moved(begin)}
    found['jain'] = jain(there) if len(there) == QPS and any(there) else None
    check(found['overflow'] == 0, f'the link holds too few: {found}')
    check(found['np_ecn_marked_roce_packets'][1] <= found['marked'], f'marks of nobody: {found}')
    check(found['rp_cnp_ignored'][0] <= found['late'] and not found['rp_cnp_ignored'][1], f'CNPs are ignored: {found}')
    check(found['rp_cnp_ignored'][0] * 100 <= found['np_cnp_sent'][1], f'too many CNPs are late: {found}')
    return found


def is_better(on, off):
    """A tenth at most."""
    return on['dropped'] * 10 <= off['dropped'] and on['retransmits'][0] * 10 <= off['retransmits'][0]


def worker_stat(daemon, name):
    return sum(s['value'] for f in daemon.ask('metrics')['metrics'] if f['name'] == f'roci_worker_{name}'
               for s in f['samples'])


def pauses(daemons):
    return sum(worker_stat(d, 'pauses') for d in daemons)


def keeps_the_queue(rperf, daemons, off, look=lambda: None, also=lambda on: None):
    """With DCQCN a tenth of the losses. If workers stand still in each try, then half of them in all: after a pause
    each queue pair begins anew. config/lab/software-8.lab judges without pauses."""
    tries, paused = [], True
    for _ in range(TRIES):
        before = pauses(daemons)
        on = carry(rperf, daemons, DCQCN, look)
        print('off:', off)
        print('dcqcn:', on)
        check(on['marked'] > 0 and on['np_cnp_sent'][1] > 0, f'dcqcn: {on}')
        also(on)
        fair = on['jain'] is None or on['jain'] >= 0.9 or on['later']['dropped']
        if fair and is_better(on['later'], off['later']):
            return
        tries.append(on['later'])
        paused &= pauses(daemons) > before
    lost, resent = sum(t['dropped'] for t in tries), sum(t['retransmits'][0] for t in tries)
    check(paused, f'dcqcn, no pause in one of the tries: {tries}, without: {off}')
    check(2 * lost <= TRIES * off['later']['dropped'] and 2 * resent <= TRIES * off['later']['retransmits'][0],
          f'dcqcn: {tries}, without: {off}')


def test_three_ways(rperf, daemons):
    # proves CNP-01, CNP-06
    off = carry(rperf, daemons, 'off')
    check(off['later']['dropped'] > 500 and off['marked'] == 0 and not any(off['np_cnp_sent']), f'off: {off}')
    said = carry(rperf, daemons, 'notify')
    check(said['marked'] > 0 and said['np_cnp_sent'][1] > 0, f'notify: {said}')
    keeps_the_queue(rperf, daemons, off)


def test_one_queue(rocid, folder):
    """A rate is that of one queue."""
    two = [*RING_PAIR[1:], '--workers', '2']
    d = Rocid(rocid, folder, eal=eal_args(128, 2), args=['--ring-pair=rate=1G', *two], name='wide')
    check(not d.wait_ready() and 'the port has 2 receive queues' in d.said(), d.said())
    d.process.wait(PATIENCE_S)
    d = start(rocid, folder, eal=eal_args(128, 2), args=['--ring-pair=seed=1', *two], name='change')
    said = d.ask('set port 1 impair rate=1G')
    check('the port has 2 receive queues' in str(said), f'{said}')
    d.end()


def main(rocid, rperf):
    with tempfile.TemporaryDirectory() as folder:
        test_one_queue(rocid, folder)
    for mark in MARKS:
        with tempfile.TemporaryDirectory() as folder:
            daemons = start_two(rocid, folder, ['--impair', '0,seed=1'])
            said = daemons[1].ask(f'set port 1 impair {LINK % mark}')
            check('done' in said, f'{said}')
            test_three_ways(rperf, daemons)
            for d in daemons:
                d.end()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
