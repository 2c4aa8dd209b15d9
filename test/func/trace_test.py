#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""trace_test.py ROCID ROCICTL STEPS: rocictl trace of known traffic over a link with known losses, event
for event; and what becomes of a trace whose reader or QP goes."""
import json
import signal
import subprocess
import sys
import tempfile
from rocid import PATIENCE_S, RING_PAIR, check, eal_args, start, wait_until
from steps import Steps

TIMEOUT = 20    # 4 s: what the link does not lose is not sent again
ACK_TIMEOUT = 4096 << TIMEOUT   # ns
# The times of a run vary; all else is compared exactly.
TIMES = ('ns', 'after', 'worker', 'wr_id')


class Trace:
    def __init__(self, program, daemon, qpn, *what, json=True):
        running = len(traces(daemon))
        self.out = tempfile.TemporaryFile('w+')  # takes all, also of a reader that nobody reads
        self.process = subprocess.Popen(
            [program, '--socket', daemon.socket, *(['--json'] if json else []), 'trace', 'qp',
             str(qpn), *map(str, what)], stdout=self.out, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(traces(daemon)) > running or self.process.poll() is not None,
                   'the trace does not begin')

    def end(self, sig=signal.SIGINT):
        """Exit status, lines, and what it complained of."""
        if sig:
            self.process.send_signal(sig)
        err = self.process.communicate(timeout=PATIENCE_S)[1]
        self.out.seek(0)
        return self.process.returncode, self.out.read().splitlines(), err

    def events(self, sig=signal.SIGINT):
        status, lines, err = self.end(sig)
        check(status == 0 and not err, f'trace ends with {status}: {err}')
        return [json.loads(line) for line in lines]


def traces(daemon):
    return daemon.ask('show traces')['traces']


def told(events, first):
    """Events in short, PSNs counted from the first."""
    lines = []
    for e in events:
        words = [e['event']]
        for name, value in e.items():
            if name in ('psn', 'last_psn', 'from'):
                words.append(f'{name}={value - first}')
            elif name not in TIMES + ('event',):
                words.append(f'{name}={value}')
        lines.append(' '.join(words))
    return lines


WRITE = [  # three packets, of which the link loses the last: the timer brings all of them again
    'doorbell',
    'fetch request=WRITE bytes=3000 psn=0 last_psn=2',
    'send opcode=RC_WRITE_FIRST psn=0 bytes=1024',
    'send opcode=RC_WRITE_MIDDLE psn=1 bytes=1024',
    'send opcode=RC_WRITE_LAST psn=2 bytes=952 ackreq=True',
    'timer_armed timer=ACK',
    'timer_fired timer=ACK',
    'go_back psn=0 from=3',
    'retries left=6',
    'window packets=64 before=128',
    'send opcode=RC_WRITE_FIRST psn=0 bytes=1024 again=True',
    'send opcode=RC_WRITE_MIDDLE psn=1 bytes=1024 again=True',
    'send opcode=RC_WRITE_LAST psn=2 bytes=952 ackreq=True again=True',
    'timer_armed timer=ACK',
    'receive opcode=RC_ACKNOWLEDGE psn=2 bytes=0 syndrome=ACK msn=1',
    'complete of=WRITE status=SUCCESS bytes=3000',
    'retries left=7',
    'timer_stopped timer=ACK',
]
SEND = [  # the middle is lost: a NAK
    'doorbell',
    'fetch request=SEND bytes=3000 psn=3 last_psn=5',
    'send opcode=RC_SEND_FIRST psn=3 bytes=1024',
    'send opcode=RC_SEND_MIDDLE psn=4 bytes=1024',
    'send opcode=RC_SEND_LAST psn=5 bytes=952 ackreq=True',
    'timer_armed timer=ACK',
    'receive opcode=RC_ACKNOWLEDGE psn=4 bytes=0 syndrome=NAK_PSN_SEQUENCE msn=1',
    'go_back psn=4 from=6',
    'retries left=6',
    'window packets=32 before=64',
    'timer_stopped timer=ACK',
    'send opcode=RC_SEND_MIDDLE psn=4 bytes=1024 again=True',
    'send opcode=RC_SEND_LAST psn=5 bytes=952 ackreq=True again=True',
    'timer_armed timer=ACK',
    'receive opcode=RC_ACKNOWLEDGE psn=5 bytes=0 syndrome=ACK msn=2',
    'complete of=SEND status=SUCCESS bytes=3000',
    'retries left=7',
    'timer_stopped timer=ACK',
]
PEER = [
    'receive opcode=RC_WRITE_FIRST psn=0 bytes=1024',
    'receive opcode=RC_WRITE_MIDDLE psn=1 bytes=1024',
    'receive opcode=RC_WRITE_FIRST psn=0 bytes=1024 again=True',
    'receive opcode=RC_WRITE_MIDDLE psn=1 bytes=1024 again=True',
    'receive opcode=RC_WRITE_LAST psn=2 bytes=952 ackreq=True',
    'send opcode=RC_ACKNOWLEDGE psn=2 bytes=0 syndrome=ACK msn=1',
    'receive opcode=RC_SEND_FIRST psn=3 bytes=1024',
    'take bytes=65536',
    'receive opcode=RC_SEND_LAST psn=5 bytes=952 ackreq=True',
    'send opcode=RC_ACKNOWLEDGE psn=4 bytes=0 syndrome=NAK_PSN_SEQUENCE msn=1',
    'receive opcode=RC_SEND_MIDDLE psn=4 bytes=1024',
    'receive opcode=RC_SEND_LAST psn=5 bytes=952 ackreq=True',
    'complete of=RECV status=SUCCESS bytes=3000',
    'send opcode=RC_ACKNOWLEDGE psn=5 bytes=0 syndrome=ACK msn=2',
    'destroyed',
]


def compare(events, first, expected):
    lines = told(events, first)
    for i, line in enumerate(lines):
        check(i < len(expected) and line == expected[i],
              f'event {i} is "{line}", not "{expected[i] if i < len(expected) else "the end"}"')
    check(len(lines) == len(expected), f'"{expected[len(lines):]}" is missing')


def test_losses(rocid, rocictl, steps, folder):
    """Port 2 loses its 3rd and its 8th packet."""
    daemon = start(rocid, folder, args=RING_PAIR + ['--impair', '1,mask=84'])
    s = Steps(steps, daemon, timeout=TIMEOUT)
    requester, responder = Trace(rocictl, daemon, s.a), Trace(rocictl, daemon, s.b)
    s.do('write', 1, 3000)
    s.do('send', 1, 3000)
    check([t['qpn'] for t in traces(daemon)] == [s.a, s.b], 'show traces')
    found = requester.events()
    compare(found, s.a, WRITE + SEND)
    check(found[0]['ns'] == 0 and all(a['ns'] <= b['ns'] for a, b in zip(found, found[1:])), 'times')
    check({e['after'] for e in found if e['event'] == 'timer_armed'} == {ACK_TIMEOUT}, 'time-out')
    s.end()
    compare(responder.events(None), s.a, PEER)
    check(not traces(daemon), 'a trace is left')
    daemon.check_ends()


def test_text_and_off(rocictl, daemon, s):
    t = Trace(rocictl, daemon, s.a, 'count', 3, json=False)
    s.do('write', 1, 3000)
    status, lines, _ = t.end(None)
    check(status == 0 and len(lines) == 3 and lines[0] == '           0 worker 0 doorbell' and
          lines[1].split()[1:5] == ['worker', '0', 'fetch', 'request'], f'{status} {lines}')
    t = Trace(rocictl, daemon, s.a)
    second = Trace(rocictl, daemon, s.a)
    check(second.end(None)[::2] == (1, f'rocictl: QP {s.a} is already traced: "trace qp {s.a} off" '
                                    'ends that\n'), 'a second trace')
    off = subprocess.run([rocictl, '--socket', daemon.socket, 'trace', 'qp', str(s.a), 'off'],
                         capture_output=True, text=True, timeout=PATIENCE_S)
    check(off.returncode == 0, off.stderr)
    check(t.events(None) == [], 'events of nothing')
    wait_until(lambda: not traces(daemon), 'a trace is left')
    check('is not traced' in daemon.ask(f'trace qp {s.a} off')['error'], 'off twice')
    for what, sentence in (('count', 'a number of events'), ('pings', '"pings" is unknown'),
                           ('json ' * 13, 'more than 12 words')):
        t = Trace(rocictl, daemon, s.a, what)
        check(sentence in t.end(None)[2], what)
    check('through a unix socket passed with it' in daemon.ask(f'trace qp {s.a}')['error'], 'without a socket')
    check(not traces(daemon), 'it runs')


def test_deaths(rocictl, daemon, s):
    """Readers that are killed or stand still; a program that is killed."""
    t = Trace(rocictl, daemon, s.a)
    s.do('write', 2, 3000)
    t.end(signal.SIGKILL)
    wait_until(lambda: not traces(daemon), 'a trace whose reader was killed')
    t = Trace(rocictl, daemon, s.a)
    t.process.send_signal(signal.SIGSTOP)
    s.do('write', 4000, 3000)  # more events than socket and ring hold
    t.process.send_signal(signal.SIGCONT)
    # reads what it finds from there on; what is lost is said in its place
    wait_until(lambda: s.do('write', 1, 10) or
               traces(daemon)[0]['events'] > 8192, 'the reader does not go on')
    events = t.events()
    lost = [e['events'] for e in events if e['event'] == 'lost']
    check(lost and all(lost), 'nothing is lost')
    check(len(events) + sum(lost) > 4000 * 8, f'{len(events)} events and {lost}')
    wait_until(lambda: not traces(daemon), 'a trace is left')
    t = Trace(rocictl, daemon, s.b)
    s.process.kill()
    s.process.wait(PATIENCE_S)
    check([e['event'] for e in t.events(None)][-1:] == ['destroyed'], 'the end of its program')
    wait_until(lambda: not traces(daemon), 'a trace is left')


def test_move(rocid, rocictl, steps, folder):
    """It goes on where the QP goes."""
    daemon = start(rocid, folder, args=RING_PAIR + ['--workers', '2'], name='two',
                   eal=eal_args(128, workers=2))
    s = Steps(steps, daemon)
    t = Trace(rocictl, daemon, s.a)
    home = next(q['worker'] for q in daemon.ask('show qps')['qps'] if q['qpn'] == s.a)
    for worker in (1 - home, home):
        s.do('write', 3, 2000)
        check('done' in daemon.ask(f'migrate qp {s.a} to {worker}'), 'no move')
    s.do('write', 3, 2000)
    events = t.events()
    check([e['to_worker'] for e in events if e['event'] == 'move'] == [1 - home, home], 'moves')
    worker = home
    for e in events:
        check(e['worker'] == worker, f'worker {worker}: {e}')
        worker = e.get('to_worker', worker)
    check(sum(e['event'] == 'complete' for e in events) == 9, 'completions')
    s.end()
    daemon.check_ends()


def main():
    rocid, rocictl, steps = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        test_losses(rocid, rocictl, steps, folder)
        test_move(rocid, rocictl, steps, folder)
        daemon = start(rocid, folder, name='long')
        s = Steps(steps, daemon)
        test_text_and_off(rocictl, daemon, s)
        test_deaths(rocictl, daemon, s)
        daemon.check_ends()


if __name__ == '__main__':
    main()
