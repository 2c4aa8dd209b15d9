# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the tables, by the formulas of conformance (ENT-*, REQ-22, GID-*, BTH-15)."""
import ipaddress


def sport(label):
    return ((label & 0x3FFF) ^ (label >> 14)) | 0xC000


def entropy(rng, n):
    labels, qpns = [], []
    for _ in range(n):
        label = rng.getrandbits(20)
        labels.append({'flow_label': '0x%05x' % label, 'udp_sport': sport(label),
                       'udp_sport_hex': '0x%04x' % sport(label)})
        a, b = rng.choice([rng.getrandbits(24), 0xFFFFFF]), rng.getrandbits(24)
        v = a * b
        v ^= v >> 20
        v ^= v >> 40
        qpns.append({'src_qpn': '0x%x' % a, 'dst_qpn': '0x%x' % b,
                     'flow_label': '0x%05x' % (v & 0xFFFFF),
                     'udp_sport_hex': '0x%04x' % sport(v & 0xFFFFF)})
    return {'flow_label_to_sport': labels, 'qpn_to_flow_label': qpns}


def psn_row(rng):
    a = rng.getrandbits(24)
    d = rng.choice([0, 1, -1, 0x7FFFFF, -0x7FFFFF, rng.randrange(-0x7FFFFF, 0x800000)])
    return {'a': '0x%x' % ((a + d) & 0xFFFFFF), 'b': '0x%x' % a, 'sign': (d > 0) - (d < 0)}


def read_row(rng):
    mtu = rng.choice([256, 512, 1024, 2048, 4096])
    n = rng.choice([0, 1, mtu, mtu + 1, 1 << 31, rng.randrange(1 << 31)])
    return {'length': n, 'mtu': mtu, 'packets': max(1, (n + mtu - 1) // mtu)}


def gid_row(rng):
    if rng.random() < .5:
        ip = str(ipaddress.IPv4Address(rng.getrandbits(32)))
        gid = ipaddress.IPv6Address('::ffff:' + ip)
    else:
        gid = ipaddress.IPv6Address(0x20 << 120 | rng.getrandbits(120))
        ip = str(gid)
    return {'ip': ip, 'gid': str(gid), 'gid_hex': gid.packed.hex()}


def mac_row(rng):
    b = rng.randbytes(6)
    eui = bytes([b[0] ^ 2]) + b[1:3] + b'\xff\xfe' + b[3:]
    return {'mac': ':'.join('%02x' % x for x in b),
            'gid': str(ipaddress.IPv6Address(b'\xfe\x80' + bytes(6) + eui))}


def max_mtu(eth):
    return max([m for m in (256, 512, 1024, 2048, 4096) if m + 96 <= eth], default=0)


def tables(rng, n):
    eth = [rng.choice([m + 96 + rng.choice([-1, 0, 1]) for m in (256, 512, 1024, 2048, 4096)] +
                      [rng.randrange(352, 65536)]) for _ in range(n)]
    return {'psn_compare': [psn_row(rng) for _ in range(n)],
            'read_psn_count': [read_row(rng) for _ in range(n)],
            'gid_map': [gid_row(rng) for _ in range(n)],
            'mac_to_eui64_gid': [mac_row(rng) for _ in range(n)],
            'local_ack_timeout_usec': {str(i): 4.096 * 2 ** i if i else 0 for i in range(32)},
            'roce_max_ib_mtu': {str(m): max_mtu(m) for m in eth}}
