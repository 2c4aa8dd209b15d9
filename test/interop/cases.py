# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of interop cases: data only."""
from dataclasses import dataclass, field

PINGPONG_PORT = 18515
PEER_PORT = 18600
# A guest is emulated and may lose packets by itself: limits are generous.
CASE_TIMEOUT = 120


@dataclass
class Case:
    name: str
    program: str                # 'pingpong' or 'peer'
    we_serve: bool
    family: str                 # of the GIDs: 'v4' or 'v6'
    mtu: int
    port: int
    args: list                  # both sides
    server_extra: list = field(default_factory=list)
    client_extra: list = field(default_factory=list)
    bad_output: str = None      # fails the case although the exit status is 0
    timeout: int = CASE_TIMEOUT

    def _args(self, side):
        flag = {'pingpong': '-g', 'peer': '--gid-index'}[self.program]
        return self.args + [flag, str(side.gid_index[self.family])]

    def server_args(self, server):
        return self._args(server) + self.server_extra

    def client_args(self, client, server):
        return self._args(client) + self.client_extra + [server.tcp_address]


# bytes, iterations
PINGPONG_SIZES = ((1, 100), (1024, 100), (1025, 100), (65536, 10), (1048576, 2))


def pingpong_cases():
    """ibv_rc_pingpong's own exchange. -c: the receiver looks at the bytes."""
    return [
        Case(f'pingpong-{family}-mtu{mtu}-{size}-{"serve" if we_serve else "connect"}', 'pingpong',
             we_serve, family, mtu, PINGPONG_PORT,
             ['-c', '-m', str(mtu), '-s', str(size), '-n', str(iters)], bad_output='invalid data')
        for family in ('v4', 'v6') for mtu in (256, 1024) for size, iters in PINGPONG_SIZES
        for we_serve in (True, False)]


# name, GIDs, path MTU, driver's options, follower's options, both sides' options
PEER_ROWS = (
    ('all', 'v4', 1024, '--rounds 2', '', ''),
    ('all-v6', 'v6', 1024, '--seed 2', '', ''),
    ('mtu256', 'v4', 256, '--seed 3', '', ''),
    ('mtu512-v6', 'v6', 512, '--seed 4', '', ''),
    ('sge', 'v4', 1024, '--seed 5 --sge 4', '--sge 7', ''),
    ('inline', 'v4', 1024, '--seed 6 --inline 64 --max 200 --count 100', '--max 200', ''),
    ('unsignaled', 'v4', 1024, '--seed 7 --signal-every 8 --count 50', '', '--solicited'),
    ('rnr', 'v4', 1024, '--seed 8 --ops send,send_imm,write_imm', '--rnr-test --min-rnr 14', ''),
    ('depth1', 'v4', 1024, '--seed 9 --count 10', '', '--qp-depth 1 --rd-atomic 1'),
    ('long', 'v4', 1024, '--seed 10 --min 200000 --max 1048576 --count 3', '--max 1048576',
     '--qp-depth 4'),
    ('short', 'v6', 1024, '--seed 11 --max 8 --count 200', '', '--qp-depth 64'),
    # with --jumbo
    ('mtu4096', 'v4', 4096, '--seed 12', '', ''),
    ('mtu2048-v6', 'v6', 2048, '--seed 13', '', ''),
)


def peer_cases():
    """verbs_peer and its like; both sides drive, and both serve."""
    cases = []
    for n, (name, family, mtu, driver, follower, both) in enumerate(PEER_ROWS):
        for we_drive in (True, False):
            we_serve = we_drive == (n % 2 == 0)
            ours, theirs = (f'--driver {driver}', follower) if we_drive else \
                (follower, f'--driver {driver}')
            server, client = (ours, theirs) if we_serve else (theirs, ours)
            cases.append(Case(f'peer-{name}-{"drive" if we_drive else "follow"}', 'peer', we_serve,
                              family, mtu, PEER_PORT, ['--mtu', str(mtu)] + both.split(),
                              server.split(), client.split()))
    return cases
