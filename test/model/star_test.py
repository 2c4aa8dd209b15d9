#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""star_test.py ROCILAB [all]: flows into one link, in rocilab and in the simulation of network.py.

The results of the latter are written into a scenario as what to expect. `all` takes minutes.
"""
import os
import shlex
import subprocess
import sys
import tempfile

from network import star

MS = 1e6
PAPER = {'kmin': 5e3, 'kmax': 200e3, 'pmax': .01}
CONNECTX = {'kmin': 100e3, 'kmax': 400e3, 'pmax': .2}


class Case:
    """N flows at `rate`; averages from `begin` to `end`, in ms. Tolerances are those of two seeds, in %; jain in 1/100."""

    def __init__(self, law, n, rate, begin, end, queue, profile='paper', red=None, words='', law_changes=None, **net):
        self.law, self.n, self.rate, self.begin, self.end, self.queue = law, n, rate, begin, end, queue
        self.profile, self.red, self.words, self.law_changes, self.net = profile, red or {}, words, law_changes, net

    @property
    def name(self):
        return f'{self.law}-{self.profile}-{self.n}'

    def expect(self):
        """What the model comes to: mean queue, goodput and Jain's index."""
        net = star(self.n, self.rate, self.law, self.profile, law_changes=self.law_changes, **self.red, **self.net)
        r = net.measure(self.begin * MS, self.end * MS)
        return r['queue'][0, self.n], sum(r['rate']), r['jain']

    def scenario(self):
        queue, goodput, jain = self.expect()
        text = (f'topology star hosts={self.n} rate={self.rate / 1e9:.0f}G delay=1us\n'
                f'cc {self.law} profile={self.profile} {self.words}\n'
                f'flow 0..{self.n - 1} -> {self.n} write size=1Mi repeat start=0..1us\n'
                f'measure {self.begin}ms..{self.end}ms\n'
                f'expect queue(sw0.{self.n}).mean {queue:.0f} +-{self.queue}%\n'
                f'expect goodput {goodput / 1e9:.3f}G +-1%\n'
                f'expect jain {jain:.4f} +-0.02\n')
        if self.red:
            text += f'switch mark=egress kmin={self.red["kmin"]:.0f} kmax={self.red["kmax"]:.0f} pmax={self.red["pmax"]}\n'
        if self.net.get('ip') == 6:
            text += 'host ip=6\n'
        return text


def paper(n, begin, end, queue=12):
    return Case('dcqcn', n, 40e9, begin, end, queue, red=PAPER)


def connectx(n, begin, end):
    return Case('dcqcn', n, 25e9, begin, end, 10, profile='connectx', red=CONNECTX)


def hpcc(n, begin, end):
    return Case('hpcc', n, 100e9, begin, end, 40, words='base_rtt=5', law_changes={'base_rtt': 5e-6}, ip=6, records=True)


def swift(n, begin, end):
    return Case('swift', n, 40e9, begin, end, 8, words='base_target=15 fs_range=0',
                law_changes={'base_target': 15e3, 'fs_range': 0}, ip=6)


QUICK = (paper(8, 40, 90, 20), hpcc(8, 2, 5), swift(8, 5, 15))
ALL = (paper(2, 100, 500), paper(8, 100, 500), connectx(2, 100, 500), connectx(8, 100, 500), hpcc(2, 5, 25), hpcc(8, 5, 25),
       swift(2, 50, 150), swift(8, 50, 150))


def main(rocilab, which=''):
    wrapper = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in ALL if which == 'all' else QUICK:
            path = os.path.join(folder, case.name)
            with open(path, 'w') as f:
                f.write(case.scenario())
            p = subprocess.run([*wrapper, rocilab, 'run', path], capture_output=True, text=True, check=False)
            verdict = [line for line in p.stdout.splitlines() if line.startswith(('ok', 'WRONG'))]
            print(case.name, p.stderr if p.returncode == 2 else '', *verdict, sep='\n  ', flush=True)
            bad += p.returncode != 0 or len(verdict) != 3
    if bad:
        raise SystemExit(f'FAIL: {bad} differ')


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
