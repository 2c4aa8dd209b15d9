#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench_test.py BUILD: `make bench` works: its programs run, and the report is whole. What they measure
here means nothing. The peers and the plots are left out where their packages are missing, and said so.
BENCH=all: also the parts that run programs of others for a minute or more."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, '..', 'bench', 'run')
ALL = os.environ.get('BENCH') == 'all'
FIELDS = {'bench', 'size', 'unit', 'median', 'min'}


def check(ok, what):
    if not ok:
        sys.exit('FAIL: ' + what)


def run(*arguments):
    return subprocess.run([RUN, *arguments], text=True, capture_output=True, check=False)


def parts():
    of_root = ('veth',) + (('ipoib', 'cm') if ALL else ())
    return ('path', 'latency', 'cores', 'register', 'lab', 'local', 'link') + (of_root if os.geteuid() == 0 else ())


def check_figures(report):
    root = os.geteuid() == 0
    for bench in parts():
        check(any(f['bench'] == bench for f in report['figures']), f'there is no figure of {bench}')
    for f in report['figures']:
        check(FIELDS <= set(f), f'{f} lacks {FIELDS - set(f)}')
        check(f['median'] > 0 and f['min'] <= f['median'], f'{f} makes no sense')
    whos = {f['who'] for f in report['figures'] if 'who' in f}
    ours = {'memif, one thread', 'vhost, one thread', 'memif, daemon', 'vhost, daemon'}
    if root:
        ours |= {'Rocinante AF_PACKET', 'Rocinante AF_XDP', 'Rocinante AF_PACKET, daemon', 'Rocinante AF_XDP, daemon'}
    check(ours <= whos, f'{ours - whos} was not measured')
    check({'one port'} < {f['who'] for f in report['figures'] if f['bench'] == 'local'}, 'two workers were not measured')
    check(all(g['met'] in (True, False, None) for g in report['goals']), 'goals')
    if ALL and root and shutil.which('mpirun'):
        check({'UCX tcp', 'Open MPI tcp', 'Rocinante --gso'} <= {f['who'] for f in report['figures'] if f['bench'] == 'mpi'}, 'mpi')
        check({'UCX tcp', 'Rocinante --gso'} <= {f['who'] for f in report['figures'] if f.get('what') == 'UCX message'}, 'UCX')
    check({'cpu', 'flags', 'caches', 'kernel', 'dpdk', 'build', 'commit', 'date'} <= set(report['machine']), 'machine')


def path_alone(build):
    """What a profiler runs: lines like the others', without what is about the floor."""
    command = [os.path.join(build, 'test/bench/smoke/path_bench'), '--op', 'write', '--size', '64,4096', '--set', '512K',
               '--qps', '1', '--list', '8', '--samples', '1', '--ms', '0.1']
    for more, fields in ([], {'floor_tx', 'floor_rx', 'ratio_to_floor'}), (['--alone'], set()):
        done = subprocess.run([*command, *more], text=True, capture_output=True, check=False)
        check(done.returncode == 0, f'path_bench {more}: {done.stderr}')
        lines = [json.loads(line, parse_constant=lambda c: sys.exit(f'FAIL: {c} is no JSON')) for line in done.stdout.splitlines()]
        check([line['size'] for line in lines] == [64, 4096], f'lines of path_bench {more}: {lines}')
        for line in lines:
            check(FIELDS <= set(line) and line['median'] > 0 and line['post'] > 0, f'{line} makes no sense')
            check(set(line) & {'floor_tx', 'floor_rx', 'ratio_to_floor'} == fields, f'{more}: {line}')


def rounds():
    """--quick begins no round that would end too late, and says so."""
    sys.path.append(os.path.dirname(RUN))
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader('bench_run', RUN)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('bench_run', loader))
    loader.exec_module(module)
    for quick, until, turns in ((True, 0, 1), (True, 1e9, 3), (False, 0, 7)):
        bench = module.Bench(types.SimpleNamespace(quick=quick, smoke=False))
        module.QUICK_UNTIL_S['link'] = until
        check(len(list(bench.turns('link'))) == turns, f'{turns} rounds')
        check(bench.shortened == (['link: 1 of 3 rounds, for lack of time'] if turns == 1 else []), f'{bench.shortened}')


def main():
    build = sys.argv[1]
    rounds()
    path_alone(build)
    with tempfile.TemporaryDirectory(prefix='roci-') as out:
        done = run(build, '--smoke', '--out', out, *([] if ALL else ['--only', ','.join(parts())]))
        print(done.stdout[-3000:], done.stderr[-3000:])
        check(done.returncode == 0, 'the benchmark does not run')
        with open(os.path.join(out, 'report.json'), encoding='utf-8') as file:
            report = json.load(file)
        check_figures(report)
        with open(os.path.join(out, 'report.txt'), encoding='utf-8') as file:
            text = file.read()
        check('Goals' in text and text in done.stdout, 'the text')
        # Each part that --quick shortens says so.
        for part in set(parts()) & {'path', 'latency', 'cores', 'lab', 'link', 'veth', 'ipoib'}:
            check(any(s.startswith(part + ': ') and s in text for s in report['shortened']), f'what {part} left out')
        for name in report['plots']:
            with open(os.path.join(out, name), encoding='utf-8') as file:
                check('<svg' in file.read(), f'{name} is no picture')
        # Against itself nothing is faster, and what is no report is refused by a sentence.
        base = os.path.join(out, 'report.json')
        done = run(build, '--smoke', '--only', 'latency', '--out', os.path.join(out, 'second'), '--base', base)
        check(done.returncode == 0 and 'Against ' in done.stdout, f'--base: {done.stderr}')
        for wrong in (['--base', RUN], ['--only', 'nothing']):
            done = run(build, '--smoke', *wrong)
            check(done.returncode == 1 and done.stderr.startswith('bench: '), f'{wrong}: {done.stderr}')
    done = run('/nonexistent')
    check(done.returncode == 1 and 'meson setup' in done.stderr, f'no build folder: {done.stderr}')


main()
