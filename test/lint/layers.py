#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""layers.py BUILD-FOLDER

The layers hold: with the very flags that the build compiles a layer with, a header of a higher layer
is not found and one of a lower layer is. Low to high, as lib/meson.build lists them.

So do the rooms of lib/ctl, low to high as lib/ctl/meson.build lists them; none calls what a higher one
defines, either.

Headers stay small: how many others each includes is limited, and printed.

No module, a source and its header, includes itself by way of others.
"""
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
SEEN_MAX = 14.2   # how many of them a source sees, on average
# Folder -> how many of its modules may include each other in a circle; elsewhere none may.
CIRCLES = {'lib/core': 29, 'app/console': 2, 'app/rocid': 2, 'app/rocilab': 4, 'app/rociperf': 3}


def flags(build):
    """layer, or ctl/room -> the include options of one of its files"""
    found = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        layer = re.search(r'\.\./lib/(\w+|ctl/\w+)/[^/]+\.c$', entry['file'])
        if layer and entry['output'].startswith(f'lib/{layer.group(1)}/'):
            words = shlex.split(entry['command'])
            found[layer.group(1)] = [w for w in words if re.match('-(I|isystem)', w)] + \
                [f'-iquote{words[i + 1]}' for i, w in enumerate(words) if w == '-iquote']
    return found


def compiles(build, options, header):
    return subprocess.run(['cc', *options, '-fsyntax-only', '-x', 'c', '-'], cwd=build, text=True,
                          input=f'#include "{header}"\n', capture_output=True).returncode == 0


def rooms():
    """lowest first; what is in no room is above them all"""
    listed = re.search(r"^ctl_rooms = \[([^]]+)\]", (CTL / 'meson.build').read_text(), re.M)
    return re.findall(r"'(\w+)'", listed.group(1)) + ['.']


def symbols(archive):
    """(defined, wanted from elsewhere)"""
    out = subprocess.run(['nm', '-g', archive], check=True, capture_output=True, text=True).stdout
    words = [line.split() for line in out.splitlines()]
    return {w[2] for w in words if len(w) == 3}, {w[1] for w in words if len(w) == 2 and w[0] == 'U'}


def wrong_rooms(build, options, order):
    """Each finds a header of its own and of the room below, and none of those above."""
    header = {r: f'{r}/{min((CTL / r).glob("*.h")).name}' for r in order[:-1]}
    for i, room in enumerate(order[:-1]):
        for other in order[max(i - 1, 0):-1]:
            allowed = order.index(other) <= i
            if compiles(build, options[f'ctl/{room}'], header[other]) != allowed:
                yield f'lib/ctl/{room} {"cannot" if allowed else "can"} include {header[other]}'
    for room in order:
        n = len([*(CTL / room).glob('*.[ch]')])
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


def modules(found):
    """module, which NAME_impl.h belongs to, too -> those whose headers it includes"""
    def of(path):
        return str(path.relative_to(ROOT).with_suffix('')).removesuffix('_impl')
    parts = {}
    for path, headers in found.items():
        parts.setdefault(of(path), set()).update(of(h) for h in headers)
    return parts


def circles(parts):
    """The sets of modules that reach each other."""
    reached = {m: reach(parts, m, set()) for m in parts}
    mutual = {frozenset(n for n in reached[m] if m in reached.get(n, ())) for m in parts if m in reached[m]}
    return sorted(sorted(c) for c in mutual if len(c) > 1)


def wrong_circles():
    for circle in circles(modules(project_headers())):
        folder = str(Path(circle[0]).parent)
        if len(circle) > CIRCLES.get(folder, 1):
            yield f'{len(circle)} modules include each other: {" ".join(circle)}'


def main():
    build = Path(sys.argv[1])
    options = flags(build)
    bad = 0
    for wrong in [*wrong_headers(), *wrong_circles(), *wrong_rooms(build, options, rooms()),
                  *wrong_calls(build, rooms())]:
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
