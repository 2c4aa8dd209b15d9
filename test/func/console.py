#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""console.py ROCID ROCICTL HOLDER: the prompt of `rocid --interactive` and of rocictl, on real
terminals, from files and pipes; what it sets, resets and watches."""
import atexit
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
from rocid import EAL, PATIENCE_S, RING_PAIR, check, start, wait_until
from admin import hold, release, rocictl
from netlab import Namespace


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *args):
        self.master, self.slave = os.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.said = b''
        self.process = subprocess.Popen(args, stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, start_new_session=True,
                                        preexec_fn=self.own_terminal)
        atexit.register(self.reap)

    def own_terminal(self):
        """So that Ctrl-C is a signal, where the terminal makes it one."""
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def reap(self):
        """A test that fails leaves nothing running."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def read(self):
        self.said = (self.said + os.read(self.master, 65536)).replace(b'\x1b[0K', b'')

    def expect(self, what):
        """Reads until `what`, a regular expression, has come; returns what came until then."""
        until = time.monotonic() + PATIENCE_S
        while not (m := re.search(what, self.said, re.S)):
            check(time.monotonic() < until, f'no {what} in {self.said[-2000:]}')
            if select.select([self.master], [], [], 0.1)[0]:
                self.read()
            else:
                check(self.process.poll() is None or select.select([self.master], [], [], 0)[0],
                      f'it ended without {what}: {self.said[-2000:]}')
        end = m.end()
        got, self.said = self.said[:end], self.said[end:]
        return got.decode()

    def type(self, keys, what=rb'rocid> $'):
        os.write(self.master, keys.encode())
        return self.expect(what)

    def end(self, keys=None):
        """Its exit status; the terminal is what it was."""
        if keys:
            os.write(self.master, keys.encode())
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            check(time.monotonic() < until, 'it does not end')
            if select.select([self.master], [], [], 0.05)[0]:
                self.read()
        check(termios.tcgetattr(self.slave) == self.before, 'the terminal is left otherwise')
        while select.select([self.master], [], [], 0)[0]:
            self.read()
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode


def interactive(rocid, folder, *args):
    return [rocid, *EAL, '--', '--socket', folder + '/i.sock', '--idle', 'yield', '--interactive',
            *RING_PAIR, *args]


