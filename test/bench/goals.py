# SPDX-License-Identifier: BSD-3-Clause
"""What the project wants of its figures, and what others reached on a machine of this class (two
virtual CPUs, Xeon with AVX-512 and VPCLMULQDQ, DPDK 22.11): for proportions, not as a promise."""
from figures import advantage, better, find, one

# (who, what, unit, size) -> figure: latency is one way.
ELSEWHERE = {
    ('libfabric tcp', 'latency', 'us', 64): 3.8,
    ('libfabric tcp', 'latency', 'us', 4096): 5.0,
    ('libfabric tcp', 'latency', 'us', 65536): 14,
    ('libfabric tcp', 'rate', 'Gb/s', 4096): 8.3,
    ('libfabric tcp', 'rate', 'Gb/s', 65536): 11,
    ('libfabric tcp', 'messages', 'M/s', 64): 0.36,
    ('UCX tcp put', 'latency', 'us', 64): 6.5,
    ('UCX tcp put', 'latency', 'us', 4096): 6.6,
    ('UCX tcp put', 'latency', 'us', 65536): 46,
    ('UCX tcp put', 'rate', 'Gb/s', 4096): 9,
    ('UCX tcp put', 'rate', 'Gb/s', 65536): 14,
    ('UCX tcp put', 'messages', 'M/s', 64): 0.29,
    ('UCX tcp am', 'latency', 'us', 64): 3.8,
    ('UCX tcp am', 'latency', 'us', 4096): 4.7,
    ('UCX tcp am', 'latency', 'us', 65536): 32,
    ('UCX tcp am', 'rate', 'Gb/s', 4096): 9,
    ('UCX tcp am', 'rate', 'Gb/s', 65536): 28,
    ('UCX tcp am', 'messages', 'M/s', 64): 0.35,
    ('kernel UDP', 'messages', 'M/s', 64): 0.72,
    ('kernel UDP', 'latency', 'us', 64): 1.85,
    ('eRPC on memif', 'round trip', 'us', 64): 1.6,
    ('eRPC on memif', 'messages', 'M/s', 64): 1.4,
    ('eRPC on AF_PACKET', 'latency', 'us', 64): 1.95,
    ('eRPC on AF_PACKET', 'messages', 'M/s', 64): 0.23,
}
NOTES = {
    ('kernel UDP', 'latency', 'us', 64): 'busy-polled; qperf sleeps in the kernel',
    ('kernel UDP', 'messages', 'M/s', 64): 'sendmmsg and recvmmsg',
    ('libfabric tcp', 'messages', 'M/s', 64): 'fi_rma_bw, which Debian does not package',
}
VETH_WHATS = (('latency', 'us'), ('rate', 'Gb/s'), ('messages', 'M/s'))


def goal(name, unit, wanted, limit, value):
    """@param value  None: not measured."""
    met = None if value is None else value >= limit if wanted == 'at least' else value <= limit
    return {'name': name, 'unit': unit, 'wanted': wanted, 'limit': limit, 'value': value, 'met': met}


def best_path(figures, field, op='write', **want):
    """The best of the lists that were measured, or None."""
    found = [f[field] for f in find(figures, bench='path', op=op, qps=1, **want) if field in f]
    return min(found) if found else None


def path_goals(figures):
    for memory, limit in (('512K', 1.2), ('256M', 1.0)):
        yield goal(f'4 KiB WRITE, both ends on one core, {memory}', 'x floor', 'at most', limit,
                   best_path(figures, 'ratio_to_floor', size=4096, memory=memory))
    yield goal('64 B WRITE, both ends on one core', 'x floor', 'at most', 1.75,
               best_path(figures, 'ratio_to_floor', size=64, memory='512K'))
    for op, limit in (('write', 100), ('send', 130), ('read', 190)):
        yield goal(f'64 B {op.upper()}, least of all samples', 'ns', 'at most', limit,
                   best_path(figures, 'min', op, size=64, memory='512K'))
    for messages, size, limit in ((32, 64, 1.2), (32, 4096, 1.2), (1, 64, 2)):
        few, many = (one(figures, bench='path', op='write', size=size, qps=qps, memory='512K', list=messages)
                     for qps in (1, 10000))
        yield goal(f'10,000 QPs, {size} B WRITE, lists of {messages}', 'x one', 'at most', limit,
                   many['median'] / few['median'] if few and many else None)


def latency_goals(figures):
    for op in ('write', 'send'):
        found = [f['median'] for f in find(figures, bench='latency', op=op, size=64, threads='one')]
        yield goal(f'64 B {op.upper()} over net_ring, one way', 'us', 'at most', 1.5,
                   min(found) / 1e3 if found else None)


def cores_goals(figures):
    found = [f for f in find(figures, bench='cores', op='write', size=64) if f['workers'] > 1]
    most = max(found, key=lambda f: f['workers'], default=None)
    yield goal(f"64 B WRITE, {most['workers']:.0f} workers at once" if most else '64 B WRITE, several workers at once',
               'of each alone', 'at least', 0.9, most and most['kept'])


def register_goals(figures):
    def found(what):
        f = one(figures, bench='register', what=what)
        return f['median'] if f else None

    def ratio(a, b):
        return a / b if a is not None and b else None

    yield goal('registering 4 KiB, fresh', 'us', 'at most', 100, found('fresh'))
    yield goal('the same, moved before', 'x roci_alloc_mem()', 'at most', 1.5,
               ratio(found('moved before'), found('roci_alloc_mem()')))
    yield goal('registering 1 GiB that is there', 'ms', 'at most', 1000, found('present'))
    yield goal('the same', 'x memcpy()', 'at most', 2, ratio(found('present'), found('memcpy() to fresh pages')))
    yield goal('registering 1 GiB that is not there', 'ms', 'at most', 10, found('absent'))


