#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""gso_test.py ROCID STREAM SHARED: daemons with --gso share the ends of a veth. Their frames cross it in
runs; where the netdev takes none, the kernel cuts them, and an ICRC of somebody else's judges what comes
out; a peer without --gso understands those. Needs root."""
import array
import fcntl
import os
import socket
import struct
import subprocess
import sys

from netlab import PATIENCE_S, Lab, settle, veth

ETH_P_ALL = 3
MTU = 1500
LONGEST = MTU + 14
FRAMES = 1000
IP = {'IPv4': ('10.6.0.1', '10.6.0.2'), 'IPv6': ('fd06::1', 'fd06::2')}


def roce(frame):
    """Where the UDP header of a RoCEv2 frame is, or None."""
    kind, = struct.unpack_from('!H', frame, 12)
    if kind == 0x0800 and frame[23] == 17:
        udp = 34
    elif kind == 0x86DD and frame[20] == 17:
        udp = 54
    else:
        return None
    return udp if frame[udp + 2:udp + 4] == b'\x12\xb7' else None


class Sniffer:
    """Sees what comes into a namespace as any program does: it does not ask for whole runs to be told."""

    def __init__(self, namespace):
        def body():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            s.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
            s.settimeout(PATIENCE_S)
            s.bind(('e0', ETH_P_ALL))
            return s
        self.socket = namespace.inside(body)

    def frames(self, count):
        """That many RoCEv2 frames that came in, from now on."""
        while count:
            frame, _, _, address = self.socket.recvmsg(70000)
            if address[2] != socket.PACKET_OUTGOING and roce(frame):
                count -= 1
                yield frame


def all_of(sniffer, stream):
    """What comes in while that stream writes."""
    frames = []
    while len(frames) < FRAMES:
        stream.more(100)
        frames += sniffer.frames(100)
    return frames


def checksum(frame, udp):
    """The UDP checksum and the sum that it should be (RFC 768, RFC 8200 8.1)."""
    there, = struct.unpack_from('!H', frame, udp + 6)
    pseudo = frame[26:34] if udp == 34 else frame[22:54]
    data = frame[udp:udp + 6] + b'\0\0' + frame[udp + 8:]
    total = sum(struct.unpack(f'!{len(pseudo) // 2}H', pseudo)) + 17 + len(data)
    total += sum(struct.unpack(f'!{len(data + bytes(len(data) % 2)) // 2}H', data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return there, ~total & 0xFFFF or 0xFFFF


def judge(frames, shared, path):
    """By an ICRC that shares no code with ours."""
    oracle = os.path.join(shared, 'oracle', 'validate_pcap.py')
    if not os.path.exists(oracle):
        print('no oracle: ICRCs are not judged')
        return
    with open(path, 'wb') as f:
        f.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            f.write(struct.pack('<IIII', 0, 0, len(frame), len(frame)) + frame)
    said = subprocess.run([sys.executable, oracle, path], capture_output=True, text=True, check=True).stdout
    words = said.split()
    assert int(words[words.index('ok') + 1]) == len(frames), said
    assert words[words.index('bad') + 1] == '0', said


class Scene:
    def __init__(self, lab, kind, *peer):
        self.lab = lab
        self.a, self.b = lab.namespace(), lab.namespace()
        veth(self.a, 'e0', self.b, 'e0')
        for namespace, address in zip((self.a, self.b), IP[kind]):
            namespace.run(f'ip addr add {address}/{24 if kind == "IPv4" else 64} dev e0')
            settle(namespace, 'e0')
        self.ra = lab.rocid(self.a, f'a{kind}{len(peer)}', ['--share', 'e0', '--gso'])
        self.rb = lab.rocid(self.b, f'b{kind}{len(peer)}', ['--share', 'e0', *(peer or ['--gso=no'])])
        if not peer:
            self.cut()
        self.wire = Sniffer(self.b)
        index = [self.index(r, gid) for r, gid in zip((self.ra, self.rb), IP[kind])]
        self.stream = lab.stream(self.ra, 1, index[0], self.rb, 1, index[1])

    def index(self, daemon, gid):
        found = [g['index'] for g in self.lab.ask(daemon, 'show gids')['gids'] if g['gid'] == gid]
        assert len(found) == 1, f'{gid}: {found}'
        return found[0]

    def cut(self):
        """From now on the kernel cuts what a sends, and makes the checksums of the parts."""
        self.a.run('ip link set e0 gso_max_size 2000')
        self.a.inside(lambda: set_tx_checksum('e0', False))

    def end(self):
        for daemon in self.ra, self.rb:
            drops = {d['reason']: d['packets'] for d in self.lab.ask(daemon, 'show drops')['drops']}
            assert 'icrc' not in drops, drops
        self.stream.say('quit')


def set_tx_checksum(netdev, on):
    """ethtool -K NETDEV tx on|off"""
    data = array.array('I', [0x17, on])  # ETHTOOL_STXCSUM
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8946, struct.pack('16sP', netdev.encode(), data.buffer_info()[0]))  # SIOCETHTOOL
    return True


def runs_cross_a_veth(scene):
    frames = all_of(scene.wire, scene.stream)
    runs = [f for f in frames if len(f) > LONGEST]
    print(f'{len(runs)} of {len(frames)} are runs, the longest of {max(map(len, frames))} bytes')
    assert len(runs) > 100


def the_kernel_cuts_runs(scene, shared):
    # proves IP4-17, UDP-06
    frames = all_of(scene.wire, scene.stream)
    assert max(map(len, frames)) <= LONGEST
    summed = 0
    for frame in frames:
        there, right = checksum(frame, roce(frame))
        assert there in (0, right), frame[:64].hex()
        summed += there != 0
    print(f'{summed} of {len(frames)} come out of a run')
    assert summed > 100
    judge(frames, shared, scene.lab.path('cut.pcap'))


def main():
    rocid, stream, shared = sys.argv[1:4]
    with Lab(rocid, stream) as lab:
        for kind in IP:
            print(kind, flush=True)
            both = Scene(lab, kind, '--gso')
            runs_cross_a_veth(both)
            both.cut()
            both.stream.more(100)
            both.wire = Sniffer(both.b)
            the_kernel_cuts_runs(both, shared)
            both.end()
            one = Scene(lab, kind)
            the_kernel_cuts_runs(one, shared)
            one.end()


main()
