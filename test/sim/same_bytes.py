#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""same_bytes.py ROCILAB ROCILAB...: builds by different compilers, with other options, or for other CPUs, come to the
same bytes: what they print, and all files of a run but the page and the plots, which follow from them. With one
ROCILAB: how many runs it does at once makes no difference. A ROCILAB may be a command of several words."""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

STAR = 'topology star hosts=4 rate=40G delay=1us\n'
RED = 'switch mark=egress kmin=5K kmax=200K pmax=1%\n'
FLOWS = 'flow 0..3 -> 4 write size=1Mi repeat start=0..1us\n'
# One of each algorithm and profile, of each kind of chance, and of each way through a switch.
SCENARIOS = {
    'paper': STAR + RED + 'cc dcqcn profile=paper\n' + FLOWS + 'measure 0..4ms\n',
    'connectx': STAR + RED + 'cc dcqcn profile=connectx\n' + FLOWS + 'measure 0..4ms\n',
    'ns3hpcc': STAR + RED + 'cc dcqcn profile=ns3hpcc\n' + FLOWS + 'measure 0..4ms\n',
    'hpcc': STAR + 'host ip=6\ncc hpcc base_rtt=5\n' + FLOWS + 'measure 0..2ms\n',
    'swift': STAR + 'cc swift base_target=15 fs_range=50\n' + FLOWS + 'measure 0..3ms\n',
    'pfc': 'topology victim hosts=4 rate=40G uplink=80G delay=1us\nswitch kmin=5K kmax=200K pmax=1% shared=12M '
           'xoff=100K xon=90K\ncc dcqcn\nflow 0..3 -> 5 write size=1Mi repeat start=0..1us\n'
           'flow 4 -> 6 read size=1Mi repeat\nmeasure 0..3ms\n',
    'impair': STAR + RED + 'cc dcqcn\nimpair data loss=0.1% delay=2us late=0.1%\nimpair cnp duplicate=10%\n'
              'flow 0..3 -> 4 send size=64Ki repeat\nmeasure 0..3ms\n',
    'poisson': 'topology fat-tree k=4 rate=40G delay=1us\nswitch kmin=100K kmax=400K pmax=20% shared=2M alpha=1\n'
               'cc dcqcn profile=connectx\ntraffic poisson load=50% sizes=hadoop start=0..1ms qps=64\n'
               'measure 0..2ms\n',
}


def command_of(rocilab):
    """The words of a command, with the emulator before them where Meson says that there is one."""
    words = [*shlex.split(os.environ.get('MESON_EXE_WRAPPER', '')), *shlex.split(rocilab)]
    return [shutil.which(words[0]) or words[0], *words[1:]]


def everything(rocilab, folder, jobs):
    """What @p rocilab prints, and its files, by name."""
    texts = os.path.join(folder, 'texts')
    out = os.path.join(folder, f'out{jobs}')
    os.makedirs(texts, exist_ok=True)
    paths = []
    for name, text in SCENARIOS.items():
        paths.append(os.path.join(texts, name + '.lab'))
        with open(paths[-1], 'w', encoding='utf-8') as f:
            f.write(text)
    # Without gnuplot, which takes longer than the runs.
    done = subprocess.run([*command_of(rocilab), 'run', '--jobs', str(jobs), '--capture', 'sw0.3', '--out', out, *paths],
                          env={'PATH': '/nowhere'}, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f'FAIL: {rocilab}: {done.stderr.decode()}')
    result = {'stdout': done.stdout}
    for where, _, files in os.walk(out):
        for name in files:
            if name.endswith(('.csv', '.json', '.pcapng')):
                with open(os.path.join(where, name), 'rb') as f:
                    result[os.path.relpath(os.path.join(where, name), out)] = f.read()
    if len(result) < 1 + 5 * len(SCENARIOS):
        raise SystemExit(f'FAIL: {rocilab} wrote {sorted(result)} only')
    return result


def main(rocilabs):
    first = None
    for rocilab, jobs in [(rocilabs[0], 1), (rocilabs[0], 3), *((other, 2) for other in rocilabs[1:])]:
        with tempfile.TemporaryDirectory() as folder:
            result = everything(rocilab, folder, jobs)
        first = first or result
        if result.keys() != first.keys():
            raise SystemExit(f'FAIL: {rocilab}: other files: {sorted(result.keys() ^ first.keys())}')
        for name, data in result.items():
            if data != first[name]:
                at = next(i for i, (a, b) in enumerate(zip(data + b'\0', first[name] + b'\1')) if a != b)
                raise SystemExit(f'FAIL: {rocilab} with --jobs {jobs}: {name} differs at byte {at}: '
                                 f'{data[max(at - 60, 0):at + 40]!r}, not {first[name][max(at - 60, 0):at + 40]!r}')
    print(f'{len(first)} files, {sum(map(len, first.values()))} bytes: the same {1 + len(rocilabs)} times')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
