# SPDX-License-Identifier: BSD-3-Clause
"""Two queue pairs of one port of one rocid, as two ranks on one machine have them: no frame and one copy
between them. rocid has a CPU of its own; one thread of rociperf is both ends. Each function returns
{(what, unit, op, size): figure}."""
import json
import os
import select
import subprocess
import tempfile

from link import EAL, Failure, MTU, PATIENCE_S, cpus

OPERATIONS = ('write', 'send', 'read')


class Host:
    """A rocid without a wire."""

    def __init__(self, build):
        self.build = build

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='roci-bench-')
        self.socket = os.path.join(self.folder.name, 'rocid')
        reader, writer = os.pipe()
        rocid, worker = os.path.join(self.build, 'app/rocid/rocid'), str(cpus()[0])
        self.process = subprocess.Popen(
            ['taskset', '-c', worker, rocid, '-l', worker, *EAL, '--', '--ring-pair', '--gid', '0,192.0.2.1',
             '--mtu', f'0,{MTU}', '--mtu', f'1,{MTU}', '--idle', 'poll', '--socket', self.socket,
             '--ready-fd', str(writer)],
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
        command = ['taskset', '-c', str(cpus()[1]), os.path.join(self.build, 'app/rociperf/rociperf'), op, test,
                   '-s', str(size), '--both', '--peer-port', '1', '--socket', self.socket, '--json', *how]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False)
        if done.returncode:
            raise Failure(f"rociperf {op} {test}: {(done.stderr.strip().splitlines() or ['it said nothing'])[-1]}")
        return json.loads(done.stdout)['results'][0]


def sample(host, sizes, seconds):
    """@param seconds  of each measurement; 0: some messages, which shows that all of it works"""
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
