#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""address_test.py ROCID STREAM ROCICTL SHARED: two daemons in two namespaces share the ends of a veth.
RoCEv1 by GIDs of each kind, in a VLAN and outside; source ports, flow labels, traffic classes,
priorities, P_Keys and MTUs while packets fly. What is on the wire is looked at in the peer's namespace;
tshark and an ICRC of somebody else's judge a capture of all of it. Needs root."""
import collections
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys

from netlab import PATIENCE_S, Lab, veth, wait_for

VID = 5
V1 = 64  # the RoCEv1 form of GID i is GID 64 + i
MAC = {'a': '02:00:00:00:07:01', 'b': '02:00:00:00:07:02'}
IP = {'a': '10.7.0.1', 'b': '10.7.0.2'}
IP6 = {'a': 'fd07::1', 'b': 'fd07::2'}
TAGGED = {'a': '10.7.5.1', 'b': '10.7.5.2'}
LINK_LOCAL = {'a': 'fe80::ff:fe00:701', 'b': 'fe80::ff:fe00:702'}
ETH_P_ALL = 3
TSHARK_S = 600  # it reads tens of thousands of frames
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_VLAN_VALID = 16
TRIAL = 0xFE  # and more: what rocid asks a peer's rocid, outside any QP (doc/decisions/0155)

Packet = collections.namedtuple('Packet', 'type tci tclass label hops sport pkey')


def parse(frame, tci):
    """What marks a frame of a QP, or None when it is none. `tci` is the tag that the kernel took off."""
    at = 12
    kind, = struct.unpack_from('!H', frame, at)
    if kind == 0x8100:
        tci, kind = struct.unpack_from('!HH', frame, at + 2)
        at += 4
    at += 2
    if kind == 0x0800 and frame[at + 9] == 17:
        tclass, hops, label, udp = frame[at + 1], frame[at + 8], None, at + 20
    elif kind in (0x86DD, 0x8915) and frame[at + 6] in (17, 0x1B):
        first, = struct.unpack_from('!I', frame, at)
        tclass, label, hops, udp = first >> 20 & 0xFF, first & 0xFFFFF, frame[at + 7], at + 40
    else:
        return None
    sport, dport = struct.unpack_from('!HH', frame, udp)
    if kind == 0x8915:
        sport, bth = None, udp
    elif dport == 4791:
        bth = udp + 8
    else:
        return None
    if frame[bth] >= TRIAL:
        return None
    return Packet(kind, tci, tclass, label, hops, sport, struct.unpack_from('!H', frame, bth + 2)[0])


class Sniffer:
    """Sees what comes into a namespace."""

    def __init__(self, namespace):
        def body():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            s.settimeout(PATIENCE_S)
            s.bind(('e0', ETH_P_ALL))
            return s
        self.socket = namespace.inside(body)

    def packet(self):
        while True:
            frame, control, _, address = self.socket.recvmsg(8192, 128)
            aux = next(data for _, kind, data in control if kind == PACKET_AUXDATA)
            status, *_, tci, _ = struct.unpack('IIIHHHH', aux)
            found = parse(frame, tci if status & TP_STATUS_VLAN_VALID else None)
            if found and address[2] != socket.PACKET_OUTGOING:
                return found

    def until(self, what, condition):
        """The first packet of which `condition` holds; those before it are of former times."""
        for _ in range(100000):
            p = self.packet()
            if condition(p):
                return p
        raise AssertionError(f'no packet with {what}, the last is {p}')


