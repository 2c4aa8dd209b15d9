# SPDX-License-Identifier: BSD-3-Clause
"""A real rocid for a test that starts, asks, kills and replaces it."""
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import time

PATIENCE_S = 180  # for what takes milliseconds on a machine that nobody else uses
REPLY_MAX = 16 << 20  # bytes: a longer reply is one without an end
# Daemons sleep while they are idle, as installed, so that more tests run at a time; those that measure poll.
IDLE = os.environ.get('ROCI_IDLE', 'adaptive')
RING_PAIR = ['--ring-pair', '--gid', '0,192.0.2.1', '--gid', '1,192.0.2.2']


def lcores(number):
    """Float over the CPUs: two tests run at a time, and a machine may have fewer CPUs than these."""
    cpus = ','.join(str(c) for c in sorted(os.sched_getaffinity(0)))
    return ['--lcores', f'(0-{number - 1})@({cpus})' if number > 1 else f'0@({cpus})']


def eal_args(megabytes, workers=1):
    """Arguments of EAL; the memory is that of this test alone, as are its files in /var/run/dpdk."""
    return [*lcores(workers), '--no-huge', '-m', str(megabytes), '--no-pci']


EAL = eal_args(64)


class Rocid:
    """One process; `socket` is where applications connect. Its files are in `folder`."""

    def __init__(self, binary, folder, args=RING_PAIR, eal=EAL, name='rocid', before=(), stdout=None):
        self.socket = os.path.join(folder, name + '.sock')
        self.log = open(os.path.join(folder, name + '.log'), 'a+')
        reader, self.ready_fd = os.pipe()
        self.reader = reader
        self.process = subprocess.Popen(
            [*before, binary, *eal, '--', '--socket', self.socket, '--idle', IDLE,
             '--ready-fd', str(self.ready_fd), *args],
            stdin=subprocess.DEVNULL, stdout=stdout or self.log, stderr=self.log, pass_fds=[self.ready_fd])
        os.close(self.ready_fd)
        self.pid = self.process.pid
        atexit.register(self.reap)

    def reap(self):
        """A test that fails leaves nothing running."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def wait_ready(self):
        """True when it serves, False when it ended instead. It has closed its end by then."""
        said = b''
        while select.select([self.reader], [], [], PATIENCE_S)[0]:
            part = os.read(self.reader, 64)
            if not part:
                break
            said += part
        os.close(self.reader)
        return bool(said)

    def end(self, sig=signal.SIGTERM):
        """Its exit status, negative for a signal."""
        self.process.send_signal(sig)
        return self.process.wait(PATIENCE_S)

    def check_ends(self):
        """Upon SIGTERM, as it should."""
        status = self.end()
        check(status == 0, f'rocid ends with {status}: {self.said()}')

    def said(self):
        """From any thread: with a place of its own in the file."""
        with open(self.log.name) as f:
            return f.read()

    # --- what it tells ---

    def connect(self):
        return connect(self)

    def ask(self, line):
        return ask(self, line)

    def totals(self):
        return self.ask('show totals')['totals']

    def fds(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))

    def idle_fds(self):
        """Descriptors when those of earlier commands and sessions are closed: it learns of their end later than
        we do."""
        return settled(self.fds)

    def maps(self):
        """Mappings of memfds: rings and registered memory."""
        with open(f'/proc/{self.pid}/maps') as f:
            return sum('/memfd:' in line for line in f)


def connect(daemon):
    """To the administration socket beside daemon.socket."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(daemon.socket + '.admin')  # may wait for its place in the queue
    s.settimeout(PATIENCE_S)
    return s


def ask_at(s, line):
    """Over a connection that stays."""
    s.sendall(line.encode() + b'\n')
    return json.loads(s.makefile('rb').readline(REPLY_MAX))


def ask(daemon, line):
    with connect(daemon) as s:
        return ask_at(s, line)


def wait_active(daemons):
    """Until the link between them is up at both ends."""
    wait_until(lambda: all(ask(d, 'show ports')['ports'][0]['state'] == 'ACTIVE' for d in daemons), 'no link')


def start(binary, folder, **how):
    daemon = Rocid(binary, folder, **how)
    if not daemon.wait_ready():
        raise SystemExit('rocid does not start: ' + daemon.said())
    return daemon


def check(ok, what):
    if not ok:
        raise SystemExit('FAIL: ' + what)


def wait_until(true, what):
    """what: the complaint, or a function that makes it when it is due."""
    until = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() >= until:
            check(False, what() if callable(what) else what)
        time.sleep(0.01)


def settled(look):
    """What look() sees once it has stayed the same for a second."""
    seen = []
    while len(seen) < 20 or any(s != seen[-1] for s in seen[-20:]):
        seen.append(look())
        time.sleep(0.05)
    return seen[-1]
