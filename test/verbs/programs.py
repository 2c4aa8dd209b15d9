#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""programs.py ROCID LIBRARY-FOLDER [--list | PATTERN...]

Debian's ibverbs-utils and perftest, as they are, over our libibverbs.so.1: client and server on two rocid
that memif links. A row of the table per case; the table of doc/verbs.md is made from the same rows. SIZES=all: -a of
each program, and the options that few use.
"""
import contextlib
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from free_port import free_port  # noqa: E402
from rocid import PATIENCE_S, ask, check, eal_args, start, wait_active  # noqa: E402

SKIPPED = 77
MAC = {'a': '02:00:00:00:00:0a', 'b': '02:00:00:00:00:0b'}
ADDRESSES = {'a': ['192.0.2.1', '2001:db8::1'], 'b': ['192.0.2.2', '2001:db8::2']}
# GID indexes: each address has a RoCEv1 and a RoCEv2 entry.
SHORT = ['-n', '200']
EVERY_SIZE = os.environ.get('SIZES') == 'all'
SHARED_FILE = f'/dev/shm/roci-programs-{os.getpid()}'
# A few packets may be late on a machine with few CPUs: a timeout of 4.096 us * 2^21.
PERFTEST = ['-F', '-u', '21']
PINGPONGS = ('ibv_rc_pingpong', 'ibv_uc_pingpong', 'ibv_ud_pingpong', 'ibv_srq_pingpong', 'ibv_xsrq_pingpong')


@dataclass
class Case:
    program: str
    options: list = field(default_factory=list)
    gid: int = 0
    says: str = ''          # a regular expression in the client's output
    env: dict = field(default_factory=dict)

    @property
    def name(self):
        return ' '.join([self.program, *self.options, *([f'gid {self.gid}'] if self.gid else []),
                         *(f'{k}={v}' for k, v in self.env.items())])

    @property
    def is_pingpong(self):
        return self.program in PINGPONGS

    def command(self, port):
        if self.is_pingpong:
            return [self.program, '-d', 'roci0', '-g', str(self.gid), '-p', port, *self.options]
        return [self.program, '-d', 'roci0', '-x', str(self.gid), '-p', port, *PERFTEST, *self.options]


def pingpongs():
    for program in PINGPONGS[:4]:
        yield Case(program, ['-c'])
        yield Case(program, ['-c', '-e'])
        yield Case(program, ['-s', '1'])
    yield Case('ibv_xsrq_pingpong')
    yield Case('ibv_xsrq_pingpong', ['-e'])
    yield Case('ibv_rc_pingpong', ['-c', '-N'])
    yield Case('ibv_rc_pingpong', ['-c', '-t'])
    yield Case('ibv_rc_pingpong', ['-c', '-s', '1048576', '-n', '10'])
    for mtu in 256, 512, 1024, 2048, 4096:
        yield Case('ibv_rc_pingpong', ['-c', '-m', str(mtu)])
    yield Case('ibv_rc_pingpong', ['-c'], gid=1)
    yield Case('ibv_ud_pingpong', ['-c'], gid=1)
    yield Case('ibv_rc_pingpong', ['-c'], env={'ROCI_POLL': 'yield'})
    yield Case('ibv_rc_pingpong', ['-c', '-n', '100'], env={'ROCI_POLL': 'spin'})  # four threads spin


def bandwidths():
    for op in 'send', 'write', 'read', 'atomic':
        for kind in 'bw', 'lat':
            yield Case(f'ib_{op}_{kind}', SHORT)
            if op != 'write':   # it has no events
                yield Case(f'ib_{op}_{kind}', [*SHORT, '-e'])
    for op in 'send', 'write', 'read':
        for kind in 'bw', 'lat':
            # All sizes take 15 to 45 s: perftest measures the CPU's clock for each.
            sweep = EVERY_SIZE or (op, kind) == ('read', 'bw')
            yield Case(f'ib_{op}_{kind}', ['-n', '5', *(['-a'] if sweep else ['-s', '1048577'])])
        yield Case(f'ib_{op}_bw', [*SHORT, '-N'])
    for op in 'send', 'write':
        yield Case(f'ib_{op}_bw', [*SHORT, '-c', 'UC'])
        yield Case(f'ib_{op}_lat', [*SHORT, '-c', 'UC'])
        yield Case(f'ib_{op}_bw', [*SHORT, '-b'])
        yield Case(f'ib_{op}_lat', [*SHORT, '--inline_size', '64', '-s', '64'])
    for kind in 'bw', 'lat':
        yield Case(f'ib_send_{kind}', [*SHORT, '-c', 'UD'])
        yield Case(f'ib_send_{kind}', [*SHORT, '-c', 'UD', '-e'])
        yield Case(f'ib_send_{kind}', [*SHORT, '-c', 'XRC'])
    yield Case('ib_send_bw', [*SHORT, '-c', 'UD', '-N'])


def queues():
    for op in 'send', 'write', 'read':
        yield Case(f'ib_{op}_bw', [*SHORT, '-q', '8'])
    # More completions at a time than it takes after an event.
    yield Case('ib_read_bw', ['-n', '100', '-q', '64', '-e'])
    yield Case('ib_send_bw', [*SHORT, '--use-srq'])
    yield Case('ib_send_bw', [*SHORT, '--use-srq', '-q', '4'])
    yield Case('ib_send_lat', [*SHORT, '--use-srq'])
    yield Case('ib_write_bw', [*SHORT, '-q', '4', '--mr_per_qp'])
    yield Case('ib_write_bw', [*SHORT, '-t', '16', '-l', '4'])
    yield Case('ib_send_bw', [*SHORT, '-r', '64', '-t', '32'])
    yield Case('ib_write_bw', [*SHORT, '-c', 'XRC'])
    yield Case('ib_read_bw', [*SHORT, '-c', 'XRC'])
    yield Case('ib_atomic_bw', [*SHORT, '-A', 'CMP_AND_SWAP'])
    yield Case('ib_write_bw', ['-D', '2'])
    yield Case('ib_read_lat', ['-D', '2'])
    for mtu in 256, 512, 1024, 2048, 4096:
        yield Case('ib_write_bw', [*SHORT, '-m', str(mtu)])
    for op in 'send', 'write', 'read':
        yield Case(f'ib_{op}_bw', SHORT, gid=1)


def special():
    """Options that make calls of their own."""
    yield Case('ib_write_bw', ['-n', '5', '-s', '8388608', '-t', '1'])
    yield Case('ib_write_bw', [*SHORT, '--use_old_post_send', '-q', '2'])
    yield Case('ib_write_bw', [*SHORT, '--mmap', SHARED_FILE])
    yield Case('ib_send_bw', [*SHORT, '--recv_post_list', '4'])
    yield Case('ib_send_bw', [*SHORT, '-c', 'XRC', '-q', '3'])
    yield Case('ib_send_bw', [*SHORT, '-e', '-Q', '1', '-b'])
    yield Case('ib_write_lat', [*SHORT, '-c', 'XRC'])
    yield Case('ib_read_bw', [*SHORT, '-o', '1'])


def seldom():
    """Options that few use, whose calls other rows make."""
    for op in 'write', 'read', 'send':
        yield Case(f'ib_{op}_bw', [*SHORT, '-Q', '16'])
        yield Case(f'ib_{op}_bw', [*SHORT, '-b', '-q', '3', '--report-both'])
        yield Case(f'ib_{op}_bw', [*SHORT, '-s', '1'])
        if op != 'write':
            yield Case(f'ib_{op}_bw', ['-n', '5', '-s', '8388608', '-t', '1'])
            yield Case(f'ib_{op}_bw', [*SHORT, '--use_old_post_send', '-q', '2'])
        yield Case(f'ib_{op}_bw', [*SHORT, '--reversed'])
    for options in (['-r', '1', '-t', '1'], ['-r', '4096', '-t', '4096'], ['-c', 'XRC', '-b'],
                    ['-c', 'UD', '-q', '4', '-b'], ['-c', 'UD', '-s', '1'],
                    ['-S', '3', '--tclass', '104'], ['--perform_warm_up'], ['--disable_pcie_relaxed'],
                    ['--use-srq', '-b', '-q', '2'], ['--pkey_index', '0']):
        yield Case('ib_send_bw', [*SHORT, *options])
    for options in (['--inline_size', '236', '-s', '236'], ['--inline_size', '0', '-s', '2'], ['-c', 'UC', '-b', '-q', '2'],
                    ['-c', 'XRC', '-b'], ['-l', '10', '-q', '2', '-Q', '10']):
        yield Case('ib_write_bw', [*SHORT, *options])
    yield Case('ib_atomic_bw', [*SHORT, '-q', '4', '-o', '16'])
    yield Case('ib_atomic_lat', [*SHORT, '-A', 'CMP_AND_SWAP'])
    yield Case('ib_write_bw', ['-D', '2', '--cpu_util'])


def cases():
    return [*pingpongs(), *bandwidths(), *queues(), *special(), *(seldom() if EVERY_SIZE else ())]


# --- two rocid ------------------------------------------------------------------------------


def start_pair(rocid, folder):
    daemons = []
    for me, peer, role in (('a', 'b', 'server'), ('b', 'a', 'client')):
        link = ['--vdev', f'net_memif0,role={role},id=0,socket={folder}/link,socket-abstract=no,'
                f'bsize=4608,mac={MAC[me]}']
        args = ['--mtu', '0,4300', '--idle', 'adaptive']   # as installed; nobody polls beside the programs
        for own, theirs in zip(ADDRESSES[me], ADDRESSES[peer]):
            args += ['--gid', f'0,{own}', '--neigh', f'0,{theirs},{MAC[peer]}']
        daemons.append(start(rocid, folder, args=args, eal=eal_args(128) + link, name=f'rocid-{me}'))
    wait_active(daemons)
    return daemons


def environment(daemon, libraries, more=None):
    return {**os.environ, 'LD_LIBRARY_PATH': libraries, 'ROCI_SOCKET': daemon.socket, 'ROCI_VERBOSE': '1',
            'LC_ALL': 'C', **(more or {})}


def listens(port):
    want = f':{int(port):04X}'
    for table in '/proc/net/tcp', '/proc/net/tcp6':
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[1].endswith(want) and words[3] == '0A':
                return True
    return False


def run(case, daemons, libraries):
    """None, or what was wrong."""
    port = free_port()
    pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT, 'text': True, 'stdin': subprocess.DEVNULL}
    server = subprocess.Popen(case.command(port), env=environment(daemons[0], libraries, case.env), **pipes)
    client = None
    try:
        while not listens(port) and server.poll() is None:
            time.sleep(0.005)
        client = subprocess.Popen([*case.command(port), '127.0.0.1'],
                                  env=environment(daemons[1], libraries, case.env), **pipes)
        said = client.communicate(timeout=PATIENCE_S)[0]
        if client.returncode:   # the server may wait for ever
            return f'client {client.returncode}: {said}'
        heard = server.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        return 'takes too long'
    finally:
        for p in (server, client):
            if p and p.poll() is None:
                p.kill()
                p.communicate()
    if server.returncode:
        return f'server {server.returncode}: {heard}\nclient: {said}'
    if 'invalid data' in said + heard:
        return f'wrong data: {said}{heard}'
    if case.says and not re.search(case.says, said):
        return f'{case.says} is missing: {said}'
    return None


# --- what programs see of the device --------------------------------------------------------


def devices(daemons, libraries):
    """ibv_devices, ibv_devinfo -v: as they are of an RNIC, and two sockets are two devices."""
    env = environment(daemons[0], libraries)
    out = subprocess.run(['ibv_devices'], env=env, capture_output=True, text=True, check=True).stdout
    check(re.search(r'^ +roci0 +\t[0-9a-f]{16}$', out, re.M), out)
    out = subprocess.run(['ibv_devinfo', '-v'], env=env, capture_output=True, text=True, check=True).stdout
    for line in ('hca_id:\troci0', 'transport:\t\t\tInfiniBand (0)', 'state:\t\t\tPORT_ACTIVE (4)',
                 'active_mtu:\t\t4096 (5)', 'link_layer:\t\tEthernet', 'phys_state:\t\tLINK_UP (5)',
                 'GID[  0]:\t\t::ffff:192.0.2.1, RoCE v2', 'GID[  1]:\t\t2001:db8::1, RoCE v2',
                 'atomic_cap:\t\t\tATOMIC_GLOB (2)', 'num_comp_vectors:\t\t1'):
        check(line in out, f'ibv_devinfo -v lacks {line!r}: {out}')
    both = {**env, 'ROCI_SOCKET': ':'.join(d.socket for d in daemons)}
    out = subprocess.run(['ibv_devices'], env=both, capture_output=True, text=True, check=True).stdout
    check(len(re.findall(r'^ +roci\d+ ', out, re.M)) == 2, f'two sockets: {out}')
    none = {**env, 'ROCI_SOCKET': '/nonexistent'}
    done = subprocess.run(['ibv_devinfo'], env=none, capture_output=True, text=True, check=False)
    check('No IB devices found' in done.stderr + done.stdout, f'no rocid: {done}')
    check('no rocid serves /nonexistent' in done.stderr, f'and why: {done.stderr}')


@contextlib.contextmanager
def shared_file():
    with open(SHARED_FILE, 'wb') as f:
        f.truncate(16 << 20)
    try:
        yield
    finally:
        os.unlink(SHARED_FILE)


def main():
    rocid, libraries, *patterns = sys.argv[1:]
    if patterns == ['--list']:
        print('\n'.join(c.name for c in cases()))
        return
    missing = [p for p in ('ibv_devinfo', 'ib_write_bw') if not shutil.which(p)]
    if missing:
        print(f'skipped: {missing} are not installed (ibverbs-utils, perftest)')
        sys.exit(SKIPPED)
    wanted = [c for c in cases() if not patterns or any(fnmatch.fnmatch(c.name, p) for p in patterns)]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder, shared_file():
        daemons = start_pair(rocid, folder)
        devices(daemons, libraries)
        failed = 0
        for case in wanted:
            wrong = run(case, daemons, libraries)
            print(f'{"FAIL" if wrong else "ok  "} {case.name}{": " + wrong if wrong else ""}', flush=True)
            failed += wrong is not None
        left = [ask(d, 'show sessions')['sessions'] for d in daemons]
        check(not any(left), f'sessions are left: {left}')
        for d in daemons:
            d.check_ends()
    check(not failed, f'{failed} of {len(wanted)}')


if __name__ == '__main__':
    main()
