#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""capture_test.py ROCID ROCICTL STEPS SHARED: rocictl capture of known traffic, read back by tshark, its
frames judged by an ICRC of somebody else's; and what happens to rocid when the capture goes wrong."""
import collections
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import time
from rocid import PATIENCE_S, RING_PAIR, check, start, wait_until
from steps import Steps, frames, sections

ACK = 17
LOSSY = 15      # 134 ms to what was lost is sent again; one worker is both ends, and is not late for itself
FOREIGN = ('not_roce', 'eth_short', 'ip_version', 'ip4_ihl', 'ip_next_header', 'udp_port')


class Capture:
    """A rocictl that captures."""

    def __init__(self, program, daemon, path, *what, **how):
        self.process = subprocess.Popen(
            [program, '--socket', daemon.socket, 'capture', path, *map(str, what)],
            stderr=subprocess.PIPE, **how)
        self.path = path
        self.said = self.process.stderr.readline().decode()

    def end(self, sig=signal.SIGINT):
        """Its exit status and the last that it said."""
        if sig:
            self.process.send_signal(sig)
        said = self.process.communicate(timeout=PATIENCE_S)[1].decode()
        return self.process.returncode, said

    def frames(self, sig=signal.SIGINT):
        status, said = self.end(sig)
        check(status == 0, f'capture ends with {status}: {self.said}{said}')
        found = frames(self.path)
        check(said == f'rocictl: {len(found)} frames captured, 0 lost\n', f'{len(found)}: {said}')
        return found


def captures(daemon):
    return daemon.ask('show captures')['captures']


def counters(daemon):
    drops = {d['reason']: d['packets'] for d in daemon.ask('show drops')['drops']}
    return daemon.ask('show counters')['counters'], drops


def is_out(frame):
    return int(frame['packet_flags_direction'], 0) == 2


def judge(path, oracle, folder):
    """How many good and bad ICRCs the oracle finds; None without one."""
    if not os.path.exists(oracle):
        print('no oracle: ICRCs are not judged')
        return None
    pcap = os.path.join(folder, 'judged.pcap')
    subprocess.run(['editcap', '-F', 'pcap', path, pcap], check=True, capture_output=True)
    words = subprocess.run([sys.executable, oracle, pcap], capture_output=True, text=True,
                           check=True).stdout.split()
    os.unlink(pcap)
    return int(words[words.index('ok') + 1]), int(words[words.index('bad') + 1])


def test_everything(programs, folder):
    """Frames, as many as the counters say, in both directions, dropped ones with their reason."""
    rocid, rocictl, steps, oracle = programs
    daemon = start(rocid, folder, args=RING_PAIR + ['--impair', '1,corrupt=0.2,seed=7'])
    s = Steps(steps, daemon, timeout=LOSSY)
    path = os.path.join(folder, 'all.pcapng')
    started = time.time()
    c = Capture(rocictl, daemon, path)
    check(c.said == f'rocictl: capturing to {path}, Ctrl-C ends it\n', c.said)
    check(len(captures(daemon)) == 1, 'no capture is shown')
    for what in ('write', 'send', 'read'):
        s.do(what, 20, 3000)
    counted, drops = counters(daemon)
    found = c.frames()
    check(not captures(daemon), 'the capture is still there')
    sent = [f for f in found if is_out(f)]
    received = [f for f in found if not is_out(f)]
    dropped = [f for f in received if f['comment']]
    check(len(sent) == counted['tx_packets'], f'{len(sent)} sent, {counted}')
    # malformed frames never reach the core, which counts the others
    malformed = [f for f in dropped if not f['comment'].startswith('dropped: icrc ')]
    check(len(received) - len(malformed) <= counted['rx_packets'] <= len(received),
          f'{len(received)} received, {len(malformed)} malformed, {counted}')
    reasons = collections.Counter(f['comment'].split()[1] for f in dropped)
    check('dropped: icrc (CA17-24)' in {f['comment'] for f in dropped}, f'no bad ICRC: {reasons}')
    # what corruption made of another protocol is none of ours to show
    drops = {name: n for name, n in drops.items() if name not in FOREIGN}
    check(reasons == drops, f'{reasons}, counted were {drops}')
    good, bad = judge(path, oracle, folder) or (len(found) - len(dropped), reasons['icrc'])
    check(good + bad <= len(found) and bad >= reasons['icrc'] and good >= len(found) - len(dropped),
          f'oracle: {good} good, {bad} bad of {len(found)}')
    for f in found:
        check(started - 1 < float(f['time_epoch']) < time.time() + 1, f'time of {f}')
        # port 1 sends to port 2 and back
        check(f['interface_id'] == ('0' if (f['destqp'] == s.b) == is_out(f) else '1') or
              f['comment'], f'interface: {f}')
    times = [float(f['time_epoch']) for f in found]
    check(times == sorted(times), 'frames are not in the order of their times')
    told = sections(path)
    for words in ('Name = net_ring_pair0a', 'Description = rocid port 2 (net_ring_pair0b)',
                  'Speed = 10000000000', 'Name = local', 'Capture application: rocid',
                  'Number of stat entries = 1'):
        check(words in told, f'{words} is not in {told}')
    check(stat.S_IMODE(os.stat(path).st_mode) == 0o600, 'others may read the frames')
    s.end()
    daemon.check_ends()


