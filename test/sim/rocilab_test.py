#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocilab_test.py ROCILAB LIBRARY: rocilab as its users call it: what it prints, and how it complains."""
import os
import re
import shlex
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
        check('us for each delivered packet' in first[2], first[2])
        check(run('run', '--seed', '7', path)[1] != first[1], 'another seed is another run')
        wrong = run('run', '--set', 'switch.buffer=10K', path)
        check(wrong[0] == 1 and re.search(r'^WRONG +drops <= 0 +got [1-9]', wrong[1], re.M), f'{wrong}')
        with open(path, 'a') as f:
            f.write('expect drop <= 0\n')
        said = run('run', path)
        check(said[0] == 2 and f"{path}:9: 'drop' is not measured; did you mean 'drops'?" in said[2], f'{said}')
    for words, code, text in (
            (('list',), 0, 'paper-8 '),
            (('help',), 0, 'queue(PORT).mean'),
            (('run', 'papr-8'), 2, "did you mean 'paper-8'?"),
            (('run',), 2, 'run needs the name of a scenario'),
            (('run', '--set', 'x', 'paper-8'), 2, '--set reads STATEMENT.KEY=VALUE'),
            (('verify', '--library', '/nowhere'), 2, 'the library /nowhere: No such file or directory'),
            (('simulate',), 2, 'Usage: rocilab COMMAND'),
            (('--version',), 0, 'rocilab ')):
        said = run(*words)
        check(said[0] == code and text in said[1] + said[2], f'{words}: {said}')
    for name in os.listdir(library):
        with open(os.path.join(library, name)) as f:
            check(f.read(1) == '#', f'{name} begins with a comment that says what one learns from it')


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
