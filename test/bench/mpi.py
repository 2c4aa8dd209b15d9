# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI between two network namespaces, a rank in each, on one veth pair, each with its rocid on a CPU: over rocid
by UCX's rc_verbs, over TCP by UCX, and over TCP by Open MPI itself; UCX alone by ucx_perftest, over rocid and over TCP.
Each function returns {(what, unit, size): figure}."""
import os
import subprocess
import sys

from link import Failure, PATIENCE_S, cpus
from peers import ADDRESS, NETDEV, UCX_TCP, missing, ucx
from netlab import Lab, ping

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'verbs'))
import cluster  # noqa: E402

PML_UCX = ['--mca', 'pml', 'ucx', '--mca', 'osc', 'ucx', '--mca', 'btl', '^vader,sm,ofi,openib']
# Open MPI takes UCX for adapters only, unless these allow others.
ANY = ['--mca', 'opal_common_ucx_tls', 'any', '--mca', 'opal_common_ucx_devices', 'any']
# The namespaces have one kernel, by which UCX would find shared memory.
TCP = {
    'Open MPI tcp': ['--mca', 'pml', 'ob1', '--mca', 'btl', 'self,tcp', '--mca', 'osc', '^ucx'],
    'UCX tcp': [*PML_UCX, *ANY, '-x', 'UCX_TLS=tcp,self', '-x', f'UCX_NET_DEVICES={NETDEV}'],
}
SIZES = 8, 64, 1024, 4096, 65536, 1 << 20, 4 << 20
UCX_ROCI = ['env', 'UCX_TLS=rc_verbs,ud_verbs,self', 'UCX_NET_DEVICES=roci0:1']
ROCI = [*PML_UCX, '-x', 'UCX_TLS=rc_verbs,ud_verbs,self', '-x', 'UCX_NET_DEVICES=roci0:1']


def ranks(veth, folder, options, words, sockets):
    for i, space in enumerate(veth.spaces):
        cluster.place(folder, ADDRESS[i], space, i + 1, sockets[i])
    cluster.make_agent(folder)
    first, second = cpus()
    pinned = ['sh', '-c', f'[ $OMPI_COMM_WORLD_RANK = 0 ] && cpu={first} || cpu={second}; exec taskset -c $cpu "$0" "$@"']
    job = cluster.start_ranks(folder, veth.spaces[0], ADDRESS, 2, options, [*pinned, *words], sockets[0])
    try:
        said = job.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        raise Failure(f'mpirun: not done within {PATIENCE_S} s') from None
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()
    rows = [line.split() for line in said.splitlines() if line.startswith(('pingpong ', 'allreduce '))]
    if job.returncode or not rows:
        raise Failure(f'mpirun failed: {said.strip()[-300:]}')
    return {(what, 'us', int(size)): float(value) for what, size, value in rows}


def times(quick):
    return ['500' if quick else '5000']


def perftest(veth, quick, folder, ends):
    """UCX without MPI: active messages, whose latency is one way, and their rate."""
    if 'ucx_perftest' in missing():
        return {}
    found = ucx(veth, 'am', SIZES, quick, folder, ends)
    names = {'latency': 'UCX message', 'rate': 'UCX rate'}
    return {(names[what], unit, size): value for (what, unit, size), value in found.items() if what in names}


def theirs(veth, build, who, quick, folder):
    program = os.path.join(build, 'test/bench/mpi_bench')
    found = ranks(veth, folder, TCP[who], [program, *times(quick)], ['', ''])
    if who == 'UCX tcp':
        found.update(perftest(veth, quick, folder, (UCX_TCP, UCX_TCP)))
    return found


def ours(veth, build, gso, quick):
    program, run = (os.path.join(build, path) for path in ('test/bench/mpi_bench', 'app/run/roci-run'))
    with Lab(os.path.join(build, 'app/rocid/rocid'), '') as lab:
        daemons = [lab.rocid(space, f'r{i}', ['--share', NETDEV, '--gso' if gso else '--gso=no'])
                   for i, space in enumerate(veth.spaces)]
        for daemon, cpu in zip(daemons, cpus()):
            subprocess.run(['taskset', '-acp', str(cpu), str(daemon.pid)], stdout=subprocess.DEVNULL, check=True)
        ping(veth.spaces[1], ADDRESS[0])
        sockets = [d.socket for d in daemons]
        found = ranks(veth, lab.folder, ROCI, [run, program, *times(quick)], sockets)
        found.update(perftest(veth, quick, lab.folder, [[*UCX_ROCI, run, '--socket', s] for s in sockets]))
        return found