class Scene:
    def __init__(self, lab, rocictl):
        self.lab, self.rocictl = lab, rocictl
        self.a, self.b = lab.namespace(), lab.namespace()
        veth(self.a, 'e0', self.b, 'e0')
        for n, me in (self.a, 'a'), (self.b, 'b'):
            # No link-local address: the GID of the MAC is there all the same, but the kernels do no
            # neighbour discovery.
            n.run(f'ip link set e0 down; ip link set e0 address {MAC[me]} addrgenmode none mtu 1500; '
                  f'ip link set e0 up; ip addr add {IP[me]}/24 dev e0; '
                  f'ip addr add {IP6[me]}/64 dev e0 nodad')
        self.ra, self.rb = (
            lab.rocid(n, me, ['--share', 'e0', '--rocev1', '--gid', f'0,{TAGGED[me]},vid={VID}',
                              '--neigh', f'0,{TAGGED[you]},{MAC[you]}',
                              '--neigh', f'0,{IP6[you]},{MAC[you]}', '--pkey', 'e0,1,0x8123',
                              '--priority', 'e0,sl1=4'])
            for n, me, you in ((self.a, 'a', 'b'), (self.b, 'b', 'a')))
        self.wire = Sniffer(self.b)

    def ask(self, daemon, *line):
        r = subprocess.run([self.rocictl, '--json', '--socket', daemon.socket, *map(str, line)],
                           capture_output=True, text=True, timeout=PATIENCE_S)
        assert r.returncode == 0, f'{line}: {r.stdout}{r.stderr}'
        return json.loads(r.stdout)

    def refused(self, daemon, *line):
        r = subprocess.run([self.rocictl, '--socket', daemon.socket, *map(str, line)],
                           capture_output=True, text=True, timeout=PATIENCE_S)
        assert r.returncode, f'{line} is taken'
        return r.stdout + r.stderr

    def index(self, daemon, gid, kind):
        """Of the GID of that type; both types are there for each address (GID-02)."""
        found = [g for g in self.ask(daemon, 'show', 'gids')['gids']
                 if g['gid'] == gid and g['type'] == kind]
        assert len(found) == 1, f'{gid} {kind}: {found}'
        return found[0]['index']

    def stream(self, gids, kind, mtu=1024):
        """Paused: a capture takes all that runs, and is read by a slow reader."""
        s = self.lab.stream(self.ra, 1, self.index(self.ra, gids['a'], kind),
                            self.rb, 1, self.index(self.rb, gids['b'], kind), mtu)
        s.pause()
        qpn = max(q['qpn'] for q in self.ask(self.ra, 'show', 'qps')['qps'] if q['state'] == 'RTS')
        return s, qpn

    @staticmethod
    @contextlib.contextmanager
    def running(stream):
        """Meanwhile."""
        stream.resume()
        yield
        stream.pause()

    def some(self, stream):
        with self.running(stream):
            stream.more(100)

    def drops(self, daemon, reason):
        return sum(d['packets'] for d in self.ask(daemon, 'show', 'drops')['drops']
                   if d['reason'] == reason)

    # --- what is tried ---

    def types(self):
        # proves GID-02, GID-05, V1-05, V1-07: the protocol is the GID's type, CA17-40 to 43
        for gids, index in (LINK_LOCAL, 0), (IP, None), (IP6, None), (TAGGED, None):
            v2, v1 = (self.index(self.ra, gids['a'], kind) for kind in ('RoCEv2', 'RoCEv1'))
            assert v1 == V1 + v2 and index in (None, v2)
            one, qpn = self.stream(gids, 'RoCEv1')
            with self.running(one):
                p = self.wire.until('EtherType 0x8915', lambda p: p.type == 0x8915 and
                                    (p.tci or 0) & 0xFFF == (VID if gids is TAGGED else 0))
            assert p.label == 0 and p.pkey == 0xFFFF, p
            assert self.ask(self.ra, 'show', 'qp', qpn)['path']['type'] == 'RoCEv1'
            self.some(one)
            one.say('quit')
            wait_for('its end', lambda: not self.ask(self.ra, 'show', 'qps')['qps'])

    def marks(self):
        # proves UDP-08, UDP-11, ENT-01, ETH-04, ETH-05
        one, qpn = self.stream(IP6, 'RoCEv2')
        path = self.ask(self.ra, 'show', 'qp', qpn)['path']
        with self.running(one):
            p = self.wire.until('IPv6', lambda p: p.type == 0x86DD)
            for _ in range(200):
                assert (p.sport, p.label, p.tci) == (path['sport'], path['flow_label'], None), (p, path)
                p = self.wire.packet()
        for what, value, field in (('sport', 50000, 'sport'), ('flow-label', 0x12345, 'label'),
                                   ('traffic-class', 46 << 2, 'tclass'), ('hop-limit', 33, 'hops')):
            self.ask(self.ra, 'set', 'qp', qpn, what, value)
            with self.running(one):
                p = self.wire.until(what, lambda p: getattr(p, field) == value)
        assert p.sport == 0xE341 and p.label == 0x12345 and p.tclass == 46 << 2, p  # ENT-01
        assert 'neither a UDP source port' in self.refused(self.ra, 'set', 'qp', qpn, 'sport', 80)
        # ETH-04: a tag with VID 0 is none to the receiver.
        self.ask(self.ra, 'set', 'port', 1, 'priority', 'sl1=4,dscp46=6,tag=yes')
        self.ask(self.ra, 'set', 'qp', qpn, 'sl', 1)
        for what, priority in ('46', 6), ('0', 4):
            self.ask(self.ra, 'set', 'qp', qpn, 'traffic-class', int(what) << 2)
            with self.running(one):
                self.wire.until(f'priority {priority}', lambda p: p.tci == priority << 13)
                one.more(100)
        self.ask(self.ra, 'set', 'port', 1, 'priority', 'default')
        one.say('quit')

    def pkeys(self):
        # proves VAL-08, VAL-09, VAL-10, BTH-11: a running QP has the table's new key at once; two
        # limited members do not talk, a limited and a full one do
        one, _ = self.stream(IP, 'RoCEv2')
        one.resume()
        self.ask(self.ra, 'set', 'port', 1, 'pkey', 0, 0x7FFF)
        one.event('A', 1, 'P_Key')
        self.wire.until('the limited P_Key', lambda p: p.pkey == 0x7FFF)
        one.more(100)
        before = self.drops(self.rb, 'pkey')
        self.ask(self.rb, 'set', 'port', 1, 'pkey', 0, 0x7FFF)
        wait_for('violations', lambda: self.drops(self.rb, 'pkey') > before)
        assert 'P_Key mismatch' in json.dumps(self.ask(self.rb, 'show', 'errors'))
        self.ask(self.rb, 'set', 'port', 1, 'pkey', 0, 0xFFFF)
        one.more(100)
        self.ask(self.ra, 'set', 'port', 1, 'pkey', 0, 0xFFFF)
        one.more(100)
        assert [p['pkey'] for p in self.ask(self.ra, 'show', 'pkeys')['pkeys']] == ['0xffff', '0x8123']
        one.say('quit')

    def mtu(self):
        # proves GID-09: for RoCEv1 as for RoCEv2, live
        one, _ = self.stream(LINK_LOCAL, 'RoCEv1')
        one.resume()
        for n in self.a, self.b:
            n.run('ip link set e0 mtu 4200')
        for end in 'AB':
            wait_for('the MTU', lambda: one.ask(f'port {end}') == ['ACTIVE', '4096'])
        big, _ = self.stream(LINK_LOCAL, 'RoCEv1', 4096)
        big.resume()
        big.more(100)
        one.more(100)
        for s in big, one:
            s.say('quit')


