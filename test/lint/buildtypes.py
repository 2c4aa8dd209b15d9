#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""buildtypes.py BUILD-FOLDER [--since REVISION] [--most N]

Compiles sources without a warning as Meson's other build types do: -O0, -O3 and -Os. gcc's warnings depend on
what it inlines. Those that changed since REVISION, N at most; without --since all, which takes a long time.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LEVELS = ['-O3', '-Os', '-O0']


def sources(build):
    """path -> the command that compiles it"""
    found = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = (build / entry['file']).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(build):
            found[path] = shlex.split(entry['command'])
    return found


def changed(since):
    out = subprocess.run(['git', 'diff', '--name-only', since, '--', '*.c'], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout
    return {ROOT / line for line in out.split()}


def complaint(build, path, command, level):
    """what the compiler says, or None"""
    words = [w for w in command if not re.match('-(O.|g$|flto|ffat-lto|M)', w)]
    for option in ('-MQ', '-MF', '-o'):
        if option in command:
            words = [w for w in words if w != command[command.index(option) + 1]]
    words = [w for w in words if w not in ('-o', '-c') and Path(w).name != 'ccache']
    quiet = ['-Wno-maybe-uninitialized'] if level == '-Os' else []   # as config/meson.build has it
    r = subprocess.run([*words, level, *quiet, '-Werror', '-c', '-o', os.devnull], cwd=build, text=True,
                       capture_output=True)
    return f'buildtypes: {path.relative_to(ROOT)} with {level}:\n{r.stderr}' if r.returncode else None


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('build', type=Path)
    args.add_argument('--since')
    args.add_argument('--most', type=int)
    args = args.parse_args()
    build = args.build.resolve()
    known = sources(build)
    paths = sorted(known.keys() & changed(args.since) if args.since else known)[:args.most]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda job: complaint(build, job[0], known[job[0]], job[1]),
                        [(p, level) for p in paths for level in LEVELS])
        bad = [s for s in said if s]
    print(*bad, sep='\n', end='')
    print(f'buildtypes: {len(paths)} sources, {len(bad)} complaints')
    return bool(bad)


if __name__ == '__main__':
    sys.exit(main())
