#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""fast_cnp_test.py ROCID ROCICTL ROCIGEN ROCISINK: a rocid with queue pairs over IPv6, and rocigen as a
switch at the other end of its link: Fast CNPs and CNPs, good, forged and broken, counted by their reasons; a flood of
marks; on, changed, and off. Floods of CNPs are in cnp_flood_test.py."""
import json
import os
import subprocess
import sys
import tempfile
import time
from rocid import PATIENCE_S, check, eal_args, start, wait_until

MAC = ('02:00:00:00:00:01', '02:00:00:00:00:02')
OURS, PEER, SWITCH, OTHER = 'fd00::1', 'fd00::2', 'fd00:5::1', 'fd00:6::1'
QPS = 3        # all connected to QP 2 of the peer
PEER_QPN = 2
COUNT = 20     # of packets per row: fewer than the burst
HANDLED = 'rp_fast_cnp_handled'
IGNORED = 'rp_fast_cnp_ignored'

# Options of the frame, which is a correct Fast CNP without any, and what is counted per packet.
ROWS = (
    # by now the packets of the queue pairs have left, which need a peer that is there
    (['--qpn', '3'], {'fast_cnp_no_qp': 1}),
    ([], {HANDLED: QPS}),
    (['--trace', '28'], {HANDLED: QPS}),
    (['--fault', 'padded'], {HANDLED: QPS}),
    (['--src', OTHER], {'fast_cnp_source': 1}),
    (['--src', PEER], {'fast_cnp_source': 1}),
    (['--fast-cnp', 'fd00::3'], {'fast_cnp_no_qp': 1}),
    (['--pkey', '0x8123'], {IGNORED: QPS, 'pkey': QPS}),
    (['--dst', 'fd00::9'], {'dgid': 1}),
    (['--dmac', '02:00:00:00:00:77'], {'dmac': 1}),
    (['--option', '0x9d'], {'fast_cnp_unknown': 1}),
    (['--option', '0x9f'], {'fast_cnp_length': 1}),
    (['--fault', 'short'], {'fast_cnp_length': 1}),
    (['--fault', 'long'], {'fast_cnp_length': 1}),
    (['--fault', 'twice'], {'fast_cnp_twice': 1}),
    (['--fault', 'unknown'], {'fast_cnp_unknown': 1}),
    (['--fault', 'none'], {'fast_cnp_unknown': 1}),
    (['--fault', 'overrun'], {'fast_cnp_header': 1}),
    (['--fault', 'opcode'], {'fast_cnp_opcode': 1}),
    (['--fault', 'icrc'], {'icrc': 1}),
    # no Fast CNPs, but other protocols
    (['--fault', 'beyond'], {'ip_next_header': 1}),
    (['--fault', 'ip4'], {'ip_next_header': 1}),
    (['--fault', 'after-udp'], {'bth_tver': 1}),
)

# CNPs; {qpn} is that of a queue pair.
PLAIN = ('--opcode', 'CNP', '--src', PEER, '--qpn', '{qpn}')
CNPS = (
    ([], {'rp_cnp_handled': 1}),
    (['--src', 'fd00::3'], {'rp_cnp_ignored': 1, 'qp_address': 1}),
    (['--src', SWITCH], {'rp_cnp_ignored': 1, 'qp_address': 1}),
    (['--qpn', str(PEER_QPN)], {'qpn_unknown': 1}),
    (['--pkey', '0x8123'], {'rp_cnp_ignored': 1, 'pkey': 1}),
    (['--bad-icrc', '1'], {'icrc': 1}),
    (['--vlan', '7'], {'dgid': 1}),
    (['--src', OURS], {'martian': 1}),
)


class Lab:
    """The daemon, its queue pairs, and what rocigen sends to them."""

    def __init__(self, programs, folder, more=(), workers=1):
        self.rocid, self.rocictl, self.rocigen, self.rocisink = programs
        self.link = os.path.join(folder, 'link')
        vdev = f'net_memif0,role=server,id=0,socket={self.link},socket-abstract=no,bsize=4608,mac={MAC[0]}'
        self.daemon = start(self.rocid, folder, eal=[*eal_args(64 * workers, workers), '--vdev', vdev], args=(
            '--mtu', '0,4300', '--gid', f'0,{OURS}', '--neigh', f'0,{PEER},{MAC[1]}',
            '--cc', f'0,notify,fastcnp={SWITCH},fastcnp_rate=1', *more))

    def start_sink(self, *busy):
        self.sink = subprocess.Popen([self.rocisink, self.daemon.socket, '1', OURS, PEER, str(QPS), '0', *busy],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.qpns = json.loads(self.sink.stdout.readline())['qpn']
        if busy:
            wait_until(lambda: all(q['in_flight'] for q in self.requesters()), 'the queue pairs send nothing')

    def requesters(self):
        return [self.daemon.ask(f'show qp {n}')['requester'] for n in self.qpns]

    def counts(self):
        found = dict(self.daemon.ask('show counters')['counters'])
        found.update((d['reason'], d['packets']) for d in self.daemon.ask('show drops')['drops'])
        return {k: v for k, v in found.items() if k not in ('rx_packets', 'rx_bytes')}

    def moved(self, before):
        return {k: v - before.get(k, 0) for k, v in self.counts().items() if v != before.get(k, 0)}

    def send(self, arguments, count):
        vdev = f'net_memif0,role=client,id=0,socket={self.link},socket-abstract=no,bsize=4608,mac={MAC[1]}'
        given = {'--src': SWITCH, '--dst': OURS, '--smac': MAC[1], '--dmac': MAC[0], '--fast-cnp': PEER,
                 '--qpn': str(PEER_QPN), **dict(zip(arguments[::2], arguments[1::2]))}
        if '--opcode' in given:
            given.pop('--fast-cnp')
            given['--qpn'] = given['--qpn'].format(qpn=self.qpns[0])
        process = subprocess.Popen(
            [self.rocigen, *eal_args(256), '--no-telemetry', '--file-prefix', f'fast{os.getpid()}', '--log-level', 'error',
             '--vdev', vdev, '--', *[w for pair in given.items() for w in pair], '--count', str(count), '--hold'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said = process.stdout.readline()
        check(said and json.loads(said)['sent'] == count, f'rocigen {arguments} says {said}')
        return process

    def row(self, arguments, expected, count=COUNT):
        """What moves, once it is as expected: the packets may take a while."""
        before = self.counts()
        want = {k: n * count for k, n in expected.items()}
        process = self.send(arguments, count)
        wait_until(lambda: self.moved(before) == want,
                   f'{arguments}: the counters moved by {self.moved(before)}, not {want}')
        process.stdin.close()
        check(process.wait(PATIENCE_S) == 0, 'rocigen fails')

    def set(self, value):
        said = self.daemon.ask(f'set port 1 cc {value}')
        check('error' not in said, f'{said}')

    def state(self):
        return [q for q in self.daemon.ask('show qps')['qps'] if q['qpn'] in self.qpns]

    def end_sink(self):
        self.sink.stdin.close()
        check(self.sink.wait(PATIENCE_S) == 0, 'rocisink fails')

    def end(self):
        self.end_sink()
        self.daemon.check_ends()


def test_idle(lab):
    # proves CNP-16, FCN-16: who sends nothing is not slowed
    lab.start_sink()
    time.sleep(1)       # a packet is remembered for 30 ms at most in which the worker runs
    lab.set(f'notify,fastcnp={SWITCH},fastcnp_burst=1000')
    lab.row([], {IGNORED: QPS, 'cnp_idle': QPS})
    lab.row(list(PLAIN), {'rp_cnp_ignored': 1, 'cnp_idle': 1})
    lab.end_sink()


def test(lab):
    # proves FCN-03, FCN-07, FCN-08, FCN-09, FCN-10, FCN-12, FCN-16
    lab.start_sink('busy')
    lab.set(f'notify,fastcnp={SWITCH},fastcnp_burst=1000')
    check(f'fastcnp={SWITCH},' in str(lab.daemon.ask('show cc')), 'show cc tells the switch')
    before = lab.state()
    for arguments, expected in ROWS:
        lab.row(arguments, expected)
    check(lab.state() == before, 'the queue pairs are as they were')
    # proves FCN-04: other types; FCN-10: a prefix
    lab.set('notify,fastcnp=fd00:4::/30,fastcnp_opt1=0x9d,fastcnp_burst=1000')
    lab.row(['--option', '0x9d', '--src', OTHER], {HANDLED: QPS})
    lab.row([], {'fast_cnp_unknown': 1})


def test_cnps(lab):
    # proves CNP-11, CNP-16: forged ones, and those of the peer
    lab.set('notify')
    before = lab.state()
    for arguments, expected in CNPS:
        lab.row([*PLAIN, *arguments], expected)
    check(lab.state() == before, 'the queue pairs are as they were')
    lab.set('off')
    lab.row(list(PLAIN), {'rp_cnp_ignored': 1, 'cnp_ignored': 1})


def test_marks(lab):
    # proves CNP-06: a flood of marks makes a CNP an interval: a second, which a paused daemon may see pass
    lab.set('notify,np_min_time_between_cnps=1000000')
    before = lab.counts()
    process = lab.send(['--opcode', 'ACKNOWLEDGE', '--src', PEER, '--ce', '1', '--qpn', '{qpn}'], 1000)
    wait_until(lambda: lab.moved(before).get('np_ecn_marked_roce_packets') == 1000, lambda: f'{lab.moved(before)}')
    check(1 <= lab.moved(before).get('np_cnp_sent', 0) <= PATIENCE_S, f'{lab.moved(before)}')
    process.stdin.close()
    check(process.wait(PATIENCE_S) == 0, 'rocigen fails')


def test_rate(lab):
    # proves FCN-11: one a second, so that nothing is counted by the clock but a few
    lab.set(f'notify,fastcnp={SWITCH},fastcnp_rate=1,fastcnp_burst=4')
    before = lab.counts()
    process = lab.send([], 1000)
    wait_until(lambda: sum(lab.moved(before).get(k, 0) * n for k, n in ((HANDLED, 1), ('fast_cnp_rate', QPS)))
               == 1000 * QPS, f'{lab.moved(before)}')
    moved = lab.moved(before)
    check(4 * QPS <= moved[HANDLED] <= (4 + PATIENCE_S) * QPS and len(moved) == 2, f'{moved}')
    process.stdin.close()
    check(process.wait(PATIENCE_S) == 0, 'rocigen fails')


def test_off(lab):
    # proves FCN-01, FCN-14: as any other packet with an extension header
    for off in 'notify', 'off':
        lab.set(off)
        lab.row([], {'ip_next_header': 1})
        lab.row(['--fault', 'twice'], {'ip_next_header': 1})


def main(*programs):
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(programs, folder)
        test_idle(lab)
        test(lab)
        test_cnps(lab)
        test_rate(lab)
        test_marks(lab)     # its ACKs end what is in flight
        test_off(lab)
        lab.end()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
