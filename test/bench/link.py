# SPDX-License-Identifier: BSD-3-Clause
"""Two ends of a link, each a process on a CPU of its own: link_bench.c. Ports of all kinds that can
be had without a NIC. `daemon` says whether an end is one thread, application and worker together, or
a rocid and a program that share the CPU by yielding."""
import json
import os
import select
import signal
import subprocess
import tempfile
import time

PATIENCE_S = 300  # link_bench gives up before, and says why
ADDRESS = ('192.0.2.1', '192.0.2.2')
MAC = ('02:00:00:00:00:0a', '02:00:00:00:00:0b')
VHOST_MAC = '56:48:4f:53:54:00'  # of DPDK's first vhost port: it cannot be chosen
MTU = 4300
FRAME = 138  # bytes of a WRITE of 64
EAL = ['--no-huge', '-m', '128', '--no-pci', '--no-telemetry']


class Failure(Exception):
    """A sentence that says what broke."""


def cpus():
    """Two CPUs, the same twice where there is only one."""
    mine = sorted(os.sched_getaffinity(0))
    return mine[0], mine[1 % len(mine)]


class Child:
    """A process that talks by lines."""

    def __init__(self, command, log, fds=()):
        self.log = open(log, 'w+', encoding='utf-8')
        self.rest = b''
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, pass_fds=fds)

    def say(self, line):
        try:
            self.process.stdin.write(line.encode() + b'\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failure(self.last_words()) from None

    def line(self):
        fd = self.process.stdout.fileno()
        until = time.monotonic() + PATIENCE_S
        while b'\n' not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise Failure(f'{self.name()} said nothing for {PATIENCE_S} s')
            data = os.read(fd, 65536)
            if not data:
                raise Failure(self.last_words())
            self.rest += data
        line, self.rest = self.rest.split(b'\n', 1)
        return line.decode()

    def name(self):
        return os.path.basename(self.process.args[0])

    def last_words(self):
        """Why it ended: what it said last."""
        self.process.wait(PATIENCE_S)
        self.log.seek(0)
        lines = self.log.read().splitlines()
        return lines[-1] if lines else f'it ended with status {self.process.returncode}'

    def end(self):
        """rocid takes its signal, link_bench the end of its orders: neither leaves anything behind."""
        self.process.stdin.close()
        if self.process.poll() is None and not hasattr(self, 'address'):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


def static(i, macs=MAC):
    return ['--mtu', f'0,{MTU}', '--gid', f'0,{ADDRESS[i]}', '--neigh',
            f'0,{ADDRESS[1 - i]},{macs[1 - i]}']


def memif(folder, i):
    """Rings of 256: with bsize they have to fit the L2 cache beside all else, or each byte of a long
    message goes to memory and back."""
    role = ('server', 'client')[i]
    return (['--vdev', f'net_memif0,role={role},id=0,socket={folder}/link,socket-abstract=no,'
                       f'bsize=4608,rsize=8,mac={MAC[i]}'], static(i))


def vhost(folder, i):
    if i == 0:
        vdev = f'net_vhost0,iface={folder}/vhost,queues=1'
    else:
        vdev = f'net_virtio_user0,path={folder}/vhost,queues=1,mac={MAC[1]}'
    return ['--vdev', vdev], static(i, (VHOST_MAC, MAC[1]))


def af_packet(netdev, *more):
    return lambda folder, i: ([], ['--share', netdev, *more])


def af_xdp(netdev, addresses, macs):
    """libxdp's program takes every frame, so neighbours are told. Without busy polling, which costs a
    system call a round, latency is a tenth less on a veth."""
    return lambda folder, i: (
        ['--vdev', f'net_af_xdp0,iface={netdev},busy_budget=0'],
        ['--share', '0=' + netdev, '--neigh', f'0,{addresses[1 - i]},{macs[1 - i]}'])


class Link:
    """Both ends, connected. `wrap` puts a command into a place (a network namespace)."""

    def __init__(self, build, program, kind, daemon=False, wrap=None):
        self.build, self.program, self.kind, self.daemon = build, program, kind, daemon
        self.wrap = wrap or (lambda i, command: command)
        self.folder = tempfile.TemporaryDirectory(prefix='roci-bench-')
        self.started = []
        self.ends = []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(None)
            raise
        return self

    def __exit__(self, *_):
        for child in reversed(self.started):
            child.end()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def spawn(self, i, name, command, fds=()):
        command = ['taskset', '-c', str(cpus()[i])] + command
        child = Child(self.wrap(i, command), self.path(name + '.log'), fds)
        self.started.append(child)
        return child

    def start_rocid(self, i, eal, options):
        reader, writer = os.pipe()
        socket = self.path(f'rocid{i}')
        child = self.spawn(i, f'rocid{i}', [
            os.path.join(self.build, 'app/rocid/rocid'), *eal, '--', *options, '--socket', socket,
            '--idle', 'yield', '--ready-fd', str(writer)], [writer])
        os.close(writer)
        ready = select.select([reader], [], [], PATIENCE_S)[0] and os.read(reader, 64)
        os.close(reader)
        if not ready:
            raise Failure('rocid does not start: ' + child.last_words())
        return socket

    def start(self):
        for i in range(2):
            eal, options = self.kind(self.folder.name, i)
            eal = ['-l', str(cpus()[i]), *EAL, *eal]
            if self.daemon:
                command = [self.program, '--socket', self.start_rocid(i, eal, options)]
            else:
                command = [self.program, *eal, '--', *options]
            self.ends.append(self.spawn(i, f'end{i}', command))
            # The server's side of a link is there before the client looks for it.
            self.ends[i].address = self.ends[i].line().removeprefix('address ')
        mtu = self.order(*('connect ' + end.address for end in reversed(self.ends)))
        self.mtu = int(mtu[0].split()[1])

    def order(self, first, second):
        for end, line in zip(self.ends, (first, second)):
            end.say(line)
        return [end.line() for end in self.ends]

    # --- one sample each ---

    def round_trip(self, op, size, count):
        """ns: the median, and what 99 % stay below."""
        line = f'pingpong {op} {size} {count} '
        answer = json.loads(self.order(line + 'first', line + 'second')[0])
        return answer['median_ns'], answer['p99_ns']

    def raw_trip(self, size, count):
        """The same of a frame that no worker sees: the floor of the port."""
        line = f'raw {size} {count} '
        answer = json.loads(self.order(line + 'first', line + 'second')[0])
        return answer['median_ns'], answer['p99_ns']

    def stream(self, size, count, both=False):
        """ns a message, in one direction or the mean of two."""
        ways = ('both', 'both') if both else ('out', 'in')
        answers = [json.loads(a) for a in self.order(*(f'stream {size} {count} {w}' for w in ways))]
        each = [a['ns'] / a['messages'] for a in answers if a]
        return sum(each) / len(each)
