#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""abi_test.py OURS STOCK HEADERS: our libibverbs.so.1 is the stock one to the linker and to programs.

Symbols, versions, kinds and inheritance of versions are equal; strings and rates are; programs that link
all providers load with BIND_NOW; nothing of a program's is called by another name. Layouts need no test:
our code is compiled with the stock library's headers.
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OURS, STOCK, LIBROCI = sys.argv[1:]
failures = []


def check(ok, what):
    print(f'{"ok  " if ok else "FAIL"} {what}')
    if not ok:
        failures.append(what)


def run(*words, env=None):
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env)


def symbols(lib):
    """name@version -> function or data"""
    found = {}
    for line in run('nm', '-D', '--defined-only', '--with-symbol-versions', lib).stdout.splitlines():
        _, kind, name = line.split()
        if not name.startswith('__asan') and not name.startswith('__odr_asan') and kind != 'A':
            found[name] = 'T' if kind in 'TWi' else 'D'
    return found


def inheritance(lib):
    text = run('readelf', '-V', '--wide', lib).stdout
    text = text.split('Version definition section')[1].split('Version needs section')[0]
    return re.findall(r'(?:Name|Parent \d+): (\S+)', text)


def soname(lib):
    return re.search(r'soname: \[(.*)\]', run('readelf', '-d', lib).stdout).group(1)


def same_symbols():
    ours, stock = symbols(OURS), symbols(STOCK)
    check(not set(stock) - set(ours), f'no symbol is missing: {sorted(set(stock) - set(ours))}')
    check(not set(ours) - set(stock), f'none is added: {sorted(set(ours) - set(stock))}')
    check(ours == stock, 'functions are functions, data is data')
    check(inheritance(OURS) == inheritance(STOCK), 'versions inherit each other as in the stock library')
    check(soname(OURS) == soname(STOCK) == 'libibverbs.so.1', 'the soname')


def compared(program):
    """What PROGRAM, a line of Python, prints with either library."""
    code = f'import ctypes\nlib = ctypes.CDLL("libibverbs.so.1")\n{program}'
    out = [run('/usr/bin/python3', '-c', code, env={**os.environ, 'LD_LIBRARY_PATH': folders}).stdout
           for folders in (f'{Path(OURS).parent}:{Path(LIBROCI).parent}', str(Path(STOCK).parent))]
    return out[0] and out[0] == out[1], out


def same_values():
    strings = 'node_type', 'port_state', 'event_type', 'wc_status'
    for name in strings:
        same, out = compared(f'f = lib.ibv_{name}_str\nf.restype = ctypes.c_char_p\n'
                             'print([f(i) for i in range(-3, 40)])')
        check(same, f'ibv_{name}_str(): {"" if same else out}')
    for name, values in (('ibv_rate_to_mult', 'range(-2, 40)'), ('ibv_rate_to_mbps', 'range(-2, 40)'),
                         ('mult_to_ibv_rate', 'range(-2, 700)'), ('mbps_to_ibv_rate', 'range(-2, 1300000)')):
        same, out = compared(f'print([x for x in map(lib.{name}, {values})])')
        check(same, f'{name}()')


def programs_load():
    """With every symbol bound at once, also those that link libmlx5 and libefa, which import private ones."""
    env = {**os.environ, 'LD_BIND_NOW': '1', 'LD_LIBRARY_PATH': f'{Path(OURS).parent}:{Path(LIBROCI).parent}'}
    for program in 'ib_write_bw', 'ibv_devices', 'ibv_rc_pingpong', 'ucx_info', 'fi_info', 'rping', 'qperf':
        path = shutil.which(program)
        if not path:
            continue
        out = run('ldd', '-r', path, env=env).stdout
        check('undefined symbol' not in out and 'symbol lookup' not in out, f'{program} binds: {out}')
        check(str(Path(OURS).parent) in out or 'libibverbs' not in out, f'{program} finds ours')
    for provider in sorted(Path(STOCK).parent.glob('libibverbs/*.so')) + [
            Path(STOCK).parent / 'libmlx5.so.1', Path(STOCK).parent / 'libefa.so.1']:
        if provider.exists():
            code = f'import ctypes; ctypes.CDLL("libibverbs.so.1"); ctypes.CDLL("{provider}", 2)'
            p = run('/usr/bin/python3', '-c', code, env=env)
            check(p.returncode == 0, f'{provider.name} loads {p.stderr}')


def older_names():
    """A symbol of each version that dlvsym() of a program (NCCL) asks for."""
    for folder in Path(OURS).parent, Path(LIBROCI).parent:
        os.environ['LD_LIBRARY_PATH'] = f'{folder}:' + os.environ.get('LD_LIBRARY_PATH', '')
    libc = ctypes.CDLL(None)
    libc.dlvsym.restype = ctypes.c_void_p
    libc.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    lib = ctypes.CDLL(OURS)
    for name, version in (('ibv_get_device_list', '1.1'), ('ibv_reg_mr_iova2', '1.8'), ('ibv_query_ece', '1.10'),
                          ('ibv_reg_dmabuf_mr', '1.12'), ('ibv_get_device_list', '1.0')):
        found = libc.dlvsym(lib._handle, name.encode(), f'IBVERBS_{version}'.encode())
        check(found, f'dlvsym {name} IBVERBS_{version}')


def main():
    same_symbols()
    same_values()
    programs_load()
    older_names()
    sys.exit(1 if failures else 0)


main()
