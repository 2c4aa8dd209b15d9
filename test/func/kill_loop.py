#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""kill_loop.py ROCID VICTIM SURVIVOR WIDOW HOLDER: kill -9 of programs at any instant frees
everything and disturbs nobody.

Programs in all phases of a client's life are killed at random moments, some of them after a while
in SIGSTOP, while a pair of queue pairs goes on exchanging data. After each batch rocid's own
counts, its descriptors and its mappings are what they were. KILLS=N kills another number than
300; SEED=N repeats a run."""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from rocid import PATIENCE_S, ask_at, check, settled, start, wait_until

PHASES = ['hello', 'create', 'regions', 'modify', 'traffic', 'shared', 'destroy']
BATCH = 10
LIFE_S = 0.06          # most that a program lives; enough to reach any phase,
LIFE_MAX_S = 5
LIVES = 4              # and so many times what one takes to its session, where that is more
SESSIONS = 1 / 4       # of the victims have one when they are killed
RSS_SLACK_KB = 8192    # what an allocator may keep
SETTLED = 5            # batches after which rocid's memory grows no more


class Survivor:
    def __init__(self, binary, daemon):
        self.p = subprocess.Popen([binary, daemon.socket], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        check(self.p.stdout.readline() == b'ready\n', 'the surviving pair does not start')
        self.last = 0

    def check_progress(self):
        self.p.stdin.write(b'\n')
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        check(line, 'the surviving pair failed')
        check(int(line) > self.last, 'the surviving pair stands still')
        self.last = int(line)

    def end(self):
        self.p.stdin.close()
        check(self.p.wait(PATIENCE_S) == 0, 'the surviving pair failed')


def memory_kb(daemon):
    with open(f'/proc/{daemon.pid}/status') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS:'))


def state(daemon):
    """Its own counts, descriptors and mappings, asked over one connection, whose descriptor so counts each time."""
    return ask_at(daemon.admin, 'show totals')['totals'], daemon.fds(), daemon.maps()


def spawn(rnd, victim, daemon, phase=None):
    command = [victim, daemon.socket, phase or rnd.choice(PHASES), str(rnd.randrange(1 << 31))]
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    p.words = command[2:]
    return p


def has_session(p):
    """Its rings are mapped; one that is about to end has none any more."""
    try:
        with open(f'/proc/{p.pid}/maps') as f:
            return any('/memfd:' in line for line in f)
    except OSError:
        return False


def measure_start(rnd, victim, daemon):
    """How long a batch that starts together takes to its sessions."""
    begun = time.monotonic()
    victims = [spawn(rnd, victim, daemon, 'traffic') for _ in range(BATCH)]
    wait_until(lambda: all(map(has_session, victims)), 'victims come to no session')
    start = time.monotonic() - begun
    for v in victims:
        v.kill()
        v.wait()
    return start


def measure_life(rnd, victim, daemon):
    """How long programs shall live: several times a start that nothing held up."""
    start = min(measure_start(rnd, victim, daemon) for _ in range(3))
    life = min(LIFE_MAX_S, max(LIFE_S, LIVES * start))
    print(f'victims live {life:.2f} s at most')
    return life


def kill_batch(rnd, victim, daemon, size, survivor, life):
    """Starts programs together, ends them one after another.  @return how many had a session."""
    victims = [(rnd.random() * life, spawn(rnd, victim, daemon)) for _ in range(size)]
    sessions = 0
    stopped = [v for _, v in victims if rnd.random() < 0.2]
    begun = time.monotonic()
    for at, v in sorted(victims, key=lambda pair: pair[0]):
        time.sleep(max(0, begun + at - time.monotonic()))
        check(v.poll() is None, f'victim {v.words} ended by itself: {v.returncode}')
        sessions += has_session(v)
        v.send_signal(signal.SIGSTOP if v in stopped else signal.SIGKILL)
    if stopped:  # with whatever they hold
        survivor.check_progress()
    for v in stopped:
        v.kill()
    for _, v in victims:
        check(v.wait(PATIENCE_S) == -signal.SIGKILL, f'victim {v.words}: {v.returncode}')
    return sessions


def kill_all(rnd, victim, daemon, survivor, kills):
    base = settled(lambda: state(daemon))
    life = measure_life(rnd, victim, daemon)
    rss = None
    batches = killed = sessions = 0
    while killed < kills:
        size = min(kills - killed, BATCH)
        sessions += kill_batch(rnd, victim, daemon, size, survivor, life)
        killed += size
        batches += 1
        wait_until(lambda: state(daemon) == base, lambda: f'left behind: {state(daemon)} not {base}')
        survivor.check_progress()
        if batches == SETTLED:
            rss = memory_kb(daemon)
    grown = memory_kb(daemon) - (rss or memory_kb(daemon))
    check(grown < RSS_SLACK_KB, f'rocid has grown by {grown} KB')
    print(f'{sessions} of {killed} had a session')
    check(sessions >= killed * SESSIONS, 'victims are killed before they do anything')


def kill_large(holder, daemon, survivor):
    """One program with thousands of objects is no different."""
    base = settled(lambda: state(daemon))
    p = subprocess.Popen([holder, daemon.socket, '50', '500', '5000', '2000'],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(p.stdout.readline() == b'ready\n', 'holder: not ready')
    p.kill()
    p.wait()
    survivor.check_progress()
    wait_until(lambda: state(daemon) == base, lambda: f'left of the large program: {state(daemon)} not {base}')
    survivor.check_progress()


def main():
    rocid, victim, survivor_binary, widow, holder, usual = sys.argv[1:]
    kills = int(os.environ.get('KILLS', usual))
    seed = int(os.environ.get('SEED', 20261))
    print(f'KILLS={kills} SEED={seed}', flush=True)
    rnd = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = start(rocid, folder)
        daemon.admin = daemon.connect()
        try:
            empty = settled(lambda: state(daemon))
            survivor = Survivor(survivor_binary, daemon)
            kill_all(rnd, victim, daemon, survivor, kills)
            kill_large(holder, daemon, survivor)
            bereft = subprocess.run([widow, daemon.socket, str(seed), str(1 + kills // 10)],
                                    timeout=20 * PATIENCE_S)
            check(bereft.returncode == 0, 'the peer of a killed program')
            survivor.check_progress()
            survivor.end()
            wait_until(lambda: state(daemon) == empty, lambda: f'in the end: {state(daemon)} not {empty}')
            print('survivor: rounds', survivor.last)
        finally:
            ended = daemon.end()
        check(ended == 0, f'rocid ended with {ended}: {daemon.said()}')


if __name__ == '__main__':
    main()
