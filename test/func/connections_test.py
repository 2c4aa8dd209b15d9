#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""connections_test.py ROCID CONNECTIONS: programs of two daemons in two namespaces connect over a veth,
by IPv4 and IPv6; one is killed, and the other hears of it. Then nothing of them is left, and the
daemons have counted each message.
Needs root."""
import subprocess
import sys

from netlab import Lab, ping, veth, wait_for
from rocid import ask

PATIENCE_S = 300
ROUNDS = 3  # of CONNECTIONS


def run(program, server, client, to, source):
    subprocess.run([program, server.socket, client.socket, to, source], check=True, timeout=PATIENCE_S)


def sent(daemon, message):
    rows = ask(daemon, 'show cm')['cm_messages']
    return next(r['sent'] for r in rows if r['message'] == message)


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
        run(program, ra, rb, '10.8.0.1', '10.8.0.2')
        run(program, ra, rb, '2001:db8::1', '2001:db8::2')
        for daemon in ra, rb:
            wait_for('nothing to be left', lambda d=daemon: not left(d))
        assert sent(rb, 'REQ') >= 2 * (ROUNDS + 1), sent(rb, 'REQ')
        assert sent(ra, 'REP') >= 2 * ROUNDS and sent(ra, 'REJ') >= 2
        assert sent(ra, 'DREQ') >= 2 * ROUNDS


main()
