#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_test.py ROCID ROCI-RUN LOADED-RPATH LOADED-ASAN

roci-run: that a program runs in it as without it, by root and by others, and finds /dev/infiniband; UCX, as Debian
has it, between two rocid in two namespaces that a veth links. Needs root."""
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Lab, PATIENCE_S, ping, skip, wait_for  # noqa: E402
from rdmacm import FOUR, SIX, link  # noqa: E402
from rocid import ask, check  # noqa: E402

# In a container root is often without this.
BOUNDED = ['setpriv', '--bounding-set', '-sys_admin', '--inh-caps', '-sys_admin']
NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
# A user of no other test, whose programs would share a namespace with these.
SIBLING = ['setpriv', '--reuid', '64010', '--regid', '64010', '--clear-groups']
GROUP = ['setpriv', '--reuid', '64010', '--regid', '65533', '--clear-groups']
UCX = 'ucx_perftest -n 200 -s {size} -t {test}'
UCX_TESTS = 'tag_lat', 'tag_bw', 'ucp_put_bw', 'ucp_get', 'ucp_am_bw', 'ucp_fadd'
SIZES = 8, 100000
TRANSPORTS = 'rc_verbs,ud_verbs', 'ud_verbs'


def runs(run, *words, by=(), **kw):
    return subprocess.run([*by, run, *words], capture_output=True, text=True, timeout=PATIENCE_S, **kw)


def test_process(run):
    """Exit status, signals, children, the rest of /dev; nothing is left outside."""
    before = sorted(os.listdir('/dev'))
    check(runs(run, 'sh', '-c', 'exit 7').returncode == 7, 'the exit status is not the program\'s')
    check(runs(run, 'sh', '-c', 'kill -TERM $$').returncode == -15, 'the signal is not the program\'s')
    check(runs(run, '/nowhere/at-all').returncode == 127, 'a program that is not there')
    check(runs(run, '/etc/passwd').returncode == 126, 'a file that is no program')
    for by in [], NOBODY, BOUNDED:
        r = runs(run, 'sh', '-c', 'id -u; id -g; stat -c %F /dev/infiniband/uverbs[01] /dev/infiniband/rdma_cm; '
                 'echo lost > /dev/null; sh -c "head -c 3 /dev/zero | wc -c"; ls /dev | grep -vx infiniband | sort',
                 by=by, env={**os.environ, 'ROCI_SOCKET': '/run/a:/run/b', 'LC_ALL': 'C'})
        words = r.stdout.splitlines()
        user = ['65534'] if by is NOBODY else ['0']
        check(words[:6] == user * 2 + ['character special file'] * 3 + ['3'], f'{by}: {r}')
        check(sorted(words[6:]) == sorted(n for n in before if n != 'infiniband'), f'/dev differs: {r}')
    r = runs(run, 'grep', 'SigIgn', '/proc/self/status', by=NOBODY,
             preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    ignored = int(r.stdout.split()[-1], 16) >> signal.SIGCHLD - 1 & 1
    check(ignored and 'denied' not in r.stderr, f'SIGCHLD is ignored: {r}')
    bare = runs(run, '--libraries', '--socket', '/run/x', 'sh', '-c', 'ls /dev; echo $ROCI_SOCKET')
    check(sorted(bare.stdout.split()) == sorted(before + ['/run/x']), f'--libraries: {bare}')
    check(sorted(os.listdir('/dev')) == before, 'the /dev of others has changed')


def test_print(run):
    r = runs(run, '--print', '--socket', '/run/a:/run/b')
    check('uverbs1' in r.stdout and 'ROCI_SOCKET=/run/a:/run/b' in r.stdout and not r.returncode, f'{r}')
    folders = r.stdout.split('\n')[0].split('=')[1].split(':')
    check(Path(folders[0], 'libibverbs.so.1').exists(), f'{r}')
    for name in 'UCX_ALLOC_PRIO', 'UCX_IB_ALLOC':
        check(f'\n{name}=thp,mmap,heap\n' in r.stdout, f'{r}')
        chosen = runs(run, '--print', env={**os.environ, name: 'heap'})
        check(f'\n{name}=' not in chosen.stdout, f'{chosen}')
    check(runs(run).returncode == 125 and 'name the program' in runs(run).stderr, 'no program')


def test_denied(run):
    """Where namespaces are denied it says so, and the program runs."""
    r = runs(run, 'sh', '-c', 'exit 9', by=['unshare', '--user', '--map-root-user', 'sh', '-c',
             'echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$@"', 'sh'])
    check(r.returncode == 9 and 'mount namespace is denied' in r.stderr, f'{r}')
    # A user namespace may be allowed, but not to map a user there; here, as its files cannot be written.
    r = runs(run, 'sh', '-c', 'id -u; exit 9', by=['unshare', '--mount', 'sh', '-c',
             'mount -o remount,bind,ro /proc && exec "$@"', 'sh', *NOBODY])
    check(r.returncode == 9 and r.stdout == '65534\n' and 'user namespaces, or mapping a user in them, are denied' in r.stderr, f'{r}')


def test_first(run, rpath, asan):
    """Libraries that a program insists on: from a folder of its own (DT_RPATH), or before all others (ASan)."""
    r = runs(run, '--libraries', rpath)
    verbs, madvise = r.stdout.splitlines()
    check(not r.returncode and not r.stderr and 'libroci-preload' in madvise, f'{r}')
    folders = runs(run, '--print').stdout.split('\n')[0].split('=')[1].split(':')
    check(Path(verbs).parent == Path(folders[0]), f'DT_RPATH wins: {r}')
    r = runs(run, '--libraries', asan, env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
    shared = b'libasan.so' in Path(asan).read_bytes()  # clang links its runtime statically
    check(not r.returncode and Path(r.stdout.split('\n')[0]).parent == Path(folders[0]), f'{r}')
    check(shared == ('must be loaded first' in r.stderr), f'{r}')


def test_kinds(run, folder):
    """A program whose libraries cannot be chosen runs, and a sentence says why; no word about others."""
    def said(path, by=()):
        return runs(run, '--libraries', path, by=by).stderr

    def copy(name, data, mode):
        path = Path(folder, name)
        path.write_bytes(data)
        path.chmod(mode)
        return str(path)
    true = Path('/usr/bin/true').read_bytes()
    check(not said('true'), said('true'))
    check('is linked statically' in said('/sbin/ldconfig'), 'a static program')
    check(not said('/lib64/ld-linux-x86-64.so.2').startswith('roci-run'), 'the dynamic linker itself')
    script = copy('script', b'#! /sbin/ldconfig -p\n', 0o755)
    check('ldconfig is linked statically' in said(script), 'a script for a static program')
    check('another kind of CPU' in said(copy('foreign', true[:18] + b'\x03\x01' + true[20:], 0o755)), 'another CPU')
    check('another C library' in said(copy('musl', true.replace(b'/ld-linux-x86-64', b'/ld-musl-x86_64.'), 0o755)), 'musl')
    setuid = copy('setuid', true, 0o4755)
    check(not said(setuid), 'its owner has the rights')
    check('rights that you do not have' in said(setuid, NOBODY), 'a setuid program')


def test_sockets(run, folder):
    """No rocid, no right to use it, and one that shows no device are different sentences."""
    silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = str(Path(folder, 'socket'))
    for prepare, by, advice in ((lambda: None, (), 'start rocid there'), (lambda: silent.bind(path), (), 'start rocid there'),
                                (lambda: os.chmod(path, 0o600), NOBODY, 'become a member of its group'),
                                (silent.listen, (), 'a rocid of this release')):
        prepare()
        r = runs(run, '--socket', path, 'sh', '-c', 'exit 3', by=by)
        check(r.returncode == 3 and f'{path} shows no device' in r.stderr and advice in r.stderr, f'{advice}: {r}')
    silent.close()


def test_siblings(run, folder):
    """Programs of one user over the same devices share a user namespace, as long as one of them lives."""
    look = 'readlink /proc/self/ns/user /proc/self/ns/mnt; pwd; ls /dev/infiniband; read x'

    def start(socket, by=SIBLING, **kw):
        return subprocess.Popen([*by, run, '--socket', socket, 'sh', '-c', look], stdin=subprocess.PIPE, cwd=folder,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **kw)

    def lines(p):
        return [p.stdout.readline().strip() for _ in range(5)]

    def end(p):
        p.communicate('\n', timeout=PATIENCE_S)
    crowd = [start('/run/x') for _ in range(8)]     # at the same time
    first = lines(crowd[0])
    check(first[2:] == [str(folder), 'rdma_cm', 'uverbs0'], f'{first}')
    for p in crowd[1:]:
        got = lines(p)
        check(got == first, f'{got}, not {first}')
    for p in crowd[:-1]:
        end(p)
    late, others = start('/run/x'), [start('/run/x:/run/y'), start('/run/x', GROUP)]
    check(lines(late) == first, 'the one that is left is not found')
    for p in others:
        check(lines(p)[0] not in ('', first[0]), 'other devices, or another group, in the same namespace')
    for p in late, *others:
        end(p)
    # A stranger's file, and a holder of the lock that stands still, are no hindrance.
    table = Path('/dev/shm/roci-run.64010')
    with open(table) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        alone = start('/run/x')
        check(lines(alone)[0] not in ('', first[0]), 'the lock of another')
    end(alone)
    os.chown(table, 0, 0)
    table.chmod(0o666)
    try:
        alone = start('/run/x')
        check(lines(alone)[0] not in ('', first[0]), 'the file of another')
        end(alone)
    finally:
        table.unlink()  # or all later runs would find it
    end(crowd[-1])


class Side:
    def __init__(self, namespace, daemon, run):
        self.namespace, self.daemon, self.run = namespace, daemon, run

    def start(self, line, log, **env):
        words = [f'{k}={v}' for k, v in {'LC_ALL': 'C', **env}.items()]
        command = ['env', *words, self.run, '--socket', self.daemon.socket, *line.split()]
        return subprocess.Popen(self.namespace.command(command), stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT)


def listens(side):
    tables = [f'/proc/{side.namespace.pid}/net/{t}' for t in ('tcp', 'tcp6')]
    return any(' 0A ' in Path(t).read_text() for t in tables)


def pair(lab, sides, line, **env):
    logs = [open(lab.path(n), 'w+') for n in ('server.out', 'client.out')]
    server = sides[0].start(line, logs[0], **env)
    client = None
    try:
        wait_for(f'{line} to listen', lambda: server.poll() is not None or listens(sides[0]))
        client = sides[1].start(f'{line} {FOUR["server"]}', logs[1], **env)
        ends = client.wait(PATIENCE_S), server.wait(PATIENCE_S)
    except (subprocess.TimeoutExpired, AssertionError) as late:
        ends = late
    finally:
        for p in server, client:
            if p and p.poll() is None:
                p.kill()
                p.wait()
    for log in logs:
        log.seek(0)
    said = [log.read() for log in logs]
    check(ends == (0, 0), f'{line} {env}: {ends}\n-- server: {said[0][-2000:]}\n-- client: {said[1][-2000:]}')
    return said


def packets(side):
    return ask(side.daemon, 'show counters')['counters']['tx_packets']


def test_ucx(lab, sides):
    for transport in TRANSPORTS:
        for test in UCX_TESTS:
            if transport == 'ud_verbs' and test in ('ucp_put_bw', 'ucp_get', 'ucp_fadd'):
                continue    # UCX does these in software there
            for size in SIZES:
                if test == 'ucp_fadd' and size != 8:
                    continue
                before = packets(sides[1])
                begin = time.monotonic()
                pair(lab, sides, UCX.format(test=test, size=size), UCX_TLS=transport, UCX_NET_DEVICES='roci0:1')
                check(packets(sides[1]) - before > 100, f'{transport} {test}: not by rocid')
                print(f'ok   {transport} {test} {size} ({time.monotonic() - begin:.1f} s)', flush=True)


def main():
    rocid, run, rpath, asan = map(os.path.abspath, sys.argv[1:])
    if not shutil.which('ucx_perftest'):
        skip('ucx_perftest is not installed (ucx-utils)')
    test_process(run)
    test_print(run)
    test_denied(run)
    test_first(run, rpath, asan)
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        os.chmod(folder, 0o755)
        test_kinds(run, folder)
        test_sockets(run, folder)
        test_siblings(run, folder)
    with Lab(rocid, None) as lab:
        a, b = link(lab)
        sides = [Side(n, lab.rocid(n, name, ['--share', 'e0']), run) for n, name in ((a, 'a'), (b, 'b'))]
        ping(b, SIX['server'])
        test_ucx(lab, sides)


if __name__ == '__main__':
    main()
