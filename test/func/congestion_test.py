#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""congestion_test.py ROCID ROCICTL STEPS ROCILAB: two rocid that are linked by memif and manage congestion: marked packets,
the CNPs that answer them, and what a third reads in a capture. Then without --cc, and with DCQCN: rates fall and
recover, of requests and of READ responses. One queue pair with congestion control of its own. With Swift, whose window
follows the round trip. An administrator's rate."""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from inject_test import differences, start_two
from rocid import PATIENCE_S, check, wait_until
from steps import Steps

COUNTERS = ('np_ecn_marked_roce_packets', 'np_cnp_sent', 'rp_cnp_handled', 'rp_cnp_ignored', 'retransmits')
CC = ('--cc', '0,notify,np_min_time_between_cnps=1000000')     # one in all: a second between two
DCQCN = ('--cc', '0,dcqcn,line=1G')
SWIFT = ('--cc', '0,swift,base_target=1,fs_range=0,min_cwnd=500,line=1G')
MBIT = 1e6
CE, ECT = 3, 2
CNP = 0x81


def counts(daemon):
    found = {k: v for k, v in daemon.ask('show counters')['counters'].items() if k in COUNTERS}
    found.update((d['reason'], d['packets']) for d in daemon.ask('show drops')['drops'])
    return found


def capture(rocictl, daemon, path, work):
    """(traffic class, BTH opcode, bytes of IP) of each frame."""
    c = subprocess.Popen([rocictl, '--socket', daemon.socket, 'capture', path], stderr=subprocess.PIPE)
    c.stderr.readline()
    work()
    c.send_signal(2)
    c.communicate(timeout=PATIENCE_S)
    out = subprocess.run(['tshark', '-r', path, '-T', 'fields', '-e', 'ip.dsfield', '-e', 'infiniband.bth.opcode',
                          '-e', 'ip.len'], capture_output=True, text=True, timeout=PATIENCE_S)
    check(out.returncode == 0, f'tshark: {out.stderr}')
    return [tuple(int(x, 0) for x in line.split('\t')) for line in out.stdout.splitlines() if line.count('\t') == 2]


def marked(daemons, s, good):
    """Three marked packets from a: good(what they move at a, at b)."""
    a, b = daemons
    before = counts(a), counts(b)
    said = a.ask(f'inject qp {s.a} ecn to=ce count=3')
    check('faults' in said, f'{said}')
    s.do('write', 1, 3000)
    a.ask(f'inject clear qp {s.a}')

    def moved():
        return [differences(x, counts(d)) for x, d in zip(before, daemons)]
    wait_until(lambda: good(*moved()), lambda: f'the counters moved by {moved()}')


def answered(at_a, at_b):
    """One CNP, unless the daemon was paused for seconds between the packets."""
    sent = at_b.pop('np_cnp_sent', 0)
    return at_a == {'rp_cnp_handled': sent} and at_b == {'np_ecn_marked_roce_packets': 3} and 1 <= sent <= 3


def judge(path):
    """What b sends, by a judge and an oracle that share no code with rocid: fields, ECN, ICRCs."""
    here = os.path.dirname(os.path.abspath(__file__))
    classic = path + '.pcap'
    subprocess.run(['editcap', '-F', 'pcap', path, classic], check=True, timeout=PATIENCE_S)
    sys.path.append(os.path.join(here, '..', 'interop'))
    import validate
    if not validate.oracle_folder().is_dir():
        print('there is no oracle: the capture is not judged')
        return
    out = subprocess.run([sys.executable, validate.__file__, '--ecn', '--src', '192.0.2.2', '--no-tshark', classic],
                         capture_output=True, text=True, timeout=PATIENCE_S)
    check(out.returncode == 0 and 'CNP' in out.stdout, f'{out.stdout}{out.stderr}')


def test_on(daemons, steps, rocictl, folder):
    # proves CNP-01, CNP-04, IP4-05
    s = Steps(steps, daemons[0], port_b=1, other=[daemons[1]])
    cc = daemons[1].ask('show cc')
    check('np_min_time_between_cnps=1000000' in str(cc), f'{cc}')
    seen = capture(rocictl, daemons[0], os.path.join(folder, 'cnp.pcapng'), lambda: marked(
        daemons, s, answered))
    check((48 << 2, CNP, 60) in seen, f'there is no CNP of 60 bytes: {seen}')
    check(all(f[0] & 3 in (ECT, CE) for f in seen if f[1] != CNP), f'all others are ECN-capable: {seen}')
    judge(os.path.join(folder, 'cnp.pcapng'))
    s.end()


