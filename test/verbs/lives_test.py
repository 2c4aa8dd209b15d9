#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""lives_test.py ROCID LIVES: 32 programs on the verbs API at once, each killed with SIGKILL at any instant of setting up
and tearing down, registering, forking, being written by a peer, or of having 1,000 queue pairs; another one notices
nothing.

When all have ended, rocid has no more objects, descriptors, mappings and shared memory than before. KILLS=N kills
another number than 96, SETUPS=N sets up and tears down another number of times than 400; SEED=N repeats a run."""
import atexit
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from rocid import PATIENCE_S, RING_PAIR, check, settled, start, wait_until  # noqa: E402

PHASES = 'sets-up', 'is-written', 'registers', 'forks', 'has-many'
CROWD = 32
CHURNERS = 4
LIFE_S = 3
SHMEM_SLACK_KB = 4096   # of other programs of the machine, and of rocid's own caches


def spawn(program, daemon, phase, seed):
    p = subprocess.Popen([program, phase, str(seed)], env={**os.environ, 'ROCI_SOCKET': daemon.socket},
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    p.phase = phase
    atexit.register(p.kill)
    return p


def progress(p):
    """It has done its thing once more from now on."""
    while select.select([p.stdout], [], [], 0)[0]:
        check(os.read(p.stdout.fileno(), 4096), f'the one that lives ended: {p.poll()}')
    check(select.select([p.stdout], [], [], PATIENCE_S)[0] and os.read(p.stdout.fileno(), 4096), 'it stands still')


def shmem_kb(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('RssShmem'))


def state(daemon):
    return {**daemon.totals(), 'mappings': daemon.maps()}


def crowd(rnd, program, daemon, size):
    """@return how many had done their thing at least once."""
    living = [spawn(program, daemon, PHASES[i % len(PHASES)], rnd.randrange(1 << 31)) for i in range(size)]
    wait_until(lambda: any(select.select([p.stdout], [], [], 0)[0] for p in living), 'nobody gets anywhere')
    for p in rnd.sample(living, size):
        time.sleep(rnd.random() * 2 * LIFE_S / size)
        check(p.poll() is None, f'{p.phase} ended by itself: {p.returncode}')
        p.kill()
    done = 0
    for p in living:
        check(p.wait(PATIENCE_S) == -signal.SIGKILL, f'{p.phase}: {p.returncode}')
        done += bool(select.select([p.stdout], [], [], 0)[0] and os.read(p.stdout.fileno(), 1))
        p.stdout.close()
    return done


def churn(program, daemon, count):
    """Set-ups and tear-downs in a few programs, which look at what is left in them."""
    living = [spawn(program, daemon, 'sets-up', seed) for seed in range(CHURNERS)]
    begin, done = time.monotonic(), 0
    while done < count:
        ready = select.select([p.stdout for p in living], [], [], PATIENCE_S)[0]
        check(ready, f'{done} set-ups, and no more')
        for f in ready:
            lives = os.read(f.fileno(), 4096)
            check(lives, 'a program ended by itself, or it leaks')
            done += len(lives)
    print(f'{done} set-ups and tear-downs, {done / (time.monotonic() - begin):.0f}/s', flush=True)
    for p in living:
        p.kill()
        p.wait()
        p.stdout.close()


def main():
    rocid, program = sys.argv[1:]
    kills, seed = int(os.environ.get('KILLS', 96)), int(os.environ.get('SEED', random.randrange(1 << 31)))
    print(f'SEED={seed}', flush=True)
    rnd = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = start(rocid, folder, args=RING_PAIR)
        survivor = spawn(program, daemon, 'is-written', 0)
        progress(survivor)
        survivor.kill()
        survivor.wait()
        base, fds = settled(lambda: state(daemon)), daemon.idle_fds()
        survivor = spawn(program, daemon, 'is-written', 0)
        shmem = None
        for begin in range(0, kills, CROWD):
            done = crowd(rnd, program, daemon, min(CROWD, kills - begin))
            progress(survivor)
            print(f'{begin + CROWD} killed; of the last {done} had done something', flush=True)
            shmem = shmem or shmem_kb(daemon.pid)
        churn(program, daemon, int(os.environ.get('SETUPS', 400)))
        progress(survivor)
        survivor.kill()
        survivor.wait()
        wait_until(lambda: state(daemon) == base, lambda: f'left behind: {state(daemon)}, not {base}')
        check(daemon.idle_fds() == fds, f'descriptors: {daemon.idle_fds()}, not {fds}')
        check(shmem_kb(daemon.pid) < shmem + SHMEM_SLACK_KB, f'shared memory: {shmem_kb(daemon.pid)}, not {shmem} KB')
        daemon.check_ends()


if __name__ == '__main__':
    main()
