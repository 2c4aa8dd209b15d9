#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pktgen_test.py BUILD: the packets of rocigen are what they are said to be, by a parser and a CRC that
are not ours, and a rocid that gets them through config/pktgen/run counts each: none lost, each taken
or dropped for the reason that its profile is about."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'interop'))
sys.dont_write_bytecode = True
import rocewire

COUNT = 12800  # of packets: a multiple of 100 and of 16

# Profile -> what rocid must count. `icrc` and the like are drops.
EXPECTED = {
    'write64': {'rx_write_requests': COUNT},
    'write4k': {'rx_write_requests': COUNT},
    'message64k': {'rx_write_requests': COUNT // 16},
    'qps100': {'rx_write_requests': COUNT},
    'ce': {'rx_write_requests': COUNT},
    'ipv6': {'rx_write_requests': COUNT},
    'rocev1': {'rx_write_requests': COUNT},
    'vlan': {'rx_write_requests': COUNT},
    'duplicates': {'rx_write_requests': 1, 'duplicate_request': COUNT - 1},
    'bad_icrc': {'icrc': COUNT},
    # 99 are right, one is corrupted, and the next shows the gap; later correct ones come too early
    'some_bad_icrc': {'rx_write_requests': 99, 'icrc': COUNT // 100, 'psn_ahead': COUNT - 100 - COUNT // 100},
    'stranger': {'qpn_unknown': COUNT},
    'ghost_acks': {'ghost_ack': COUNT},
}


def check(ok, what):
    if not ok:
        sys.exit('FAIL: ' + what)


# --- the packets ---------------------------------------------------------------------------------

def icrc_is_right(frame, packet, vlan):
    """IBA 7.8.1 and CA17-22 by zlib: variant fields are ones."""
    l3 = bytearray(frame[14 + 4 * vlan:-4])
    if packet.net == 'v4':
        bth = 28
        l3[1] = l3[8] = 0xFF
        l3[10:12] = b'\xff\xff'
    else:
        bth = 48 + len(packet.options) if packet.net == 'v6' else 40
        l3[0] |= 0x0F
        l3[1:4] = b'\xff' * 3
        l3[7] = 0xFF
    if packet.net != 'v1':
        l3[bth - 2:bth] = b'\xff\xff'
    l3[bth + 4] = 0xFF
    return zlib.crc32(b'\xff' * 8 + l3) == struct.unpack('<I', frame[-4:])[0]


def frames(rocigen, folder, arguments):
    path = os.path.join(folder, 'frames.pcap')
    subprocess.run([rocigen, '--', '--pcap', path, *arguments], check=True)
    found = []
    for number, frame, cut, _ in rocewire.read_pcap(path):
        packet = rocewire.parse(number, frame)
        check(packet and not cut, f'{arguments}: packet {number} is no RoCE packet')
        vlan = frame[12:14] == b'\x81\x00'
        packet.icrc_ok = icrc_is_right(frame, packet, vlan)
        packet.vid = (frame[14] & 15) << 8 | frame[15] if vlan else 0
        found.append(packet)
    return found


def says(packets, name, expected):
    got = [getattr(p, name) for p in packets]
    check(got == expected, f'{name}: {got}, expected {expected}')


def check_packets(rocigen, folder):
    good = ['--qpn', '0x123,0x456', '--psn', '0xfffffe', '--count', '8', '--ackreq', '4', '--rkey', '7', '--va', '4096']
    for way, net in ([], 'v4'), (['--src', '2001:db8::1', '--dst', '2001:db8::2'], 'v6'), (['--v1'], 'v1'):
        packets = frames(rocigen, folder, good + way + ['--size', '50', '--vlan', '5', '--ce', '3'])
        says(packets, 'faults', [[]] * 8)
        says(packets, 'net', [net] * 8)
        says(packets, 'icrc_ok', [True] * 8)
        says(packets, 'dqpn', [0x123, 0x456] * 4)
        says(packets, 'psn', [0xFFFFFE] * 2 + [0xFFFFFF] * 2 + [0] * 2 + [1] * 2)
        says(packets, 'ackreq', [0, 0, 0, 1] * 2)
        says(packets, 'ecn', [0, 0, 3, 0, 0, 3, 0, 0])
        says(packets, 'vid', [5] * 8)
        says(packets, 'payload', [bytes(range(50))] * 8)
        check({(p.va, p.rkey, p.dmalen) for p in packets} == {(4096, 7, 50)}, 'a RETH is wrong')
    packets = frames(rocigen, folder, good + ['--message', '3', '--size', '256', '--count', '6'])
    check([p.op.name for p in packets] == ['WRITE_FIRST', 'WRITE_MIDDLE', 'WRITE_LAST'] * 2, 'no run of a message')
    says(packets, 'psn', [0xFFFFFE, 0xFFFFFF, 0] * 2)
    check(packets[0].dmalen == 768, 'the length of a message')
    packets = frames(rocigen, folder, good + ['--bad-icrc', '2', '--psn-step', '0'])
    says(packets, 'icrc_ok', [True, False] * 4)
    says(packets, 'psn', [0xFFFFFE] * 8)
    packets = frames(rocigen, folder, ['--count', '4', '--opcode', 'RC_READ_REQUEST,acknowledge,FETCH_ADD,22'])
    check([p.code for p in packets] == [0x0C, 0x11, 0x14, 0x16], 'opcodes')
    says(packets, 'icrc_ok', [True] * 4)


def check_fast_cnps(rocigen, folder):
    """proves ICRC-10, FCN-03: with extension headers in the CRC as they are."""
    way = ['--src', '2001:db8:5::1', '--dst', '2001:db8::a', '--fast-cnp', '2001:db8::b', '--qpn', '0x11', '--count', '2']
    for trace, tag in ([], []), (['--trace', '28'], ['--vlan', '5']), (['--trace', '239'], []), (['--fault', 'padded'], []):
        packets = frames(rocigen, folder, way + trace + tag)
        says(packets, 'faults', [[]] * 2)
        says(packets, 'icrc_ok', [True] * 2)
        says(packets, 'code', [0x81] * 2)
        says(packets, 'dqpn', [0x11] * 2)
        says(packets, 'dip', ['2001:db8::b'] * 2)
        says(packets, 'ecn', [0] * 2)
    for fault, rule in ('twice', 'FCN-03'), ('none', 'FCN-03'), ('overrun', 'FCN-07'), ('short', 'FCN-03'):
        packets = frames(rocigen, folder, way + ['--fault', fault])
        check(packets[0].faults and packets[0].faults[0][0] == rule, f'{fault}: {packets[0].faults}')
    says(frames(rocigen, folder, way + ['--fault', 'icrc']), 'icrc_ok', [False] * 2)


def check_refusals(rocigen):
    for arguments in (['--opcode', 'NOTHING'], ['--message', '2', '--opcode', 'READ_REQUEST'], ['--size', '9217'],
                      ['--src', '192.0.2'], ['--count', '0', '--pcap', 'x'], ['--dmac', '2:2'], ['--bad'], ['word'],
                      ['--qpn', '0x1000000'], ['--size'], ['--fast-cnp', 'fd00::1'], ['--fast-cnp', '192.0.2.1'],
                      ['--src', 'fd00::1', '--fast-cnp', 'fd00::2', '--fault', 'x'], ['--trace', '240']):
        done = subprocess.run([rocigen, '--', *arguments], text=True, capture_output=True, check=False)
        check(done.returncode == 2 and done.stderr.count('\n') == 1, f'{arguments}: {done}')


# --- what rocid makes of them ----------------------------------------------------------------------

def check_counts(build, link):
    run = os.path.join(HERE, '..', '..', 'config', 'pktgen', 'run')
    names = list(EXPECTED) if link == 'memif' else ['write64', 'bad_icrc']
    done = subprocess.run([run, build, '--with', 'rocigen', '--link', link, '--count', str(COUNT), '--json', *names],
                          stdout=subprocess.PIPE, text=True, check=False)
    check(done.returncode == 0, f'config/pktgen/run over {link} failed')
    for result in json.loads(done.stdout):
        name = result['profile']
        check(result['sent'] == COUNT and result['lost'] == 0, f'{name}: packets are lost: {result}')
        check(result['taken'] + sum(result['dropped'].values()) == COUNT, f'{name}: does not add up: {result}')
        found = {**result['told'], **result['dropped']}
        for counter, count in EXPECTED[name].items():
            check(found.get(counter) == count, f'{name}: {counter} is {found.get(counter)}, not {count}: {result}')
        unexpected = set(result['dropped']) - set(EXPECTED[name])
        check(not unexpected, f'{name}: drops for {unexpected}')
    print(f'{link}: {len(names)} profiles of {COUNT} packets, all counted')


def main():
    build = sys.argv[1]
    rocigen = os.path.join(build, 'app/rocigen/rocigen')
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        check_packets(rocigen, folder)
        check_fast_cnps(rocigen, folder)
    check_refusals(rocigen)
    for link in 'memif', 'vhost':
        check_counts(build, link)


main()
