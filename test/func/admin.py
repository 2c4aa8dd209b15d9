#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""admin.py ROCID ROCICTL HOLDER: the administration socket of a real rocid, with friendly and
hostile visitors, and rocictl."""
import json
import os
import random
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from rocid import PATIENCE_S, RING_PAIR, check, eal_args, start, wait_until

QPS = 12000  # what one session may have, nearly


def hold(holder, daemon, *counts):
    p = subprocess.Popen([holder, daemon.socket, *map(str, counts)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    check(p.stdout.readline() == b'ready\n', 'holder: not ready')
    return p


def release(p):
    p.stdin.close()
    check(p.wait(PATIENCE_S) == 0, 'holder fails')


def replies(s, count):
    f = s.makefile('rb')
    return [json.loads(f.readline()) for _ in range(count)]


def rocictl(program, daemon, *words):
    return subprocess.run([program, '--socket', daemon.socket, *words], capture_output=True,
                          text=True, timeout=PATIENCE_S)


def test_commands(program, daemon):
    rows = daemon.ask('help')['commands']
    check(len(rows) > 10, 'help lists few commands')
    for row in rows:
        command = row['command'].removesuffix(' ...')
        if command != command.lower():
            continue  # it wants arguments
        shown = daemon.ask(command)
        check('error' not in shown, f'{command}: {shown}')
        r = rocictl(program, daemon, *command.split())
        check(r.returncode == 0 and r.stdout and not r.stderr, f'rocictl {command}: {r}')
    check(daemon.ask('version')['rocid']['pid'] == daemon.pid, 'version: another process')
    check('rx_packets' in daemon.ask('show counters')['counters'], 'no rx_packets')
    check(len(daemon.ask('show gids')['gids']) == 2, 'show gids')
    check([p['state'] for p in daemon.ask('show ports')['ports']] == ['ACTIVE'] * 2, 'show ports')


def test_objects(holder, program, daemon):
    p = hold(holder, daemon, 2, 3, 4, 5, 'a b\x1b[2J')
    session, = daemon.ask('show sessions')['sessions']
    check(session['pid'] == p.pid and session['uid'] == os.getuid() and
          session['gid'] == os.getgid(), f'not who it is: {session}')
    check(session['program'] == 'a b?[2J', f'called {session["program"]}')
    check([session[k] for k in ('pds', 'cqs', 'qps', 'mrs')] == [2, 3, 4, 5], f'{session}')
    check(session['mr_bytes'] == 5 * 4096, f'{session}')
    check(session['queue_bytes'] > 4 * 4096, f'{session}')
    for what, count in (('pds', 2), ('cqs', 3), ('qps', 4), ('mrs', 5)):
        rows = daemon.ask(f'show {what}')[what]
        check(len(rows) == count and all(r['session'] == session['session'] for r in rows),
              f'show {what}: {rows}')
    check({q['state'] for q in daemon.ask('show qps')['qps']} == {'RESET'}, 'QP states')
    check(daemon.totals()['qpns'] == 4 and daemon.totals()['mr_keys'] == 5, 'totals')
    lines = rocictl(program, daemon, 'show', 'qps').stdout.splitlines()
    check(len(lines) == 5 and lines[0].split()[0] == 'QPN', f'{lines}')
    check(len(json.loads(rocictl(program, daemon, '--json', 'show', 'qps').stdout)['qps']) == 4,
          'rocictl --json')
    release(p)


def test_rocictl_status(program, daemon, folder):
    def fails(status, word, *args):
        r = subprocess.run([program, *args], capture_output=True, text=True, timeout=PATIENCE_S)
        check(r.returncode == status and word in r.stderr and r.stderr.count('\n') == 1 and
              not r.stdout, f'rocictl {args}: {r}')
    fails(1, 'help', '--socket', daemon.socket, 'show', 'nonsense')
    fails(1, 'start rocid', '--socket', folder + '/none', 'version')
    fails(1, 'too long', '--socket', 'x' * 200, 'version')
    fails(2, '--bogus', '--bogus', 'version')
    fails(2, 'missing')
    fails(2, 'too long', 'x' * 300)
    fails(2, 'several lines', 'version\nversion')


def test_hostile_lines(daemon):
    rnd = random.Random(20261)
    with daemon.connect() as s:
        for _ in range(300):
            line = bytes(rnd.choices([c for c in range(256) if c != 10], k=rnd.randrange(250)))
            s.sendall(line + b'\n')
            check('error' in replies(s, 1)[0], f'{line} is a command')
        s.sendall(b'version\0 show qps\n')
        check('error' in replies(s, 1)[0], 'a line with a NUL is a command')
        s.sendall(b'show\t totals \r\n')
        check('totals' in replies(s, 1)[0], 'blanks count')
        s.sendall(b'x' * (1 << 20) + b'\nversion\n')
        first, second = replies(s, 2)
        check('too long' in first['error'] and 'rocid' in second, f'{first} {second}')
        s.sendall(b'y' * 255 + b'\n' + b'y' * 256 + b'\n')
        first, second = replies(s, 2)
        check('unknown command' in first['error'] and 'too long' in second['error'], 'line limit')
    with daemon.connect() as s:  # a last line without its end
        s.sendall(b'show totals')
        s.shutdown(socket.SHUT_WR)
        check('totals' in replies(s, 1)[0] and not s.recv(1), 'no answer to the last line')
    for n in range(50):  # gone in the middle of it
        with daemon.connect() as s:
            s.sendall(b'show all\n' * (n % 3) + b'show'[:n % 5])


def test_many_lines(daemon):
    with daemon.connect() as s:
        sender = threading.Thread(target=s.sendall, args=(b'show totals\n' * 2000,))
        sender.start()
        check(all('totals' in r for r in replies(s, 2000)), 'a reply is missing')
        sender.join()


def test_churn(daemon):
    """Who comes and goes is not faster than its end."""
    hello = struct.pack('=IIiI IHH32s', 1, 0, 0, 0, 0x49434F52, 1, 1, b'churn')
    for n in range(1500):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(PATIENCE_S)
            s.connect(daemon.socket)
            s.sendall(hello)
            status, = struct.unpack_from('=i', s.recv(1024), 8)
            check(not status, f'session {n} is refused: {status}')


def test_many_connections(daemon):
    fds = daemon.idle_fds()
    visitors = [daemon.connect() for _ in range(100)]
    daemon.ask('version')
    served = 0
    for s in visitors:
        try:
            s.sendall(b'version\n')
            served += bool(s.recv(1))
        except (BrokenPipeError, ConnectionResetError):
            pass
    check(0 < served <= 16, f'{served} of 100 are served')
    # One that is refused has a descriptor until it is closed.
    wait_until(lambda: daemon.fds() <= fds + 17, 'more descriptors than places')
    for s in visitors:
        s.close()
    daemon.ask('version')


def lingering():
    """A socket whose last close takes an hour, and the other end, whose close ends it."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        slow = socket.create_connection(listener.getsockname())
        other = listener.accept()[0]
    slow.setblocking(False)
    try:
        while True:
            slow.send(bytes(1 << 20))
    except BlockingIOError:
        pass
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
    return slow, other