def test_off(daemons, steps, rocictl, folder):
    # proves CNP-14
    s = Steps(steps, daemons[0], port_b=1, other=[daemons[1]])
    seen = capture(rocictl, daemons[0], os.path.join(folder, 'off.pcapng'), lambda: marked(
        daemons, s, lambda at_a, at_b: not at_a and not at_b))
    check(all(f[0] & 3 in (0, CE) and f[1] != CNP for f in seen), f'{seen}')
    check(sum(f[0] & 3 == CE for f in seen) == 3, f'{seen}')
    s.end()


def rate(daemon, qpn):
    return daemon.ask(f'show qp {qpn}')['rate']


def slowed(daemons, s, at, rule, what):
    """All packets of @what that one end sends meet congestion: its rate falls, and recovers."""
    daemon, qpn = daemons['ab'.index(at)], getattr(s, at)
    was = rate(daemon, qpn)
    check(was['algorithm'] == 'dcqcn' and not was['limited'] and was['rate_mbps'] == 1000, f'{was}')
    said = daemon.ask(f'inject qp {qpn} ecn {rule} to=ce count=all')
    check('faults' in said, f'{said}')
    s.do(what, 40, 9000)
    now = rate(daemon, qpn)
    check(now['cnps_handled'] > was['cnps_handled'], f'{now}')
    # It recovers in milliseconds: a pause of the machine may have passed between CNP and question.
    for _ in range(100):
        if now['limited'] and now['rate_mbps'] < 600:
            break
        s.do(what, 40, 9000)
        now = rate(daemon, qpn)
    check(now['limited'] and now['rate_mbps'] < 600 and 0 < now['alpha'] <= 1, f'{now}')
    check('held at' in now['why'] and 'CNPs per second from 192.0.2.' in now['why'], f'{now}')
    daemon.ask(f'inject clear qp {qpn}')
    wait_until(lambda: not rate(daemon, qpn)['limited'], lambda: f'QP {qpn} does not recover: {rate(daemon, qpn)}')
    s.do(what, 40, 9000)


def traced(daemons, s, rocictl):
    """What a trace says of the rate of a: it falls and rises."""
    t = subprocess.Popen([rocictl, '--socket', daemons[0].socket, 'trace', 'qp', str(s.a), 'cc', 'csv'],
                         stdout=subprocess.PIPE, text=True)
    wait_until(lambda: daemons[0].ask('show traces')['traces'], 'the trace does not begin')
    s.do('write', 1, 9000)
    slowed(daemons, s, 'a', '', 'write')
    daemons[0].ask(f'trace qp {s.a} off')
    out, _ = t.communicate(timeout=PATIENCE_S)
    rows = [line.split(',') for line in out.splitlines()]
    check(rows[0] == ['t', 'qp', 'rate', 'target', 'alpha', 'window', 'rtt', 'goodput', 'cnps'], f'{rows[:2]}')
    rates = [int(r[2]) for r in rows[1:]]
    check(min(rates) < 600 * MBIT and rates[-1] > min(rates) and rates[0] == 1000 * MBIT, f'{rates}')
    check(all(int(r[1]) == s.a for r in rows[1:]) and int(rows[-1][8]) > 0, f'{rows[-1]}')
    times = [float(r[0]) for r in rows[1:]]
    check(times == sorted(times), 'the times go back')
    return out


def plotted(rocilab, trace, folder):
    """rocilab draws the trace as it draws its own runs."""
    path, plots = os.path.join(folder, 'live.csv'), os.path.join(folder, 'live')
    with open(path, 'w') as f:
        f.write(trace)
    said = subprocess.run([rocilab, 'plot', path, plots], capture_output=True, text=True, timeout=PATIENCE_S)
    if not shutil.which('gnuplot'):
        return
    check(said.returncode == 0, f'{said}')
    for name in 'rate', 'goodput', 'alpha':
        with open(os.path.join(plots, name + '.svg')) as f:
            check(f.read().count('id="gnuplot_plot_') == 1, f'{name} has one curve')


