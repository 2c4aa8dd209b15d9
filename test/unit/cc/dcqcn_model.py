#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""dcqcn_model.py DCQCN_REPLAY [SEED...]: DCQCN as its sources define it, with a step for each timer and none of the
arithmetic of lib/cc/dcqcn.c, which computes what timers would have done. Random sequences of CNPs and packets are played
to both; rate, target and alpha must agree to 1e-3 after each of them.
"""
import os
import random
import shlex
import subprocess
import sys

TOLERANCE = 1e-3
EVENTS = 600
US = 1000
MBIT = 1e6

# Bit/s, ns and bytes; the gain g is a fraction.
PROFILES = {
    'paper': dict(g=1 / 256, alpha0=1, alpha_ns=55 * US, monitor_ns=0, time_ns=55 * US, bytes=10_000_000, F=5,
                  ai=40 * MBIT, hai=200 * MBIT, floor=10 * MBIT, least=0, clamp=True, clamp_ati=False),
    'connectx': dict(g=5 / 1024, alpha0=1023 / 1024, alpha_ns=1 * US, monitor_ns=4 * US, time_ns=300 * US,
                     bytes=32767 * 64, F=1, ai=5 * MBIT, hai=50 * MBIT, floor=1 * MBIT, least=0.5, clamp=False,
                     clamp_ati=True),
    'ns3hpcc': dict(g=1 / 256, alpha0=1, alpha_ns=1 * US, monitor_ns=4 * US, time_ns=300 * US, bytes=0, F=1,
                    ai=5 * MBIT / 25e9, hai=50 * MBIT / 25e9,  # of the line
                    floor=100 * MBIT, least=0, clamp=False, clamp_ati=True),
}


class Model:
    """Rc, Rt and alpha of one queue pair, and its timers."""

    def __init__(self, profile, line, change):
        self.p = dict(PROFILES[profile])
        if profile == 'ns3hpcc':
            self.p['ai'] *= line
            self.p['hai'] *= line
        self.p.update(change)
        self.profile, self.line = profile, line
        self.Rc = self.Rt = line
        self.alpha = self.p['alpha0']
        self.known = False
        self.T = self.B = self.bytes = 0
        self.cnp_for_alpha = self.cnp_for_monitor = False

    # --- steps ---

    def target_rise(self):
        F, most, least = self.p['F'], max(self.T, self.B), min(self.T, self.B)
        if self.profile == 'ns3hpcc':       # time only, and hyper increases do not grow
            return 0 if self.T <= F else self.p['ai'] if self.T == F + 1 else self.p['hai']
        if most <= F:
            return 0
        return (least - F) * self.p['hai'] if least > F else self.p['ai']

    def is_hyper(self):
        return self.T > self.p['F'] + 1 if self.profile == 'ns3hpcc' else min(self.T, self.B) > self.p['F']

    def increase(self):
        self.Rt = min(self.Rt + self.target_rise(), self.line)
        self.Rc = (self.Rc + self.Rt) / 2

    def decrease(self, now):
        increased = self.B > 0 or (self.T > 0 and self.p['clamp_ati'])
        if self.p['clamp'] or increased:
            self.Rt = self.Rc
        self.Rc = max(self.Rc * max(1 - self.alpha / 2, self.p['least']), self.p['floor'])
        self.T = self.B = self.bytes = 0
        self.next_time = now + self.p['time_ns']

    def alpha_timer(self):
        g = self.p['g']
        self.alpha = (1 - g) * self.alpha + (g if self.cnp_for_alpha else 0)
        self.cnp_for_alpha = False
        self.next_alpha += self.p['alpha_ns']

    def time_timer(self):
        self.T += 1
        self.next_time += self.p['time_ns']
        self.increase()

    def monitor_timer(self):
        if self.cnp_for_monitor:
            self.cnp_for_monitor = False
            self.decrease(self.next_monitor)
        self.next_monitor += self.p['monitor_ns']

    def run(self, now):
        """All timers up to `now`. In one instant: alpha, increase, decrease."""
        while self.known:
            due = [(self.next_alpha, 0, self.alpha_timer), (self.next_time, 1, self.time_timer)]
            if self.p['monitor_ns']:
                due.append((self.next_monitor, 2, self.monitor_timer))
            at, _, step = min(due, key=lambda d: d[:2])
            if at > now:
                break
            step()

    # --- what happens ---

    def cnp(self, now):
        g, first = self.p['g'], not self.known
        if first:
            self.known = True
            self.next_alpha, self.next_time = now + self.p['alpha_ns'], now + self.p['time_ns']
            self.next_monitor = now + self.p['monitor_ns']
        self.cnp_for_monitor = True
        if self.p['monitor_ns']:
            self.cnp_for_alpha = self.cnp_for_alpha or not first
            return
        self.decrease(now)
        self.alpha = (1 - g) * self.alpha + g
        self.next_alpha = now + self.p['alpha_ns']

    def sent(self, length):
        if not self.known or not self.p['bytes']:
            return
        self.bytes += length
        while self.bytes >= self.p['bytes']:
            self.bytes -= self.p['bytes']
            self.B += 1
            self.increase()


# --- sequences ---------------------------------------------------------------------------------

def gap(r):
    """Nanoseconds until something happens: close together, apart, and often when a timer is due."""
    kind = r.randrange(12)
    if kind < 3:
        return r.randrange(500)
    if kind < 5:
        return r.randrange(8) * US
    if kind < 8:
        return r.randrange(100 * US)
    if kind < 10:
        return 55 * US * r.randrange(12)
    return 300 * US * r.randrange(4) if kind < 11 else r.randrange(5000 * US)


def sequence(r):
    """A storm of CNPs, then fewer and fewer, with packets between: decreases, recovery, hyper increase."""
    now, lines = 0, []
    for i in range(EVENTS):
        now += gap(r)
        share = (60, 20, 5, 1)[i * 4 // EVENTS]
        what = r.randrange(100)
        if what < share:
            lines.append(('cnp', now))
        elif what < 85:
            lines.append(('sent', now, r.choice((1106, 8 * 4170, r.randrange(3_000_000)))))
        else:
            lines.append(('look', now))
    return lines


def changes(r):
    """Other parameters, as the model knows them and as options."""
    F, kib, ai, hai, clamp = r.randint(1, 6), r.randint(4, 4000), r.randint(1, 200), r.randint(1, 2000), r.randrange(2)
    return (dict(F=F, bytes=kib * 1024, ai=ai * MBIT, hai=hai * MBIT, clamp=bool(clamp)),
            [f'rp_threshold={F}', f'rp_byte_reset={kib * 1024}', f'rp_ai_rate={ai}', f'rp_hai_rate={hai}',
             f'rp_clamp_tgt_rate={clamp}'])


def replay(program, profile, line, options, events):
    text = ''.join(' '.join(map(str, e)) + '\n' for e in events)
    wrapper = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))
    done = subprocess.run([*wrapper, program, profile, f'{line:.0f}', *options], input=text,
                          stdout=subprocess.PIPE, text=True, check=True)
    return [tuple(map(float, row.split())) for row in done.stdout.splitlines()]


def differ(a, b):
    return abs(a - b) > TOLERANCE * max(abs(a), abs(b))


def test_sequence(program, profile, seed, vary):
    """How often the target rose by hyper increase: sequences without any prove little."""
    # proves CNP-12, CNP-13
    r = random.Random(seed)
    line = r.choice((10e9, 25e9, 40e9, 100e9))
    change, options = changes(r) if vary else ({}, [])
    if profile == 'ns3hpcc':
        change.pop('bytes', None)
    events = sequence(r)
    m, hyper = Model(profile, line, change), 0
    states = replay(program, profile, line, options, events)
    if len(states) != len(events):
        sys.exit(f'{program} says {len(states)} states of {len(events)}')
    for n, (event, got) in enumerate(zip(events, states)):
        m.run(event[1])
        if event[0] == 'cnp':
            m.cnp(event[1])
        elif event[0] == 'sent':
            m.sent(event[2])
        hyper += m.is_hyper()
        want = (m.Rc, m.Rt, m.alpha)
        if any(map(differ, got, want)):
            sys.exit(f'{profile}, seed {seed}, {options}: after event {n}, {event}, rate, target and alpha are {got}, '
                     f'not {want}')
    return hyper


def main():
    program, seeds = sys.argv[1], [int(s) for s in sys.argv[2:]] or range(1, 4)
    for profile in PROFILES:
        hyper = sum(test_sequence(program, profile, seed, vary) for seed in seeds for vary in (False, True))
        if not hyper:
            sys.exit(f'{profile}: no hyper increase in any sequence')


if __name__ == '__main__':
    main()
