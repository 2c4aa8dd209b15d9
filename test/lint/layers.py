#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""layers.py BUILD-FOLDER

The layers hold: with the very flags that the build compiles a layer with, a header of a higher layer
is not found and one of a lower layer is. Low to high, as lib/meson.build lists them.
"""
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

PURE = ['base', 'wire', 'obj', 'cc', 'core', 'sim']
# layer, a header of it, layers that may use it
HEADERS = [('wire', 'frame.h', 'wire obj core sim'), ('obj', 'mr.h', 'obj core sim'),
           ('cc', 'window.h', 'cc core sim'), ('core', 'core.h', 'core sim'),
           ('sim', 'fabric.h', 'sim'), ('worker', 'worker.h', ''), ('ctl', 'ctl.h', ''),
           ('client', 'client.h', ''), ('DPDK', 'rte_mbuf.h', '')]


def flags(build):
    """layer -> the include options of one of its files"""
    found = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        layer = re.search(r'\.\./lib/(\w+)/[^/]+\.c$', entry['file'])
        if layer:
            words = shlex.split(entry['command'])
            found[layer.group(1)] = [w for w in words if re.match('-(I|isystem)', w)] + \
                [f'-iquote{words[i + 1]}' for i, w in enumerate(words) if w == '-iquote']
    return found


def compiles(build, options, header):
    return subprocess.run(['cc', *options, '-fsyntax-only', '-x', 'c', '-'], cwd=build, text=True,
                          input=f'#include "{header}"\n', capture_output=True).returncode == 0


def main():
    build = Path(sys.argv[1])
    options = flags(build)
    bad = 0
    for layer in PURE:
        for owner, header, users in HEADERS:
            allowed = layer in users.split()
            if compiles(build, options[layer], header) != allowed:
                print(f'layers: {layer} {"cannot" if allowed else "can"} include {header} of {owner}')
                bad += 1
    print(f'layers: {len(PURE) * len(HEADERS)} looks, {bad} wrong')
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
