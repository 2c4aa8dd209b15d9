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
    to_peer: str = ''           # faults on the way, as lossy_bridge wants them: only with --lossy
    to_us: str = ''
    seed: int = 1
    often: bool = True          # False: only with --full

    @property
    def lossy(self):
        return bool(self.to_peer or self.to_us)

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


# --- through a lossy bridge ----------------------------------------------------------------

# A guest under emulation answers late, so the time-out of 134 ms is long; what is lost at the end of a
# batch costs one. 7 retries without progress do not happen by chance.
LOSSY_TIMEOUT, LOSSY_RETRY, LOSSY_RD_ATOMIC = 15, 7, 4
LOSSY_QP = f'--timeout {LOSSY_TIMEOUT} --retry {LOSSY_RETRY} --rnr-retry 7 --rd-atomic {LOSSY_RD_ATOMIC}'
MIXED, MANY = '--count 60', '--count 150 --max 40000'
BYTES, LONG = '--min 1 --max 8 --count 300', '--min 1048576 --max 1048576 --count 1'


def lossy_rows():
    """(name, faults to the peer, faults to us, often, GIDs, path MTU, driver's options, follower's)."""
    def drop(percent):
        return f'drop={round(percent * 10000)}'
    for percent, load in ((0.1, MANY), (1, MIXED), (5, MIXED)):
        for where in ('to-peer', 'to-us', 'both'):
            yield (f'{percent}-{where}', drop(percent) if where != 'to-us' else '',
                   drop(percent) if where != 'to-peer' else '', True, 'v4', 1024, load, '')
    for percent in (0.1, 1, 5):
        often, one = percent == 1, drop(percent)
        count = ' --ops send,write,read --rounds 8' if percent == 0.1 else ''
        yield f'{percent}-bytes', one, one, often, 'v6', 1024, BYTES + (' --count 2000' * (percent == 0.1)), ''
        yield f'{percent}-long', one, one, often, 'v4', 1024, LONG + count, '--max 1048576'
        yield f'{percent}-mtu256-v6', one, one, percent == 5, 'v6', 256, '--count 40', ''
        yield f'{percent}-sge', one, one, False, 'v4', 1024, '--sge 4 --count 100', '--sge 7'
    one = drop(1)
    yield ('1-rnr', one, one, True, 'v4', 1024, '--ops send,send_imm,write_imm --rounds 3',
           '--rnr-test --min-rnr 20')
    for fault in ('duplicate', 'reorder', 'corrupt', 'delay'):
        one = f'{fault}=10000'
        yield f'1-{fault}', one, one, True, 'v4', 1024, MIXED, ''
    one = 'drop=10000,duplicate=10000,reorder=10000,corrupt=10000,delay=2000'
    yield '1-everything', one, one, True, 'v6', 1024, MIXED, ''


def lossy_cases():
    """Each row twice: our side drives and the guest does; and each side serves in half of them."""
    cases = []
    for n, (name, to_peer, to_us, often, family, mtu, driver, follower) in enumerate(lossy_rows()):
        for we_drive in (True, False):
            we_serve = we_drive == (n % 2 == 0)
            ours, theirs = (f'--driver {driver}', follower) if we_drive else \
                (follower, f'--driver {driver}')
            if '--max' in driver and '--max' not in follower:
                follower_max = ' --max ' + driver.split('--max ')[1].split()[0]
                ours, theirs = (ours, theirs + follower_max) if we_drive else (ours + follower_max, theirs)
            server, client = (ours, theirs) if we_serve else (theirs, ours)
            cases.append(Case(f'lossy-{name}-{"drive" if we_drive else "follow"}', 'peer', we_serve, family,
                              mtu, PEER_PORT, ['--mtu', str(mtu)] + LOSSY_QP.split(),
                              server.split(), client.split(), to_peer=to_peer, to_us=to_us, seed=n + 1,
                              often=often))
    return cases