def test_passed_descriptors(daemon):
    """Nobody waits for the close of what a visitor passes along, whether it is read or not."""
    for first in b'', b'version\n':  # with its reply refused, what follows stays unread
        slow, other = lingering()
        holder = subprocess.Popen(['sleep', '3600'], pass_fds=[slow.fileno()])
        with daemon.connect() as s:
            daemon.process.send_signal(signal.SIGSTOP)
            if first:
                s.sendall(first)
            socket.send_fds(s, [b'version\n'], [slow.fileno()] * 100)
        slow.close()
        holder.kill()  # a process that ends does not linger: rocid's is the last one now
        holder.wait()
        daemon.process.send_signal(signal.SIGCONT)
        for _ in range(3):
            check('rocid' in daemon.ask('version'), 'no answer')
        other.close()


def test_slow_reader(holder, daemon):
    p = hold(holder, daemon, 1, 1, QPS, 0)
    with daemon.connect() as slow, daemon.connect() as gone:
        gone.sendall(b'show all\n')
        slow.sendall(b'show all\nversion\n')  # far more than a socket holds
        for _ in range(5):
            check(daemon.totals()['qps'] == QPS, 'others are not served')
        other = hold(holder, daemon, 1, 1, 3, 1)
        first, second = replies(slow, 2)
        check(len({q['qpn'] for q in first['qps']}) in (QPS, QPS + 3), f'{len(first["qps"])} QPs')
        check('rocid' in second, 'no second reply')
    release(other)
    # The QPs go away while they are being listed.
    with daemon.connect() as s:
        s.sendall(b'show qps\n')
        s.recv(1000)
        p.kill()
        p.wait()
        wait_until(lambda: not daemon.totals()['qps'], 'the QPs of a killed program stay')
        rest = s.makefile('rb').readline()
        check(rest.endswith(b']}\n') and rest.count(b'"qpn"') < QPS, 'no end of the list')
    wait_until(lambda: not any(daemon.totals().values()), 'something is left')