def test_filters(programs, folder):
    rocid, rocictl, steps, _ = programs
    daemon = start(rocid, folder, args=RING_PAIR + ['--impair', '1,nth=5'])
    s, other = (Steps(steps, daemon, timeout=LOSSY) for _ in range(2))

    def of(name, *what):
        return Capture(rocictl, daemon, os.path.join(folder, name + '.pcapng'), *what)

    every = of('every')
    qp = of('qp', 'qp', s.a)
    count = of('count', 'count', 7, 'snap', 70, 'out')
    drops = of('drops', 'drops', 'qp', s.b)
    check([c['filter'] for c in captures(daemon)] ==
          ['', f'qp {s.a}', 'count 7 snap 70 out', f'drops qp {s.b}'], 'filters')
    fifth = of('fifth')
    check(fifth.end(None) == (1, '') and '4 captures are already running' in fifth.said, fifth.said)
    for _ in range(10):
        s.do('write', 1, 2000)
        other.do('write', 1, 100)
    seven = count.frames(None)
    check(len(seven) == 7 and all(is_out(f) and int(f['cap_len']) == min(70, int(f['len']))
                                  for f in seven), f'count, snap, out: {seven}')
    qp, every, drops = qp.frames(), every.frames(), drops.frames()

    def keys(found):
        return [(f['packet_flags_direction'], f['destqp'], f['psn'], f['len'], f['comment'])
                for f in found]
    check(keys(qp) == keys(f for f in every if f['destqp'] == (s.b if is_out(f) else s.a)),
          'not the frames of the QP')
    check(keys(drops) == keys(f for f in every if f['comment'] and f['destqp'] == s.b),
          'not what was dropped')
    # the lost packets never came; of the later ones, the first is NAKed, the others dropped
    check({f['comment'] for f in drops} <= {'dropped: psn_ahead (RSP-03)'}, f'drops: {drops}')
    check(len([f for f in qp if f['opcode'] == ACK]) >= 10, 'ACKs of the QP')
    port = of('port', 'port', 2, 'in')
    s.do('write', 1, 2000)
    other.do('write', 1, 100)
    port = port.frames()
    check({f['interface_id'] for f in port} == {'1'} and not any(map(is_out, port)) and
          {f['destqp'] for f in port} == {s.b, other.b}, f'port, in: {port}')
    s.end()
    other.end()
    daemon.check_ends()


def test_local(programs, folder):
    """Two QPs of one port: the same frames, twice, on an interface of their own; IPv6 and VLAN tags
    as they would be on a wire."""
    rocid, rocictl, steps, oracle = programs
    for name, args, ether in (
            ('v6', ['--gid', '0,2001:db8::1'], '0x86dd'),
            ('vlan', ['--gid', '0,192.0.2.1,vid=7'], '0x8100'),
            ('v4', ['--gid', '0,192.0.2.1'], '0x0800')):
        daemon = start(rocid, folder, args=['--ring-pair', *args], name=name)
        s = Steps(steps, daemon, 1, 1)
        c = Capture(rocictl, daemon, os.path.join(folder, name + '.pcapng'))
        s.do('write', 3, 100)
        found = c.frames()
        check(len(found) == 12 and {f['interface_name'] for f in found} == {'local'},
              f'local: {found}')
        check(sum(map(is_out, found)) == 6, 'directions')
        check({f['type'] for f in found} == {ether} and
              {f['id'] for f in found} == {'7' if name == 'vlan' else ''}, f'{name}: {found[0]}')
        check(judge(c.path, oracle, folder) in ((12, 0), None), 'ICRCs')
        s.end()
        daemon.check_ends()


