#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""gso_auto_test.py ROCID STREAM: daemons with --gso=auto on a veth and on a bridge. Runs of frames go to
peers that take them, as counters tell, and to nobody else: what they would lose would be resent. Needs
root."""
import fcntl
import os
import signal
import struct
import sys
import time

from netlab import PATIENCE_S, Lab, veth, wait_for

KNOWN_S = 0.25  # GSO_KNOWN_MS of drivers/gso/peers.h
HARMLESS = {'not_roce', 'ip_next_header', 'opcode_class'}  # other traffic, trials


class Host:
    """A namespace with netdev e0, and a rocid on it."""

    def __init__(self, lab, number):
        self.lab, self.number = lab, number
        self.name = 'abc'[number]
        self.namespace = lab.namespace()
        self.rocid, self.starts = None, 0

    def start(self, *options):
        self.starts += 1
        self.rocid = self.lab.rocid(self.namespace, f'{self.name}{self.starts}', ['--share', 'e0', *options])

    def stop(self):
        self.rocid.send_signal(signal.SIGTERM)
        self.rocid.wait(PATIENCE_S)

    def address(self):
        self.namespace.run(f'ip addr add 10.6.0.{self.number + 1}/24 dev e0')

    def device(self):
        return self.lab.ask(self.rocid, 'show port 1')['device']

    def runs(self):
        return self.device().get('runs', 0)

    def resent(self):
        return self.lab.ask(self.rocid, 'show counters')['counters']['retransmits']

    def is_unharmed(self, resent):
        assert self.resent() == resent, f'{self.name}: {self.resent()} packets resent, {resent} before'
        drops = {d['reason'] for d in self.lab.ask(self.rocid, 'show drops')['drops']}
        assert drops <= HARMLESS, f'{self.name}: {drops}'
        lost = {key: self.device()[key] for key in ('imissed', 'ierrors', 'oerrors', 'rx_nombuf')}
        assert not any(lost.values()), f'{self.name}: {lost}'


def gid(lab, host):
    found = [g['index'] for g in lab.ask(host.rocid, 'show gids')['gids'] if g['gid'] == f'10.6.0.{host.number + 1}']
    return found[0]


def stream(lab, x, y):
    return lab.stream(x.rocid, 1, gid(lab, x), y.rocid, 1, gid(lab, y))


def flows_in_runs(s, *hosts):
    """Until each has sent more runs: a peer that did not answer at first is asked again within seconds."""
    for host in hosts:
        before = host.runs()

        def more(host=host, before=before):
            s.more(50)
            return host.runs() > before + 10
        wait_for(f'runs of {host.name}', more)


def goes_singly(s, resent, *hosts):
    before = [host.runs() for host in hosts]
    s.more(500)
    assert [host.runs() for host in hosts] == before
    for host in hosts:
        host.is_unharmed(resent[host])


def pair(lab):
    a, b = Host(lab, 0), Host(lab, 1)
    veth(a.namespace, 'e0', b.namespace, 'e0')
    for host in a, b:
        host.address()
    return a, b


def both_take_runs(lab):
    a, b = pair(lab)
    for host in a, b:
        host.start('--gso=auto')
    s = stream(lab, a, b)
    flows_in_runs(s, a, b)
    for host in a, b:
        assert host.device()['trials'] and host.device()['answers'], host.device()
        host.is_unharmed(0)
    # The same netdev, another rocid.
    b.stop()
    s.process.wait(PATIENCE_S)
    b.start('--gso=no')
    time.sleep(2 * KNOWN_S)
    resent = {a: a.resent(), b: 0}
    s = stream(lab, a, b)
    goes_singly(s, resent, a, b)
    s.say('quit')
    b.stop()
    b.start('--gso=auto')
    s = stream(lab, a, b)
    flows_in_runs(s, a, b)
    s.say('quit')


def one_sends_runs_to_all(lab):
    """--gso=yes answers, too."""
    a, b = pair(lab)
    a.start('--gso=auto')
    b.start('--gso=yes')
    s = stream(lab, a, b)
    flows_in_runs(s, a, b)
    assert b.device()['trials'] == 0, b.device()
    s.say('quit')


def one_takes_none(lab):
    a, b = pair(lab)
    a.start('--gso=auto')
    b.start('--gso=no')
    s = stream(lab, a, b)
    goes_singly(s, {a: 0, b: 0}, a, b)
    assert a.device()['trials'] > 0
    s.say('quit')


def three_on_a_bridge(lab):
    bridge = lab.namespace()
    bridge.run('ip link add br0 type bridge; ip link set br0 up')
    hosts = [Host(lab, i) for i in range(3)]
    for host in hosts:
        veth(host.namespace, 'e0', bridge, f'p{host.number}')
        bridge.run(f'ip link set p{host.number} master br0')
        host.address()
    a, b, c = hosts
    for host in hosts:
        host.start('--gso=no' if host is c else '--gso=auto')
    streams = [stream(lab, x, y) for x, y in ((a, b), (a, c), (b, c))]
    flows_in_runs(streams[0], a, b)
    for _ in range(5):
        for s in streams:
            s.say('more 100')
        for s in streams:
            s.wait('done')
    for host in hosts:
        host.is_unharmed(0)
    assert not c.runs()
    for s in streams:
        s.say('quit')


def open_tap():
    """As a virtual machine's, with offloads."""
    fd = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(fd, 0x400454CA, struct.pack('16sH22x', b'e0', 0x5002))  # TUNSETIFF: a tap with struct virtio_net_hdr
    return fd


def write_tap(fd, kind):
    """A frame to everybody. kind 3: with UDP fragmentation offload, of which a packet socket cannot be told."""
    head = struct.pack('<BBHHHH', 1, kind, 42, 512, 34, 6) if kind else bytes(10)
    ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 1028, 1, 0, 9, 17, 0, b'\x0A\6\0\x09', b'\x0A\6\0\1')
    udp = struct.pack('!HHHH', 50000, 4791, 1008, 0)
    os.write(fd, head + b'\xFF' * 6 + b'\2\0\0\0\0\x09\x08\0' + ip + udp + bytes(1000))


def a_socket_that_is_stuck(lab):
    """By a bug of Linux: the port is opened again."""
    a = Host(lab, 0)
    tap = a.namespace.inside(open_tap)
    a.namespace.run('ip link set e0 up')
    a.address()
    a.start('--gso=auto')

    def is_missed(kind):
        before = a.device()

        def seen():
            write_tap(tap, kind)
            return any(a.device()[key] > before[key] for key in ('ipackets', 'imissed'))
        wait_for('a frame', seen)
        return a.device()['imissed'] > before['imissed']

    def reopened():
        write_tap(tap, 0)
        with open(lab.path('a1.log')) as f:
            return 'was reopened' in f.read()
    assert not is_missed(0)
    assert is_missed(3)
    if is_missed(0):
        wait_for('the port', reopened)
        assert not is_missed(0)
    else:
        print('this kernel survives it')
    os.close(tap)


def main():
    rocid, program = sys.argv[1:3]
    for scene in both_take_runs, one_sends_runs_to_all, one_takes_none, three_on_a_bridge, a_socket_that_is_stuck:
        print(scene.__name__, flush=True)
        with Lab(rocid, program) as lab:
            scene(lab)


main()
