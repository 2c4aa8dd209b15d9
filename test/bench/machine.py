# SPDX-License-Identifier: BSD-3-Clause
"""What a figure was measured on, and with which build."""
import datetime
import json
import os
import platform
import re
import subprocess

# Of a CPU's flags those that the code asks for, or that explain a figure.
FLAGS = ('ssse3', 'sse4_2', 'pclmulqdq', 'avx2', 'avx512f', 'avx512bw', 'avx512vl', 'vpclmulqdq', 'erms',
         'fsrm', 'constant_tsc', 'nonstop_tsc', 'hypervisor')


def read(path, default=''):
    try:
        with open(path, encoding='utf-8') as file:
            return file.read().strip()
    except OSError:
        return default


def output(*command):
    try:
        done = subprocess.run(command, text=True, capture_output=True, check=False)
    except OSError:
        return ''
    return done.stdout.strip() if done.returncode == 0 else ''


def field(text, name):
    match = re.search(rf'^{name}\s*:\s*(.*)$', text, re.M)
    return match[1].strip() if match else ''


def one_per_core():
    """CPUs that this process may use: the first one of each core."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = read(f'/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list', str(cpu))
        cores.setdefault(siblings, cpu)
    return list(cores.values())


def caches():
    base = '/sys/devices/system/cpu/cpu0/cache'
    names = sorted(os.listdir(base)) if os.path.isdir(base) else []
    found = []
    for name in names:
        if name.startswith('index'):
            level, kind, size = (read(f'{base}/{name}/{what}') for what in ('level', 'type', 'size'))
            found.append(f"L{level}{'' if kind == 'Unified' else kind[0].lower()} {size}")
    return ', '.join(found)


def build_options(build):
    """What the binaries were built with, from meson's own notes."""
    try:
        options = {o['name']: o['value'] for o in json.loads(output('meson', 'introspect', '--buildoptions', build))}
        compilers = json.loads(output('meson', 'introspect', '--compilers', build) or '{}')
    except json.JSONDecodeError:
        return {}
    compiler = compilers.get('host', {}).get('c', {})
    return {'compiler': compiler.get('full_version', output('cc', '--version').split('\n')[0]),
            'buildtype': options['buildtype'], 'optimization': options['optimization'],
            'debug': options['debug'], 'sanitize': options['b_sanitize'], 'lto': options['b_lto'],
            'c_args': ' '.join(options['c_args'])}


def describe(build, source):
    info = read('/proc/cpuinfo')
    memory = read('/proc/meminfo')
    flags = field(info, 'flags').split()
    commit = output('git', '-C', source, 'rev-parse', '--short=12', 'HEAD')
    if commit and output('git', '-C', source, 'status', '--porcelain', '--untracked-files=no'):
        commit += ' with changes'
    return {
        'cpu': field(info, 'model name') or platform.machine(),
        'cpu_family_model_stepping': '/'.join(field(info, n) for n in ('cpu family', 'model', 'stepping')),
        'cpus': len(os.sched_getaffinity(0)),
        'mhz': field(info, 'cpu MHz'),
        'flags': [flag for flag in FLAGS if flag in flags],
        'caches': caches(),
        'memory_gib': round(int(field(memory, 'MemTotal').split()[0] or 0) / 2**20, 1),
        'hugepages': field(memory, 'HugePages_Total') + ' of ' + field(memory, 'Hugepagesize'),
        'transparent_hugepages': read('/sys/kernel/mm/transparent_hugepage/enabled'),
        'kernel': platform.release(),
        'system': field(read('/etc/os-release').replace('=', ': '), 'PRETTY_NAME').strip('"'),
        'dpdk': output('pkg-config', '--modversion', 'libdpdk'),
        'build': build_options(build),
        'commit': commit or 'no git repository',
        'date': datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M UTC'),
    }


def lines(machine):
    build = machine['build']
    return [
        f"CPU        {machine['cpu']} ({machine['cpu_family_model_stepping']}), {machine['cpus']} CPUs, "
        f"{machine['mhz']} MHz",
        f"flags      {' '.join(machine['flags'])}",
        f"caches     {machine['caches']}",
        f"memory     {machine['memory_gib']} GiB, hugepages {machine['hugepages']}",
        f"system     {machine['system']}, kernel {machine['kernel']}, DPDK {machine['dpdk']}",
        f"build      {build.get('compiler', '?')}, {build.get('buildtype', '?')} (-O{build.get('optimization', '?')}), "
        "the binaries that `meson install` installs",
        f"commit     {machine['commit']}",
        f"date       {machine['date']}",
    ]