def test_pipe(programs, daemon, folder):
    """As in `rocictl capture - | wireshark -k -i -`: frames come while it runs; a reader that has
    seen enough ends it."""
    _, rocictl, steps, _ = programs
    s = Steps(steps, daemon)
    c = Capture(rocictl, daemon, '-', stdout=subprocess.PIPE)
    reader = subprocess.Popen(['tshark', '-i', '-', '-c', '4', '-T', 'fields', '-e', 'frame.number'],
                              stdin=c.process.stdout, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    c.process.stdout.close()
    numbers = []
    while len(numbers) < 4:
        s.do('write', 1, 100)
        check(reader.poll() is None or reader.returncode == 0, 'tshark fails')
        numbers += reader.stdout.readlines() if reader.poll() is not None else []
    reader.wait(PATIENCE_S)
    # it notices with the next frame that nobody reads
    wait_until(lambda: s.do('write', 1, 100) or c.process.poll() is not None, 'the pipe is gone')
    check(c.process.returncode == 0, f'rocictl: {c.process.stderr.read()}')
    wait_until(lambda: not captures(daemon), 'the capture is still there')
    s.end()


def test_deaths(programs, daemon, folder):
    """rocictl is killed, or stands still, in the midst of it."""
    _, rocictl, steps, _ = programs
    s = Steps(steps, daemon)
    fds = daemon.idle_fds()
    c = Capture(rocictl, daemon, os.path.join(folder, 'killed.pcapng'))
    s.do('write', 5, 1000)
    check(c.end(signal.SIGKILL)[0] == -signal.SIGKILL, 'rocictl lives')
    wait_until(lambda: not captures(daemon), 'a capture whose rocictl was killed')
    stuck = Capture(rocictl, daemon, os.path.join(folder, 'stuck.pcapng'))
    stuck.process.send_signal(signal.SIGSTOP)
    for _ in range(20):  # more than socket and ring hold
        s.do('write', 50, 60000)
        if captures(daemon)[0]['lost']:
            break
    shown, = captures(daemon)
    check(shown['lost'], f'nothing is lost: {shown}')
    stuck.process.send_signal(signal.SIGCONT)
    status, said = stuck.end()
    found = frames(stuck.path)
    check(status == 0 and said.endswith(' lost\n') and ' 0 lost' not in said and
          int(said.split()[1]) == len(found), f'{len(found)} frames: {said}')
    dropped = subprocess.run(['tshark', '-r', stuck.path, '-Y', 'frame.packet_flags_direction'],
                             capture_output=True, timeout=PATIENCE_S)
    check(dropped.returncode == 0, 'tshark')
    wait_until(lambda: not captures(daemon) and daemon.fds() == fds, 'descriptors are left')
    s.end()


def test_disk_full(programs, daemon, folder):
    _, rocictl, steps, _ = programs
    small = os.path.join(folder, 'small')
    os.mkdir(small)
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', small],
                      stderr=subprocess.DEVNULL).returncode:
        print('no tmpfs: a full disk is not tested')
        return
    try:
        s = Steps(steps, daemon)
        c = Capture(rocictl, daemon, os.path.join(small, 'full.pcapng'))
        s.do('write', 40, 4000)
        status, said = c.end(None)
        found = frames(c.path)
        check(status == 1 and 'No space left' in said and f' {len(found)} frames' in said and
              len(found) > 10, f'{status} {said} {len(found)}')
        wait_until(lambda: not captures(daemon), 'a capture without a file')
        s.do('write', 5, 100)
        s.end()
    finally:
        subprocess.run(['umount', small], check=True)


def test_refusals(programs, daemon, folder):
    rocid, rocictl, _, _ = programs
    path = os.path.join(folder, 'kept')
    with open(path, 'w') as f:
        f.write('precious')
    for what, sentence in ((['qp', '9999999'], 'QP 9999999 does not exist'),
                           (['port', '3'], 'this rocid has 1 to 2'),
                           (['count', '0'], '1 or more'), (['snap', '70000'], 'bytes from 1'),
                           (['count'], 'number is missing'), (['tcp'], '"tcp" is unknown'),
                           (['drops'] * 13, 'more than 12 words'),
                           (['in', 'out'], 'exclude each other'), (['drops', 'out'], 'are never dropped')):
        c = Capture(rocictl, daemon, path, *what)
        check(c.end(None)[0] == 1 and sentence in c.said, f'{what}: {c.said}')
    check(open(path).read() == 'precious', 'a capture that is refused overwrites the file')
    c = Capture(rocictl, daemon, os.path.join(folder, 'none/x'))
    check(c.end(None)[0] == 1 and 'No such file' in c.said, c.said)
    wait_until(lambda: not captures(daemon), 'a capture whose file cannot be made')
    check('through a unix socket passed with it' in daemon.ask('capture')['error'], 'a capture without socket')
    check(not captures(daemon), 'it runs')


def main():
    *programs, shared = sys.argv[1:]
    if not shutil.which('tshark'):
        print('no tshark: skipped')
        return 77
    programs.append(os.path.join(shared, 'oracle', 'validate_pcap.py'))
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        test_everything(programs, folder)
        test_filters(programs, folder)
        test_local(programs, folder)
        daemon = start(programs[0], folder, name='long', args=RING_PAIR + ['--mtu', '0,4300',
                                                                          '--mtu', '1,4300'])
        test_pipe(programs, daemon, folder)
        test_deaths(programs, daemon, folder)
        test_disk_full(programs, daemon, folder)
        test_refusals(programs, daemon, folder)
        daemon.check_ends()
    return 0


if __name__ == '__main__':
    sys.exit(main())
