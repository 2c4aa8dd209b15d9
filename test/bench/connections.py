# SPDX-License-Identifier: BSD-3-Clause
"""Connections through rocid's communication manager: two rocid on a veth pair, and programs that know nothing of
them, with the stock librdmacm. Each function returns {(what, unit, size): figure} by who it is of."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from link import Failure, PATIENCE_S
from peers import ADDRESS, NETDEV
from netlab import Lab, wait_for
from perftest import connected_too_early
from rocid import ask

PROGRAMS = 'cmtime', 'ib_write_bw', 'rstream'
TRIES = 20
MADS = 10000            # per second
NOBODYS = '0x88B5'      # an Ethertype for experiments
MADS_PROGRAM = Path(__file__).resolve().parent / 'mads.py'


def missing():
    return [program for program in PROGRAMS if not shutil.which(program)]


class Ends:
    """Two rocid, the server's first."""

    def __init__(self, veth, build):
        self.veth, self.build = veth, build
        self.libraries = f'{build}/lib/verbs:{build}/lib/client'

    def __enter__(self):
        self.lab = Lab(os.path.join(self.build, 'app/rocid/rocid'), None).__enter__()
        try:
            self.rocid = [self.lab.rocid(space, f'r{i}', ['--share', NETDEV])
                          for i, space in enumerate(self.veth.spaces)]
        except BaseException:
            self.lab.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *why):
        self.lab.__exit__(*why)

    def start(self, side, words, **more):
        """By env(1): nsenter itself has the stock libraries."""
        env = [f'LD_LIBRARY_PATH={self.libraries}', f'ROCI_SOCKET={self.rocid[side].socket}', 'LC_ALL=C']
        return subprocess.Popen(self.veth.spaces[side].command(['env', *env, *words]), stderr=subprocess.STDOUT,
                                text=True, **more)

    def listens(self, words):
        """The kernel's socket where perftest does without RDMA CM."""
        if words[0] == 'ib_write_bw' and '-R' not in words:
            return self.veth.listens(18515)
        return bool(ask(self.rocid[0], 'show cm listeners')['cm_listeners'])

    def talk(self, server, client, side=1):
        """Runs both. @return what the client printed, and its seconds"""
        for _ in range(TRIES):
            out, seconds, status = self.talk_once(server, client, side)
            if not connected_too_early(out):
                break
        if status or 'event: ' in out:
            raise Failure(f'{client[0]} failed (exit status {status}): {out.strip()[-300:]}')
        return out, seconds

    def talk_once(self, server, client, side):
        quiet = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL}
        waits = self.start(0, server, **quiet)
        try:
            wait_for(f'{server[0]} to listen', lambda: waits.poll() is not None or self.listens(server))
            begin = time.monotonic()
            asks = self.start(side, client, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            try:
                out, _ = asks.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                asks.kill()
                asks.communicate()
                raise Failure(f'{client[0]} was not done within {PATIENCE_S} s') from None
            return out, time.monotonic() - begin, asks.returncode
        finally:
            waits.kill()
            waits.wait()
            wait_for('nothing to be left', lambda: not any(ask(r, 'show sessions')['sessions'] for r in self.rocid))


def number(pattern, out, name):
    found = re.findall(pattern, out, re.M)
    if not found:
        raise Failure(f'{name} printed no figure: {out.strip()[-300:]}')
    return float(found[-1])


def rate(ends, count, itself):
    """Connections per second, from creating the ids to destroying them."""
    command = ['cmtime', '-c', str(count)]
    _, seconds = ends.talk([*command, '-b', ADDRESS[0]], [*command, '-s', ADDRESS[0]], 0 if itself else 1)
    return {('connections', '1/s', count): count / seconds}


def write(ends, size, count, *more):
    command = ['ib_write_bw', '-F', '--report_gbits', '-s', str(size), '-n', str(count), *more]
    out, _ = ends.talk(command, [*command, ADDRESS[0]])
    return {('rate', 'Gb/s', size): number(rf'^ *{size} +\d+ +[\d.]+ +([\d.]+)', out, 'ib_write_bw')}


def stream(ends, size, count):
    command = ['rstream', '-S', str(size), '-C', str(count), '-I', '1', '-T', 'b']
    out, _ = ends.talk([*command, '-b', ADDRESS[0]], [*command, '-s', ADDRESS[0]])
    return {('rate', 'Gb/s', size): number(r'^\S+ +\S+ +\S+ +\S+ +\S+ +\S+s +([\d.]+) +[\d.]+$', out, 'rstream')}


def beside_mads(ends, count, nobodys):
    """A stream beside MADs to the QP1 of its target, or beside frames of the same size that nobody takes."""
    macs = ends.veth.macs()
    words = [str(MADS_PROGRAM), NETDEV, macs[1], macs[0], ADDRESS[1], ADDRESS[0], str(MADS)]
    sender = subprocess.Popen(ends.veth.spaces[1].command(words + [NOBODYS] * nobodys), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)
    try:
        if 'sending' not in sender.stdout.readline():
            raise Failure('mads.py sends nothing')
        found = write(ends, 4096, count)
    finally:
        sender.send_signal(signal.SIGTERM)
        said = sender.communicate()[0]
    return {**found, ('frames beside it', '1/s', 0): float(said)}


# --- at rest ---------------------------------------------------------------------------------------------------

def control_thread(rocid):
    """Nanoseconds on a CPU, and how often it went to sleep."""
    for task in Path(f'/proc/{rocid.pid}/task').iterdir():
        if (task / 'comm').read_text().strip() == 'rocid-control':
            slept = re.search(r'^voluntary_ctxt_switches:\s+(\d+)', (task / 'status').read_text(), re.M)[1]
            return int((task / 'schedstat').read_text().split()[0]), int(slept)
    raise Failure('rocid has no control thread')


def idle(ends, count, seconds):
    """Of the busier one of both control threads, beside `count` connections that do nothing."""
    program = os.path.join(ends.build, 'test/bench/idle_connections')
    both = []

    def said(process, word):
        line = process.stdout.readline()
        if word not in line:
            raise Failure(f'idle_connections: {line.strip() or "it ended"}')

    try:
        for side in (0, 1):
            words = [program, ends.rocid[side].socket, str(count), *ADDRESS[:1 + side]]
            both.append(ends.start(side, words, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            said(both[-1], 'listening')
        for process in both:
            said(process, 'connected')
        before = [control_thread(r) for r in ends.rocid]
        time.sleep(seconds)
        after = [control_thread(r) for r in ends.rocid]
    finally:
        for process in both:
            process.stdin.close()
            process.wait()
            process.stdout.close()
    return {('CPU of the control thread', '%', count): max(b[0] - a[0] for a, b in zip(before, after)) / seconds / 1e7,
            ('its wake-ups', 'per s', count): max(b[1] - a[1] for a, b in zip(before, after)) / seconds}


def everybody(ends, smoke, quick):
    """Who, and how it is measured; they take turns."""
    part = 100 if smoke else 10 if quick else 1
    many, long = 10000 // part, 20000 // part
    return {
        'cmtime, one rocid': lambda: rate(ends, 1000 // min(part, 10), True),
        'cmtime, two rocid': lambda: rate(ends, 1000 // min(part, 10), False),
        'cmtime, two rocid, many': lambda: rate(ends, many, False),
        'ib_write_bw': lambda: write(ends, 65536, long),
        'ib_write_bw -R': lambda: write(ends, 65536, long, '-R'),
        'rstream': lambda: stream(ends, 65536, long),
        'ib_write_bw, MADs beside it': lambda: beside_mads(ends, 5 * long, False),
        "ib_write_bw, nobody's frames beside it": lambda: beside_mads(ends, 5 * long, True),
        'idle': lambda: idle(ends, many, 1 if smoke else 3 if quick else 10),
    }
