# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces, rocids in them, traffic between those: for tests of what stands beside the
kernel. Everything is made here and ends with the test; nothing else is touched. Waits end after
PATIENCE_S, which no pause of a machine reaches; nothing else depends on time."""
import ctypes
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from rocid import IDLE, PATIENCE_S, ask, eal_args

CLONE_NEWNET = 0x40000000
SKIP = 77

libc = ctypes.CDLL(None, use_errno=True)


def skip(why):
    print('SKIP:', why)
    sys.exit(SKIP)


def wait_for(what, condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f'{what}: not within {PATIENCE_S} s')
        time.sleep(0.05)


class Namespace:
    """One network namespace, held by a process that sleeps."""

    def __init__(self):
        # It ends with us, however we end: our end of its standard input closes.
        self.holder = subprocess.Popen(['unshare', '-n', 'cat'], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = f'/proc/{self.holder.pid}/ns/net'
        own = os.readlink('/proc/self/ns/net')
        wait_for('a namespace', lambda: os.readlink(path) != own or self.holder.poll() is not None)
        if self.holder.poll() is not None:
            skip('no network namespace can be made here: run as root')
        self.pid = self.holder.pid
        self.fd = os.open(path, os.O_RDONLY)
        self.run('ip link set lo up')

    def command(self, args):
        return ['nsenter', '-t', str(self.pid), '-n'] + args

    def run(self, line):
        subprocess.run(self.command(['sh', '-ec', line]), check=True)

    def output(self, line):
        return subprocess.run(self.command(['sh', '-ec', line]), check=True, text=True,
                              capture_output=True).stdout

    def inside(self, function):
        """Runs function() in a thread that is in the namespace; returns what it returns."""
        result = []

        def body():
            if libc.setns(self.fd, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), 'setns')
            result.append(function())

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if not result:
            raise AssertionError('failed in the namespace: see above')
        return result[0]

    def close(self):
        self.holder.kill()
        self.holder.wait()
        os.close(self.fd)


def veth(a, a_name, b, b_name):
    """A link between two namespaces, both ends up."""
    a.run(f'ip link add {a_name} type veth peer name {b_name} netns {b.pid}')
    a.run(f'ip link set {a_name} up')
    b.run(f'ip link set {b_name} up')


def settle(namespace, name):
    """Waits for the end of duplicate address detection: IPv6 neighbours are not looked for before."""
    wait_for(f'addresses of {name}',
             lambda: 'tentative' not in namespace.output(f'ip -6 addr show dev {name}'))


class Lines:
    """A program that talks by lines: what it printed so far, and waiting for more."""

    def __init__(self, process):
        self.process = process
        self.seen = []
        self.rest = b''

    def poll(self, timeout):
        fd = self.process.stdout.fileno()
        if not select.select([fd], [], [], timeout)[0]:
            return
        data = os.read(fd, 65536)
        if not data:
            raise AssertionError(f'{self.process.args[0]} has ended: {self.process.wait()}')
        *lines, self.rest = (self.rest + data).split(b'\n')
        self.seen += [line.decode() for line in lines]

    def wait(self, *starts):
        """Takes the first line that begins with one of `starts`; those before it stay."""
        until = time.monotonic() + PATIENCE_S
        while True:
            for i, line in enumerate(self.seen):
                if line.startswith(starts):
                    return self.seen.pop(i)
            if time.monotonic() > until:
                raise AssertionError(f'{starts}: not within {PATIENCE_S} s, but {self.seen}')
            self.poll(0.2)

    def say(self, line):
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()


class Lab:
    def __init__(self, rocid, stream):
        self.rocid_path = rocid
        self.stream_path = stream
        self.folder = tempfile.mkdtemp(prefix='roci-')
        self.processes = []
        self.namespaces = []

    def __enter__(self):
        if os.geteuid():
            skip('needs root for network namespaces')
        for tool in 'ip', 'unshare', 'nsenter':
            if not shutil.which(tool):
                skip(f'there is no {tool}')
        return self

    def __exit__(self, kind, *_):
        for p in reversed(self.processes):
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
        for p in self.processes:
            try:
                p.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                kind = kind or AssertionError
        for n in self.namespaces:
            n.close()
        if kind and kind is not SystemExit:
            for name in sorted(os.listdir(self.folder)):
                if name.endswith('.log'):
                    print(f'--- {name}', open(self.path(name)).read(), sep='\n')
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def namespace(self):
        self.namespaces.append(Namespace())
        return self.namespaces[-1]

    def rocid(self, namespace, name, options, eal=(), idle=IDLE, workers=1):
        """Starts a rocid; returns its process, whose `socket` programs connect to."""
        reader, writer = os.pipe()
        path = self.path(name + '.sock')
        log = open(self.path(name + '.log'), 'w')
        p = subprocess.Popen(
            namespace.command([self.rocid_path, *eal_args(128, workers), '--no-telemetry', *eal, '--',
                               '--socket', path, '--idle', idle,
                               '--ready-fd', str(writer), '--stats-on-exit=text', *options]),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, pass_fds=[writer])
        self.processes.append(p)
        os.close(writer)
        ready = select.select([reader], [], [], PATIENCE_S)[0] and os.read(reader, 64)
        os.close(reader)
        if not ready:
            raise AssertionError(f'rocid {name} does not start')
        p.socket = path
        return p

    @staticmethod
    def ask(rocid, line):
        """What rocid answers its administrator."""
        return ask(rocid, line)

    def stream(self, a, port_a, gid_a, b, port_b, gid_b, mtu=1024):
        """Traffic between port_a of rocid a and port_b of rocid b; returns once it flows."""
        p = subprocess.Popen([self.stream_path, a.socket, str(port_a), str(gid_a), b.socket,
                              str(port_b), str(gid_b), str(mtu)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.processes.append(p)
        stream = Stream(p)
        stream.wait('ready')
        stream.more(100)
        return stream


class Stream(Lines):
    def more(self, count):
        """That many more WRITEs in both directions."""
        self.say(f'more {count}')
        self.wait('done')

    def event(self, end, port, words):
        self.wait(f'event {end} {port} {words}')

    def ask(self, line):
        self.say(line)
        return self.wait(' '.join(line.split()[:2])).split()[2:]

    def pause(self):
        self.say('pause')
        self.wait('done')

    def resume(self):
        self.say('resume')
        self.wait('done')


# --- the kernel's own traffic ----------------------------------------------------------------

def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def ping(namespace, address, count=1):
    """ICMP echoes of 1000 bytes, one after the other, each until it is answered."""
    v6 = ':' in address
    body = bytes(range(250)) * 4

    def run():
        s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_RAW,
                          socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
        s.settimeout(1)
        for seq in range(count):
            head = struct.pack('!BBHHH', 128 if v6 else 8, 0, 0, 0x5243, seq)
            if not v6:
                head = head[:2] + struct.pack('!H', checksum(head + body)) + head[4:]
            until = time.monotonic() + PATIENCE_S
            while True:
                if time.monotonic() > until:
                    raise AssertionError(f'{address} does not answer a ping')
                try:
                    s.sendto(head + body, (address, 0))
                    answer = s.recv(4096)[0 if v6 else 20:]
                except OSError:
                    continue
                if answer[0] == (129 if v6 else 0) and answer[6:] == head[6:] + body:
                    break
        return True

    return namespace.inside(run)


def transfer(server, client, address, size):
    """`size` bytes over TCP from client to server, compared there."""
    v6 = ':' in address
    family = socket.AF_INET6 if v6 else socket.AF_INET
    data = os.urandom(1 << 16) * (size >> 16)

    def listen():
        s = socket.socket(family)
        s.bind((address, 0))
        s.listen(1)
        s.settimeout(PATIENCE_S)
        return s

    listener = server.inside(listen)

    def send():
        with socket.create_connection((address, listener.getsockname()[1]), PATIENCE_S) as s:
            s.sendall(data)
        return True

    sender = threading.Thread(target=lambda: client.inside(send))
    sender.start()
    connection, _ = listener.accept()
    connection.settimeout(PATIENCE_S)
    got = b''.join(iter(lambda: connection.recv(1 << 20), b''))
    sender.join()
    connection.close()
    listener.close()
    assert got == data, f'{len(got)} bytes of {len(data)} arrived, or others'
