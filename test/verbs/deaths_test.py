#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""deaths_test.py ROCID DEATHS: programs on the verbs API whose peer is killed while they write its memory, and 32 whose
rocid dies and comes again.

The first get an error of that queue pair alone; the others a flush and IBV_EVENT_DEVICE_FATAL, and go on with the new
rocid, with no more descriptors and mappings than before. RESTARTS=N: another number of rocids than 2."""
import atexit
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from rocid import PATIENCE_S, check, settled, start, wait_until  # noqa: E402

PAIRS = 8
CROWD = 32
SLACK = 8   # mappings: where malloc() has its memory


def spawn(program, daemon, mode):
    p = subprocess.Popen([program, mode], env={**os.environ, 'ROCI_SOCKET': daemon.socket}, text=True, bufsize=1,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(p.kill)
    return p


def line(p):
    """Lines come one at a time, each after something was done: nothing is left in the reader's buffer."""
    check(select.select([p.stdout], [], [], PATIENCE_S)[0], f'{p.args[1]} says nothing')
    return p.stdout.readline().strip()


def state(daemon):
    return {**daemon.totals(), 'mappings': daemon.maps()}


def end(programs):
    for p in programs:
        p.kill()
        p.wait()
        p.stdin.close()
        p.stdout.close()


def join(a, b):
    """A writer and its target."""
    numbers, qpn = line(b), line(a)
    print(numbers, file=a.stdin)
    print(qpn, file=b.stdin)
    check(line(b) == 'ready' and line(a) == 'ready', 'they do not meet')


def test_peers(daemon, program):
    """Half of the targets die; the writers of the others notice nothing."""
    writers, targets = ([spawn(program, daemon, mode) for _ in range(PAIRS)] for mode in ('writer', 'target'))
    for a, b in zip(writers, targets):
        join(a, b)
    for b in targets[::2]:
        b.kill()
    for a in writers[::2]:
        check(line(a) in ('bereft transport retry counter exceeded', 'bereft remote access error'), 'another end')
        check(a.wait(PATIENCE_S) == 0, f'{a.returncode}')
    for a in writers[1::2]:
        check(a.poll() is None and not select.select([a.stdout], [], [], 0)[0], 'a writer whose target lives ended')
    end(writers + targets)
    print(f'ok   {PAIRS // 2} targets killed', flush=True)


def test_rocid(rocid, folder, daemon, program, restarts):
    """@return the last rocid."""
    crowd, first = [spawn(program, daemon, 'renews') for _ in range(CROWD)], None
    for i in range(restarts + 1):
        said = [line(p) for p in crowd]
        check(all(s.startswith('ready ') for s in said), f'not ready: {said}, {[p.poll() for p in crowd]}')
        counts = [tuple(map(int, s.split()[1:])) for s in said]
        if i == 1:      # caches are warm
            first = counts
        for was, now in zip(first or counts, counts):
            check(now[0] <= was[0] and now[1] <= was[1] + SLACK, f'restart {i}: {now} descriptors and mappings, not {was}')
        if i == restarts:
            break
        check(daemon.end(signal.SIGKILL if i % 2 else signal.SIGTERM) in (0, -signal.SIGKILL), daemon.said())
        daemon = start(rocid, folder)
    end(crowd)
    print(f'ok   {CROWD} programs, {restarts} restarts; {counts[0]} descriptors and mappings', flush=True)
    return daemon


def main():
    rocid, program = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = start(rocid, folder)
        base = None
        for _ in range(2):
            test_peers(daemon, program)
            seen = settled(lambda d=daemon: (state(d), d.idle_fds()))
            check(seen == (base or seen), f'left behind: {seen}, not {base}')
            base = seen
        daemon = test_rocid(rocid, folder, daemon, program, int(os.environ.get('RESTARTS', 2)))
        wait_until(lambda: not any(daemon.totals().values()), lambda: f'left behind: {daemon.totals()}')
        daemon.check_ends()


if __name__ == '__main__':
    main()
