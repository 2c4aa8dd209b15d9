#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""paced_life_test.py ROCID STEPS: queue pairs are reset, connected again, destroyed and killed while their packets wait
for a departure, those of requests and of READ responses: limited by their program, by an administrator, and by CNPs.
Nothing of the old connection is left, neither packets nor limits, but for an administrator's. Counted work, not time."""
import signal
import sys
import tempfile
from rocid import PATIENCE_S, RING_PAIR, check, eal_args, start, wait_until
from steps import Steps

# CNPs limit for minutes: next to nothing raises the rate, and each halves it.
CC = ('dcqcn,line=1G,rp_time_reset=131071,rp_dce_tcp_rtt=131071,rp_byte_reset=0,rp_ai_rate=0.1,rp_hai_rate=0.1,'
      'rp_min_rate=1,np_min_time_between_cnps=0')
LEAST = 1           # Mb/s
MOST = 10           # of CNPs, seconds later
POSTED, LENGTH = 30, 60000      # 15 s at this rate
ROUNDS = 2
TRIES = 10          # until packets wait: the test may have been paused
# Workers, runs until one is without harm, options. A frame may overtake others of a QP that moves while its worker stands
# still (decision 0040), and some are sent again then; what is left of an old connection does harm in each run.
RUNS = (
    (1, 1, ['--ring-pair'], []),
    (2, 1, ['--ring-pair=spread=hash'], ['--workers', '2', '--migrate=off']),
    (2, 5, ['--ring-pair=spread=hash'], ['--workers', '2', '--migrate=20']),
)
HARM = ('retransmits', 'local_ack_timeout_err', 'packet_seq_err', 'out_of_sequence', 'duplicate_request')
QUIET = {'roci_limited_qps': [0], 'roci_limited_bits_per_second': [0]}


class Pair:
    def __init__(self, daemon, steps):
        self.daemon = daemon
        self.steps = Steps(steps, daemon, timeout=0)

    def rate(self, end='a'):
        return self.daemon.ask(f'show qp {getattr(self.steps, end)}')['rate']

    def set(self, end, rate):
        said = self.daemon.ask(f'set qp {getattr(self.steps, end)} rate {rate}')
        check('done' in said, f'{said}')


def by_program(pair):
    pair.steps.do('limit', LEAST * 1000)


def by_administrator(pair):
    pair.set('a', f'{LEAST}M')


def by_cnps(pair):
    """Each packet meets congestion until the rate is the least."""
    said = pair.daemon.ask(f'inject qp {pair.steps.a} ecn to=ce count=all')
    check('faults' in said, f'{said}')
    wait_until(lambda: pair.steps.do('write', 1, 3000) or pair.rate()['rate_mbps'] <= 2 * LEAST,
               lambda: f'CNPs do not limit: {pair.rate()}')
    pair.daemon.ask(f'inject clear qp {pair.steps.a}')


def by_responder(pair):
    """READ responses wait, not requests."""
    pair.set('b', f'{LEAST}M')


LIMITS = ((by_program, 'post', False), (by_administrator, 'post', True), (by_cnps, 'post', False),
          (by_responder, 'fetch', True))


def counts(daemon):
    found = dict(daemon.ask('show counters')['counters'])
    found.update((d['reason'], d['packets']) for d in daemon.ask('show drops')['drops'])
    return found


def all_arrived(daemon):
    """The counters of workers are read one after the other: one look may miss a packet that was sent meanwhile and count
    another's arrival for it. Two equal ones do not."""
    looks = [(now['tx_packets'], now['rx_packets']) for now in (counts(daemon), counts(daemon))]
    return looks[0] == looks[1] and looks[0][0] == looks[0][1]


def limited(daemon):
    values = {f['name']: [s['value'] for s in f['samples']] for f in daemon.ask('metrics')['metrics']}
    return {k: values[k] for k in QUIET}


def check_quiet(daemon):
    check(limited(daemon) == QUIET, f'{limited(daemon)}')
    check(not daemon.ask('show cc')['limited qps'], f"{daemon.ask('show cc')}")


def stays(pair, limit, posting, remains):
    """Reset while packets wait, and connected again."""
    end = 'b' if limit is by_responder else 'a'
    for _ in range(TRIES):
        limit(pair)
        now = pair.rate(end)
        check(now['limited'] and now['rate_mbps'] < MOST, f'{limit.__name__}: {now}')
        pair.steps.do(posting, POSTED, LENGTH)
        ended = int(pair.steps.ask('reset'))
        # A packet of the old connection that is still under way would be one of the new connection.
        wait_until(lambda: all_arrived(pair.daemon), 'packets do not arrive')
        pair.steps.do('connect')
        if ended < POSTED:
            break
    check(ended < POSTED, f'{limit.__name__}: nothing waits')
    now = pair.rate(end)
    check(now['limited'] == remains and now['cnps_handled'] == 0, f'{limit.__name__}: {now}')
    if remains:
        check(now['limit_mbps'] == LEAST, f'{now}')
        pair.set(end, 'off')
    check_quiet(pair.daemon)
    pair.steps.do('write', 20, 9000)
    pair.steps.do('read', 20, 9000)


def goes(daemon, steps, limit, posting, how):
    """Destroyed, or killed, while packets wait."""
    pair = Pair(daemon, steps)
    limit(pair)
    pair.steps.do(posting, POSTED, LENGTH)
    if how:
        pair.steps.process.send_signal(how)
    else:
        pair.steps.process.stdin.close()
    check(pair.steps.process.wait(PATIENCE_S) == -how, 'steps ends otherwise')
    wait_until(lambda: not any(daemon.totals().values()), lambda: f'something is left: {daemon.totals()}')
    check_quiet(daemon)


def run(rocid, steps, workers, ring, options):
    with tempfile.TemporaryDirectory() as folder:
        daemon = start(rocid, folder, eal=eal_args(64 * workers, workers), args=[
            *ring, *RING_PAIR[1:], '--cc', f'0,{CC}', '--cc', f'1,{CC}', *options])
        before = counts(daemon)
        pair = Pair(daemon, steps)
        for _ in range(ROUNDS):
            for row in LIMITS:
                stays(pair, *row)
        pair.steps.end()
        for limit, posting, _ in LIMITS:
            for how in 0, signal.SIGKILL, signal.SIGTERM:
                goes(daemon, steps, limit, posting, how)
        moved = {k: v - before.get(k, 0) for k, v in counts(daemon).items() if v != before.get(k, 0)}
        print(f'{workers} workers: {moved}')
        daemon.check_ends()
        return set(HARM) & set(moved)


def main(rocid, steps):
    for workers, runs, ring, options in RUNS:
        for _ in range(runs):
            harm = run(rocid, steps, workers, ring, options)
            if not harm:
                break
        check(not harm, f'{harm}')


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