def test_prompt(program, holder, t, socket):
    """What both prompts can do. The daemon behind it has a ring pair."""
    shown = t.type('show ports\r')
    check('PATH_MTU' in shown and shown.count('ACTIVE') == 2, shown)
    # TAB: what is certain is inserted, else what there is to choose from is shown.
    t.type('sh\t', rb'show $')
    t.type('q\t', rb'qp$')
    check(re.search(r'qp +.*\r\n.*qps|qp +qps', t.type('\t', rb'show qp$')), 'no choice')
    t.type('s\r')
    t.type('set li\t', rb'limit $')
    t.type('q\t', rb'q$')
    check('queues_mb' in t.type('\t', rb'limit q$'), 'LIMIT is not completed')
    check('no ' in t.type('\x01\x0bshow qps\r'), 'Ctrl-A, Ctrl-K')
    # numbers of objects
    p = subprocess.Popen([holder, socket, '1', '1', '1', '1'], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    check(p.stdout.readline() == b'ready\n', 'holder: not ready')
    shown = t.type('show qp \t\r')
    check(re.search(r'state +RESET', shown) and 'requester:' in shown, f'show qp TAB: {shown}')
    check(re.search(r'access +\S', t.type('show mr \t\r')), 'show mr TAB')
    check('lanes:' in t.type('show cq \t\t\r'), 'show cq TAB TAB')
    release(p)
    t.type('set window ?', rb'PACKETS: .*set window $')
    check('1 to 65536' in t.type('0\r'), 'a window of 0')
    check('done' in t.type('set window 64\r'), 'set window')
    # help, history, errors
    check('show qps ...' in t.type('help show q\r'), 'help COMMAND')
    check('watch [SECONDS]' in t.type('help\r'), "help does not list the console's own")
    check('unknown command "bogus"' in t.type('bogus\r'), 'a wrong command')
    check('unknown command "bogus"' in t.type('\x1b[A\r'), 'the last line does not come back')
    check('unknown command' not in t.type('   \r') + t.type('# a comment\r'), 'blanks, comments')
    # watch, until a key
    t.type('watch 0.1 show counters\r', rb'every 0.1 s: show counters')
    t.expect(rb'rx_packets.*every 0.1 s')
    t.type(' ')
    check('needs a command' in t.type('watch 3\r'), 'watch nothing')
    check(t.type('watch 0.1 --count 2 version\r').count('every') == 2, 'watch --count')


def test_rocid_prompt(rocid, program, holder, folder):
    args = interactive(rocid, folder)
    t = Terminal(*args)
    check('rocid: ready' in t.expect(rb'rocid> $'), 'it is not ready')
    test_prompt(program, holder, t, folder + '/i.sock')
    check(t.end('quit\r') == 0, f'quit: {t.said}')
    for keys in '\x04', '\x03', 'exit\r', 'half a line\x03':
        t = Terminal(*args)
        t.expect(rb'rocid> $')
        check(t.end(keys) == 0, f'{keys!r} ends it with {t.process.returncode}: {t.said}')
    t = Terminal(*args, '--stats-on-exit')
    t.expect(rb'rocid> $')
    t.type('show po', rb'show po$')
    t.process.send_signal(signal.SIGTERM)
    check(t.end() == 0, 'SIGTERM')
    check(not os.path.exists(folder + '/i.sock'), 'the socket is left')


def test_lines_above(rocid):
    """What rocid says while somebody types stands above the prompt, which is drawn again."""
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        n = Namespace()
        n.run('ip link add con0 type veth peer name con1; ip link set con0 up; ip link set con1 up')
        t = Terminal(*n.command([rocid, *EAL, '--', '--socket', folder + '/i.sock', '--idle',
                                 'yield', '-i', '--share', 'con0']))
        t.expect(rb'rocid> $')
        t.type('show to', rb'show to$')
        n.run('ip link del con0')
        t.expect(rb'\r\x1b\[K[^\r\n]*con0[^\r\n]*disappeared[^\r\n]*\r\n.*rocid> show to$')
        check('sessions' in t.type('tals\r'), 'the line goes on')
        check(t.end('quit\r') == 0, 'quit')


def test_script(rocid, folder):
    r = subprocess.run(interactive(rocid, folder), input='show window\nshow totals\nshow ports',
                       capture_output=True, text=True, timeout=PATIENCE_S)
    check(r.returncode == 0 and 'rocid> show totals' in r.stdout and r.stdout.count('ACTIVE') == 2
          and 'error: unknown command' in r.stdout, f'commands from a pipe: {r}')
    path = folder + '/commands'
    with open(path, 'w') as f:
        f.write('# once\nset window 99\nshow limits\nquit\nshow ports\n')
    args = interactive(rocid, folder, '--cmdline-file', path)
    r = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=PATIENCE_S)
    check(r.returncode == 0 and 'done: set window 99' in r.stdout and 'memory_mb' in r.stdout and
          'ACTIVE' not in r.stdout, f'--cmdline-file: {r}')
    daemon = start(rocid, folder, args=[*RING_PAIR, '--cmdline-file', folder + '/none'])
    wait_until(lambda: 'No such file' in daemon.said(), 'a file that is not there')
    daemon.ask('version')  # and serves
    daemon.check_ends()
    os.mkfifo(folder + '/pipe')  # into which nobody writes
    daemon = start(rocid, folder, args=[*RING_PAIR, '--cmdline-file', folder + '/pipe'])
    daemon.check_ends()


