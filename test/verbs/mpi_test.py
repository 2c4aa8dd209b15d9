#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi_test.py ROCID ROCI-RUN LOSSY-BRIDGE MPI-CHECK: Open MPI, as Debian has it, over four machines.

Each machine is a network namespace with a rocid, on one bridge; no two ranks share memory. mpi_check, which checks all
that it receives, runs over UCX and over libfabric, and its digest is that of a run over TCP; also where the bridge
loses one frame of a hundred. A rank that is killed ends the job, and no rocid. MPI_EFFORT=N: N times the rounds, and
from 2 on with two ranks per machine, too. Needs root."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from cluster import Cluster, Lab, PATIENCE_S, wait_for
from netlab import skip
from rocid import ask, check
from setting import huge_pages, huge_pages_for

MACHINES = 4
EFFORT = int(os.environ.get('MPI_EFFORT', 1))
ROUNDS = 6 * EFFORT
FEW = 3 * EFFORT    # where a lost frame may cost a second, UCX's timeout
TCP = ['--mca', 'pml', 'ob1', '--mca', 'btl', 'self,tcp', '--mca', 'osc', '^ucx']
# The machines have one kernel, by which UCX would find shared memory.
UCX = ['--mca', 'pml', 'ucx', '--mca', 'osc', 'ucx', '--mca', 'btl', '^vader,sm,ofi,openib', '-x', 'UCX_TLS=rc_verbs,ud_verbs,self']
OFI = ['--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'mtl_ofi_provider_include', 'verbs;ofi_rxm',
       '--mca', 'osc', 'pt2pt', '--mca', 'btl', 'self']
# As doc/cluster.md has it, with shared memory.
ALONE = (['--mca', 'pml', 'ucx', '--mca', 'osc', 'ucx', '--mca', 'btl', '^vader,ofi,openib'], OFI)
NOBODY = 65534
LOSS = ['--ab', 'drop=10000', '--ba', 'drop=10000']


def finish(job):
    try:
        return job.communicate(timeout=2 * PATIENCE_S)[0]
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()


def digest(job, what):
    said = finish(job)
    found = re.search(r'digest (\w+)', said)
    check(not job.returncode and found, f'{what}: {job.returncode}: {said[-4000:]}')
    return found[1]


def none_left(cluster):
    for m in cluster.machines:
        check(m.daemon.poll() is None, f'rocid {m.number} lives')
        wait_for('nothing to be left', lambda d=m.daemon: not ask(d, 'show sessions')['sessions'])


def agrees(cluster, run, program, ranks, options, want, rounds=ROUNDS):
    before = [m.packets() for m in cluster.machines]
    begin = time.monotonic()
    name = f'{ranks} ranks, {" ".join(options)}'
    got = digest(cluster.mpirun(ranks, options, [run, program, str(rounds)]), name)
    check(got == want, f'{name}: digest {got}, over TCP {want}')
    sent = [m.packets() - b for m, b in zip(cluster.machines, before)]
    check(min(sent) > 100, f'{name}: not by rocid: {sent} packets')
    none_left(cluster)
    print(f'ok   {name} ({time.monotonic() - begin:.1f} s, {sum(sent)} packets)', flush=True)


def killed(cluster, run, program, options):
    """A rank that dies with messages under way."""
    job = cluster.mpirun(MACHINES, options, [run, program, '-d', '1', str(ROUNDS)])
    said = finish(job)
    check(job.returncode, f'a killed rank: {job.returncode}: {said[-4000:]}')
    none_left(cluster)
    print(f'ok   a killed rank, {" ".join(options)}', flush=True)


def one_machine(lab, cluster, run, program):
    """A user without rights: his ranks of one machine reach each other's memory. UCX would have huge pages of System V
    shared memory, which he cannot register."""
    os.chmod(lab.path('.'), 0o755)
    home = tempfile.mkdtemp(dir=lab.folder)
    os.chown(home, NOBODY, NOBODY)
    m = cluster.machines[0]
    command = ['setpriv', '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups', 'env', f'HOME={home}',
               f'TMPDIR={home}', 'mpirun', '--oversubscribe', '-np', '3', '--mca', 'mpi_yield_when_idle', '1']

    def ranks(*words):
        return subprocess.Popen(m.namespace.command([*command, *words]), cwd=home, stdin=subprocess.DEVNULL, text=True,
                                env={**os.environ, 'ROCI_SOCKET': m.daemon.socket, 'LC_ALL': 'C'},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    want = digest(ranks(*TCP, program, str(ROUNDS)), '3 ranks of one machine, TCP')
    for options in ALONE:
        got = digest(ranks(*options, run, program, str(ROUNDS)), f'3 ranks of one machine, {options}')
        check(got == want, f'3 ranks of one machine, {options}: digest {got}, over TCP {want}')
        none_left(cluster)
        print(f'ok   3 ranks of one machine, a user without rights, {" ".join(options)}', flush=True)


def main():
    rocid, run, bridge, program = map(os.path.abspath, sys.argv[1:])
    if not shutil.which('mpirun'):
        skip('mpirun is not installed (openmpi-bin)')
    with Lab(rocid, None) as lab:
        cluster = Cluster(lab, MACHINES, options=['--socket-mode', '0666'])
        with huge_pages(), huge_pages_for(NOBODY):
            one_machine(lab, cluster, run, program)
        sizes = (4, 8) if EFFORT > 1 else (4,)
        want = {n: digest(cluster.mpirun(n, TCP, [program, str(ROUNDS)]), f'{n} ranks, TCP') for n in sizes}
        print(f'TCP: {want}', flush=True)
        for ranks in sizes:
            for options in UCX, OFI:
                agrees(cluster, run, program, ranks, options, want[ranks])
        for options in UCX, OFI:
            killed(cluster, run, program, options)
        few = digest(cluster.mpirun(4, TCP, [program, str(FEW)]), '4 ranks, TCP')
        agrees(cluster, run, program, 4, OFI, few, FEW)
    with Lab(rocid, None) as lab:
        cluster = Cluster(lab, MACHINES, [bridge, *LOSS])
        for options in UCX, OFI:
            agrees(cluster, run, program, 4, options, few, FEW)
        cluster.between.terminate()
        said = cluster.between.communicate()[0]
        check(sum(int(n) for n in re.findall(r'(\d+) drop', said)) > 3, f'the bridge lost nothing: {said}')
        print(said, end='')


if __name__ == '__main__':
    main()
