#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""config.py ROCID ROCICTL: rocid from a configuration file alone, --check-config, and what the banner says to
do next; with real daemons."""
import os
import re
import subprocess
import sys
import tempfile
from rocid import PATIENCE_S, Rocid, check

BASE = """[eal]
no-huge = yes
no-pci = yes
m = 64
lcores = 0
[workers]
idle = yield
[ports]
ring-pair = yes
"""


def write(folder, text):
    path = os.path.join(folder, 'rocid.conf')
    with open(path, 'w') as f:
        f.write(text)
    return path


def run(rocid, *args, stdin=None):
    return subprocess.run([rocid, *args], capture_output=True, text=True, timeout=PATIENCE_S, input=stdin)


def serve(rocid, folder, text, *args, before=()):
    """A daemon that is told nothing but its file, and `args`; its log is its own."""
    d = Rocid(rocid, folder, args=['--config', write(folder, text), *args], eal=[],
              name=f'd{len(os.listdir(folder))}', before=before)
    check(d.wait_ready(), 'rocid does not start: ' + d.said())
    return d


# Mistakes of a user: a file, and rocid's answer to it. `{}` is the folder.
WRONG = [
    ('[port nodev0]\nshare = yes\n', ['share: there is no netdev nodev0: `ip link` lists them']),
    ('[applications]\nsocket-group = nosuchgroup\n', ['socket-group: there is no group "nosuchgroup"']),
    ('[applications]\nsocket = {}/no/such/s\n', ['there is no directory {}/no/such: create it']),
    ('[eal]\nlcores = 1000\n', ['CPU 1000 does not exist']),  # beyond any machine's
    ('[eal]\nlcores = 9999\n', ["'9999' is not a list of CPUs"]),
    ('[eal]\nlcores = x\n', ["'x' is not a list of CPUs"]),
    ('[eal]\nlcores = 0\n[workers]\nworkers = 3\n', ['3 workers need as many CPUs, but 0 has 1']),
    ('[eal]\nm = lots\n', ['-m lots: it needs a number']),
    ('[eal]\nno-pci = no\nallow = ffff:00:1f.7\n', ['there is no PCI device ffff:00:1f.7']),
    ('[eal]\nallow = 3b:00.0\n', ['PCI device 0000:3b:00.0 is allowed but no-pci is given']),
    ('[eal]\nvdev = net_af_packet0,iface=nodev0\n', ['vdev: there is no netdev nodev0']),
    ('[port 5]\ngid = 192.0.2.1\n', ['gid names port 5, but the last of the 2 ports is port 1']),
    ('[port eth9]\ngid = 192.0.2.1\n', ['gid names port eth9', 'share = yes in [port eth9]']),
    ('[port lo]\nshare = yes\nmtu = 4200\n', ['has the MTU of netdev lo: use `ip link set lo mtu 4200`']),
    ('[port lo]\nshare = yes\ntap = yes\n', ['has a tap and shares netdev lo']),
    ('[port lo]\nshare = yes\n[port 1]\nshare = lo\n', ['netdev lo is shared twice']),
    ('[port 0]\nneigh = 192.0.2.9,02:00:00:00:00:01\nneigh = 192.0.2.9,02:00:00:00:00:02\n', ['has two MACs']),
    ('[workers]\nwidow = 1\nidel = poll\n[wrokers]\n', ['did you mean window?', 'did you mean idle?',
                                                      'did you mean [workers]?', 'rocid: 3 errors to fix']),
]

# Legal, but hardly intended.
NOTES = [
    ('[applications]\nadmin-group = 0\n', 'admin-mode is 0600: set it to 0660'),
    ('[applications]\nmax-qps = 20\nmax-user-qps = 10\n', 'max-qps is above max-user-qps'),
    ('[workers]\nmigrate = 20\n', 'migrate = 20 has no effect with one worker'),
    ('[port 0]\ngid = 192.0.2.1\ngid = 192.0.2.1\n', 'gid 192.0.2.1 is given twice'),
    ('[eal]\nvdev = net_null0\n[port net_null0]\ngid = 192.0.2.1\n', 'cannot find peers'),
    ('[ports]\ngso = yes\n', 'gso has no effect'),
]


def merge(base, more):
    """`base` with the entries of `more` in the place of its own of the same name."""
    names = set(re.findall(r'^([a-z0-9-]+) =', more, re.M))
    kept = [x for x in base.splitlines() if x.split(' ')[0] not in names]
    return '\n'.join(kept) + '\n' + more


def test_check_config(rocid, folder):
    quiet = ['--socket', os.path.join(folder, 'c.sock')]
    path = write(folder, BASE + '[port 0]\ngid = 192.0.2.1\n[port 1]\ngid = 192.0.2.2\n')
    for args in (['--check-config', path], ['--check-config=' + path], ['--config', path, '--check-config'],
                 ['--no-huge', '--', '--check-config', path]):
        r = run(rocid, *args, *([] if args[-1] == path else quiet))
        check(r.returncode == 0 and not r.stderr.replace('rocid: note', ''), f'{args}: {r}')
        for line in ('--no-pci', '1 worker, idle yield', 'port 1: net_ring_pair0b, GID 192.0.2.2'):
            check(line in r.stdout, f'{args}: no "{line}": {r.stdout}')
    check('-m64' in run(rocid, '--check-config', path).stdout, 'memory of the file')
    r = run(rocid, '-m', '32', '--', '--check-config', path)
    check('-m 32' in r.stdout and '-m64' not in r.stdout, f'the command line does not win: {r}')
    r = run(rocid, '--config', path, '--check-config', '--workers', 'many')
    check(r.returncode == 2 and 'many' in r.stderr, f'{r}')

    # Where EAL looks for PCI devices, nobody knows which port has which number.
    r = run(rocid, '--check-config', write(folder, merge(
        BASE, '[eal]\nno-pci = no\n[port 0]\nmtu = 4200\n[port lo]\nshare = yes\n')))
    check(r.returncode == 0 and 'PCI devices' in r.stdout and 'then port net_ring_gso_lo' in r.stdout, f'{r}')

    for more, sentences in WRONG:
        path = write(folder, merge(BASE, more.replace('{}', folder)))
        r = run(rocid, '--check-config', path)
        check(r.returncode == 2 and not r.stdout, f'{more}: {r}')
        check('thing' in r.stderr.splitlines()[-1], f'{more}: no sum: {r.stderr}')
        for s in sentences:
            check(s.replace('{}', folder) in r.stderr, f'{more}: no "{s}": {r.stderr}')
    for more, sentence in NOTES:
        r = run(rocid, '--check-config', write(folder, merge(BASE, more)))
        check(r.returncode == 0 and r.stdout, f'{more}: {r}')
        check('rocid: note: ' in r.stderr and sentence in r.stderr, f'{more}: {r.stderr}')
    check(sorted(os.listdir(folder)) == ['rocid.conf'], 'it leaves something behind')


def test_agreement(rocid, folder):
    """What the check calls wrong, rocid itself refuses."""
    for more, sentences in WRONG:
        if 'has two MACs' in sentences[0]:
            continue  # legal: the first is used
        path = write(folder, merge(BASE, more.replace('{}', folder)))
        own = [] if 'socket = ' in more else ['--socket', os.path.join(folder, 'a.sock')]
        r = run(rocid, '--config', path, *own)
        check(r.returncode in (1, 2) and len(r.stderr.splitlines()) == 1, f'{more}: {r}')


def test_pipe(rocid):
    r = run(rocid, '--config', '/dev/stdin', '--check-config', '--socket', '/tmp/s',
            stdin=BASE + '[port 0]\ngid = 192.0.2.1\n')
    check(r.returncode == 0 and 'GID 192.0.2.1' in r.stdout, f'a file from a pipe: {r}')


def test_serving(rocid, folder):
    """EAL arguments, ports by name, and an option of the command line in the place of the file's."""
    text = BASE + ('vdev = net_null0\n[port net_null0]\ngid = 192.0.2.7\nmtu = 2200\n'
                   '[port net_ring_pair0a]\ngid = 192.0.2.1\n[port 2]\ngid = 192.0.2.2\n').replace(
                       'vdev', '[eal]\nvdev')
    d = serve(rocid, folder, text)
    try:
        gids = {(g['port'], g['gid']) for g in d.ask('show gids')['gids']}
        check(gids == {(1, '192.0.2.7'), (2, '192.0.2.1'), (3, '192.0.2.2')}, f'{gids}')
        check(d.ask('show ports')['ports'][0]['mtu'] == 2200, 'MTU of a port by its name')
    finally:
        d.check_ends()
    d = serve(rocid, folder, text, '--gid', 'net_null0,192.0.2.8')
    try:
        check([g['gid'] for g in d.ask('show gids')['gids']] == ['192.0.2.8'], 'the command line')
    finally:
        d.check_ends()


