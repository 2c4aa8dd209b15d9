# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of interop cases: data only."""
from dataclasses import dataclass, field

PINGPONG_PORT = 18515
PEER_PORT = 18600
# A guest is emulated and may lose packets by itself: limits are generous.
CASE_TIMEOUT = 120
# The exchange stops with the first datagram that is lost; the case is run again then.
DATAGRAM_TIMEOUT = 60


@dataclass
class Case:
    name: str
    program: str                # 'pingpong', 'ud' or 'peer', or its name: of ibverbs-utils and perftest
    we_serve: bool
    family: str                 # of the GIDs: 'v4' or 'v6'
    mtu: int
    port: int
    args: list                  # both sides
    server_extra: list = field(default_factory=list)
    client_extra: list = field(default_factory=list)
    bad_output: str = None      # fails the case although the exit status is 0
    timeout: int = CASE_TIMEOUT
    tries: int = 3              # when a process had no time
    to_peer: str = ''           # impairments on the way, as lossy_bridge takes them: only with --lossy
    to_us: str = ''
    seed: int = 1
    often: bool = True          # False: only with --full
    cc: str = ''                # how our side manages congestion
    cm: bool = False            # connects by RDMA CM: {server} in its arguments is an address
    client_program: str = ''    # if it is another one

    @property
    def lossy(self):
        return bool(self.to_peer or self.to_us)

    @property
    def one_way(self):
        """UC and UD: only the driver sends."""
        return bool({'--uc', '--ud', 'UC', 'UD'} & {*self.args, *self.server_extra, *self.client_extra})

    @property
    def we_drive(self):
        return ('--driver' in self.server_extra) == self.we_serve

    def _args(self, side):
        flag = '-x' if self.program.startswith('ib_') else '--gid-index' if self.program == 'peer' else '-g'
        return self.args + [flag, str(side.gid_index[self.family])]

    def _cm_args(self, extra, server):
        address = next(a for a in server.addresses if (':' in a) == (self.family == 'v6'))
        return [word.replace('{server}', address) for word in self.args + extra]

    def server_args(self, server):
        if self.cm:
            return self._cm_args(self.server_extra, server)
        return self._args(server) + self.server_extra

    def client_args(self, client, server):
        if self.cm:
            return self._cm_args(self.client_extra, server)
        return self._args(client) + self.client_extra + [server.tcp_address]


# bytes, iterations
PINGPONG_SIZES = ((1, 100), (1024, 100), (1025, 100), (65536, 10), (1048576, 2))


def pingpong_cases():
    """ibv_rc_pingpong's own exchange. -c: the receiver looks at the bytes. Often each in one of both roles."""
    kinds = [(family, mtu, size, iters) for family in ('v4', 'v6') for mtu in (256, 1024)
             for size, iters in PINGPONG_SIZES]
    return [
        Case(f'pingpong-{family}-mtu{mtu}-{size}-{"serve" if we_serve else "connect"}', 'pingpong',
             we_serve, family, mtu, PINGPONG_PORT,
             ['-c', '-m', str(mtu), '-s', str(size), '-n', str(iters)], bad_output='invalid data',
             often=we_serve == (n % 2 == 0))
        for n, (family, mtu, size, iters) in enumerate(kinds) for we_serve in (True, False)]


def datagram_cases():
    """ibv_ud_pingpong: a datagram is at most a path MTU, and the exchange ends with the first that is lost."""
    return [
        Case(f'ud-{family}-{size}-{"serve" if we_serve else "connect"}', 'ud', we_serve, family, 1024,
             PINGPONG_PORT, ['-c', '-s', str(size), '-n', str(iters)], bad_output='invalid data',
             timeout=DATAGRAM_TIMEOUT)
        for family in ('v4', 'v6') for size, iters in ((1, 100), (1023, 100), (1024, 200))
        for we_serve in (True, False)]