def link_goals(figures):
    for name in ('memif', 'vhost'):
        f = one(figures, bench='link', who=f'{name}, one thread', what='rate', size=4096)
        yield goal(f'4 KiB WRITE over {name}, one direction, a core an end', 'Gb/s', 'at least', 50,
                   f and f['median'])
        f = one(figures, bench='link', who=f'{name}, one thread', what='round trip', op='write', size=64)
        raw = one(figures, bench='link', who=f'{name}, one thread', what='raw frame, round trip')
        limit = max(1.8, raw['median'] + 0.5) if raw else 1.8
        yield goal(f'64 B WRITE round trip over {name}', 'us', 'at most', limit, f and f['median'])
        yield goal('the same, 99 % of them', 'us', 'at most', 5, f and f['p99'])


def local_goals(figures):
    for op, what, unit, size, wanted, limit in (('write', 'messages', 'M/s', 64, 'at least', 15),
                                                ('write', 'latency', 'us', 64, 'at most', 0.55),
                                                ('write', 'rate', 'Gb/s', 65536, 'at least', 300)):
        f = one(figures, bench='local', who='one port', what=what, op=op, size=size)
        yield goal(f'{size} B WRITE inside one port, {what}', unit, wanted, limit, f and f['median'])


def lab_goals(figures):
    for who, limit in (('star', 0.7), ('fat tree', 2)):
        f = one(figures, bench='lab', who=who, what='CPU per packet')
        yield goal(f'rocilab, {who}: CPU per packet', 'us', 'at most', limit, f and f['median'])


def veth_best(figures, what, unit, size, ours):
    """The best figure of ours, or of the others, and whose it is."""
    best = None
    for f in find(figures, bench='veth', what=what, unit=unit, size=size):
        if f['who'].startswith('Rocinante') == ours and (
                not best or better(f['median'], best['median'], unit)):
            best = f
    return best


def peer_goals(figures):
    sizes = sorted({f['size'] for f in figures if f['bench'] == 'veth'})
    for what, unit in VETH_WHATS:
        for size in sizes:
            ours, theirs = (veth_best(figures, what, unit, size, side) for side in (True, False))
            if ours and theirs and (what != 'messages' or size == 64) and (what != 'rate' or size > 64):
                yield goal(f"veth, {size} B {what}: {ours['who']} against {theirs['who']}", 'x peer', 'at least', 1,
                           advantage(ours['median'], theirs['median'], unit))


def ipoib_goals(figures):
    def found(who, what):
        f = one(figures, bench='ipoib', who=who, what=what)
        return f and f['median']

    for reference in 'kernel', 'kernel, segments cut':
        theirs, ours = found(reference, 'TCP'), [r for r in (found('Rocinante', 'TCP'), found('Rocinante --gso', 'TCP')) if r]
        yield goal(f'TCP over IP over InfiniBand, against the {reference}', 'x', 'at least', 0.6,
                   max(ours) / theirs if theirs and ours else None)
    theirs = found('kernel', 'ping')
    for where, arrangements in (('two rocid', ('Rocinante', 'Rocinante --gso')),
                                ('one rocid, two ports', ('one rocid, two ports', 'one rocid, --idle poll'))):
        ours = [r for r in (found(who, 'ping') for who in arrangements) if r]
        yield goal(f'ping over IP over InfiniBand, more than the kernel ({where})', 'us', 'at most', 30,
                   min(ours) - theirs if theirs and ours else None)


def cm_goals(figures):
    def found(who, what='rate'):
        f = one(figures, bench='cm', who=who, what=what)
        return f and f['median']

    for where in ('one rocid', 'two rocid', 'two rocid, many'):
        yield goal(f'cmtime, {where}', 'connections/s', 'at least', 500, found(f'cmtime, {where}', 'connections'))
    for name, who, reference, limit in (
            ('perftest with -R, against without', 'ib_write_bw -R', 'ib_write_bw', 0.97),
            ('rstream of 64 KiB, against ib_write_bw', 'rstream', 'ib_write_bw', 0.5),
            ('4 KiB WRITEs beside 10,000 MADs per second', 'ib_write_bw, MADs beside it',
             "ib_write_bw, nobody's frames beside it", 0.97)):
        ours, theirs = found(who), found(reference)
        yield goal(name, 'x', 'at least', limit, ours / theirs if ours and theirs else None)
    yield goal('10,000 idle connections', '% of a core', 'at most', 1, found('idle', 'CPU of the control thread'))


def mpi_goals(figures):
    """One program, one MPI: ours against the best by TCP."""
    mpi = find(figures, bench='mpi')
    for what in 'pingpong', 'allreduce', 'UCX message':
        for size in sorted({f['size'] for f in mpi if f['what'] == what}):
            best = {ours: min((f['median'] for f in find(mpi, what=what, size=size)
                               if f['who'].startswith('Rocinante') == ours), default=None) for ours in (True, False)}
            if None not in best.values():
                yield goal(f'{size} B, {what}: over rocid against TCP', 'x peer', 'at least', 1, best[False] / best[True])


def judge(figures):
    parts = (path_goals, latency_goals, cores_goals, register_goals, lab_goals, local_goals, link_goals, peer_goals, ipoib_goals,
             cm_goals, mpi_goals)
    return [g for part in parts for g in part(figures)]
