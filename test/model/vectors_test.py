#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""vectors_test.py REPLAY: what happens to queue pairs at random, played to lib/cc and to the models of the papers in laws.py.

Rates, targets, alpha and windows must agree to 1e-6 wherever somebody looks.
"""
import os
import random
import shlex
import subprocess
import sys

from laws import Dcqcn, Hpcc, Swift
from network import Ack

RUNS, EVENTS, LOOSE = 40, 300, 1e-6
FIRST_PSN = 0xFFFF80        # PSNs wrap after some packets
US = 1000
PROFILES = 'paper', 'connectx', 'ns3hpcc'        # of DCQCN


class Tape:
    """The words for REPLAY, and what the model says each time somebody looks."""

    def __init__(self):
        self.words, self.expected = [], []

    def say(self, *words):
        self.words.append(' '.join(str(w) for w in words))

    def look(self, now, what, **values):
        self.say('look', now)
        self.expected.append((what, len(self.words), values))


def others(rng, profile):
    """Other parameters of DCQCN, as the model knows them and as words."""
    f, kib, ai, hai = rng.randint(1, 6), rng.randint(4, 4000), rng.randint(1, 200), rng.randint(1, 2000)
    clamp, gain, time = rng.randrange(2), rng.randint(900, 1020), rng.randint(20, 300)
    changes = {'f': f, 'ai': ai * 1e6, 'hai': hai * 1e6, 'clamp': bool(clamp), 'g': (1024 - gain) / 1024, 'time_ns': time * US}
    if profile != 'ns3hpcc':        # which counts no bytes
        changes['bytes'] = kib * 1024
    return changes, ('rp_threshold', f, 'rp_byte_reset', kib * 1024, 'rp_ai_rate', ai, 'rp_hai_rate', hai,
                     'rp_clamp_tgt_rate', clamp, 'rp_dce_tcp_g', gain, 'rp_time_reset', time)


def dcqcn(tape, rng, profile, changes, words):
    """How often somebody looked in hyper increase."""
    line, hyper = rng.choice((10e9, 25e9, 40e9, 100e9)), 0
    m = Dcqcn(profile, line, **changes)
    tape.say('qp', 'dcqcn', profile, int(line), *words)
    now = 1000 * US
    for i in range(EVENTS):
        # near and far events: within a timer's period and over many of them
        now += rng.choice((1, 500, 1 * US, 4 * US, 17 * US, 55 * US, 300 * US, 2000 * US, rng.randrange(1, 400 * US)))
        kind = rng.random()
        if kind < (.45, .2, .05, .01)[i * 4 // EVENTS]:     # a storm, then recovery
            tape.say('cnp', now)
            m.on_cnp(now)
        elif kind < .8:
            size = rng.choice((1106, 64 * 1106, 4 << 20, 10 ** 7))
            tape.say('sent', now, size, 0)
            m.on_sent(now, size, 0)
        m.run(now)
        free = m.rate is None
        tape.look(now, f'dcqcn {profile}', rate=m.rate or line, target=line if free else m.rt, alpha=m.alpha)
        hyper += m.is_hyper
    return hyper


def hpcc(tape, rng):
    line, base = rng.choice((25e9, 100e9)), rng.choice((5, 13))
    m = Hpcc('paper', line, base_rtt=base * 1e-6)
    tape.say('qp', 'hpcc', 'paper', int(line), 'base_rtt', base)
    now, psn, acked = 1000 * US, 0, 0
    hops = [[line * rng.choice((1, 1, .4)), rng.randrange(1 << 20), rng.randrange(1 << 24), 0] for _ in range(rng.randrange(1, 6))]
    load = .5
    for _ in range(EVENTS):
        for _ in range(rng.randrange(0, 4)):
            psn += 1
            tape.say('sent', now, 1000, FIRST_PSN + psn & 0xFFFFFF)
            m.on_sent(now, 1000, psn)
        step = rng.choice((200, 1 * US, base * US, 30 * US))
        now += step
        load = min(max(load + rng.uniform(-.2, .2), .05), 1)
        for h in hops:
            h[1] += step
            h[2] += int(h[0] * step * 1e-9 / 8 * load * rng.uniform(.5, 1))
            h[3] = max(0, h[3] + rng.randrange(-30000, 30000)) if load > .8 else 0
        if acked == psn:
            continue
        packets = rng.randrange(1, psn - acked + 1)
        acked += packets
        tape.say('ack', now, FIRST_PSN + acked & 0xFFFFFF, packets, 0,
                 *(f'{h[0]:.0f} {h[1] * 256 & 0xFFFFFFFF} {h[2] * 32 & 0xFFFFFFFF} {h[3]}' for h in hops))
        m.on_ack(now, Ack(acked, packets, 0, tuple(tuple(h) for h in hops)))
        tape.look(now, 'hpcc', rate=m.rate, target=m.wc * 8 / m.t, alpha=m.u)


def swift(tape, rng):
    scaling = rng.choice((0, 50))
    m = Swift('paper', 100e9, fs_range=scaling * US, first_cwnd=float(rng.choice((1, 16, 100))))
    tape.say('qp', 'swift', 'paper', int(100e9), 'fs_range', scaling, 'first_cwnd', int(m.cwnd))
    now, psn, rtt = 1000 * US, 0, 20 * US
    for _ in range(EVENTS):
        rtt = max(5 * US, rtt + rng.randrange(-8 * US, 8 * US))
        now += rng.choice((100, 2 * US, rtt, 3 * rtt))
        packets = rng.randrange(1, 5)
        psn += packets
        tape.say('sent', now, 1000 * packets, psn & 0xFFFFFF)
        m.on_sent(now, 1000, psn)
        kind = rng.random()
        if kind < .9:
            sample = rtt if rng.random() < .9 else 0
            tape.say('ack', now, psn & 0xFFFFFF, packets, sample)
            m.on_ack(now, Ack(psn, packets, sample, ()))
        else:
            tape.say('loss', now, 'timeout' if kind < .95 else 'sequence')
            m.on_loss(now, kind < .95)
        if kind < .02:
            for _ in range(6):          # in a row
                now += rtt
                tape.say('loss', now, 'timeout')
                m.on_loss(now, True)
        tape.look(now, 'swift', window=m.cwnd)


def record():
    tape, hyper = Tape(), dict.fromkeys(PROFILES, 0)
    for seed in range(RUNS):
        rng = random.Random(seed)
        for profile in PROFILES:
            hyper[profile] += dcqcn(tape, rng, profile, {}, ())
            hyper[profile] += dcqcn(tape, rng, profile, *others(rng, profile))
        hpcc(tape, rng)
        swift(tape, rng)
    if not all(hyper.values()):
        raise SystemExit(f'FAIL: sequences without hyper increase prove little: {hyper}')
    return tape


def main(replay):
    tape = record()
    wrapper = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))
    said = subprocess.run([*wrapper, replay], input='\n'.join(tape.words) + '\n', capture_output=True, text=True, check=True).stdout
    lines = said.splitlines()
    if len(lines) != len(tape.expected) or not lines:
        raise SystemExit(f'FAIL: {len(lines)} answers to {len(tape.expected)} questions')
    for line, (what, at, values) in zip(lines, tape.expected):
        got = dict(zip(('rate', 'target', 'alpha', 'window'), map(float, line.split())))
        for name, want in values.items():
            if abs(got[name] - want) > LOOSE * max(abs(want), 1e-9):
                near = '\n'.join(tape.words[max(0, at - 8):at])
                raise SystemExit(f'FAIL: {what}: {name} is {got[name]:.9g}, the model has {want:.9g}, after\n{near}')
    print(f'{len(lines)} states agree')


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
