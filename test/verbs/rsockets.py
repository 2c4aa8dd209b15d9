#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rsockets.py ROCID LIBRARY-FOLDERS [PATTERN...]

Programs that know nothing of RDMA, over rsockets: librspreload.so in place of their sockets, the stock librdmacm,
our libibverbs.so.1; between two rocid. What they carry is compared, and must have gone through rocid: librspreload
falls back to TCP without a word. doc/connections.md says which programs cannot run, and why.

RSOCKETS names a folder with another librdmacm.so.1 and librspreload.so (rdma-core 65 was tried): then those that only
newer versions carry run, too. Needs root."""
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Lab, PATIENCE_S, ping, skip, wait_for  # noqa: E402
from rocid import ask, check  # noqa: E402
from rdmacm import PRELOAD, SIX, Side, left, link, listeners  # noqa: E402

SIZE = 1 << 20
NEWER = os.environ.get('RSOCKETS')
PROGRAMS = ('nc.traditional', 'busybox', 'curl', 'wget', 'NPtcp')
# A semaphore of one name for all programs of a machine, and a process that is killed leaves it taken: a /dev/shm of
# its own.
PRIVATE_SHM = 'mount -t tmpfs tmpfs /dev/shm'
FORKS = {'RDMAV_FORK_SAFE': '1'}


@dataclass
class Case:
    """Shell scripts, whose working folder has the file `from`; the client, or the server, writes `to`."""
    server: str
    client: str
    ends: bool = False      # the server, after its client
    forks: bool = False     # the server
    least: int = SIZE       # bytes that go through rocid
    copies: bool = True

    @property
    def name(self):
        return f'{self.server.split()[0]} + {self.client.split()[0]}'


def cases():
    yield Case('nc.traditional -l -p 7000 > to', 'nc.traditional -q 1 10.8.0.1 7000 < from', ends=True)
    for client in 'curl -sS -o to', 'wget -nv -t 1 -O to':
        yield Case('busybox httpd -f -p 10.8.0.1:7000', f'{client} http://10.8.0.1:7000/from', forks=True)
    yield Case('NPtcp -u 4096 -n 20', 'NPtcp -h 10.8.0.1 -u 4096 -n 20', ends=True, copies=False)


def newer_cases():
    """Of programs with select(), epoll, accept4() and flags of socket()."""
    for client in 'curl -sS -o to', 'wget -nv -t 1 -O to':
        yield Case('python3 -m http.server --bind 10.8.0.1 7000', f'{client} http://10.8.0.1:7000/from')
    yield Case('socat -U TCP-LISTEN:7000,reuseaddr OPEN:from', 'socat -u TCP:10.8.0.1:7000 CREATE:to', ends=True)
    yield Case('nc.openbsd -l -p 7000 > to', 'nc.openbsd -N 10.8.0.1 7000 < from', ends=True)
    yield Case('iperf3 -s -1', f'iperf3 -c 10.8.0.1 -n {SIZE}', ends=True, copies=False)
    yield Case('redis-server --port 7000 --bind 10.8.0.1 --protected-mode no --save "" > /dev/null',
               'redis-cli -h 10.8.0.1 -p 7000 -x set key < from > /dev/null && '
               'redis-cli -h 10.8.0.1 -p 7000 get key | head -c -1 > to', least=2 * SIZE)


def preloaded():
    if not NEWER:
        return {'LD_PRELOAD': str(PRELOAD)}
    return {'LD_PRELOAD': f'{NEWER}/librspreload.so'}


def start(side, script, log, case, folder):
    """In a process group of its own, which ends with it: servers have children."""
    env = {'LD_LIBRARY_PATH': ':'.join(filter(None, (NEWER, side.libraries))), 'ROCI_SOCKET': side.daemon.socket,
           'LC_ALL': 'C', **(FORKS if case.forks else {})}
    words = ' '.join(f'{k}={v}' for k, v in {**env, **preloaded()}.items())
    body = f'{PRIVATE_SHM}; cd {folder}; export {words}; {script}'
    return subprocess.Popen(side.namespace.command(['unshare', '-m', 'sh', '-c', body]), stdin=subprocess.DEVNULL,
                            stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def end(process):
    if process and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def sent(sides):
    return sum(ask(s.daemon, 'show counters')['counters']['tx_bytes'] for s in sides)


def run(case, lab, sides):
    """None, or what was wrong."""
    logs = [open(lab.path(n), 'w+') for n in ('server.out', 'client.out')]
    to = Path(lab.path('to'))
    to.unlink(missing_ok=True)
    before = sent(sides)
    server = start(sides[0], case.server, logs[0], case, lab.folder)
    client = None
    wrong = None
    try:
        wait_for(f'{case.server} to listen', lambda: server.poll() is not None or ready(case, sides[0]))
        client = start(sides[1], case.client, logs[1], case, lab.folder)
        if client.wait(PATIENCE_S):
            wrong = f'client: status {client.returncode}'
        elif case.ends and server.wait(PATIENCE_S):
            wrong = f'server: status {server.returncode}'
    except (subprocess.TimeoutExpired, AssertionError) as late:
        wrong = str(late)
    finally:
        end(client)
        end(server)
    if not wrong and case.copies and to.read_bytes() != Path(lab.path('from')).read_bytes():
        wrong = 'the copy differs'
    if not wrong and sent(sides) - before < case.least:
        wrong = f'only {sent(sides) - before} bytes went through rocid'
    for log in logs:
        log.seek(0)
    return wrong and '\n-- '.join([wrong, *(log.read()[-2000:] for log in logs)])


def ready(case, side):
    """A server that forks listens by TCP, and connects by RDMA when its child first reads."""
    tcp = Path(f'/proc/{side.namespace.pid}/net/tcp')
    return ' 0A ' in tcp.read_text() if case.forks else bool(listeners(side))


def main():
    rocid, libraries, *patterns = sys.argv[1:]
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing or not PRELOAD:
        skip(f'{missing or "librspreload.so"} not installed (test/packages.txt)')
    wanted = [c for c in [*cases(), *(newer_cases() if NEWER else [])]
              if not patterns or any(fnmatch.fnmatch(c.name, p) for p in patterns)]
    failed = 0
    with Lab(rocid, None) as lab:
        a, b = link(lab)
        sides = [Side(n, lab.rocid(n, name, ['--share', 'e0']), libraries) for n, name in ((a, 'a'), (b, 'b'))]
        ping(b, SIX['server'])
        Path(lab.path('from')).write_bytes(os.urandom(SIZE))
        for case in wanted:
            wrong = run(case, lab, sides)
            print(f'{"FAIL" if wrong else "ok  "} {case.name}{": " + wrong if wrong else ""}', flush=True)
            failed += wrong is not None
            for side in sides:
                wait_for('nothing to be left', lambda s=side: not left(s))
    check(not failed, f'{failed} of {len(wanted)}')


if __name__ == '__main__':
    main()