def test_rocictl_prompt(rocid, program, holder, folder):
    daemon = start(rocid, folder)
    t = Terminal(program, '--socket', daemon.socket)
    t.expect(rb'rocid> $')
    test_prompt(program, holder, t, daemon.socket)
    t.type('half a line\x03', rb'line\r+\nrocid> $')
    check(t.end('quit\r') == 0, 'quit')
    for keys in '\x04', 'exit\r':
        t = Terminal(program, '-i', '--socket', daemon.socket)
        t.expect(rb'rocid> $')
        check(t.end(keys) == 0, f'{keys!r}')
    t = Terminal(program, '-i', '--socket', daemon.socket)
    t.expect(rb'rocid> $')
    t.process.send_signal(signal.SIGTERM)
    check(t.end() == 0, 'SIGTERM')
    t = Terminal(program, '--socket', daemon.socket, 'watch', '0.1', 'show', 'totals')
    t.expect(rb'every 0.1 s')
    check(t.end('\x03') == 0, 'Ctrl-C ends watch')

    def script(text, *args):
        return subprocess.run([program, '--socket', daemon.socket, '-i', *args], input=text,
                              capture_output=True, text=True, timeout=PATIENCE_S)
    r = script('show totals\nversion')
    check(r.returncode == 0 and 'rocid> version\nversion ' in r.stdout, f'{r}')
    r = script('bogus\nversion\n')
    check(r.returncode == 1 and 'error: ' in r.stdout and 'abi' in r.stdout, f'{r}')
    r = script('show totals\nquit\nversion\n', '--json')
    check([list(json.loads(line)) for line in r.stdout.splitlines()] == [['totals']], f'{r}')
    r = script('x' * 300 + '\nversion\n')
    check(r.returncode == 1 and 'too long' in r.stdout and 'abi' in r.stdout, f'{r}')
    r = rocictl(program, daemon, '-i', 'version')
    check(r.returncode == 2 and 'prompt' in r.stderr, f'{r}')
    return daemon


def test_readme(program, daemon):
    """What README shows of the prompt is what comes: the same commands, the same columns."""
    with open(os.path.join(os.path.dirname(__file__), '../../README.md')) as f:
        shown = re.search(r'## A look inside.*?```\n(.*?)```', f.read(), re.S).group(1)
    typed = ''.join(line[7:] + '\n' for line in shown.splitlines() if line.startswith('rocid> '))
    r = subprocess.run([program, '--socket', daemon.socket, '-i'], input=typed,
                       capture_output=True, text=True, timeout=PATIENCE_S)

    def words(text):
        return re.sub(r'[0-9a-f]{2}(:[0-9a-f]{2}){5}', 'MAC', text).split()
    check(r.returncode == 0 and words(r.stdout) == words(shown), f'README shows otherwise: {r}')
    daemon.ask('set port 1 impair none')


def test_watch(program, holder, daemon):
    r = rocictl(program, daemon, '--json', 'watch', '0.1', '--count', '3', 'show', 'counters')
    rows = [json.loads(line) for line in r.stdout.splitlines()]
    check(r.returncode == 0 and len(rows) == 3 and all('rx_packets' in d['counters'] and
          d['per_second']['counters'] == {} for d in rows), f'{r}')
    p = subprocess.Popen([program, '--socket', daemon.socket, 'watch', '0.1', 'show', 'totals'],
                         stdout=subprocess.PIPE, text=True)
    for line in p.stdout:  # it has seen that there are none
        if line.startswith('qps'):
            break
    held = hold(holder, daemon, 1, 1, 5, 1)
    grew = False
    for line in p.stdout:
        grew |= line.startswith('qps') and '+' in line
        if line.startswith('qps') and line.split()[1] == '5':
            break
    check(grew, 'no rate of QPs that were made')
    p.send_signal(signal.SIGTERM)
    check(p.wait(PATIENCE_S) == 0, 'watch ends otherwise')
    release(held)
    for words, status, what in (('watch show bogus', 1, 'unknown command'), ('watch', 2, 'needs'),
                                ('watch 0 show totals', 2, 'seconds'),
                                ('watch --count x show totals', 2, '--count')):
        r = rocictl(program, daemon, *words.split())
        check(r.returncode == status and what in r.stderr, f'{words}: {r}')


