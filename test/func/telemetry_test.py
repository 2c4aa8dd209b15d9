#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""telemetry_test.py ROCID RPERF: eight queue pairs over IPv6 and an emulated link of 1 Gb/s whose queue holds less than
their windows. The link records its load in their packets, ACKs return it, and HPCC keeps the queue from overflowing.
A daemon without the algorithm drops packets with telemetry, and one that turns it on has a smaller path MTU where the
port has no room. Everything is counted, nothing is timed."""
import subprocess
import sys
import tempfile
from bottleneck_test import SIZE, TRIES, carry, is_better
from inject_test import start_two
from rocid import PATIENCE_S, check

IP6 = {'a': 'fd00::1', 'b': 'fd00::2'}
LINK = 'rate=1G,queue=400K'
HPCC = 'hpcc,line=1G,base_rtt=1000'


def run(rperf, daemons, *args):
    """What rociperf says of one message per queue pair."""
    a, b = daemons
    return subprocess.run([rperf, 'write', '-s', str(SIZE), '-n', '4', '--both', '--socket', a.socket, '--peer-socket',
                           b.socket, *args], capture_output=True, text=True, timeout=PATIENCE_S)


def test_link(rperf, daemons):
    said = daemons[1].ask(f'set port 1 impair {LINK}')
    check('done' in said, f'{said}')
    off = carry(rperf, daemons, 'off')
    check(off['later']['dropped'] > 500, f'off: {off}')
    for _ in range(TRIES):
        on = carry(rperf, daemons, HPCC)
        print('off:', off)
        print('hpcc:', on)
        check(not any(on['np_cnp_sent']), f'hpcc: {on}')
        # Losses show that a daemon stood still, after which each queue pair begins anew.
        if is_better(on['later'], off['later']):
            return
    check(False, f'hpcc: {on}, without: {off}')


def test_peer_without(rperf, daemons):
    """CA17-16: no extension headers, unless both agree."""
    for d, cc in zip(daemons, (HPCC, 'off')):
        check('done' in d.ask(f'set port 1 cc {cc}'), cc)
    before = {d['reason']: d['packets'] for d in daemons[1].ask('show drops')['drops']}
    p = run(rperf, daemons, '-u', '8', '-r', '1')
    after = {d['reason']: d['packets'] for d in daemons[1].ask('show drops')['drops']}
    check(p.returncode != 0, 'a peer without telemetry takes it')
    check(after.get('ip_next_header', 0) > before.get('ip_next_header', 0), f'{before} {after}')


def test_room(daemons):
    def mtu(daemon):
        return daemon.ask('show ports')['ports'][0]['path_mtu']
    for d in daemons:
        check('done' in d.ask('set port 1 cc off'), 'off')
        check(mtu(d) == 4096, f'{mtu(d)}')
        check('done' in d.ask(f'set port 1 cc {HPCC}'), 'hpcc')
        check(mtu(d) == 2048, f'{mtu(d)}')


def main(rocid, rperf):
    with tempfile.TemporaryDirectory() as folder:
        daemons = start_two(rocid, folder, ['--impair', '0,seed=1'], IP6)
        test_link(rperf, daemons)
        test_peer_without(rperf, daemons)
        for d in daemons:
            d.end()
    with tempfile.TemporaryDirectory() as folder:
        daemons = start_two(rocid, folder, ['--mtu', '0,4200'], IP6)
        test_room(daemons)
        for d in daemons:
            d.end()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
