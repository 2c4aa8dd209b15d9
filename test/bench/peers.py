# SPDX-License-Identifier: BSD-3-Clause
"""What a user would take instead, on a veth pair between two network namespaces: UCX over TCP
(ucx_perftest), libfabric's tcp provider (fi_pingpong) and plain sockets (qperf). Each function runs a
server in the first namespace and a client in the second, each on its CPU, and returns
{(what, unit, size): figure}; `what` is latency (one way, us), rate (Gb/s) or messages (M/s)."""
import os
import re
import shutil
import subprocess
import sys
import time

from link import Failure, PATIENCE_S, cpus

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'func'))
import netlab

ADDRESS = ('10.9.0.1', '10.9.0.2')
NETDEV = 'e0'
XDP_MTU = 2300  # the largest path MTU that AF_XDP has is 2048


class Veth:
    """Two namespaces and a veth between them."""

    def __enter__(self):
        if os.geteuid():
            raise Failure('network namespaces want root: run make bench as root')
        self.spaces = [netlab.Namespace(), netlab.Namespace()]
        netlab.veth(self.spaces[0], NETDEV, self.spaces[1], NETDEV)
        for space, address in zip(self.spaces, ADDRESS):
            space.run(f'ip addr add {address}/24 dev {NETDEV}')
        self.set_mtu(4200)
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            space.close()

    def set_mtu(self, mtu):
        for space in self.spaces:
            space.run(f'ip link set {NETDEV} mtu {mtu}')

    def macs(self):
        return [space.output(f'ip -br link show dev {NETDEV}').split()[2] for space in self.spaces]

    def wrap(self, i, command):
        """UCX looks for netdevs in /sys, which has to be the namespace's own."""
        return self.spaces[i].command(
            ['unshare', '-m', 'sh', '-c', 'mount -t sysfs sysfs /sys && exec "$0" "$@"'] + command)

    def pinned(self, i, command):
        return self.wrap(i, ['taskset', '-c', str(cpus()[i])] + command)

    def listens(self, port):
        return f':{port} ' in self.spaces[0].output('ss -Htln')

    def talk(self, name, server, client, port):
        """Runs both; what the client printed."""
        process = subprocess.Popen(self.pinned(0, server), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            until = time.monotonic() + PATIENCE_S
            while not self.listens(port):
                if process.poll() is not None or time.monotonic() > until:
                    raise Failure(f'{name}: its server does not start: '
                                  f'{process.stderr.read().decode().strip()[-200:]}')
                time.sleep(0.02)
            done = subprocess.run(self.pinned(1, client), stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f'{name}: not done within {PATIENCE_S} s') from None
        finally:
            process.kill()  # exec: this is the server itself
            process.wait()
            process.stderr.close()
        if done.returncode:
            raise Failure(f'{name} failed: {(done.stderr or done.stdout).strip()[-200:]}')
        return done.stdout


def missing():
    return [tool for tool in ('ucx_perftest', 'fi_pingpong', 'qperf') if not shutil.which(tool)]


UCX_TCP = ['env', 'UCX_TLS=tcp', f'UCX_NET_DEVICES={NETDEV}']
ROUND_TRIPS_BYTES = 4096    # longer messages go less often


def ucx(veth, kind, sizes, quick, folder, ends=(UCX_TCP, UCX_TCP)):
    """kind: put or am; ends: what stands before each end's program. One connection for all sizes, by a batch file
    on both sides."""
    tests = []
    for size in sizes:
        few = 100 if quick else 1000
        trips = max(few // 5, 20 * few * ROUND_TRIPS_BYTES // max(size, ROUND_TRIPS_BYTES))
        tests.append((size, 'lat', trips, f'ucp_{kind}_lat'))
        tests.append((size, 'bw', max(few // 5, few * 400 * 64 // size), f'ucp_{kind}_bw'))
    batch = os.path.join(folder, f'ucx-{kind}')
    with open(batch, 'w', encoding='ascii') as file:
        for size, what, count, test in tests:
            file.write(f'{size}{what} -t {test} -s {size} -n {count} -w {count // 10}\n')
    server, client = ([*before, 'ucx_perftest', '-b', batch, '-v', '-f'] for before in ends)
    out = veth.talk(f'UCX {kind}', server, client + [ADDRESS[0]], 13337)
    rows = [line.split(',') for line in out.splitlines() if line.count(',') >= 7]
    if rows:
        head, rows = rows[0], rows[1:]
    if len(rows) != len(tests):
        raise Failure(f'UCX {kind}: {len(rows)} results for {len(tests)} tests: is this ucx_perftest 1.13?')
    found = {}
    for (size, what, _, _), row in zip(tests, rows):
        field = dict(zip(head[-8:], row[-8:]))
        if what == 'lat':
            found['latency', 'us', size] = float(field['50.0_percentile_lat'])
        else:
            found['rate', 'Gb/s', size] = float(field['overall_bw']) * 8 * 2**20 / 1e9
            found['messages', 'M/s', size] = float(field['overall_mr']) / 1e6
    return found


def libfabric(veth, sizes, quick, _):
    """fi_pingpong has latency only, as a mean."""
    found = {}
    for size in sizes:
        common = ['fi_pingpong', '-p', 'tcp', '-e', 'msg', '-S', str(size), '-I', str(2000 if quick else 20000)]
        out = veth.talk('libfabric', common, common + [ADDRESS[0]], 47592)
        row = out.splitlines()[-1].split()
        if len(row) != 8:
            raise Failure('libfabric: fi_pingpong printed no row: is this version 1.17?')
        found['latency', 'us', size] = float(row[6])
    return found


UNITS = {'ns': 1e-3, 'us': 1, 'ms': 1e3, 'sec': 1e6,
         'bytes/sec': 8e-9, 'KB/sec': 8e-6, 'MB/sec': 8e-3, 'GB/sec': 8}


def sockets(veth, kind, sizes, quick, _):
    """kind: tcp or udp. qperf's latency is one way."""
    found = {}
    for size in sizes:
        if kind == 'udp' and size > 32768:
            continue
        client = ['qperf', ADDRESS[0], '-t', '1', '-m', str(size), f'{kind}_lat', f'{kind}_bw']
        out = veth.talk(f'qperf {kind}', ['qperf'], client, 19765)
        for name, unit, key in (('latency', 'us', 'latency'),
                                ('rate', 'Gb/s', 'recv_bw' if kind == 'udp' else 'bw')):
            match = re.search(rf'\b{key}\s*=\s*([\d.,]+) (\S+)', out)
            if not match:
                raise Failure(f'qperf printed no {key}: is this version 0.4.11?')
            found[name, unit, size] = float(match[1].replace(',', '')) * UNITS[match[2]]
        if kind == 'udp':  # TCP has no messages
            found['messages', 'M/s', size] = found['rate', 'Gb/s', size] * 1e3 / 8 / size
    return found
