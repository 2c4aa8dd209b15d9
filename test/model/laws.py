# SPDX-License-Identifier: BSD-3-Clause
"""DCQCN, HPCC and Swift as their papers and simulators describe them, written from those and not from lib/cc.

A law is told what happens to a queue pair, with times in ns, and has `rate` (bit/s on the wire, None: no limit),
`window` (packets or bytes, see `window_unit`, None: no limit) and `due` (ns at which it next changes by itself).
"""
import math

NEVER = float('inf')


class Dcqcn:
    """Every timer is an event: alpha, the increase by time and the monitor period. Rates in bit/s.

    `paper` is SIGCOMM 2015, `connectx` the firmware as mlxconfig lists it, `ns3hpcc` the simulator published with HPCC.
    """
    window_unit = None
    window = None
    cnp_interval = {'paper': 50e3, 'connectx': 4e3, 'ns3hpcc': 0}

    def __init__(self, profile, line, **changes):
        paper = profile == 'paper'
        part = line / 25e9
        self.profile, self.line = profile, line
        self.cfg = {
            'g': 5 / 1024 if profile == 'connectx' else 1 / 256,
            'first_alpha': 1023 / 1024 if profile == 'connectx' else 1,
            'alpha_ns': 55e3 if paper else 1e3,
            'time_ns': 55e3 if paper else 300e3,
            'bytes': {'paper': 10e6, 'connectx': 32767 * 64, 'ns3hpcc': None}[profile],
            'monitor_ns': 0 if paper else 4e3,
            'f': 5 if paper else 1,
            'ai': {'paper': 40e6, 'connectx': 5e6, 'ns3hpcc': 5e6 * part}[profile],
            'hai': {'paper': 200e6, 'connectx': 50e6, 'ns3hpcc': 50e6 * part}[profile],
            'least': {'paper': 10e6, 'connectx': 1e6, 'ns3hpcc': 100e6}[profile],
            'keep': .5 if profile == 'connectx' else 0,
            'clamp': paper,
            'clamp_ati': not paper,     # clamps after increases by time alone, too
            **changes}
        self.known = False              # there was a CNP
        self.rc = self.rt = line
        self.alpha = self.cfg['first_alpha']
        self.t = self.b = self.sent = 0
        self.alpha_at = self.time_at = self.monitor_at = NEVER
        self.cnp_alpha = self.cnp_monitor = False

    @property
    def rate(self):
        return self.rc if self.known and self.rc < self.line else None

    @property
    def due(self):
        return min(self.time_at, self.monitor_at) if self.known else NEVER

    @property
    def is_hyper(self):
        if self.profile == 'ns3hpcc':       # by time only
            return self.t > self.cfg['f'] + 1
        return min(self.t, self.b) > self.cfg['f']

    def _increase(self):
        c = self.cfg
        most, least = max(self.t, self.b), min(self.t, self.b)
        if self.profile == 'ns3hpcc':
            if self.t > c['f']:
                self.rt += c['ai'] if self.t == c['f'] + 1 else c['hai']
        elif least > c['f']:
            self.rt += (least - c['f']) * c['hai']
        elif most > c['f']:
            self.rt += c['ai']
        self.rt = min(self.rt, self.line)
        self.rc = (self.rc + self.rt) / 2

    def _decrease(self, at):
        c = self.cfg
        if c['clamp'] or self.b or (self.t and c['clamp_ati']):
            self.rt = self.rc
        self.rc = max(self.rc * max(1 - self.alpha / 2, c['keep']), c['least'])
        self.t = self.b = self.sent = 0
        self.time_at = at + c['time_ns']
        if self.profile == 'paper':
            self.alpha = (1 - c['g']) * self.alpha + c['g']
            self.alpha_at = at + c['alpha_ns']

    def run(self, now):
        """Everything that is due: in one instant alpha, then an increase, then a decrease."""
        c = self.cfg
        while self.known:
            at = min(self.alpha_at, self.time_at, self.monitor_at)
            if at > now:
                return
            if at == self.alpha_at:
                self.alpha = (1 - c['g']) * self.alpha + (c['g'] if self.cnp_alpha else 0)
                self.cnp_alpha = False
                self.alpha_at += c['alpha_ns']
            if at == self.time_at:
                self.t += 1
                self.time_at += c['time_ns']
                self._increase()
            if at == self.monitor_at:
                self.monitor_at += c['monitor_ns']
                if self.cnp_monitor:
                    self._decrease(at)
                self.cnp_monitor = False

    def on_cnp(self, now):
        self.run(now)
        c = self.cfg
        if not self.known:
            self.known = True
            self.alpha_at, self.time_at = now + c['alpha_ns'], now + c['time_ns']
            if c['monitor_ns']:
                self.monitor_at = now + c['monitor_ns']
        else:
            self.cnp_alpha = self.profile != 'paper'
        if c['monitor_ns']:
            self.cnp_monitor = True
        else:
            self._decrease(now)

    def on_sent(self, now, size, _psn):
        self.run(now)
        if not self.known or not self.cfg['bytes']:
            return
        self.sent += size
        while self.sent >= self.cfg['bytes']:
            self.sent -= self.cfg['bytes']
            self.b += 1
            self._increase()

    def on_ack(self, now, ack):
        pass