def test_banner(rocid, folder):
    """What was found, and what to do next, which goes away once it is done."""
    d = serve(rocid, folder, BASE)
    said = d.said()
    d.check_ends()
    for line in ('rocid [0-9.]+, 1 worker on CPU 0, idle yield, ICRC by [a-z0-9]+',
                 'memory: [0-9]+ of 64 MB used, no hugepages',
                 r'port 0: net_ring_pair0a \(net_ring\), MAC 02:.*, MTU 1500 \(path MTU 1024\), 1 queue, steering: .*',
                 '    no GID: give it an address with --gid 1,192.0.2.1',
                 '    path MTU 1024: for 4096 start with --mtu 0,4200 on both sides',
                 'telemetry: .*/dpdk_telemetry.v2, dpdk-telemetry.py -f rocid-[0-9a-f]{8}',
                 f'next: `ROCI_SOCKET={d.socket} rocictl show ports`'):
        check(re.search('^' + line, said, re.M), f'no "{line}" in: {said}')
    d = serve(rocid, folder, BASE + '[port 0]\ngid = 192.0.2.1\nmtu = 4200\n[port 1]\ngid = 192.0.2.2\nmtu = 4200\n'
              '[eal]\nno-telemetry = yes\n')
    said = d.said()
    d.check_ends()
    for word in ('no GID', 'for 4096', 'telemetry:'):
        check(word not in said, f'"{word}" although it is not so: {said}')
    if os.geteuid() or subprocess.run(['unshare', '--net', 'true'], stderr=subprocess.DEVNULL).returncode:
        print('config: no network namespace here: the banner of a tap is not looked at')
        return
    d = serve(rocid, folder, BASE + '[port 0]\ntap = rocitest\n', before=['unshare', '--net'])
    said = d.said()
    d.check_ends()
    check('no GIDs yet: give rocitest an address, `ip addr add 192.0.2.1/24 dev rocitest`' in said or
          re.search('GID 0: fe80:', said), said)


def main():
    rocid = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        test_check_config(rocid, folder)
        test_agreement(rocid, folder)
        test_pipe(rocid)
        test_serving(rocid, folder)
        test_banner(rocid, folder)


if __name__ == '__main__':
    main()
