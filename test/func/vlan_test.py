#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""vlan_test.py ROCID STREAM static|netdev: two daemons in two namespaces share the ends of a veth, and
packets go between them in VLAN 5. static: its GIDs are options of rocid. netdev: they are the
addresses of VLAN netdevs, which come and go; wants a kernel that has those. Needs root."""
import socket
import struct
import subprocess
import sys

from netlab import PATIENCE_S, Lab, skip, veth, wait_for

VID = 5
ROCE = 4791
DISCARD = 9     # nobody listens there
ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_VLAN_VALID = 16
MAC = {'a': '02:00:00:00:05:01', 'b': '02:00:00:00:05:02'}
IP = {'a': '10.5.0.1', 'b': '10.5.0.2'}


def link(a, b):
    veth(a, 'e0', b, 'e0')
    for namespace, mac in (a, MAC['a']), (b, MAC['b']):  # without addresses of the former MAC
        namespace.run(f'ip link set e0 down; ip link set e0 address {mac} addrgenmode none; '
                      'ip link set e0 up')


def sniffer(namespace):
    def body():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        s.bind(('e0', ETH_P_ALL))
        s.settimeout(PATIENCE_S)
        return s
    return namespace.inside(body)


def is_roce(frame):
    return frame[12:14] == b'\x08\x00' and frame[23] == 17 and frame[36:38] == struct.pack('!H', ROCE)


def vid_of_roce(sniffer):
    """The VLAN of the next RoCE packet; the kernel takes the tag off the frame."""
    while True:
        frame, control, _, _ = sniffer.recvmsg(4096, 128)
        if frame[12:14] == b'\x81\x00':
            tci = struct.unpack('!H', frame[14:16])[0]
            frame = frame[:12] + frame[16:]
        else:
            aux = next(data for _, kind, data in control if kind == PACKET_AUXDATA)
            status, *_, tci, _ = struct.unpack('IIIHHHH', aux)
            tci = tci if status & TP_STATUS_VLAN_VALID else 0
        if is_roce(frame):
            return tci & 0xFFF


def static(lab):
    a, b = lab.namespace(), lab.namespace()
    link(a, b)
    ra, rb = (lab.rocid(namespace, me, ['--share', 'e0', '--gid', f'0,{IP[me]},vid={VID}',
                                        '--neigh', f'0,{IP[other]},{MAC[other]}'])
              for namespace, me, other in ((a, 'a', 'b'), (b, 'b', 'a')))
    seen = sniffer(b)
    one = lab.stream(ra, 1, 1, rb, 1, 1)
    assert one.ask(f'gid A {IP["a"]}') == ['1']
    one.more(1000)
    for _ in range(100):
        assert vid_of_roce(seen) == VID


def add_vlan(namespace, me):
    namespace.run(f'ip link add link e0 name e0.{VID} type vlan id {VID}; '
                  f'ip addr add {IP[me]}/24 dev e0.{VID}; ip link set e0.{VID} up')


def refused(namespace, address, port):
    """Whether the kernel behind the address says that nobody listens on the UDP port."""
    def body():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(1)
            s.connect((address, port))
            s.send(b'x')
            try:
                s.recv(1)
            except ConnectionRefusedError:
                return [True]
            except socket.timeout:
                return [False]
    return namespace.inside(body)[0]


def guarded(namespace, address):
    """The kernel behind the address is silent about port 4791, though it is there: it refuses another."""
    for _ in range(2):
        wait_for(f'a refusal of {address}', lambda: refused(namespace, address, DISCARD))
        assert not refused(namespace, address, ROCE), f'the kernel of {address} answers RoCE'


def netdev(lab):
    a, b = lab.namespace(), lab.namespace()
    link(a, b)
    if subprocess.run(a.command(['ip', 'link', 'add', 'link', 'e0', 'name', 'try', 'type', 'vlan',
                                 'id', '9']), stderr=subprocess.DEVNULL).returncode:
        skip('this kernel has no VLAN netdevs')
    a.run('ip link del try; ip addr add 10.8.0.1/24 dev e0')
    b.run('ip addr add 10.8.0.2/24 dev e0')
    add_vlan(a, 'a')  # one that is there already
    ra, rb = lab.rocid(a, 'a', ['--share', 'e0']), lab.rocid(b, 'b', ['--share', 'e0'])
    plain = lab.stream(ra, 1, 1, rb, 1, 1)
    assert plain.ask('gid A 10.8.0.1') == ['1']
    assert plain.ask(f'gid B {IP["b"]}') == ['none']
    add_vlan(b, 'b')  # and one that comes
    wait_for('the GIDs', lambda: 'none' not in (plain.ask(f'gid A {IP["a"]}') +
                                                plain.ask(f'gid B {IP["b"]}')))
    guarded(b, IP['a'])
    guarded(a, IP['b'])
    index = [plain.ask(f'gid {end} {IP[end.lower()]}')[0] for end in 'AB']
    tagged = lab.stream(ra, 1, index[0], rb, 1, index[1])
    tagged.more(100)
    a.run(f'ip link set e0.{VID} down')
    wait_for('its end', lambda: plain.ask(f'gid A {IP["a"]}') == ['none'])
    a.run(f'ip link set e0.{VID} up')
    wait_for('the same GID', lambda: plain.ask(f'gid A {IP["a"]}') == [index[0]])
    tagged.more(100)
    a.run(f'ip link set e0.{VID} address 02:00:00:00:05:03')  # its own, not that of e0
    tagged.more(100)
    a.run(f'ip link del e0.{VID}')
    wait_for('its end', lambda: plain.ask(f'gid A {IP["a"]}') == ['none'])
    plain.more(100)
    add_vlan(a, 'a')
    wait_for('the same GID', lambda: plain.ask(f'gid A {IP["a"]}') == [index[0]])
    guarded(b, IP['a'])
    tagged.more(100)


def main():
    with Lab(*sys.argv[1:3]) as lab:
        {'static': static, 'netdev': netdev}[sys.argv[3]](lab)


main()