def test_filters(holder, daemon):
    one, two = hold(holder, daemon, 1, 1, 3, 1), hold(holder, daemon, 1, 1, 2, 2)
    ids = [s['session'] for s in daemon.ask('show sessions')['sessions']]
    check(len(daemon.ask(f'show qps session {ids[0]}')['qps']) == 3, 'by session')
    check(len(daemon.ask(f'show qps session {ids[1]:#x}  state reset')['qps']) == 2, 'by two')
    check(not daemon.ask('show qps state err')['qps'], 'by state')
    check('have no colour' in daemon.ask('show qps colour 3')['error'], 'no such column')
    check('needs a value' in daemon.ask('show qps state')['error'], 'no value')
    shown = daemon.ask(f'show session {ids[1]}')
    check([len(shown[k]) for k in ('session', 'pds', 'cqs', 'qps', 'mrs')] == [1, 1, 1, 2, 2],
          f'show session: {shown}')

    def offers(line):
        return {c['word'] for c in daemon.ask('complete ' + line)['completions']}
    qpns = {str(q['qpn']) for q in daemon.ask('show qps')['qps']}
    check(offers('show qp ') == offers('migrate qp ') == qpns, 'QPNs')
    check(offers('show session ') == {str(i) for i in ids}, 'sessions')
    check({'state', 'session'} <= offers('show qps '), 'columns')
    check(offers('show qps session 256 st') == {'state'}, 'the second column')
    check(offers('show qps state ') == {'RESET'}, 'values')
    check(offers('show cq ') == {str(i) for i in ids} and len(offers(f'show cq {ids[0]} ')) == 1,
          'CQs')
    check(not offers('bogus ') and not offers('show qps bogus ') - {'-'} and
          not offers('version '), 'there is nothing to offer')
    check(offers('set idle ') == {'poll', 'yield', 'adaptive'}, 'choices')
    check({'off', 'notify', 'dcqcn'} <= offers('set port 1 cc ') and offers('set port 1 cc h') == {'hpcc'}, 'algorithms')
    qpn = daemon.ask('show qps')['qps'][0]['qpn']
    check({'port', 'off', 'dcqcn'} <= offers(f'set qp {qpn} cc ') and 'notify' not in offers(f'set qp {qpn} cc '), 'of a QP')
    check('show' in offers('') and offers('sh') == {'show'}, 'first words')
    check(offers('x ' * 100) == set(), 'many words')
    release(one)
    release(two)


