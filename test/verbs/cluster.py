# SPDX-License-Identifier: BSD-3-Clause
"""Machines for parallel programs: network namespaces on one bridge, a rocid in each; mpirun starts its ranks there as
it would by ssh, from a hostfile."""
import os
import stat
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Lab, PATIENCE_S, ping, wait_for  # noqa: E402
from rocid import ask  # noqa: E402

# In place of ssh: enters the host's namespace, with a host name of its own, as Open MPI tells hosts by their names, and
# with its own netdevs in /sys, where UCX looks for them.
AGENT = '''#!/bin/sh
host=$1; shift
. {folder}/$host
exec nsenter -t $pid -n unshare -u -m sh -c "mount -t sysfs sysfs /sys; hostname node$number; \
export ROCI_SOCKET=$socket; $*"
'''
FIRST = 'mount -t sysfs sysfs /sys; hostname node1; exec "$@"'


def place(folder, address, namespace, number, socket):
    """Tells the agent of a machine."""
    Path(folder, address).write_text(f'pid={namespace.pid} number={number} socket={socket}\n')


def make_agent(folder):
    agent = Path(folder, 'agent')
    agent.write_text(AGENT.format(folder=folder))
    agent.chmod(agent.stat().st_mode | stat.S_IXUSR)


def start_ranks(folder, first, addresses, ranks, options, words, socket):
    """mpirun's process: started on the first machine, with the hosts' addresses in a hostfile."""
    slots = -(-ranks // len(addresses))
    hosts = Path(folder, 'hosts')
    hosts.write_text(''.join(f'{a} slots={slots}\n' for a in addresses))
    command = ['mpirun', '--allow-run-as-root', '--hostfile', str(hosts), '-np', str(ranks), '--map-by', 'node',
               '--bind-to', 'none', '--mca', 'plm_rsh_agent', os.path.join(folder, 'agent'),
               '--mca', 'oob_tcp_if_include', 'e0', '--mca', 'btl_tcp_if_include', 'e0',
               '--mca', 'mpi_yield_when_idle', '1', *options, *words]
    env = {**os.environ, 'ROCI_SOCKET': socket, 'LC_ALL': 'C'}
    return subprocess.Popen(first.command(['unshare', '-u', '-m', 'sh', '-c', FIRST, 'sh', *command]), env=env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Machine:
    def __init__(self, lab, number, options):
        self.number = number
        self.address = f'10.9.0.{number}'
        self.namespace = lab.namespace()
        self.options = options

    def serve(self, lab):
        self.daemon = lab.rocid(self.namespace, f'rocid-{self.number}', ['--share', 'e0', *self.options])
        place(lab.folder, self.address, self.namespace, self.number, self.daemon.socket)

    def packets(self):
        return ask(self.daemon, 'show counters')['counters']['tx_packets']


class Cluster:
    """@p lossy: a program between the machines with odd and those with even numbers, which takes frames away."""

    def __init__(self, lab, count, lossy=None, options=(), mtu=4200):
        self.lab = lab
        self.hub = lab.namespace()
        self.machines = [Machine(lab, n, options) for n in range(1, count + 1)]
        self.hub.run('for b in br0 br1; do ip link add $b type bridge mcast_snooping 0; ip link set $b up; done')
        for m in self.machines:
            port = f'v{m.number}'
            m.namespace.run(f'ip link add e0 mtu {mtu} type veth peer name {port} mtu {mtu} netns {self.hub.pid};'
                            f'ip address add {m.address}/24 dev e0; ip link set e0 up')
            bridge = f'br{m.number % 2}' if lossy else 'br0'
            self.hub.run(f'ip link set {port} master {bridge} up')
        self.between = self.join(lossy, mtu) if lossy else None
        for m in self.machines[1:]:
            ping(m.namespace, self.machines[0].address)
        for m in self.machines:
            m.serve(lab)
        make_agent(lab.folder)

    def join(self, lossy, mtu):
        for n in range(2):
            self.hub.run(f'ip link add l{n} mtu {mtu} type veth peer name w{n} mtu {mtu};'
                         f'ip link set l{n} master br{n} up; ip link set w{n} arp off up')
        p = subprocess.Popen(self.hub.command([*lossy, 'w0', 'w1']), stdout=subprocess.PIPE, text=True)
        self.lab.processes.append(p)
        assert 'ready' in p.stdout.readline()
        return p

    def mpirun(self, ranks, options, words):
        """Its process."""
        return start_ranks(self.lab.folder, self.machines[0].namespace, [m.address for m in self.machines], ranks,
                           options, words, self.machines[0].daemon.socket)