class Hpcc:
    """Algorithm 1 of SIGCOMM 2019. The window is in bytes on the wire; `hops` of an ACK are (rate, ns, bytes sent,
    bytes that wait) of each link."""
    window_unit = 'bytes'
    due = NEVER
    cnp_interval = {'paper': 50e3}

    def __init__(self, _profile, line, base_rtt=13e-6, eta=.95, max_stage=5, w_ai=80., min_rate=100e6):
        self.b, self.t = line, base_rtt
        self.eta, self.max_stage, self.w_ai = eta, max_stage, w_ai
        self.most, self.least = line * base_rtt / 8, min_rate * base_rtt / 8
        self.window = self.wc = self.most
        self.u, self.stage, self.update_psn, self.sent_psn = 1., 0, 0, 0
        self.last = None

    @property
    def rate(self):
        return self.window * 8 / self.t

    def run(self, now):
        pass

    def on_cnp(self, now):
        pass

    def on_sent(self, _now, _size, psn):
        self.sent_psn = psn

    def _measure_inflight(self, hops):
        u, tau = 0, 0
        for (rate, ts, sent, queue), (_, ts0, sent0, queue0) in zip(hops, self.last):
            tx_rate = (sent - sent0) * 8 / ((ts - ts0) * 1e-9)
            load = min(queue, queue0) * 8 / (rate * self.t) + tx_rate / rate
            if load > u:
                u, tau = load, (ts - ts0) * 1e-9
        tau = min(tau, self.t)
        self.u = (1 - tau / self.t) * self.u + tau / self.t * u

    def _compute_wind(self, update):
        if self.u >= self.eta or self.stage >= self.max_stage:
            w = self.wc / (self.u / self.eta) + self.w_ai
            stage = 0
        else:
            w = self.wc + self.w_ai
            stage = self.stage + 1
        self.window = min(max(w, self.least), self.most)
        if update:
            self.stage, self.wc = stage, self.window

    def on_ack(self, _now, ack):
        if self.last is None:
            self.update_psn = self.sent_psn
        elif any(new[1] == old[1] for new, old in zip(ack.hops, self.last)):
            return
        else:
            self._measure_inflight(ack.hops)
            update = ack.psn > self.update_psn
            self._compute_wind(update)
            if update:
                self.update_psn = self.sent_psn
        self.last = ack.hops


class Swift:
    """Section 3 of SIGCOMM 2020, with one delay. The window is in packets; below one it is a pace."""
    window_unit = 'packets'
    due = NEVER
    cnp_interval = {'paper': 50e3}

    def __init__(self, _profile, line, base_target=25e3, fs_range=50e3, fs_min=.1, fs_max=100., ai=1., beta=.8, max_mdf=.5,
                 min_cwnd=.01, max_cwnd=128., first_cwnd=16.):
        self.line, self.base, self.fs_range = line, base_target, fs_range
        self.alpha = fs_range / (1 / math.sqrt(fs_min) - 1 / math.sqrt(fs_max))
        self.beta_fs = -self.alpha / math.sqrt(fs_max)
        self.ai, self.beta, self.max_mdf = ai, beta, max_mdf
        self.min_cwnd, self.max_cwnd = min_cwnd, max_cwnd
        self.cwnd, self.decreased, self.rtt, self.size = first_cwnd, -NEVER, 0, 0
        self.timeouts = 0

    @property
    def window(self):
        return max(self.cwnd, 1)

    @property
    def rate(self):
        return self.size * 8 * self.cwnd / (self.rtt * 1e-9) if self.cwnd < 1 and self.rtt else None

    def run(self, now):
        pass

    def on_cnp(self, now):
        pass

    def on_sent(self, _now, size, _psn):
        self.size = size

    def target(self):
        scaled = self.alpha / math.sqrt(self.cwnd) + self.beta_fs if self.fs_range else 0
        return self.base + max(0, min(scaled, self.fs_range))

    def _set(self, now, cwnd):
        cwnd = min(max(cwnd, self.min_cwnd), self.max_cwnd)
        if cwnd < self.cwnd:
            self.decreased = now
        self.cwnd = cwnd

    def on_ack(self, now, ack):
        self.timeouts = 0
        if not ack.rtt:
            return
        may, self.rtt = now - self.decreased >= ack.rtt, ack.rtt
        target = self.target()
        if ack.rtt < target:
            self._set(now, self.cwnd + self.ai * ack.packets / (self.cwnd if self.cwnd >= 1 else 1))
        elif may:
            self._set(now, self.cwnd * max(1 - self.beta * (ack.rtt - target) / ack.rtt, 1 - self.max_mdf))

    def on_loss(self, now, timeout):
        self.timeouts = self.timeouts + 1 if timeout else 0
        if self.timeouts >= 5:
            self._set(now, 0)
        elif now - self.decreased >= self.rtt:
            self._set(now, self.cwnd * (1 - self.max_mdf))


LAWS = {'dcqcn': Dcqcn, 'hpcc': Hpcc, 'swift': Swift}
