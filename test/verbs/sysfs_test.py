#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""sysfs_test.py ROCID ROCI-RUN

/sys/class/infiniband under roci-run: what ibstat, ibstatus and ibv_devinfo say, and what the scripts read that map
devices to netdevs and list GIDs; that it follows the device, and ends with its rocid. Needs root."""
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Lab, PATIENCE_S, ping, skip, wait_for  # noqa: E402
from rdmacm import FOUR, SIX, link  # noqa: E402
from rocid import ask, check  # noqa: E402

NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
CLASS = '/sys/class/infiniband'
PORT = f'{CLASS}/roci0/ports/1'
# As show_gids of other vendors' tools does: index, GID, type, netdev.
GIDS = f'''cd {PORT}/gids && for i in $(ls | sort -n); do g=$(cat $i)
[ $g = 0000:0000:0000:0000:0000:0000:0000:0000 ] && continue
echo "$i $g $(cat ../gid_attrs/types/$i), $(cat ../gid_attrs/ndevs/$i)"; done'''
# As ibdev2netdev does.
NETDEVS = f'''for d in {CLASS}/*; do for n in $d/device/net/*; do
echo "${{d##*/}} ==> ${{n##*/}} $(cat $d/ports/1/state)"; done; done'''


class Machine:
    def __init__(self, namespace, daemon, run):
        self.namespace, self.daemon, self.run = namespace, daemon, run

    def command(self, *words, by=(), socket=None):
        return self.namespace.command([*by, self.run, '--socket', socket or self.daemon.socket, *words])

    def out(self, *words, **kw):
        r = subprocess.run(self.command(*words, **kw), capture_output=True, text=True, timeout=PATIENCE_S,
                           env={**os.environ, 'LC_ALL': 'C'})
        check(r.returncode == 0 and not r.stderr, f'{words}: {r}')
        return r.stdout

    def gids(self, **kw):
        return [line.split(' ', 2) for line in self.out('sh', '-c', GIDS, **kw).splitlines()]


class Shell:
    """A program that runs on while the device changes."""

    def __init__(self, machine):
        self.process = subprocess.Popen(machine.command('sh'), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def cat(self, path):
        self.process.stdin.write(f'cat {path} 2>/dev/null || echo none; echo .\n')
        self.process.stdin.flush()
        return ''.join(iter(self.process.stdout.readline, '.\n')).strip()

    def becomes(self, path, text):
        wait_for(f'{path} to say {text}', lambda: self.cat(path) == text)

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)


def said(text, name):
    return re.findall(rf'^\s*{name}:\s*(\S.*)', text, re.M)


def test_tools(m):
    """One device, whoever asks and by whatever tool."""
    for by in (), NOBODY:
        info, stat, status = m.out('ibv_devinfo', '-v', by=by), m.out('ibstat', by=by), m.out('ibstatus', by=by)
        guid = said(info, 'node_guid')[0].replace(':', '')
        check(said(stat, 'Node GUID') == said(stat, 'Port GUID') == ['0x' + guid], stat)
        check(said(stat, 'Firmware version') == said(info, 'fw_ver'), stat)
        check(said(info, 'board_id') == ['rocinante'], info)
        check(said(stat, 'State') == ['Active'] and said(stat, 'Link layer') == ['Ethernet'], stat)
        check(said(status, 'state') == ['4: ACTIVE'] and said(status, 'rate') == ['10 Gb/sec (1X FDR10)'], status)
        check('10.0 Gbps (8)' in info and '1X (1)' in info, f'the rate of ibv_devinfo differs: {info}')
        check(m.out('ibstat', '-l', by=by) == 'roci0\n', 'the list')
        listed = [(f'{int(i)}', g.lower()) for i, g in re.findall(r'GID\[\s*(\d+)\]:\s*([0-9a-f:.]+)', info)]
        check(len(m.gids(by=by)) == len(listed) > 2, f'{listed} and {m.gids(by=by)}')
        check(m.out('sh', '-c', NETDEVS, by=by) == 'roci0 ==> e0 4: ACTIVE\n', 'the netdev')


def test_gids(m):
    """Those of rocictl, index by index."""
    ours = {str(g['index']): g for g in ask(m.daemon, 'show gids')['gids'] if g.get('valid', True)}
    rows = m.gids()
    check([r[0] for r in rows] == sorted(ours, key=int), f'{rows}, {ours}')
    for index, gid, rest in rows:
        check(rest in ('RoCE v2, e0', 'IB/RoCE v1, e0'), f'{rest}')
        check((rest[0] == 'R') == ('v1' not in ours[index]['type']), f'{index} {rest}: {ours[index]}')
    four = '0000:0000:0000:0000:0000:ffff:0a08:0001'
    check([r[2] for r in rows if r[1] == four] == ['RoCE v2, e0', 'IB/RoCE v1, e0'], f'{rows}')


def test_changes(m, peer):
    """A program that runs sees addresses, the link's state and counters change, at once or within a second."""
    shell = Shell(m)
    index = len([r for r in m.gids() if 'v2' in r[2]])
    m.namespace.run('ip address add 10.8.0.77/24 dev e0')
    shell.becomes(f'{PORT}/gids/{index}', '0000:0000:0000:0000:0000:ffff:0a08:004d')
    shell.becomes(f'{PORT}/gid_attrs/types/{index}', 'RoCE v2')
    m.namespace.run('ip address delete 10.8.0.77/24 dev e0')
    shell.becomes(f'{PORT}/gids/{index}', ':'.join(['0000'] * 8))
    shell.becomes(f'{PORT}/gid_attrs/types/{index}', 'none')
    downed = int(shell.cat(f'{PORT}/counters/link_downed'))
    peer.namespace.run('ip link set e0 down')
    shell.becomes(f'{PORT}/state', '1: DOWN')
    shell.becomes(f'{PORT}/phys_state', '3: Disabled')
    shell.becomes(f'{PORT}/counters/link_downed', str(downed + 1))
    peer.namespace.run(f'ip link set e0 up; ip address replace {SIX["client"]}/64 dev e0 nodad')
    shell.becomes(f'{PORT}/state', '4: ACTIVE')
    ask(m.daemon, 'set port 1 pkey 3 0x8123')
    shell.becomes(f'{PORT}/pkeys/3', '0x8123')
    sent = int(shell.cat(f'{PORT}/counters/port_xmit_packets'))
    ping(peer.namespace, SIX['server'])
    server = subprocess.Popen(m.command('ibv_rc_pingpong', '-g', '1', '-n', '200', '-e'), stdout=subprocess.DEVNULL)
    wait_for('the server', lambda: ' 0A ' in Path(f'/proc/{m.namespace.pid}/net/tcp6').read_text() + Path(
        f'/proc/{m.namespace.pid}/net/tcp').read_text())
    peer.out('ibv_rc_pingpong', '-g', '1', '-n', '200', '-e', FOUR['server'])
    check(server.wait(PATIENCE_S) == 0, 'the server failed')
    wait_for('the counter', lambda: int(shell.cat(f'{PORT}/counters/port_xmit_packets')) >= sent + 200)
    ours = ask(m.daemon, 'show hw_counters')['hw_counters']
    check({*m.out('ls', f'{PORT}/hw_counters').split()} == {*ours, 'lifespan'}, 'the hw_counters')
    shell.close()


