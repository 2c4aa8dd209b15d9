#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""restart.py ROCID ORPHAN: rocid dies, and another one takes its place.

Programs in each state see the end, and go on with the new one. Of rocids that start together on
one path exactly one serves, whatever the one before has left behind."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from rocid import PATIENCE_S, RING_PAIR, Rocid, check, start, wait_until

STATES = ['poll', 'async', 'event', 'command', 'post']


def expect(p, line):
    said = p.stdout.readline()
    check(said == line + b'\n', f'{p.args[2]}: {said} instead of {line}')


def test_programs(rocid, orphan, folder, sig):
    daemon = start(rocid, folder)
    programs = [subprocess.Popen([orphan, daemon.socket, state], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE) for state in STATES * 2]
    for p in programs:
        expect(p, b'ready')
    check(daemon.end(sig) in (0, -signal.SIGKILL), daemon.said())
    for p in programs:
        expect(p, b'bereft')
    daemon = start(rocid, folder)
    for p in programs:
        p.stdin.write(b'\n')
        p.stdin.close()
    for p in programs:
        check(p.wait(PATIENCE_S) == 0, f'{p.args[2]}: no new session')
    wait_until(lambda: not any(daemon.totals().values()), lambda: f'left: {daemon.totals()}')
    daemon.check_ends()
    check(set(os.listdir(folder)) == {'rocid.log'}, f'left: {os.listdir(folder)}')


def test_together(rocid, folder, rounds):
    """Each round meets what a killed rocid has left."""
    for _ in range(rounds):
        daemons = [Rocid(rocid, folder) for _ in range(4)]
        served = [d for d in daemons if d.wait_ready()]
        check(len(served) == 1, f'{len(served)} rocids serve one path: {daemons[0].said()}')
        for d in daemons:
            if d not in served:
                check(d.process.wait(PATIENCE_S) == 1, 'another exit status than 1')
        check(daemons[0].said().count('another rocid serves') == 3, daemons[0].said())
        check(served[0].ask('version')['rocid']['pid'] == served[0].pid, 'not the one that serves')
        served[0].end(signal.SIGKILL)
        daemons[0].log.truncate(0)


def test_bound_only(rocid, folder):
    """It died between bind and listen."""
    path = os.path.join(folder, 'rocid.sock')
    for name, kind in ((path, socket.SOCK_SEQPACKET), (path + '.admin', socket.SOCK_STREAM)):
        if os.path.exists(name):
            os.unlink(name)
        with socket.socket(socket.AF_UNIX, kind) as s:
            s.bind(name)
    daemon = start(rocid, folder)
    daemon.ask('version')
    daemon.check_ends()


def start_time(rocid, folder):
    """Seconds until it serves."""
    began = time.monotonic()
    daemon = start(rocid, folder)
    took = time.monotonic() - began
    daemon.check_ends()
    daemon.log.truncate(0)
    return took


def test_early_signals(rocid, folder):
    """At any moment of the start, SIGTERM ends it cleanly."""
    endings = []
    step = start_time(rocid, folder) / 12
    while len(endings) < 16 or (0 not in endings and len(endings) < 200):  # it may start more slowly now
        n = len(endings)
        daemon = Rocid(rocid, folder)
        time.sleep(n * step)
        daemon.process.terminate()
        if n % 2:  # stopped in between, as by a debugger
            daemon.process.send_signal(signal.SIGSTOP)
            time.sleep(0.01)
            daemon.process.send_signal(signal.SIGCONT)
        endings.append(daemon.process.wait(PATIENCE_S))
        check(not daemon.said() or 'ready' in daemon.said(), daemon.said())
        check(set(os.listdir(folder)) == {'rocid.log'}, f'left: {os.listdir(folder)}')
        daemon.log.truncate(0)
    # before main() there is nothing to tidy up, and nobody to do it
    check(set(endings) <= {0, -signal.SIGTERM} and 0 in endings, f'{endings}')
    daemon = start(rocid, folder)
    daemon.check_ends()