def test_migrate(holder, program, daemon):
    def refused(words, word):
        r = rocictl(program, daemon, *words.split())
        check(r.returncode == 1 and word in r.stderr, f'rocictl {words}: {r}')
    p = hold(holder, daemon, 1, 1, 2, 0)
    for qp in daemon.ask('show qps')['qps']:
        for worker in 1, 1, 0, 1:
            check('done' in daemon.ask(f'migrate qp {qp["qpn"]} to {worker}'), 'migrate')
    qps = daemon.ask('show qps')['qps']
    check([qp['worker'] for qp in qps] == [1, 1], f'{qps}')
    check([w['qps'] for w in daemon.ask('show workers')['workers']] == [0, 2], 'show workers')
    qpn = qps[0]['qpn']
    check(rocictl(program, daemon, *f'migrate qp {qpn:#x} to 0'.split()).returncode == 0, 'hex')
    refused(f'migrate qp {qpn} to 2', 'does not exist')
    refused(f'migrate qp {qpn} to -1', 'does not exist')
    refused(f'migrate qp {qpn ^ 1 << 18} to 0', 'does not exist')
    refused('migrate qp 16777216 to 0', 'does not exist')
    refused('migrate qp x to 0', 'does not exist')
    refused(f'migrate qp {qpn} to', 'unknown command')
    release(p)
    refused(f'migrate qp {qpn} to 0', 'does not exist')


def main():
    rocid, program, holder = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = start(rocid, folder)
        try:
            mode = os.stat(daemon.socket + '.admin').st_mode
            check(stat.S_IMODE(mode) == 0o600, f'mode {mode:o}')
            daemon.ask('show ports')        # rocid's own QP1 exists once it answers
            base = daemon.idle_fds(), daemon.maps()
            test_commands(program, daemon)
            test_objects(holder, program, daemon)
            test_rocictl_status(program, daemon, folder)
            test_hostile_lines(daemon)
            test_many_lines(daemon)
            test_many_connections(daemon)
            test_churn(daemon)
            test_passed_descriptors(daemon)
            test_slow_reader(holder, daemon)
            wait_until(lambda: daemon.fds() <= base[0] and daemon.maps() <= base[1],
                       'descriptors or mappings are left')
        finally:
            ended = daemon.end()
        check(ended == 0, f'rocid ended with {ended}: {daemon.said()}')
        check(not os.path.exists(daemon.socket + '.admin'), 'the socket file is left')
        pair = start(rocid, folder, args=[*RING_PAIR, '--workers', '2', '--migrate', 'off'],
                     eal=eal_args(160, workers=2), name='pair')
        test_migrate(holder, program, pair)
        pair.check_ends()
        wide = start(rocid, folder, args=['--ring-pair', '--admin-mode', '0660'], name='wide')
        mode = os.stat(wide.socket + '.admin').st_mode
        check(wide.end() == 0 and stat.S_IMODE(mode) == 0o660, f'--admin-mode: {mode:o}')


if __name__ == '__main__':
    main()
