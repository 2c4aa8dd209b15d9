#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdmacm.py ROCID LIBRARY-FOLDER [--list | PATTERN...]

Programs of the RDMA CM world, as Debian has them, with the stock librdmacm over our libibverbs.so.1:
client and server on two rocid in two namespaces that a veth links. doc/connections.md lists the programs.
Needs root."""
import fnmatch
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Lab, PATIENCE_S, ping, skip, veth, wait_for  # noqa: E402
from perftest import connected_too_early  # noqa: E402
from rocid import ask, check  # noqa: E402

PROGRAMS = ('rping', 'ucmatose', 'udaddy', 'mckey', 'rdma_client', 'rdma_xclient', 'rstream', 'riostream',
            'rcopy', 'cmtime', 'ib_write_bw', 'iperf', 'qperf', 'fio', 'dapltest')
FOUR = {'server': '10.8.0.1', 'client': '10.8.0.2', 'group': '239.8.0.1'}
SIX = {'server': '2001:db8::1', 'client': '2001:db8::2', 'group': 'ff0e::8:1'}
STREAM = '-C 50 -S 4096'
PERFTEST = '-R -F -n 500'
COPIED = int(os.environ.get('COPIED', 3 << 20))  # bytes
CONNECTIONS = int(os.environ.get('CONNECTIONS', 2000))  # of cmtime, all at once
QPERF = int(os.environ.get('QPERF', 4))  # of its tests, each of which takes a second
TRIES = 20
DAT_CONF = '''cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "e0 0" ""
scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "roci0 1" ""
'''
PRELOAD = next(Path('/usr/lib').glob('*/rsocket/librspreload.so*'), None)


@dataclass
class Case:
    """Command lines, in which {server}, {client}, {group} are addresses and {folder} is ours, as in `env`."""
    server: str
    client: str
    on: dict = field(default_factory=lambda: FOUR)
    ends: bool = True       # the server, after its client
    status: tuple = (0,)    # of the client
    says: str = ''          # a regular expression in the client's output
    env: dict = field(default_factory=dict)
    listens: bool = True    # else it is ready when it has joined the group
    again: str = ''         # what the client says when it has lost a race of its own: it is run again

    @property
    def name(self):
        return self.client.format(**self.on, folder='.') + (' preloaded' if 'LD_PRELOAD' in self.env else '')


def connected():
    for on in FOUR, SIX:
        yield Case('rping -s -a {server} -v -V -C 5', 'rping -c -a {server} -v -V -C 5', on,
                   says='ping data: rdma-ping-4')
    yield Case('rping -s -a {server} -V -C 5 -q', 'rping -c -a {server} -V -C 5 -q')
    yield Case('rping -s -a {server} -V -C 5 -S 60000', 'rping -c -a {server} -V -C 5 -S 60000')
    yield Case('rping -s -a {server} -P', 'rping -c -a {server} -V -C 5', ends=False)
    for options in '', '-c 100', '-m', '-a 2', '-t 96', '-C 0':
        yield Case(f'ucmatose -b {{server}} {options}', f'ucmatose -s {{server}} {options}')
    yield Case('ucmatose -b {server} -f ip6', 'ucmatose -s {server} -f ip6', SIX)
    yield Case('rdma_server -s {server}', 'rdma_client -s {server}', says='rdma_client: end 0')
    for kind in 'r', 'x':
        yield Case(f'rdma_xserver -c {kind}', f'rdma_xclient -s {{server}} -c {kind}')
    # It ends well whatever is rejected.
    yield Case(f'cmtime -b {{server}} -c {CONNECTIONS}', f'cmtime -s {{server}} -c {CONNECTIONS}', ends=False,
               says=r'(?s)\A(?!.*event: ).*destroy')


def datagrams():
    for space in 'udp', 'ipoib':
        number = {'udp': '0x0111', 'ipoib': '0x0002'}[space]
        yield Case(f'udaddy -b {{server}} -p {number} -c 10', f'udaddy -s {{server}} -p {number} -c 10')
    for options in '', '-o':
        yield Case('mckey -m {group} -b {server}', f'mckey -m {{group}} -b {{client}} -s {options}',
                   listens=False)
    yield Case('mckey -m {group} -b {server}', 'mckey -m {group} -b {client} -s', SIX, listens=False)


def sockets():
    for test in 'b', 'a', 'n', 'r', 's', 'v':
        # do_poll() of rdma-core's examples takes POLLHUP for an error, even with the last data there
        # to read: with -T a the client loses that race against the server's end.
        yield Case(f'rstream -b {{server}} -T {test} {STREAM}', f'rstream -s {{server}} -T {test} {STREAM}',
                   listens=test != 's', status=(0, select.POLLHUP) if test == 'a' else (0,))
    yield Case('rstream -b {server} -f ip6 -T v ' + STREAM, 'rstream -s {server} -f ip6 -T v ' + STREAM, SIX)
    yield Case('rstream -b {server}', 'rstream -s {server}')
    yield Case(f'riostream -b {{server}} -T v {STREAM}', f'riostream -s {{server}} -T v {STREAM}')
    yield Case('rcopy', 'rcopy {folder}/from {server}:{folder}/to', ends=False)
    if PRELOAD:
        yield Case('iperf -s -P 1', 'iperf -c {server} -n 10M', says='MBytes', ends=False,
                   env={'LD_PRELOAD': str(PRELOAD)})


def perftest():
    for op in 'send', 'write', 'read', 'atomic':
        for kind in 'bw', 'lat':
            yield Case(f'ib_{op}_{kind} {PERFTEST}', f'ib_{op}_{kind} {PERFTEST} {{server}}')
    for options in '-c UD', '-e', '-T 96':
        yield Case(f'ib_send_bw {PERFTEST} {options}', f'ib_send_bw {PERFTEST} {options} {{server}}')
    yield Case(f'ib_write_bw {PERFTEST} -q 4', f'ib_write_bw {PERFTEST} -q 4 {{server}}')


def qperf():
    """Without -cm it uses LIDs, which RoCE does not have."""
    tests = ('rc_bi_bw', 'rc_rdma_read_lat', 'rc_rdma_write_poll_lat', 'ver_rc_compare_swap', 'rc_bw', 'rc_lat',
             'rc_rdma_read_bw', 'rc_rdma_write_bw', 'rc_rdma_write_lat', 'rc_compare_swap_mr', 'rc_fetch_add_mr',
             'ver_rc_fetch_add')
    for test in tests[:QPERF]:
        yield Case('qperf', f'qperf {{server}} -cm 1 -t 1 {test}', says=' = ', ends=False, listens=False)


def fio():
    common = '--thread --ioengine=rdma --port=8877 --bs=4k --size=1M'
    for verb in 'write', 'read', 'send':
        # It connects with an rnr_retry of 0, and hangs once a SEND finds no receive, on any device. So
        # there are receives for all from the begin; half a second after connecting they should be there.
        depth = 256 if verb == 'send' else 4
        yield Case(f'fio --name=server {common} --iodepth={depth} --rw=read --verb={verb.replace("send", "recv")}',
                   f'fio --name=client {common} --iodepth=4 --hostname={{server}} --rw=write --verb={verb}',
                   again='RNR retry counter exceeded')


def dapl():
    """uDAPL, whose connections are made by RDMA CM or over sockets. It compares the data (-V)."""
    transfers = 'client SR 4096 server SR 4096 client RW 8192 server RR 8192'
    for provider in 'cma', 'scm':
        yield Case(f'dapltest -T S -D {provider}',
                   f'dapltest -T T -s {{server}} -D {provider} -i 20 -t 2 -w 2 -V {transfers}', ends=False,
                   listens=provider == 'cma', env={'DAT_OVERRIDE': '{folder}/dat.conf'})


def cases():
    return [*connected(), *datagrams(), *sockets(), *perftest(), *qperf(), *fio(), *dapl()]


class Side:
    def __init__(self, namespace, daemon, libraries):
        self.namespace = namespace
        self.daemon = daemon
        self.libraries = libraries

    def start(self, line, log, more):
        """By env(1): nsenter itself has the stock libraries."""
        env = {'LD_LIBRARY_PATH': self.libraries, 'ROCI_SOCKET': self.daemon.socket, 'LC_ALL': 'C', **more}
        command = self.namespace.command(['env', *(f'{k}={v}' for k, v in env.items()), *line.split()])
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def listens(side, case):
    if case.listens:
        return bool(listeners(side))
    if 'mckey' in case.server:
        return case.on['group'] in side.namespace.output('ip maddress show dev e0')
    tables = [f'/proc/{side.namespace.pid}/net/{t}' for t in ('tcp', 'tcp6')]
    return any(' 0A ' in Path(t).read_text() for t in tables)


def listeners(side):
    return ask(side.daemon, 'show cm listeners')['cm_listeners']


def run(case, lab, sides):
    """None, or what was wrong."""
    for _ in range(TRIES):
        wrong = run_once(case, lab, sides)
        # The next client must not meet this server's listener.
        for side in sides:
            wait_for('nothing to be left', lambda s=side: not left(s))
        if not (wrong and (connected_too_early(wrong) or lost_its_race(case, wrong))):
            break
    return wrong


def lost_its_race(case, said):
    return case.again and case.again in said


def run_once(case, lab, sides):
    words = {**case.on, 'folder': lab.folder}
    env = {name: value.format(**words) for name, value in case.env.items()}
    logs = [open(lab.path(n), 'w+') for n in ('server.out', 'client.out')]
    server = sides[0].start(case.server.format(**words), logs[0], env)
    client = None
    wrong = None
    try:
        wait_for(f'{case.server} to listen', lambda: server.poll() is not None or listens(sides[0], case))
        client = sides[1].start(case.client.format(**words), logs[1], env)
        wait_for('the client to end',
                 lambda: client.poll() is not None or lost_its_race(case, Path(logs[1].name).read_text()))
        if client.poll() not in case.status:
            wrong = f'client: status {client.returncode}'
        elif case.ends and server.wait(PATIENCE_S):
            wrong = f'server: status {server.returncode}'
    except (subprocess.TimeoutExpired, AssertionError) as late:
        wrong = str(late)
    finally:
        for p in server, client:
            if p and p.poll() is None:
                p.send_signal(signal.SIGKILL)
                p.wait()
    for log in logs:
        log.seek(0)
    heard, said = (log.read() for log in logs)
    if not wrong and case.says and not re.search(case.says, said):
        wrong = f'{case.says} is missing'
    return f'{wrong}\n-- server: {heard[-2000:]}\n-- client: {said[-2000:]}' if wrong else None


def refusals(lab, sides):
    """Nobody listens; and what a person reads about it."""
    log = open(lab.path('refused.out'), 'w+')
    p = sides[1].start('rping -c -a 10.8.0.1 -C 1 -p 7999', log, {'ROCI_VERBOSE': '1'})
    check(p.wait(PATIENCE_S) != 0, 'nobody listens')
    log.seek(0)
    said = log.read()
    check('nobody listens on TCP port 7999 at 10.8.0.1' in said, said)
    errors = ask(sides[1].daemon, 'show errors')['errors']
    check(any(e['cause'] == 'rejected' and 'port 7999' in e['why'] for e in errors), errors)


def killed(sides):
    """The peer of a program that dies hears of it at once."""
    server = sides[0].start('rping -s -a 10.8.0.1', subprocess.DEVNULL, {})
    wait_for('rping to listen', lambda: listeners(sides[0]))
    client = sides[1].start('rping -c -a 10.8.0.1 -C 1000000000', subprocess.DEVNULL, {})
    wait_for('a connection', lambda: any(r['state'] == 'established' for r in
                                         ask(sides[0].daemon, 'show cm connections')['cm_connections']))
    client.kill()
    client.wait()
    check(server.wait(PATIENCE_S) is not None, 'the server hears of it')


def address_goes(lab, side):
    """A program hears that its address is gone."""
    out = Path(lab.path('gone.out'))
    with open(out, 'w') as log:
        server = side.start('stdbuf -e0 rping -s -a 10.8.0.1', log, {})
        wait_for('rping to listen', lambda: listeners(side))
        side.namespace.run('ip address del 10.8.0.1/24 dev e0')
        wait_for('rping to hear of it', lambda: 'ADDR_CHANGE' in out.read_text())
        server.kill()
        server.wait()
    side.namespace.run('ip address add 10.8.0.1/24 dev e0')
    wait_for('the address again', lambda: any('10.8.0.1' in str(g) for g in ask(side.daemon, 'show gids')['gids']))


def rocid_ends(lab, side):
    """Programs hear of it as of a device that was removed."""
    log = open(lab.path('removed.out'), 'w+')
    server = side.start('stdbuf -o0 rping -s -a 10.8.0.1', log, {})
    wait_for('rping to listen', lambda: listeners(side))
    side.daemon.terminate()
    side.daemon.wait(PATIENCE_S)
    check(server.wait(PATIENCE_S) is not None, 'the program wakes')
    log.seek(0)
    said = log.read()
    check('device removal' in said, said)


def unreachable(lab, side):
    """A host without rocid does not answer; our times and retries."""
    side.daemon.terminate()
    side.daemon.wait(PATIENCE_S)
    side.daemon = lab.rocid(side.namespace, 'short', ['--share', 'e0', '--cm-timeout', '10', '--cm-retries', '2'])
    log = open(lab.path('unreachable.out'), 'w+')
    check(side.start('rping -c -a 10.8.0.1 -C 1', log, {}).wait(PATIENCE_S) != 0, 'nobody answers')
    log.seek(0)
    said = log.read()
    check('UNREACHABLE' in said, said)
    rows = ask(side.daemon, 'show cm')['cm_messages']
    req = next(r for r in rows if r['message'] == 'REQ')
    check(req['sent'] == 3, req)


def by_rocev1(lab, sides):
    """The side that begins says by which protocol; one that has only RoCEv2 does not answer."""
    for options, case, reached in (
            ([], Case('rping -s -a {server}', 'rping -c -a {server} -C 1', status=(1, 255), says='UNREACHABLE'), False),
            (['--rocev1'], Case('rping -s -a {server} -V -C 5', 'rping -c -a {server} -V -C 5'), True),
            (['--rocev1'], Case('rping -s -a {server} -V -C 5', 'rping -c -a {server} -V -C 5', SIX), True),
            (['--rocev1'], Case('udaddy -b {server} -c 10', 'udaddy -s {server} -c 10'), True)):
        quick = [] if reached else ['--cm-timeout', '10', '--cm-retries', '2']
        for i, (side, more) in enumerate(zip(sides, (options, ['--rocev1=connect', *quick]))):
            side.daemon.terminate()
            side.daemon.wait(PATIENCE_S)
            side.daemon = lab.rocid(side.namespace, f'{len(options)}{i}', ['--share', 'e0', *more])
        ping(sides[1].namespace, SIX['server'])
        wrong = run(case if reached else replace(case, ends=False), lab, sides)
        check(not wrong, f'{case.name} by RoCEv1: {wrong}')


def left(side):
    return [row for line, name in (('show cm listeners', 'cm_listeners'), ('show cm connections', 'cm_connections'),
                                   ('show sessions', 'sessions')) for row in ask(side.daemon, line)[name]]


def link(lab):
    a, b = lab.namespace(), lab.namespace()
    veth(a, 'e0', b, 'e0')
    for namespace, role in (a, 'server'), (b, 'client'):
        namespace.run(f'ip address add {FOUR[role]}/24 dev e0; ip address add {SIX[role]}/64 dev e0 nodad;'
                      'ip route add 239.0.0.0/8 dev e0')
    return a, b


def main():
    rocid, libraries, *patterns = sys.argv[1:]
    if patterns == ['--list']:
        print('\n'.join(c.name for c in cases()))
        return
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing:
        skip(f'{missing} are not installed (rdmacm-utils, perftest, iperf)')
    wanted = [c for c in cases() if not patterns or any(fnmatch.fnmatch(c.name, p) for p in patterns)]
    failed = 0
    with Lab(rocid, None) as lab:
        a, b = link(lab)
        sides = [Side(n, lab.rocid(n, name, ['--share', 'e0']), libraries) for n, name in ((a, 'a'), (b, 'b'))]
        ping(b, SIX['server'])
        Path(lab.path('from')).write_bytes(os.urandom(COPIED))
        Path(lab.path('dat.conf')).write_text(DAT_CONF)
        for case in wanted:
            wrong = run(case, lab, sides)
            print(f'{"FAIL" if wrong else "ok  "} {case.name}{": " + wrong if wrong else ""}', flush=True)
            failed += wrong is not None
        if any('rcopy' in c.client for c in wanted):
            check(Path(lab.path('from')).read_bytes() == Path(lab.path('to')).read_bytes(), 'the copy is equal')
        if not patterns:
            refusals(lab, sides)
            killed(sides)
            address_goes(lab, sides[0])
        for side in sides:
            wait_for('nothing to be left', lambda s=side: not left(s))
        if not patterns:
            rocid_ends(lab, sides[0])
            unreachable(lab, sides[1])
            by_rocev1(lab, sides)
    check(not failed, f'{failed} of {len(wanted)}')


if __name__ == '__main__':
    main()
