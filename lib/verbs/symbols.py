#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""symbols.py STOCK ARCHIVE INCLUDE MAP STUBS

Makes from the stock libibverbs.so.1 (STOCK) what our own needs to have the same symbols in the same
versions: a version script (MAP), and a source file (STUBS) with a function for each symbol that
ARCHIVE, our own code, does not define. Such a function answers as for a device that lacks the
feature: EOPNOTSUPP, or NULL and errno. The headers in INCLUDE say which functions return pointers.

A function NAME_1_0 of ours, if there is one, is NAME@IBVERBS_1.0.
"""
import re
import subprocess
import sys
from pathlib import Path

# Not in the public headers. IBVERBS_1.0 had other structures, but the same kinds of results.
POINTERS = {'verbs_open_device', '_verbs_init_and_alloc_context', 'ibv_open_device', 'ibv_alloc_pd',
            'ibv_reg_mr', 'ibv_create_cq', 'ibv_create_srq', 'ibv_create_qp', 'ibv_create_ah',
            'ibv_get_device_list', 'ibv_get_device_name'}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(lib):
    """(symbol, version, is default, is data) of each"""
    for line in run('nm', '-D', '--defined-only', '--with-symbol-versions', lib).splitlines():
        _, kind, name = line.split()
        if kind != 'A':
            symbol, at, version = re.fullmatch(r'([^@]+)(@@?)(.+)', name).groups()
            yield symbol, version, at == '@@', kind in 'BDRV'


def parents(lib):
    """version -> the one that it inherits"""
    found, last = {}, None
    section = run('readelf', '-V', '--wide', lib).split('Version definition section')[1]
    for line in section.split('Version needs section')[0].splitlines():
        if m := re.search(r'Index: \d+\s+Cnt: \d+\s+Name: (\S+)', line):
            last = m.group(1)
            found[last] = None
        elif m := re.search(r'Parent \d+: (\S+)', line):
            found[last] = m.group(1)
    return {v: p for v, p in found.items() if not v.endswith('.so.1')}


def ours(archive):
    out = run('nm', '-g', '--defined-only', archive)
    return {w[2] for w in map(str.split, out.splitlines()) if len(w) == 3}


def pointer_functions(include):
    text = '\n'.join(p.read_text() for p in sorted(Path(include).glob('infiniband/*.h')))
    return POINTERS | set(re.findall(r'\*\s*(\w+)\s*\(', text))


def version_script(symbols, nodes):
    """What is local is said in a node without symbols of older versions, or these would be, too."""
    old = {v for _, v, default, _ in symbols if not default}
    hides = next(v for v in nodes if v not in old)
    for version, parent in nodes.items():
        names = sorted(s for s, v, default, _ in symbols if v == version and default)
        yield f'{version} {{'
        if names:
            yield '\tglobal:'
            yield from (f'\t\t{n};' for n in names)
        if version == hides:
            yield '\tlocal:\n\t\t*;'
        yield f'}} {parent};\n' if parent else '};\n'


def stub(name, is_pointer):
    if is_pointer:
        return f'void *{name}(void)\n{{\n\terrno = EOPNOTSUPP;\n\treturn NULL;\n}}'
    return f'int {name}(void)\n{{\n\terrno = EOPNOTSUPP;\n\treturn EOPNOTSUPP;\n}}'


def stubs(symbols, own, pointers):
    yield '/* Made by symbols.py: the symbols that lib/verbs does not implement. */'
    yield '#include <errno.h>\n#include <stddef.h>\n'
    yield '#pragma GCC visibility push(default)\n#pragma GCC diagnostic ignored "-Wmissing-prototypes"\n'
    for name, version, default, data in symbols:
        if default and name in own:
            continue
        if data:
            yield f'char {name}[8];\n'
        elif default:
            yield stub(name, name in pointers) + '\n'
        else:
            suffix = version.replace('IBVERBS', '').replace('.', '_')
            if name + suffix not in own:
                yield stub(name + suffix, name in pointers)
                yield f'__asm__(".symver {name}{suffix}, {name}@{version}");\n'


def main():
    stock, archive, include, script, source = sys.argv[1:]
    symbols = sorted(exported(stock))
    Path(script).write_text('\n'.join(version_script(symbols, parents(stock))))
    Path(source).write_text('\n'.join(stubs(symbols, ours(archive), pointer_functions(include))))


if __name__ == '__main__':
    main()