# Debian's programs on our libibverbs: program, GIDs, options
VERBS_ROWS = (
    ('ibv_uc_pingpong', 'v4', '-c -m 1024 -n 100'),
    ('ibv_srq_pingpong', 'v6', '-c -m 1024 -n 100'),
    ('pingpong', 'v4', '-c -e -m 1024 -n 100'),
    ('ib_send_bw', 'v4', '-s 65536'),
    ('ib_send_bw', 'v6', '-s 1000 -e'),
    ('ib_send_bw', 'v4', '-s 1000 -c UD'),
    ('ib_send_bw', 'v4', '-s 5000 -c UC'),
    ('ib_send_bw', 'v4', '-s 1000 --use-srq -q 2'),
    ('ib_send_lat', 'v4', '-s 64 --inline_size 64'),
    ('ib_write_bw', 'v4', '-s 65536'),
    ('ib_write_bw', 'v6', '-s 1000 -q 4'),
    ('ib_write_bw', 'v4', '-s 5000 -m 256'),
    ('ib_write_lat', 'v4', '-s 2'),
    ('ib_read_bw', 'v4', '-s 65536 -o 16'),     # perftest asks for its own device's number at both ends
    ('ib_read_lat', 'v6', '-s 1025 -o 16'),
    ('ib_atomic_bw', 'v4', '-A CMP_AND_SWAP -o 16'),
    ('ib_atomic_lat', 'v6', '-A FETCH_AND_ADD -o 16'),
)
PERFTEST = '-F -n 100 -u 18'


def verbs_cases():
    """Programs of ibverbs-utils and perftest on both sides, in both roles; verbs_peer on our side, too."""
    cases = []
    for program, family, options in VERBS_ROWS:
        words = options.split()
        mtu = int(words[words.index('-m') + 1]) if '-m' in words else 1024
        if program.startswith('ib_'):
            words += PERFTEST.split() + ([] if '-m' in words or 'atomic' in program else ['-m', '1024'])
        for we_serve in (True, False):
            name = f'verbs-{program}-{family}{options.replace(" ", "")}-{"serve" if we_serve else "connect"}'
            cases.append(Case(name, program, we_serve, family, mtu, PINGPONG_PORT, words,
                              bad_output='invalid data'))
    again = [c for c in datagram_cases() + peer_cases() if c.mtu <= 1024]
    for n, case in enumerate(again):    # our own programs run on roci.h in both roles, too
        case.often = n % 8 in (0, 5)
    return cases + cm_cases() + again


# With the stock librdmacm on both sides: server, client (if another), GIDs, their options, both's
CM_ROWS = (
    ('rping', '', 'v4', '-s -a {server}', '-c -a {server}', '-v -V -C 5'),
    ('rping', '', 'v6', '-s -a {server}', '-c -a {server}', '-v -V -C 5'),
    ('rping', '', 'v4', '-s -a {server}', '-c -a {server}', '-V -C 5 -S 60000'),
    ('ucmatose', '', 'v4', '-b {server}', '-s {server}', '-c 10'),
    ('ucmatose', '', 'v4', '-b {server}', '-s {server}', '-m'),
    ('udaddy', '', 'v4', '-b {server}', '-s {server}', '-c 5'),
    ('rdma_server', 'rdma_client', 'v4', '-s {server}', '-s {server}', ''),
    ('rstream', '', 'v4', '-b {server}', '-s {server}', '-T v -C 50 -S 4096'),
    ('rstream', '', 'v4', '-b {server}', '-s {server}', '-T b -C 50 -S 4096'),
    ('riostream', '', 'v4', '-b {server}', '-s {server}', '-T v -C 50 -S 4096'),
    ('rdma_xserver', 'rdma_xclient', 'v4', '', '-s {server}', '-c r'),
    ('ib_write_bw', '', 'v4', '', '{server}', '-R -F -n 100'),
    ('ib_send_bw', '', 'v4', '', '{server}', '-R -F -n 100 -c UD'),
    ('ib_read_lat', '', 'v4', '', '{server}', '-R -F -n 100'),
)