def judge(path, shared, folder):
    """What was captured: no frame that tshark finds wrong, no ICRC but good ones."""
    if not shutil.which('tshark'):
        print('no tshark: nobody else reads the capture')
        return
    out = subprocess.run(['tshark', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE', '-r', path,
                          '-T', 'fields', '-e', 'eth.type', '-e', 'vlan.id',
                          '-e', 'infiniband.bth.opcode', '-e', '_ws.malformed', '-e', '_ws.expert'],
                         capture_output=True, text=True, timeout=TSHARK_S, check=True).stdout
    kinds = collections.Counter()
    some = []                   # of each kind: that ICRC counts bit by bit
    for number, line in enumerate(out.splitlines(), 1):
        kind, vlan, opcode, malformed, expert = line.split('\t')
        assert opcode and not malformed and not expert, line
        kinds[kind.split(',')[-1], vlan] += 1
        if kinds[kind.split(',')[-1], vlan] <= 100:
            some.append(str(number))
    print(f'tshark: {dict(kinds)}')
    assert sum(n for (_, vlan), n in kinds.items() if vlan == str(VID)) > 100, kinds
    assert sum(n for (kind, _), n in kinds.items() if '0x8915' in kind) > 1000, kinds
    oracle = os.path.join(shared, 'oracle', 'validate_pcap.py')
    if not os.path.exists(oracle):
        print('no oracle: ICRCs are not judged')
        return
    pcap = os.path.join(folder, 'judged.pcap')
    subprocess.run(['editcap', '-r', '-F', 'pcap', path, pcap, *some], check=True,
                   capture_output=True)
    said = subprocess.run([sys.executable, oracle, pcap], capture_output=True, text=True,
                          check=True).stdout
    words = said.split()
    assert int(words[words.index('ok') + 1]) == len(some), said
    assert words[words.index('bad') + 1] == '0', said


def main():
    rocid, stream, rocictl, shared = sys.argv[1:5]
    with Lab(rocid, stream) as lab:
        scene = Scene(lab, rocictl)
        path = lab.path('all.pcapng')
        capture = subprocess.Popen([rocictl, '--socket', scene.ra.socket, 'capture', path, 'out'],
                                   stderr=subprocess.PIPE)
        lab.processes.append(capture)
        assert b'capturing' in capture.stderr.readline()
        scene.types()
        scene.marks()
        capture.send_signal(signal.SIGINT)
        print(capture.communicate(timeout=PATIENCE_S)[1].decode().splitlines()[-1])  # may have lost some
        assert capture.returncode == 0
        judge(path, shared, lab.folder)
        scene.pkeys()
        scene.mtu()


main()