def test_stuck_end(rocid, folder):
    """Nobody reads what it prints at its end: it says so, and ends when somebody does."""
    reader, writer = os.pipe()
    daemon = Rocid(rocid, folder, [*RING_PAIR, '--stats-on-exit=json'], stdout=writer)
    check(daemon.wait_ready(), daemon.said())
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, bytes(4096)):
            pass
    os.set_blocking(writer, True)
    os.close(writer)
    daemon.process.terminate()
    wait_until(lambda: 'waiting for standard output' in daemon.said(), 'it does not say what it waits for')
    check(daemon.process.poll() is None, 'it has ended')
    os.set_blocking(reader, False)
    while daemon.process.poll() is None:
        with contextlib.suppress(BlockingIOError):
            os.read(reader, 1 << 20)
        time.sleep(0.01)
    check(daemon.process.returncode == 0, daemon.said())
    os.close(reader)


def test_notify(rocid, folder):
    """As systemd listens: a path, and an abstract name."""
    for name in (os.path.join(folder, 'notify'), f'@rocid-test-{os.getpid()}'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(name.replace('@', '\0'))
            s.settimeout(PATIENCE_S)
            os.environ['NOTIFY_SOCKET'] = name
            daemon = Rocid(rocid, folder)
            del os.environ['NOTIFY_SOCKET']
            said = s.recv(1000).decode().splitlines()
            check('READY=1' in said and any(x.startswith('STATUS=') for x in said), f'{said}')
            daemon.ask('version')  # it does serve
            daemon.process.terminate()
            check('STOPPING=1' in s.recv(1000).decode().splitlines(), 'no STOPPING=1')
            check(daemon.process.wait(PATIENCE_S) == 0, daemon.said())


def verify(folder):
    """systemd understands rocid.service in `folder` with all that is beside it."""
    unit = os.path.join(folder, 'rocid.service')
    r = subprocess.run(['systemd-analyze', 'verify', '--man=no', unit], capture_output=True, text=True)
    said = [x for x in r.stderr.splitlines() if 'rocid' in x]
    check(not said, '\n'.join(said))


def exposure(folder):
    """How open systemd finds the unit: 0 to 10; None when this systemd cannot tell."""
    r = subprocess.run(['systemd-analyze', 'security', '--offline=yes', '--no-pager',
                        os.path.join(folder, 'rocid.service')], capture_output=True, text=True)
    found = re.search(r'Overall exposure level for rocid.service: ([0-9.]+)', r.stdout)
    return float(found.group(1)) if found else None


def test_unit(unit, dropins, rocid, folder):
    """The unit and its drop-ins are such as systemd understands, and give no right that the installed
    configuration has no use for; where systemd is not installed, there is nothing to ask."""
    with open(unit) as f:
        text = f.read()
    check('Type=notify' in text and 'RuntimeDirectory=rocid' in text, 'no Type=notify')
    check('\nCapabilityBoundingSet=\n' in text and '\nAmbientCapabilities=\n' in text, 'capabilities for everybody')
    check('infinity' not in text, 'a limit that is none')
    names = sorted(os.listdir(dropins))
    check(names == ['af_xdp.conf', 'nic.conf', 'share.conf', 'tap.conf'], f'{names}')
    if not shutil.which('systemd-analyze'):
        return
    line = next(x for x in text.splitlines() if x.startswith('ExecStart='))
    copy = os.path.join(folder, 'rocid.service')
    with open(copy, 'w') as f:  # the program as it was built, not as it will be installed
        f.write(text.replace(line.split('=')[1].split()[0], os.path.abspath(rocid)))
    verify(folder)
    open_by = exposure(folder)
    check(open_by is None or open_by <= 2.0, f'exposure {open_by}')
    for name in names:
        beside = os.path.join(folder, 'rocid.service.d')
        os.makedirs(beside)
        shutil.copy(os.path.join(dropins, name), beside)
        verify(folder)
        shutil.rmtree(beside)


def main():
    rocid, orphan, unit, dropins = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        test_early_signals(rocid, folder)
        for sig in (signal.SIGKILL, signal.SIGTERM):
            test_programs(rocid, orphan, folder, sig)
        test_together(rocid, folder, 6)
        test_bound_only(rocid, folder)
        test_stuck_end(rocid, folder)
        test_notify(rocid, folder)
        test_unit(unit, dropins, rocid, folder)


if __name__ == '__main__':
    main()