def cm_cases():
    return [
        Case(f'cm-{client or server}-{family}{both.replace(" ", "")}-{"serve" if we_serve else "connect"}', server,
             we_serve, family, 1024, 0, both.split(), server_extra.split(), client_extra.split(),
             cm=True, client_program=client, tries=10)
        for server, client, family, server_extra, client_extra, both in CM_ROWS for we_serve in (True, False)]


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
    ('marks', 'v4', 1024, '--seed 14', '', '--marks'),
    ('marks-v6', 'v6', 1024, '--seed 15', '', '--marks'),
    ('uc', 'v4', 1024, '--seed 14 --max 4000 --count 40', '--max 4000', '--uc --qp-depth 64'),
    ('uc-v6-mtu256', 'v6', 256, '--seed 15 --max 2000 --count 40 --sge 3', '--max 2000', '--uc --qp-depth 64'),
    ('srq', 'v4', 1024, '--seed 16', '--srq --sge 3', '--qp-depth 8'),
    ('srq-rnr', 'v6', 1024, '--seed 17 --ops send,send_imm,write_imm', '--srq --rnr-test --min-rnr 14', ''),
    ('ud', 'v4', 1024, '--seed 18 --sge 4 --count 60', '--sge 3', '--ud --max 1024 --qp-depth 64'),
    ('ud-srq-v6', 'v6', 1024, '--seed 19 --count 60', '--srq', '--ud --max 1024 --qp-depth 64'),
    ('mw', 'v4', 1024, '--seed 20 --rounds 2', '', '--mw'),
    ('mw-srq-v6', 'v6', 256, '--seed 21 --ops send_inv,write --rounds 3 --count 5', '--srq --sge 2', '--mw'),
    ('mcast', 'v4', 1024, '--seed 22 --sge 2 --count 60', '', '--ud --mcast --max 1024 --qp-depth 64'),
    ('mcast-srq-v6', 'v6', 1024, '--seed 23 --count 60', '--srq', '--ud --mcast --max 1024 --qp-depth 64'),
    ('mw1', 'v6', 1024, '--seed 24 --rounds 2 --sge 3', '', '--mw1'),
    # our side manages congestion: its packets are ECN-capable (CC)
    ('cc', 'v4', 1024, '--seed 25', '--srq', ''),
    ('cc-v6', 'v6', 1024, '--seed 26 --rounds 2', '', ''),
    ('cc-ud', 'v6', 1024, '--seed 27 --count 60', '', '--ud --max 1024 --qp-depth 64'),
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
                              server.split(), client.split(), cc='notify' if name.startswith('cc') else ''))
    return cases


# --- through a lossy bridge ----------------------------------------------------------------

# A guest under emulation answers late, so the time-out of 0.5 s is long; what is lost at the end of a
# batch costs one. 7 retries without progress do not happen by chance.
LOSSY_TIMEOUT, LOSSY_RETRY, LOSSY_RD_ATOMIC = 17, 7, 4
LOSSY_QP = f'--timeout {LOSSY_TIMEOUT} --retry {LOSSY_RETRY} --rnr-retry 7 --rd-atomic {LOSSY_RD_ATOMIC}'
MIXED, MANY = '--count 60', '--count 150 --max 40000'
BYTES, LONG = '--min 1 --max 8 --count 300', '--min 1048576 --max 1048576 --count 1'
UC = '--uc --qp-depth 64 --count 60'
# As many receives as datagrams: what does not arrive was lost on its way.
UD = '--ud --qp-depth 128 --max 1024 --count 120'
# soft-RoCE accepts no message after one that lost a packet other than its first (doc/soft-roce.md), so messages to it have one packet.
UC_MAX = {True: 1024, False: 3000}
# With these the first frame that a rate of 0.1 % hits is among the first 40 of both directions; with the
# last of them all kinds of impairments that it is for are among the first 200. So no case depends on luck (lossy_bridge_test.py).
SEEDS = (1048, 2222, 2303, 2682, 2822, 3208, 3772, 4027, 4078, 4800)
SEED_OF_EVERYTHING = 1
MARKS, EACH_MARK = 'mark=500000', 'np_min_time_between_cnps=0'
EVERYTHING = 'drop=10000,corrupt=10000,duplicate=10000,reorder=10000,delay=5000'


@dataclass
class LossyRow:
    name: str
    to_peer: str
    to_us: str
    driver: str                 # options
    follower: str = ''
    family: str = 'v4'
    mtu: int = 1024
    often: bool = True
    seed: int = None
    one_way: bool = False       # only the driver sends: the other way there is nothing to lose
    cc: str = ''