def arrived(c):
    """CNPs, also those that came after the queue pair had been idle: who sent them may have stood still."""
    return c['rp_cnp_handled'] + c.get('cnp_idle', 0)


def test_dcqcn(daemons, steps, rocictl, folder, rocilab):
    # proves CNP-11, CNP-16
    s = Steps(steps, daemons[0], port_b=1, other=[daemons[1]])
    slowed(daemons, s, 'a', '', 'write')
    slowed(daemons, s, 'b', 'read_response', 'read')
    plotted(rocilab, traced(daemons, s, rocictl), folder)
    for sender, receiver in (0, 1), (1, 0):
        wait_until(lambda: counts(daemons[sender])['np_cnp_sent'] == arrived(counts(daemons[receiver])),
                   f'CNPs are lost: {counts(daemons[sender])} {counts(daemons[receiver])}')
    check(counts(daemons[0])['rp_cnp_ignored'] == counts(daemons[0]).get('cnp_idle', 0), f'{counts(daemons[0])}')
    s.end()


def test_choice(daemons, steps, rocictl, folder):
    """One queue pair has congestion control of its own, which changes under traffic."""
    a = daemons[0]
    s = Steps(steps, a, port_b=1, other=[daemons[1]])

    def choose(choice):
        said = a.ask(f'set qp {s.a} cc {choice}')
        check('done' in said, f'{choice}: {said}')

    def meets_congestion():
        said = a.ask(f'inject qp {s.a} ecn to=ce count=all')
        check('faults' in said, f'{said}')
        before = rate(a, s.a)['cnps_handled']
        wait_until(lambda: s.do('write', 40, 9000) or rate(a, s.a)['cnps_handled'] > before + 3, 'no CNPs come')
        a.ask(f'inject clear qp {s.a}')
        s.do('write', 40, 9000)
        return rate(a, s.a)
    choose('off')
    now = meets_congestion()
    check(not now['limited'] and now['algorithm'] is None and now['own_cc'] == 'off', f'{now}')
    choose('dcqcn,rp_time_reset=131071,rp_byte_reset=0,rp_min_rate=100')      # it recovers in minutes
    now = meets_congestion()
    check(now['limited'] and 100 <= now['rate_mbps'] < 600 and 'rp_min_rate=100' in now['own_cc'], f'{now}')
    check([q['own_cc'] for q in a.ask('show cc')['limited qps']] == [now['own_cc']], 'show cc lists another')
    held = now['rate_mbps']
    choose('rp_min_rate=50')        # the algorithm stays, and what it knows ...
    now = rate(a, s.a)
    check(now['limited'] and held <= now['rate_mbps'] < held + 100, f'{now}, was {held}')
    choose('rp_min_rate=700')       # ... within the new limits
    now = rate(a, s.a)
    check(now['limited'] and 700 <= now['rate_mbps'] < 800, f'{now}, was {held}')
    choose('port')
    now = rate(a, s.a)
    check(now['own_cc'] is None and now['algorithm'] == 'dcqcn', f'{now}')
    wait_until(lambda: s.do('write', 40, 9000) or not rate(a, s.a)['limited'], 'it does not recover')
    for choice in 'fixed,rate=900', 'swift', 'off', 'dcqcn,profile=connectx', 'port':
        choose(choice)
        s.do('write', 40, 9000)
        s.do('read', 40, 9000)
    for choice, why in (('hpcc', 'telemetry'), ('notify', 'not one of port, off'), ('dcqcn,line=1G', 'set port PORT cc'),
                        ('x' * 200, 'not one of port'), ('dcqcn,' + 'rp_ai_rate=1,' * 15, 'not PARAMETER')):
        said = a.ask(f'set qp {s.a} cc {choice}')
        check(why in said.get('error', ''), f'{choice}: {said}')
    check(rate(a, s.a)['own_cc'] is None, 'a refusal changes something')
    s.end()


CHANGES = ('swift,line=1G', 'fixed,rate=900', 'swift,line=2G', 'dcqcn,line=1G', 'swift', 'notify', 'dcqcn,profile=connectx',
           'swift,line=1G', 'off')