def test_names(machines):
    """Two devices of one name have two, the same in the list and in the folder."""
    both = ':'.join(m.daemon.socket for m in machines)
    names = machines[0].out('ls', CLASS, socket=both).split()
    check(names == ['roci0', 'roci1'], f'{names}')
    listed = re.findall(r'^ +(roci\d)', machines[0].out('ibv_devices', socket=both), re.M)
    check(listed == names, f'{listed}')
    owner = machines[0].out('cat', '/sys/class/infiniband_verbs/uverbs1/ibdev', socket=both)
    check(owner == 'roci1\n', owner)


def end(daemon, how):
    daemon.send_signal(how)
    check(daemon.wait(PATIENCE_S) in (0, -how), f'rocid: {daemon.returncode}')


def test_end(lab, m):
    """The device goes with its rocid, and comes with the next; of a killed one the next program is told."""
    folder = Path(m.daemon.socket + '.sys')
    shell = Shell(m)
    check(shell.cat(f'{PORT}/state') == '4: ACTIVE', 'no state')
    end(m.daemon, signal.SIGTERM)
    check(not folder.exists() and shell.cat(f'{PORT}/state') == 'none', 'it has stayed')
    again = lab.rocid(m.namespace, 'a', ['--share', 'e0', '--socket-mode', '0666', '--rocev1'])
    shell.becomes(f'{PORT}/state', '4: ACTIVE')
    end(again, signal.SIGKILL)
    r = subprocess.run(m.command('echo', 'runs'), capture_output=True, text=True, timeout=PATIENCE_S)
    check(r.stdout == 'runs\n' and 'shows no device' in r.stderr, f'{r}')
    last = lab.rocid(m.namespace, 'a', ['--share', 'e0', '--socket-mode', '0666', '--rocev1'])
    shell.becomes(f'{PORT}/state', '4: ACTIVE')
    shell.close()
    end(last, signal.SIGTERM)
    check(not folder.exists(), 'it has stayed')