def drop(percent):
    return f'drop={round(percent * 10000)}'


def lossy_rows():
    for percent, load in ((0.1, MANY), (1, MIXED), (5, MIXED)):
        one, often = drop(percent), percent == 1
        yield LossyRow(f'{percent}-to-peer', one, '', load, often=False)
        yield LossyRow(f'{percent}-to-us', '', one, load, often=False)
        yield LossyRow(f'{percent}-both', one, one, load, often=often)
    for percent, count in ((0.1, 2), (1, 1), (5, 1)):
        one, often = drop(percent), percent == 1
        yield LossyRow(f'{percent}-bytes', one, one, f'{BYTES} --rounds {count}', family='v6', often=often)
        yield LossyRow(f'{percent}-long', one, one, f'{LONG} --rounds {count}', often=often)
        yield LossyRow(f'{percent}-mtu256', one, one, '--count 20', family='v6', mtu=256, often=often)
        yield LossyRow(f'{percent}-sge', one, one, '--sge 4 --count 100', '--sge 7', often=False)
        yield LossyRow(f'{percent}-rnr', one, one, '--ops send,send_imm,write_imm --rounds 2',
                       '--rnr-test --min-rnr 20', often=often)
    for kind in ('duplicate', 'reorder', 'corrupt', 'delay'):
        one = f'{kind}=10000'
        yield LossyRow(f'1-{kind}', one, one, MIXED, often=kind in ('reorder', 'corrupt'))
    yield LossyRow('1-everything', EVERYTHING, EVERYTHING, MIXED, family='v6', seed=SEED_OF_EVERYTHING)
    for percent in (0.1, 1, 5):
        one = drop(percent)
        yield LossyRow(f'{percent}-uc', one, one, f'{UC} --rounds {2 if percent < 1 else 1}', '--uc --qp-depth 64',
                       often=percent == 1, one_way=True)
    for percent in (1, 5):
        yield LossyRow(f'{percent}-ud', drop(percent), drop(percent), f'{UD} --rounds 2', '--ud --qp-depth 128 --srq',
                       family='v6' if percent == 1 else 'v4', often=percent == 1, one_way=True)
    yield LossyRow('1-srq', drop(1), drop(1), '', '--srq --sge 3')
    yield LossyRow('1-mw', drop(1), drop(1), '--mw', '--mw')
    # a link that marks half of the packets: soft-RoCE heeds no mark and no CNP, and our side sends CNPs
    for name, family, cc in (('mark', 'v4', 'notify'), ('mark-v6', 'v6', f'dcqcn,{EACH_MARK}')):
        yield LossyRow(name, MARKS, MARKS, MIXED, family=family, cc=cc)
    yield LossyRow('mark-ud', MARKS, MARKS, UD, '--ud --qp-depth 128', cc='notify', one_way=True)


def longest(options):
    """The follower's --max is the driver's."""
    words = options.split()
    return ['--max', words[words.index('--max') + 1]] if '--max' in words else []


def lossy_cases():
    """Each row twice: our side drives and the guest does; and each side serves in half of them."""
    cases = []
    for n, row in enumerate(lossy_rows()):
        for we_drive in (True, False):
            options = f'{row.driver} --max {UC_MAX[we_drive]}' if '--uc' in row.driver else row.driver
            driver = ['--driver'] + options.split()
            follower = longest(options) + row.follower.split()
            we_serve = we_drive == (n % 2 == 0)
            server, client = (driver, follower) if we_serve == we_drive else (follower, driver)
            cases.append(Case(
                f'lossy-{row.name}-{"drive" if we_drive else "follow"}', 'peer', we_serve, row.family,
                row.mtu, PEER_PORT, ['--mtu', str(row.mtu)] + LOSSY_QP.split(), server, client,
                to_peer=row.to_peer if we_drive or not row.one_way else '',
                to_us=row.to_us if not (we_drive and row.one_way) else '', seed=row.seed or SEEDS[n % len(SEEDS)],
                often=row.often, cc=row.cc))
    return cases
