#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""top_test.py ROCID ROCICTL STEPS: `rocictl top` on a terminal: queue pairs, their rates and sparklines; q ends it and
gives the screen back. Without a terminal it says what to do."""
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from rocid import PATIENCE_S, RING_PAIR, check, eal_args, start
from steps import Steps

LEAVES_SCREEN = b'\x1b[?1049l'
BLOCK = '█'     # the highest of a sparkline


class Terminal:
    """A program on a terminal of its own, and what it has written there."""

    def __init__(self, words, term='xterm', size=(24, 120)):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM=term, LC_ALL='C.UTF-8', LINES=str(size[0]), COLUMNS=str(size[1]))
            os.execv(words[0], words)
        self.said = b''

    def read(self, seconds):
        """False at its end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.fd, 65536)
        except OSError:     # a terminal that nobody has open
            return False
        self.said += more
        return bool(more)

    def shows(self, *words):
        text = self.said.decode(errors='replace')
        return all(str(w) in text for w in words)

    def key(self, key):
        os.write(self.fd, key)

    def end(self):
        deadline = time.monotonic() + PATIENCE_S
        while self.read(1):
            check(time.monotonic() < deadline, f'it does not end: {self.said[-500:]}')
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_screen(rocictl, daemon, steps):
    s = Steps(steps, daemon)
    # through frames: what goes directly between two queue pairs has no PSNs
    daemon.ask(f'set qp {s.a} rate 900M')
    t = Terminal([rocictl, '--socket', daemon.socket, 'top', '0.2'])
    deadline = time.monotonic() + PATIENCE_S
    while not t.shows('queue pairs', 'TX PKT/S', s.a, s.b, '192.0.2.2', '900M', BLOCK):
        check(time.monotonic() < deadline, f'the screen lacks something: {t.said[-2000:]}')
        s.do('write', 10, 9000)
        check(t.read(0.01), f'it ends: {t.said[-500:]}')
    t.key(b'q')
    check(t.end() == 0 and LEAVES_SCREEN in t.said, f'{t.said[-500:]}')
    rows = daemon.ask('show traffic')['traffic']
    check({r['qpn'] for r in rows} == {s.a, s.b}, f'{rows}')
    check(next(r for r in rows if r['qpn'] == s.a)['limit_mbps'] in (899, 900), f'{rows}')
    s.end()


def test_narrow(rocictl, daemon, steps):
    """80 columns show the peers, and the newest rate in the sparkline: there is but one."""
    s = Steps(steps, daemon)
    daemon.ask(f'set qp {s.a} rate 900M')
    t = Terminal([rocictl, '--socket', daemon.socket, 'top', '3', '--count', '1'], size=(24, 80))
    while t.read(0.01):
        s.do('write', 10, 9000)
    check(t.end() == 0 and t.shows('CNP/S PEER', s.a, '900M', '192.0.2.2', BLOCK), f'{t.said}')
    check(not t.shows('PEER QPN'), f'{t.said}')
    s.end()


def test_ends(rocictl, daemon):
    """By itself, by a signal, and where it cannot begin."""
    t = Terminal([rocictl, '--socket', daemon.socket, 'top', '0.1', '--count', '2'])
    check(t.end() == 0 and t.shows('0 queue pairs'), f'{t.said[-500:]}')
    t = Terminal([rocictl, '--socket', daemon.socket, 'top', '1'])
    while not t.shows('0 queue pairs'):
        check(t.read(PATIENCE_S), f'it ends: {t.said}')
    t.key(b'\x03')
    check(t.end() == 0 and LEAVES_SCREEN in t.said, f'{t.said[-500:]}')
    t = Terminal([rocictl, '--socket', daemon.socket, 'top'], term='no-such-terminal')
    check(t.end() == 1 and t.shows('set TERM'), f'{t.said}')
    t = Terminal([rocictl, '--socket', daemon.socket + '-none', 'top'])
    check(t.end() == 1 and t.shows('rocictl: '), f'{t.said}')
    t = Terminal([rocictl, '--socket', daemon.socket, 'top', 'show', 'qps'])
    check(t.end() == 2 and t.shows('nothing else'), f'{t.said}')
    p = subprocess.run([rocictl, '--socket', daemon.socket, 'top'], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=PATIENCE_S)
    check(p.returncode == 2 and 'watch show traffic' in p.stderr, f'{p}')


def main(rocid, rocictl, steps):
    with tempfile.TemporaryDirectory() as folder:
        daemon = start(rocid, folder, eal=eal_args(128), args=RING_PAIR)
        test_ends(rocictl, daemon)
        test_screen(rocictl, daemon, steps)
        test_narrow(rocictl, daemon, steps)
        daemon.end()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
