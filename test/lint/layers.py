#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""layers.py BUILD-FOLDER

The layers hold: with the very flags that the build compiles a layer with, a header of a higher layer
is not found and one of a lower layer is. Low to high, as lib/meson.build lists them.

Headers stay small: how many others each includes is limited, and printed.

So do the rooms of lib/ctl, low to high as lib/ctl/meson.build lists them: none includes a header of a
higher one, none calls what a higher one defines, and no header includes itself by way of others.
"""
import graphlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

PURE = ['base', 'wire', 'obj', 'cc', 'core', 'cm', 'ipoib', 'sim']
# layer, a header of it, layers that may use it
HEADERS = [('wire', 'frame.h', 'wire obj core cm sim'), ('obj', 'mr.h', 'obj core sim'),
           ('cc', 'window.h', 'cc core sim'), ('core', 'core.h', 'core sim'),
           ('ipoib', 'ipoib.h', 'ipoib'), ('sim', 'fabric.h', 'sim'), ('worker', 'worker.h', ''), ('ctl', 'ctl.h', ''),
           ('client', 'client.h', ''), ('DPDK', 'rte_mbuf.h', '')]


ROOT = Path(__file__).resolve().parent.parent.parent
CTL = ROOT / 'lib/ctl'
ROOM_MAX = 32   # sources and headers: beyond it nobody finds anything
DIRECT_MAX, TOTAL_MAX = 8, 15    # how many headers of ours one may include: itself, and with theirs
SEEN_MAX = 14.5   # how many of them a source sees, on average


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


def rooms():
    """lowest first; what is in no room is above them all"""
    return re.findall(r"^subdir\('(\w+)'\)", (CTL / 'meson.build').read_text(), re.M) + ['.']


def includes():
    """path below lib/ctl -> the headers of rooms that it includes"""
    files = [*CTL.glob('*.[ch]'), *CTL.glob('*/*.[ch]')]
    return {str(f.relative_to(CTL)): [h for h in re.findall(r'^#include "([^"]+)"', f.read_text(), re.M)
                                      if (CTL / h).exists()] for f in files}


def symbols(archive):
    """(defined, wanted from elsewhere)"""
    out = subprocess.run(['nm', '-g', archive], check=True, capture_output=True, text=True).stdout
    words = [line.split() for line in out.splitlines()]
    return {w[2] for w in words if len(w) == 3}, {w[1] for w in words if len(w) == 2 and w[0] == 'U'}


def wrong_includes(order):
    found = includes()
    for path, headers in sorted(found.items()):
        own = order.index(str(Path(path).parent))
        for header in headers:
            if order.index(str(Path(header).parent)) > own:
                yield f'{path} includes {header} of a higher room'
    try:
        graphlib.TopologicalSorter({p: h for p, h in found.items() if p.endswith('.h')}).prepare()
    except graphlib.CycleError as e:
        yield f'headers include each other: {" ".join(e.args[1])}'
    for room in order:
        n = sum(str(Path(p).parent) == room for p in found)
        if n > ROOM_MAX:
            yield f'lib/ctl/{room} has {n} files, more than {ROOM_MAX}: part it'


def wrong_calls(build, order):
    at = [build / 'lib/ctl' / r / (f'libctl_{r}.a' if r != '.' else 'libctl.a') for r in order]
    known = [symbols(a) if a.exists() else (set(), set()) for a in at]
    for i, (_, wanted) in enumerate(known):
        for above in range(i + 1, len(order)):
            for name in sorted(wanted & known[above][0]):
                yield f'lib/ctl/{order[i]} uses {name} of the higher room {order[above]}'


def project_headers():
    """source or header of lib, app and drivers -> the headers of the project that it includes"""
    files = [f for folder in ('lib', 'app', 'drivers') for f in (ROOT / folder).rglob('*.[ch]')]
    named = {}
    for f in files:
        named.setdefault(f.name, []).append(f)
    found = {}
    for f in files:
        for header in re.findall(r'^#include [<"]([^>"]+)[>"]', f.read_text(), re.M):
            same = [h for h in named.get(Path(header).name, []) if str(h).endswith(f'/{header}')]
            found.setdefault(f, set()).update(sorted(same, key=lambda h: h.parent != f.parent)[:1])
    return found


def reach(found, path, seen):
    for header in found.get(path, ()):
        if header not in seen:
            seen.add(header)
            reach(found, header, seen)
    return seen


def wrong_headers():
    found = project_headers()
    total = {f: len(reach(found, f, set())) for f in found}
    headers = [f for f in found if f.suffix == '.h']
    sources = [total[f] for f in found if f.suffix == '.c']
    print(f'layers: a source sees {sum(sources) / len(sources):.1f} headers of ours, a header at most '
          f'{max(total[h] for h in headers)}, and includes at most {max(len(found[h]) for h in headers)} itself')
    if sum(sources) > SEEN_MAX * len(sources):
        yield (f'a source sees more than {SEEN_MAX} headers of ours: declare structs in headers, and include '
               'what defines them in sources')
    for h in headers:
        if len(found[h]) > DIRECT_MAX or total[h] > TOTAL_MAX:
            yield f'{h.relative_to(ROOT)} includes {len(found[h])} headers, {total[h]} with theirs: part it'


def main():
    build = Path(sys.argv[1])
    options = flags(build)
    bad = 0
    for wrong in [*wrong_headers(), *wrong_includes(rooms()), *wrong_calls(build, rooms())]:
        print(f'layers: {wrong}')
        bad += 1
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
