#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocilab_test.py ROCILAB LIBRARY: rocilab as its users call it: what it prints, and how it complains."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SCENARIO = """title Two flows
topology star hosts=2 rate=40G delay=1us
switch kmin=5K kmax=200K pmax=1%
cc dcqcn
flow 0..1 -> 2 write size=1Mi repeat start=0..1us
measure 0..6ms
expect goodput.share >= 50%
expect drops <= 0
"""


def check(ok, what):
    if not ok:
        raise SystemExit(f'FAIL: {what}')


def lines(path):
    with open(path) as f:
        return [line.strip().split(',') for line in f]


def live(run, out):
    """The output of `rocictl trace qp N cc csv`: one queue pair, moments apart unevenly, two events in one of them."""
    path = os.path.join(out, 'live.csv')
    with open(path, 'w') as f:
        f.write('t,qp,rate,target,alpha,window,rtt,goodput,cnps\n')
        for i, at in enumerate((0.1, 0.1, 0.25, 0.9)):
            f.write(f'{at:.9f},0x11,{(i + 1) * 5e9:.0f},40000000000,0.5,128,,,{i}\n')
    plots = os.path.join(out, 'live')
    check(run('plot', path, plots)[0] == 0, 'plot of a live trace')
    with open(os.path.join(plots, 'rate.svg')) as f:
        svg = f.read()
    check('QP 0x11' in svg and svg.count('id="gnuplot_plot_') == 1, 'one curve')
    check(sorted(os.listdir(plots)) == ['rate.svg'], 'no plots of what it has not')


def files(run, path, out):
    """The files of a run agree with what it printed, and are the same each time."""
    plain = run('run', path)
    said = run('run', '--out', out, '--sample', '100us', '--capture', 'sw0.2', path)
    check(said[0] == 0 and said[1] == plain[1], f'with files it comes to the same: {said}')
    with open(os.path.join(out, 'run.json')) as f:
        result = json.load(f)
    check(result['seed'] == 1 and result['parameters']['cc']['profile'] == 'paper', f'{result}')
    check(all(e['met'] for e in result['expectations']) and len(result['expectations']) == 2, f'{result}')
    rate = float(re.search(r'goodput +([0-9.]+)G', plain[1])[1]) * 1e9
    check(abs(result['results']['goodput'] / rate - 1) < 1e-4, f"{result['results']} {rate}")
    qp = lines(os.path.join(out, 'qp.csv'))
    check(qp[0] == 't,qp,rate,target,alpha,window,rtt,goodput,cnps'.split(','), f'{qp[0]}')
    check(len(qp) == 1 + 2 * 60 and {row[1] for row in qp[1:]} == {'0', '1'}, f'{len(qp)} lines')
    mean = sum(float(row[7]) for row in qp[1:]) / 60
    check(abs(mean / rate - 1) < 0.02, f'goodput {mean} {rate}')     # the run measures from its begin, as they do
    queue = lines(os.path.join(out, 'queue.csv'))
    check(queue[1][1] == 'sw0.2' and max(float(row[2]) for row in queue[1:]) > 1000, f'{queue[1]}')
    fct = lines(os.path.join(out, 'fct.csv'))
    check(len(fct) > 10 and all(float(row[8]) >= 0.99 for row in fct[1:]), f'{fct[:3]}')
    # both share a link: a message of 1 MiB takes twice its ideal time, on average
    slow = sum(float(row[8]) for row in fct[1:]) / (len(fct) - 1)
    check(1.7 < slow < 2.3, f'slowdown {slow}')
    with open(os.path.join(out, 'sw0.2.pcapng'), 'rb') as f:
        check(f.read(4) == bytes.fromhex('0a0d0d0a'), 'a pcapng file')
    with open(os.path.join(out, 'index.html')) as f:
        page = f.read()
    check('Two flows' in page and 'goodput.share' in page and 'http' not in re.sub(r'xmlns[^ >]*', '', page),
          'the page needs nothing else')
    check('Gbit/s' in page and '<td>host 2</td>' in page, 'figures have units')
    if shutil.which('gnuplot'):
        check(page.count('<svg') >= 6 and 'queue-cdf.svg' in os.listdir(out), 'the page has plots')
        rates = os.path.join(out, 'rates')
        check(run('plot', os.path.join(out, 'qp.csv'), rates)[0] == 0 and 'rate.svg' in os.listdir(rates), 'plot')
        with open(os.path.join(out, 'rtt.svg'), 'w') as f:
            f.write('<svg>of another run</svg>')
        check(run('plot', out)[0] == 0, 'plots again')
        check('rtt.svg' not in os.listdir(out), 'a plot of the run before is gone')
        measured(run, out)
        live(run, out)
    for words, text in ((('run', '--out', out, '--capture', 'sw0.9', path), "'sw0.9' is not a port such as sw0.2"),
                        (('run', '--capture', 'sw0.1', path), 'need --out FOLDER'),
                        (('run', '--out', '/proc/none', path), '/proc/none: No such file'),
                        (('plot', path, out), 'name a qp.csv'),
                        (('plot', '/nowhere'), 'rocilab run --out'),
                        (('compare', out, '/nowhere'), '/nowhere/run.json')):
        said = run(*words)
        check(said[0] == 2 and text in said[2], f'{words}: {said}')


def axis(folder, name):
    """The largest number in a plot: that of its longest axis."""
    with open(os.path.join(folder, name)) as f:
        return max(float(n) for n in re.findall(r'>\s*([0-9.]+)\s*<', f.read()))


def measured(run, folder):
    """The distribution of queues is that of the measured time, without the burst at the begin."""
    path, out = os.path.join(folder, 'late.lab'), os.path.join(folder, 'late')
    with open(path, 'w') as f:
        f.write('topology star hosts=4 rate=40G delay=1us\nhost ip=6\ncc hpcc\n'
                'flow 0..3 -> 4 write size=1Mi repeat\nmeasure 2ms..3ms\n')
    check(run('run', '--out', out, path)[0] == 0, 'a late measurement')
    check(axis(out, 'queue-cdf.svg') < 40 < axis(out, 'queue.svg'), 'queues of the measured time')


def sweep(run, path, out):
    """Combinations in their order, however many run at once."""
    words = ('run', '--sweep', 'switch.kmin=5K,50K', '--sweep', 'switch.mark=egress,ingress')
    one, two = run(*words, path), run(*words, '--jobs', '3', '--out', out, path)
    check(one[0] == 0 and one[1] == two[1], f'{one} {two}')
    check(re.findall('== .*', one[1])[1] == '== switch.kmin=50K switch.mark=egress', one[1])
    runs = sorted(os.listdir(out))
    check(runs[0] == 'two.lab,switch.kmin=50K,switch.mark=egress' and len(runs) == 4, f'{runs}')
    said = run('compare', os.path.join(out, runs[0]), os.path.join(out, runs[1]))
    check(said[0] == 0 and re.search(r'^queue\(sw0.2\).mean +[0-9.]+K +[0-9.]+K +[+-][0-9.]+ %$', said[1], re.M)
          and re.search(r'^goodput +[0-9.]+G +[0-9.]+G ', said[1], re.M)
          and re.search(r'^done +- +-$', said[1], re.M)
          and f'A: {out}/{runs[0]}\nB: {out}/{runs[1]}\n' in said[1], f'{said}')


def ports(run, folder):
    """Of a large network the ports with the longest queues, or all."""
    path = os.path.join(folder, 'fat.lab')
    with open(path, 'w') as f:
        f.write('topology fat-tree k=4 rate=40G delay=1us\ntraffic permutation size=64Ki repeat\nmeasure 0..100us\n')
    def rows(*words):
        said = run('run', *words, path)[1]
        return [(w[0], w[1]) for w in map(str.split, said.split('\n')) if w and re.match(r'sw\d+\.\d', w[0])], said
    few, all_ = rows(), rows('--ports')
    check(len(few[0]) == 12 and few[0] == all_[0][:12], f'{few}')
    check(f'{len(all_[0]) - 12} more ports had shorter queues' in few[1] and len(all_[0]) > 12, f'{few} {all_}')
    check(all(re.match(r'(sw)?\d+$', to) for _, to in all_[0]), f'{all_}')


def main(rocilab, library):
    # Built for another CPU, it needs an emulator, which Meson names.
    wrapper = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))

    def run(*words):
        p = subprocess.run([*wrapper, rocilab, '--library', library, *words], capture_output=True, text=True, check=False)
        return p.returncode, p.stdout, p.stderr

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'two.lab')
        with open(path, 'w') as f:
            f.write(SCENARIO)
        first, second = run('run', path), run('run', path)
        check(first[0] == 0 and first[1] == second[1], f'a run repeats itself: {first} {second}')
        check(re.search(r'^ok +drops <= 0 +got 0', first[1], re.M), first[1])
        check('us per delivered packet' in first[2], first[2])
        check(run('run', '--seed', '7', path)[1] != first[1], 'another seed is another run')
        wrong = run('run', '--set', 'switch.buffer=10K', path)
        check(wrong[0] == 1 and re.search(r'^WRONG +drops <= 0 +got [1-9]', wrong[1], re.M), f'{wrong}')
        files(run, path, os.path.join(folder, 'out'))
        ports(run, folder)
        sweep(run, path, os.path.join(folder, 'sweep'))
        with open(path, 'a') as f:
            f.write('expect drop <= 0\n')
        said = run('run', path)
        check(said[0] == 2 and f"{path}:9: 'drop' is not a metric; did you mean 'drops'?" in said[2], f'{said}')
    for words, code, text in (
            (('list',), 0, 'paper-8 '),
            (('help',), 0, 'queue(PORT).mean'),
            (('run', 'papr-8'), 2, "did you mean 'paper-8'?"),
            (('run',), 2, 'run needs the name of a scenario'),
            (('run', '--set', 'x', 'paper-8'), 2, '--set needs STATEMENT.KEY=VALUE'),
            (('verify', '--library', '/nowhere'), 2, 'there is no library in /nowhere (No such file or directory): name its folder with --library'),
            ((), 2, 'Usage: rocilab COMMAND'),
            (('simulate',), 2, "'simulate' is not a command: see 'rocilab help'"),
            (('verfy',), 2, "did you mean 'verify'?"),
            (('verify', 'paper-8'), 2, "verify takes no names: 'rocilab run NAME'"),
            (('run', '--jobs', '0', 'paper-8'), 2, '--jobs needs a whole number from 1 on'),
            (('run', '/tmp'), 2, "'/tmp' is neither a file nor"),
            (('help',), 0, 'rp_ai_rate, Mb/s:'),
            (('--version',), 0, 'rocilab ')):
        said = run(*words)
        check(said[0] == code and text in said[1] + said[2], f'{words}: {said}')
    for name in os.listdir(library):
        with open(os.path.join(library, name)) as f:
            check(f.read(1) == '#', f'{name} begins with a comment that says what one learns from it')


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
