# SPDX-License-Identifier: BSD-3-Clause
"""Known traffic over a real rocid (steps.c), and what tshark reads in a capture of it."""
import json
import os
import subprocess
from rocid import PATIENCE_S, check


class Steps:
    """A pair of queue pairs, a to b, that does what it is told."""

    def __init__(self, program, daemon, port_a=1, port_b=2, mtu=1024, timeout=21, other=()):
        """@timeout: 9 s unless the link loses packets; @other: the daemon of b, if it is not that of a."""
        self.process = subprocess.Popen(
            [program, daemon.socket, str(port_a), str(port_b), str(mtu), str(timeout),
             *[d.socket for d in other]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.a, self.b = map(int, self.process.stdout.readline().split())

    def ask(self, what, count=1, length=0):
        """What it says, nothing when it ends."""
        self.process.stdin.write(f'{what} {count} {length}\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip('\n')

    def do(self, what, count=1, length=0):
        said = self.ask(what, count, length)
        check(said == 'done', f'{what} {count} {length} fails: {said}')

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(PATIENCE_S) == 0, 'steps fails')


FIELDS = ('frame.number', 'frame.interface_id', 'frame.interface_name', 'frame.time_epoch',
          'frame.packet_flags_direction', 'frame.comment', 'infiniband.bth.opcode',
          'infiniband.bth.destqp', 'infiniband.bth.psn', 'frame.len', 'frame.cap_len',
          'eth.type', 'vlan.id', 'ip.version')


def frames(path):
    """A dict of strings for each frame, as tshark reads the file."""
    command = ['tshark', '-r', path, '-T', 'fields', '-E', 'occurrence=f']
    for field in FIELDS:
        command += ['-e', field]
    out = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    check(out.returncode == 0, f'tshark: {out.stderr}')
    rows = [dict(zip((f.split('.')[-1] for f in FIELDS), line.split('\t')))
            for line in out.stdout.splitlines()]
    for row in rows:
        for name in ('opcode', 'destqp', 'psn'):
            if row[name]:
                row[name] = int(row[name], 0)
    return rows


def sections(path):
    """Interfaces and totals, as capinfos tells them."""
    out = subprocess.run(['capinfos', path], capture_output=True, text=True, timeout=PATIENCE_S)
    check(out.returncode == 0, f'capinfos: {out.stderr}')
    return out.stdout
