# SPDX-License-Identifier: BSD-3-Clause
"""A figure is a dictionary, as README.md says. Which are the same figure in two reports, which of two is
the better one, and how to find some."""
import statistics

# Fields that say what was measured; all others say what came out.
KEY = ('bench', 'who', 'what', 'op', 'size', 'qps', 'memory', 'list', 'signal', 'threads', 'workers', 'unit')
MORE_IS_BETTER = ('Gb/s', 'M/s', '1/s')


def key(figure):
    return tuple(figure.get(name) for name in KEY)


def better(a, b, unit):
    return a > b if unit in MORE_IS_BETTER else a < b


def advantage(ours, theirs, unit):
    """How many times better ours is: 2 is twice as fast."""
    return ours / theirs if unit in MORE_IS_BETTER else theirs / ours


def make(bench, who, what, unit, size, samples, **more):
    """A figure of this program's own, from its samples."""
    digits = [float(f'{s:.6g}') for s in samples]
    best = max if unit in MORE_IS_BETTER else min
    return {'bench': bench, 'who': who, 'what': what, 'size': size, 'unit': unit,
            'median': statistics.median(digits), 'min': min(digits), 'best': best(digits),
            'samples': digits, **more}


def find(figures, **want):
    return [f for f in figures if all(f.get(name) == value for name, value in want.items())]


def one(figures, **want):
    found = find(figures, **want)
    return found[0] if found else None