def test_sets(holder, daemon):
    def refused(line, what):
        check(what in daemon.ask(line).get('error', ''), f'{line}: {daemon.ask(line)}')

    def done(line):
        check(daemon.ask(line) == {'done': line}, f'{line}: {daemon.ask(line)}')
    done('set window 17')
    p = hold(holder, daemon, 1, 1, 2, 1)
    first, second = (q['qpn'] for q in daemon.ask('show qps')['qps'])
    window = lambda qpn: daemon.ask(f'show qp {qpn}')['requester']['window_max']
    done(f'set qp {first} window 33')
    check((window(first), window(second)) == (33, 17), 'windows')
    refused('set window 0', '1 to 65536')
    refused(f'set qp {first ^ 1 << 18} window 4', 'does not exist')
    done('set idle poll')
    done('set idle yield')
    refused('set idle adaptive', '--idle adaptive')
    refused('set idle never', 'is not one of')
    refused('set migrate on', 'one worker')
    limits = daemon.ask('show limits')['limits']
    done('set limit mrs 1')
    done('set limit memory_mb 1')
    check(daemon.ask('show limits')['limits'] == {**limits, 'mrs': 1, 'memory_mb': 1}, 'limits')
    done(f'set limit memory_mb {limits["memory_mb"]}')
    done(f'set limit mrs {limits["mrs"]}')
    check(daemon.ask('show limits')['limits'] == limits, 'limits do not come back')
    refused('set limit qps 0', 'at least 1')
    refused('set limit qps none', 'at most')
    refused('set limit colour 3', 'is not one of')
    done('set port 1 impair loss=0.25,delay=10us')
    link = daemon.ask('show port 1')['link']
    check(link['impair'] == 'loss=0.25,delay=10000ns' and 'lost' in link, f'{link}')
    check(daemon.ask('show port 2')['link']['impair'] == 'none', 'the other port')
    done('set port 1 impair none')
    refused('set port 1 impair loss=2', 'probability')
    refused('set port 1 impair spread=hash', 'cannot be changed')
    refused('set port 3 impair none', 'does not exist')
    for state, shown in (('down', 'DISABLED'), ('up', 'ACTIVE')):
        done(f'set port 2 {state}')
        check([p['state'] for p in daemon.ask('show ports')['ports']] == ['ACTIVE', shown], shown)
    refused('set port 2 sideways', 'down, up')
    refused('show errros', '"show errros": "help show" lists the commands')
    refused('show', '"show": "help show" lists the commands')
    refused('shwo ports of', '"shwo ports ...": "help" lists the commands')
    refused('set port 3 down', 'does not exist')
    refused('set port 0 impair none', 'does not exist')
    # A QP in RESET has nowhere to go; rociperf.py kills one that is alive.
    refused(f'kill qp {first}', 'RESET')
    session = daemon.ask('show sessions')['sessions'][0]['session']
    done(f'kill session {session}')
    wait_until(lambda: not any(daemon.totals().values()), 'a killed session stays')
    p.kill()
    p.wait()
    refused(f'kill session {session}', 'does not exist')


def test_reset(rocid, rociperf, folder):
    """`reset` is the administrator's view: what rocid itself counts goes on."""
    daemon = start(rocid, folder, args=[*RING_PAIR, '--stats-on-exit=json'], name='reset')

    def ping():
        subprocess.run([rociperf, 'write', '--both', '--socket', daemon.socket, '-s', '1024', '-n', '300'],
                       check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
    counted = lambda: daemon.ask('show counters')['counters']['rx_packets']
    ping()
    before = counted()
    check(before, 'nothing is counted')
    daemon.ask('reset counters')
    check(counted() == 0, 'reset counters')
    ping()
    daemon.ask('set port 2 impair corrupt=0.05')
    ping()
    after = counted()
    check(after, 'nothing is counted after a reset')
    check(sum(d['packets'] for d in daemon.ask('show drops')['drops']), 'nothing was dropped')
    check('done' in daemon.ask('reset drops'), 'reset drops')
    check(daemon.ask('show drops')['drops'] == [], 'drops are left')
    check(counted() == after, 'reset drops resets counters')
    daemon.check_ends()
    said = daemon.said()
    stats, _ = json.JSONDecoder().raw_decode(said[said.index('{"transport"'):])
    total = stats['transport']['rx_packets']
    check(total == before + after, f'rocid counts {total} in all, not {before} + {after}')


def main():
    rocid, program, holder, rociperf = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        test_rocid_prompt(rocid, program, holder, folder)
        if os.geteuid() == 0:
            test_lines_above(rocid)
        test_script(rocid, folder)
        daemon = test_rocictl_prompt(rocid, program, holder, folder)
        test_readme(program, daemon)
        test_watch(program, holder, daemon)
        test_filters(holder, daemon)
        test_sets(holder, daemon)
        daemon.check_ends()
        test_reset(rocid, rociperf, folder)


if __name__ == '__main__':
    main()
