#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""cm_storm.py ROCID LIBRARY-FOLDER: many programs connect to each other by RDMA CM while some are killed.

Unmodified servers and clients on two rocid, each with clients on both sides, are killed with SIGKILL at any
instant. When all have ended, each rocid has no session, queue pair, identifier, listener, connection,
descriptor or mapping more than before the storm, and connects as ever. CLIENTS=N runs another number of
clients than 100; SEED=N repeats a run. Needs root."""
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from rdmacm import FOUR, Case, Lab, Side, link, listeners, run  # noqa: E402
from netlab import PATIENCE_S, skip, wait_for  # noqa: E402
from rocid import ask, check  # noqa: E402

PROGRAMS = 'rping', 'ucmatose', 'cmtime', 'rstream', 'udaddy'
PORTS = {'rping': 7301, 'cmtime': 7302, 'ucmatose': 7303, 'rstream': 7304, 'udaddy': 7305}
SERVERS = {
    'rping': 'rping -s -P -a {here} -p 7301',
    'cmtime': 'cmtime -b {here} -p 7302',
    'ucmatose': 'ucmatose -b {here} -p 7303 -c 2',
    'rstream': 'rstream -b {here} -p 7304 -C 100 -S 4096',
    'udaddy': 'udaddy -b {here} -p 7305 -c 2',
}
CLIENTS = {
    'rping': 'rping -c -a {there} -p 7301 -C 200',
    'cmtime': 'cmtime -s {there} -p 7302 -c 20',
    'ucmatose': 'ucmatose -s {there} -p 7303 -c 2',
    'rstream': 'rstream -s {there} -p 7304 -C 100 -S 4096',
    'udaddy': 'udaddy -s {there} -p 7305 -c 2',
}
AT_ONCE = 16
KILLED = 1 / 2      # of the clients, and of the servers
LIFE_S = 0.3        # most that one lives that is killed
OUTLIVED_S = 10     # a client that waits for a server that died is killed then
SETTLED_FDS = 4     # descriptors of connections that just end
ADDRESSES = FOUR['server'], FOUR['client']
# Short times: MADs to a server that was killed are not repeated for minutes.
OPTIONS = ['--share', 'e0', '--cm-timeout', '15', '--cm-retries', '3']


class Program:
    def __init__(self, rnd, side, name, line, lifetime):
        self.name = name
        self.process = side.start(line, subprocess.DEVNULL, {})
        self.end_at = time.monotonic() + (rnd.uniform(0, LIFE_S) if rnd.random() < KILLED else lifetime)
        self.killed = False

    def running(self):
        if self.process.poll() is None and time.monotonic() > self.end_at:
            self.kill()
        return self.process.poll() is None

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()


class Storm:
    def __init__(self, rnd, sides):
        self.rnd, self.sides = rnd, sides
        self.servers, self.clients = {}, []
        self.good = self.kills = 0

    def serve(self):
        """One of each kind per side, again when the last one has ended."""
        for here, side in enumerate(self.sides):
            for name, line in SERVERS.items():
                old = self.servers.get((here, name))
                if old and old.running():
                    continue
                self.kills += bool(old and old.killed)
                self.servers[here, name] = Program(self.rnd, side, name, line.format(here=ADDRESSES[here]),
                                                   OUTLIVED_S)

    def start_client(self):
        """On either side, to either side."""
        name = self.rnd.choice(PROGRAMS)
        side, there = self.rnd.choice(self.sides), self.rnd.choice(ADDRESSES)
        self.clients.append(Program(self.rnd, side, name, CLIENTS[name].format(there=there), OUTLIVED_S))

    def reap(self):
        ended = [c for c in self.clients if not c.running()]
        self.good += sum(not c.process.returncode for c in ended)
        self.kills += sum(c.killed for c in ended)
        self.clients = [c for c in self.clients if c not in ended]

    def run(self, count):
        started = 0
        while started < count or self.clients:
            self.serve()
            if started < count and len(self.clients) < AT_ONCE:
                self.start_client()
                started += 1
            self.reap()
            time.sleep(0.01)
        for p in self.servers.values():
            p.kill()


def state(side):
    """What a rocid holds for programs."""
    pid = side.daemon.pid
    maps = sum('/memfd:' in line for line in Path(f'/proc/{pid}/maps').read_text().splitlines())
    held = {name: len(ask(side.daemon, f'show cm {name}')[f'cm_{name}']) for name in ('listeners', 'connections')}
    return {**ask(side.daemon, 'show totals')['totals'], **held, 'maps': maps,
            'descriptors': len(os.listdir(f'/proc/{pid}/fd'))}


def settled(side, before):
    """A descriptor may be that of this very question."""
    now = state(side)
    return all(now[k] <= before[k] + (k == 'descriptors') for k in before)


def main():
    rocid, libraries = sys.argv[1:]
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing:
        skip(f'{missing} are not installed (rdmacm-utils)')
    seed = int(os.environ.get('SEED', time.time_ns() & 0xffffffff))
    print(f'SEED={seed}', flush=True)
    with Lab(rocid, None) as lab:
        sides = [Side(n, lab.rocid(n, name, OPTIONS), libraries) for n, name in zip(link(lab), 'ab')]
        again = Case('rping -s -a {server}', 'rping -c -a {server} -v -V -C 5', says='ping data: rdma-ping-4')
        check(not run(again, lab, sides), 'it does not begin')   # whatever is made once is made
        before = [state(s) for s in sides]
        storm = Storm(random.Random(seed), sides)
        storm.run(int(os.environ.get('CLIENTS', 100)))
        print(f'{storm.good} clients came to their end, {storm.kills} programs were killed', flush=True)
        for side, had in zip(sides, before):
            check(side.daemon.poll() is None, 'rocid lives')
            wait_for(f'{had} again', lambda s=side, h=had: settled(s, h))
        for _ in range(2):
            wrong = run(again, lab, sides)
            check(not wrong, f'after the storm: {wrong}')
            sides.reverse()
            again.on = {'server': ADDRESSES[1], 'client': ADDRESSES[0]}
    check(storm.good, 'no client came to its end')


if __name__ == '__main__':
    main()