def test_taken(lab, m):
    """Where somebody else has made the folder rocid writes nothing, says so and serves."""
    folder, victim = Path(m.daemon.socket + '.sys'), Path(lab.path('victim'))
    victim.mkdir()
    (victim / 'file').write_text('mine')
    for take in (lambda: folder.symlink_to(victim), lambda: (folder.mkdir(), os.chown(folder, 65534, 65534))):
        take()
        daemon = lab.rocid(m.namespace, 'a', ['--share', 'e0', '--socket-mode', '0666'])
        log = Path(lab.path('a.log')).read_text()
        check('programs will not find the device' in log, log)
        ask(daemon, 'version')
        check([f.name for f in victim.iterdir()] == ['file'], 'the victim has changed')
        check(not list(folder.iterdir()) or folder.is_symlink(), 'files in a stranger\'s folder')
        end(daemon, signal.SIGTERM)
        (folder.unlink if folder.is_symlink() else folder.rmdir)()


def test_no_room(lab, m):
    """What could not be written is written later, whatever is news then."""
    daemon = lab.rocid(m.namespace, 'two', ['--ring-pair'])
    folder = Path(daemon.socket + '.sys')

    def state(port):
        return (folder / f'infiniband/roci0/ports/{port}/state').read_text()
    (folder / '.new').mkdir()       # the name of a file until it is complete
    ask(daemon, 'set port 2 down')
    check(state(2) == '4: ACTIVE\n', state(2))
    (folder / '.new').rmdir()
    ask(daemon, 'set port 1 down')
    for port in 1, 2:
        wait_for(f'port {port} to be down', lambda p=port: state(p) == '1: DOWN\n')
    end(daemon, signal.SIGTERM)


def test_slow_files(lab, m):
    """A file system that keeps its writer waiting, here a FIFO without a reader, keeps no program waiting."""
    daemon = lab.rocid(m.namespace, 'slow', ['--ring-pair'])
    fifo = Path(daemon.socket + '.sys') / '.new'
    os.mkfifo(fifo)
    for down in True, False, True:
        ask(daemon, f'set port 2 {"down" if down else "up"}')
        state = ask(daemon, 'show ports')['ports'][1]['state']
        check((state == 'ACTIVE') is not down, f'port 2: {state}')
    reader = os.open(fifo, os.O_RDONLY)     # waits for the writer
    end(daemon, signal.SIGTERM)
    os.close(reader)


def main():
    rocid, run = sys.argv[1:]
    if not shutil.which('ibstat'):
        skip('ibstat is not installed (infiniband-diags)')
    with Lab(rocid, None) as lab:
        os.chmod(lab.path('.'), 0o755)
        namespaces = link(lab)
        options = ['--share', 'e0', '--socket-mode', '0666', '--rocev1']
        machines = [Machine(n, lab.rocid(n, name, options), run) for n, name in zip(namespaces, 'ab')]
        ping(machines[1].namespace, SIX['server'])
        test_tools(machines[0])
        test_gids(machines[0])
        test_changes(*machines)
        test_names(machines)
        test_end(lab, machines[0])
        test_taken(lab, machines[0])
        test_no_room(lab, machines[0])
        test_slow_files(lab, machines[0])


if __name__ == '__main__':
    main()