def test_changes(daemons, steps, rocictl, folder):
    """Algorithms come and go while packets, ACKs and CNPs are under way, of a port and of one queue pair."""
    a = daemons[0]
    s = Steps(steps, a, port_b=1, other=[daemons[1]])
    a.ask(f'inject qp {s.a} ecn every=5 to=ce count=all')
    ended, moved = threading.Event(), []

    def work():
        while not ended.is_set():
            s.do('write', 40, 9000)
            s.do('read', 4, 9000)
            moved.append(1)
    worker = threading.Thread(target=work)
    worker.start()
    for i in range(10 * len(CHANGES)):
        said = a.ask(f'set port 1 cc {CHANGES[i % len(CHANGES)]}')
        check('done' in said, f'{said}')
        a.ask(f'set qp {s.a} cc {("port", "off", "swift", "fixed,rate=500", "dcqcn")[i % 5]}')
        before = len(moved)
        wait_until(lambda n=before: len(moved) > n or not worker.is_alive(), 'nothing moves')
    ended.set()
    worker.join()
    check(all(q['state'] == 'RTS' for q in a.ask('show qps')['qps'] if q['qpn'] == s.a), 'the queue pair fails')
    s.end()


def limited_metrics(daemon):
    """Number of limited queue pairs, the sum of their rates, and the counts up to 1M, 10M, ... of the histogram."""
    values = {f['name']: [s['value'] for s in f['samples']] for f in daemon.ask('metrics')['metrics']}
    return [values['roci_limited_' + n] for n in ('qps', 'bits_per_second', 'rate_bits_per_second')]


def test_rate(daemons, steps, rocictl, folder):
    s = Steps(steps, daemons[0], port_b=1, other=[daemons[1]])
    s.do('write', 1, 3000)
    daemons[0].ask(f'set qp {s.a} rate 20M')
    now = rate(daemons[0], s.a)
    check(now['limited'] and now['limit_mbps'] == 20 and now['algorithm'] is None, f'{now}')
    check('held at 20 Mb/s' in now['why'] and now['why'].endswith('by an administrator'), f'{now}')
    check([q['qpn'] for q in daemons[0].ask('show cc')['limited qps']] == [s.a], 'show cc lists another')
    check(limited_metrics(daemons[0]) == [[1], [20 * 10 ** 6], [0, 0, 1, 1, 1, 1, 1]], f'{limited_metrics(daemons[0])}')
    begin = time.monotonic()
    s.do('write', 60, 9000)     # 540,000 bytes, and 82 more per 1024: 0.23 s; a quantum leaves at once
    took = time.monotonic() - begin
    check(took > 0.22, f'{took} s')
    daemons[0].ask(f'set qp {s.a} rate off')
    check(not daemons[0].ask('show cc')['limited qps'], 'it is still limited')
    s.do('write', 60, 9000)
    s.end()


def test_swift(daemons, steps, rocictl, folder):
    """No round trip here is as short as 1 us: the window falls. None is as long as 1 s: it rises."""
    s = Steps(steps, daemons[0], port_b=1, other=[daemons[1]])
    before = rate(daemons[0], s.a)
    check(before['algorithm'] == 'swift' and before['window'] == 16 and before['rtt_us'] is None, f'{before}')
    wait_until(lambda: s.do('write', 10, 9000) or rate(daemons[0], s.a)['limited'], 'the window does not fall')
    now = rate(daemons[0], s.a)
    check(now['rtt_us'] > 1 and now['window'] == 1 and now['rate_mbps'] < 1000 and now['why'].endswith('by swift'), f'{now}')
    said = daemons[0].ask('set port 1 cc swift,base_target=1000000,line=1G')
    check('error' not in said, f'{said}')
    wait_until(lambda: s.do('write', 10, 9000) or rate(daemons[0], s.a)['window'] > 16, 'the window does not rise')
    now = rate(daemons[0], s.a)
    check(not now['limited'] and not now['why'], f'{now}')
    s.end()


def main(rocid, rocictl, steps, rocilab):
    dcqcn = partial(test_dcqcn, rocilab=rocilab)
    for args, test in (CC, test_on), ((), test_off), (DCQCN, dcqcn), (DCQCN, test_choice), (DCQCN, test_changes), (SWIFT, test_swift), ((), test_rate):
        with tempfile.TemporaryDirectory() as folder:
            daemons = start_two(rocid, folder, args)
            test(daemons, steps, rocictl, folder)
            for d in daemons:
                d.end()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
