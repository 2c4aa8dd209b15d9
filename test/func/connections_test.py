#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""connections_test.py ROCID CONNECTIONS: programs of two daemons in two namespaces connect over a veth,
by IPv4 and IPv6; one is killed, and the other hears of it. Then nothing of them is left, and the
daemons have counted each message.
Needs root."""
import socket
import struct
import subprocess
import sys

from netlab import Lab, ping, veth, wait_for
from rocid import ask

PATIENCE_S = 300
ROUNDS = 3  # of CONNECTIONS
ETH_P_ALL, IPV4, IPV6 = 3, 0x0800, 0x86DD
SO_RCVBUFFORCE = 33
ROCE = 4791
UD_SEND_ONLY = 100
GSI_QKEY = 0x80010000
MAD, MAD_AT = 256, 12 + 8
REQ, REQ_LABEL, SIDR_REQ = 0x0010, 24 + 88, 0x0017


def run(program, server, client, to, source):
    subprocess.run([program, server.socket, client.socket, to, source], check=True, timeout=PATIENCE_S)


def tap(namespace):
    """A socket with all frames of e0 from now on."""
    def body():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        s.bind(('e0', 0))
        s.setblocking(False)
        return s
    return namespace.inside(body)


def to_qp1(s):
    """The RoCE packets to QP1 that came: Ethertype, flow label, from the BTH to the ICRC."""
    while True:
        try:
            frame = s.recv(1 << 16)
        except BlockingIOError:
            return
        kind = struct.unpack_from('!H', frame, 12)[0]
        at = {IPV4: 34, IPV6: 54}.get(kind)
        if not at or frame[23 if kind == IPV4 else 20] != socket.IPPROTO_UDP:
            continue
        port, length = struct.unpack_from('!HH', frame, at + 2)
        bth = frame[at + 8:at + length]
        if port == ROCE and bth[5:8] == b'\0\0\1':
            yield kind, struct.unpack_from('!I', frame, 14)[0] & 0xFFFFF if kind == IPV6 else None, bth


def check_mads(s, family):
    # proves CM-01: from QP1 to QP1, whole, with the well-known Q_Key and the path's P_Key
    # proves CM-09: by the protocol of the connection
    # proves ENT-07: of the REQ, and of all its connection's MADs
    n = 0
    labels = set()
    for kind, label, bth in to_qp1(s):
        opcode, pkey = struct.unpack_from('!BxH', bth)
        qkey, source = struct.unpack_from('!II', bth, 12)
        assert (opcode, pkey, qkey, source) == (UD_SEND_ONLY, 0xFFFF, GSI_QKEY, 1), bth.hex()
        assert len(bth) == 12 + 8 + MAD + 4, bth.hex()
        assert kind == family, bth.hex()
        attribute, = struct.unpack_from('!H', bth, MAD_AT + 16)
        if attribute == REQ:
            labels.add(struct.unpack_from('!I', bth, MAD_AT + REQ_LABEL)[0] >> 12)
        elif attribute == SIDR_REQ and kind == IPV6:    # it has no field for the label
            labels.add(label)
        assert kind == IPV4 or label in labels, (label, labels, bth.hex())
        n += 1
    assert labels and 0 not in labels, labels
    assert n > 2 * ROUNDS, n
    s.close()


def sent(daemon, message):
    rows = ask(daemon, 'show cm')['cm_messages']
    return next(r['sent'] for r in rows if r['message'] == message)


def check_metrics(daemon):
    """They say what show cm says."""
    families = {f['name']: f['samples'] for f in ask(daemon, 'metrics')['metrics']}
    for row in ask(daemon, 'show cm')['cm_messages']:
        for column, name in (('sent', 'sent'), ('received', 'received'), ('repeated', 'repeated'),
                             ('duplicates', 'duplicate'), ('ignored', 'ignored')):
            values = [s['value'] for s in families[f'roci_cm_messages_{name}']
                      if s['labels'] == {'message': row['message']}]
            assert values == [row[column]], (name, row, values)
    refused = sum(s['value'] for s in families['roci_cm_refused'])
    assert refused == sent(daemon, 'REJ'), (refused, sent(daemon, 'REJ'))
    assert len(families['roci_cm_connections']) == 1


def left(daemon):
    return [row for line, name in (('show cm listeners', 'cm_listeners'), ('show cm connections', 'cm_connections'),
                                   ('show sessions', 'sessions')) for row in ask(daemon, line)[name]]


def main():
    rocid, program = sys.argv[1:]
    with Lab(rocid, program) as lab:
        a, b = lab.namespace(), lab.namespace()
        veth(a, 'e0', b, 'e0')
        a.run('ip addr add 10.8.0.1/24 dev e0; ip addr add 2001:db8::1/64 dev e0 nodad')
        b.run('ip addr add 10.8.0.2/24 dev e0; ip addr add 2001:db8::2/64 dev e0 nodad')
        ra, rb = (lab.rocid(n, s, ['--share', 'e0']) for n, s in ((a, 'a'), (b, 'b')))
        # until duplicate address detection is over, neighbours do not answer
        ping(b, '2001:db8::1')
        for family, to, source in (IPV4, '10.8.0.1', '10.8.0.2'), (IPV6, '2001:db8::1', '2001:db8::2'):
            taps = [tap(n) for n in (a, b)]     # what a rocid sends itself passes by its own side's
            run(program, ra, rb, to, source)
            for t in taps:
                check_mads(t, family)
        for daemon in ra, rb:
            wait_for('nothing to be left', lambda d=daemon: not left(d))
        assert sent(rb, 'REQ') >= 2 * (ROUNDS + 1), sent(rb, 'REQ')
        assert sent(ra, 'REP') >= 2 * ROUNDS and sent(ra, 'REJ') >= 2
        assert sent(ra, 'DREQ') >= 2 * ROUNDS
        check_metrics(ra)


main()
