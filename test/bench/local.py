# SPDX-License-Identifier: BSD-3-Clause
"""Two queue pairs of one port of one rocid, as two ranks on one machine have them: with one worker no frame
and one copy between them, with two packets that name their payload. One thread of rociperf is both ends.
Each worker polls on a CPU of its own and rociperf has another one; where the CPUs do not suffice for that,
as with two workers on two CPUs, workers yield, and rociperf takes turns with the last of them."""
import json
import os
import select
import subprocess
import tempfile

from link import EAL, Failure, MTU, PATIENCE_S

OPERATIONS = ('write', 'send', 'read')


class Host:
    """A rocid without a wire. A queue pair is assigned to the worker that has the fewest, so that two of them
    are on two workers, if there are two."""

    def __init__(self, build, workers=1):
        self.build = build
        self.workers = workers
        mine = sorted(os.sched_getaffinity(0))
        cpus = (mine * (workers + 1))[:workers + 1]
        self.worker_cpus, self.program_cpu = ','.join(map(str, cpus[:workers])), str(cpus[workers])
        self.shared = len(mine) <= workers and workers > 1
        if self.shared:
            self.program_cpu = str(cpus[workers - 1])

    def who(self):
        """Name of its figures, which tells those where worker and program share a CPU from others."""
        if self.workers == 1:
            return 'one port'
        return 'two workers, one beside the program' if self.shared else 'two workers'

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='roci-bench-')
        self.socket = os.path.join(self.folder.name, 'rocid')
        reader, writer = os.pipe()
        rocid = os.path.join(self.build, 'app/rocid/rocid')
        self.process = subprocess.Popen(
            ['taskset', '-c', self.worker_cpus, rocid, '-l', self.worker_cpus, *EAL, '--', '--ring-pair', '--gid', '0,192.0.2.1',
             '--mtu', f'0,{MTU}', '--mtu', f'1,{MTU}', '--idle', 'yield' if self.shared else 'poll',
             '--workers', str(self.workers), '--socket', self.socket, '--ready-fd', str(writer)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(writer,))
        os.close(writer)
        ready = select.select([reader], [], [], PATIENCE_S)[0] and os.read(reader, 64)
        os.close(reader)
        if not ready:
            self.__exit__()
            raise Failure('rocid does not start for the part local')
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.folder.cleanup()

    def rociperf(self, op, test, size, how):
        """Its one row."""
        command = ['taskset', '-c', self.program_cpu, os.path.join(self.build, 'app/rociperf/rociperf'), op, test,
                   '-s', str(size), '--both', '--peer-port', '1', '--socket', self.socket, '--json', *how]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False)
        if done.returncode:
            raise Failure(f"rociperf {op} {test}: {(done.stderr.strip().splitlines() or ['it said nothing'])[-1]}")
        return json.loads(done.stdout)['results'][0]


def sample(host, sizes, seconds):
    """@param seconds  of each measurement; 0: some messages, which shows that all of it works
    @return {(what, unit, op, size): figure}"""
    how = ['-D', str(seconds)] if seconds else ['-n', '64']
    found = {}
    for op in OPERATIONS:
        for size in sizes:
            row = host.rociperf(op, 'lat', size, how)
            # rociperf tells the latency of READ as a round trip: it has no other.
            found['latency', 'us', op, size] = row['p50_usec']
            row = host.rociperf(op, 'rate' if size < 1024 else 'bw', size, how)
            found['messages', 'M/s', op, size] = row['msg_rate_mpps']
            found['rate', 'Gb/s', op, size] = row['bw_average_gbps']
    return found
