# SPDX-License-Identifier: BSD-3-Clause
"""The laboratory's own speed: CPU of rocilab per packet that a host receives, in a star and in a network of
three layers with web search traffic. A scenario is what HPCC's simulator runs (SIGCOMM 2019): 320 hosts and 56
switches in five pods, hosts at 100 Gb/s, switches at 400 Gb/s."""
import os
import re
import subprocess

from link import Failure

EDGES, HOSTS_OF_EDGE, PODS, OF_POD, CORES = 20, 16, 5, 4, 16
PATIENCE_S = 3600

STAR = '''topology star hosts=8 rate=40G delay=1us
switch mark=egress kmin=5K kmax=200K pmax=1%
cc dcqcn profile=paper
flow 0..7 -> 8 write size=1Mi repeat start=0..1us
measure 0..{us}us
'''
FAT = '''topology file {net}
switch kmin=400K kmax=1600K pmax=20% shared=32M alpha=1
host window=1024
cc dcqcn profile=ns3hpcc
traffic poisson load=50% sizes=websearch start=0..{us}us qps={qps}
measure 0..{us}us
'''


def fat_network():
    """In the format of HPCC's files."""
    hosts = EDGES * HOSTS_OF_EDGE
    edge, agg = hosts, hosts + EDGES
    core = agg + PODS * OF_POD
    cables = [f'{h} {edge + h // HOSTS_OF_EDGE} 100Gbps 1us 0' for h in range(hosts)]
    for i in range(EDGES):
        cables += [f'{edge + i} {agg + i // OF_POD * OF_POD + k} 400Gbps 1us 0' for k in range(OF_POD)]
    for i in range(PODS * OF_POD):
        cables += [f'{agg + i} {core + i % OF_POD * OF_POD + k} 400Gbps 1us 0' for k in range(CORES // OF_POD)]
    switches = range(edge, core + CORES)
    return '\n'.join([f'{core + CORES} {len(switches)} {len(cables)}', ' '.join(map(str, switches)), *cables]) + '\n'


def scenarios(folder, smoke, quick):
    """(name, text, cables that a packet passes on average)"""
    net = os.path.join(folder, 'fat.txt')
    with open(net, 'w', encoding='utf-8') as file:
        file.write(fat_network())
    part = 100 if smoke else 4 if quick else 1
    hosts = EDGES * HOSTS_OF_EDGE - 1
    same_edge, same_pod = HOSTS_OF_EDGE - 1, HOSTS_OF_EDGE * OF_POD - 1
    cables = (2 * same_edge + 4 * (same_pod - same_edge) + 6 * (hosts - same_pod)) / hosts
    yield 'star', STAR.format(us=200000 // part), 2
    yield 'fat tree', FAT.format(net=net, us=2000 // part, qps=10000 // (part if smoke else 1)), cables


def run(build, text, folder):
    """CPU in microseconds per packet."""
    path = os.path.join(folder, 'bench.lab')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    try:
        done = subprocess.run([os.path.join(build, 'app/rocilab/rocilab'), 'run', '--jobs', '1', path], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Failure(f'rocilab: {why}') from None
    found = re.search(r'([\d.]+) us per delivered packet', done.stdout + done.stderr)
    if done.returncode or not found:
        raise Failure(f'rocilab failed (exit status {done.returncode}): {done.stderr.strip()[-300:]}')
    return float(found.group(1))
