# SPDX-License-Identifier: BSD-3-Clause
"""What the runner puts together: the network, the capture, and the two sides of a case."""
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BRIDGE = 'br0'
OUR_ID = 1            # host part of our addresses; the guest's is 2
QUEUE_FRAMES = 10000  # of a tap: an emulated guest may not look for a while


# Until something must have happened that takes a moment: a process may stand still for long.
PATIENCE_S = 120


class Trouble(Exception):
    """A sentence for the user."""


class Disturbed(Trouble):
    """What comes of a machine that lets a process stand still, too: the case is run again."""


def sh(*words):
    r = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if r.returncode:
        raise Trouble(f'{shlex.join(str(w) for w in words)}: {r.stderr.strip()}')
    return r.stdout


def listening(port):
    """A shell command that succeeds when something listens on a TCP port."""
    return f'grep -qE ":{port:04X} [0-9A-F:]+ 0A " /proc/net/tcp /proc/net/tcp6'


class Network:
    """A bridge in a fresh network namespace. A bridge and not one tap, because what AF_PACKET sends
    past the queueing discipline is invisible on its own device, and visible on the far end of a veth."""

    def __init__(self, mtu):
        self.mtu = mtu
        sh('mount', '-t', 'sysfs', 'sysfs', '/sys')
        sh('mount', '-t', 'tmpfs', 'tmpfs', '/run')     # sockets and DPDK's run-time files
        sh('ip', 'link', 'set', 'lo', 'up')
        sh('ip', 'link', 'add', 'name', BRIDGE, 'type', 'bridge', 'mcast_snooping', 0,
           'forward_delay', 0)
        self._quiet(BRIDGE)
        # With ARP on the bridge itself would answer for the addresses of the netdevs beside it.
        sh('ip', 'link', 'set', BRIDGE, 'arp', 'off', 'up')

    @staticmethod
    def _quiet(dev):
        path = Path(f'/proc/sys/net/ipv6/conf/{dev}/disable_ipv6')
        if path.exists():
            path.write_text('1')

    def _attach(self, dev):
        self._quiet(dev)
        sh('ip', 'link', 'set', dev, 'mtu', self.mtu, 'master', BRIDGE, 'up')

    def add_tap(self, dev):
        sh('ip', 'tuntap', 'add', 'dev', dev, 'mode', 'tap')
        self._attach(dev)

    def add_veth(self, dev, port):
        """A netdev for a process of ours, and the bridge's port that it is connected to."""
        sh('ip', 'link', 'add', 'name', dev, 'type', 'veth', 'peer', 'name', port)
        self._attach(port)
        sh('ip', 'link', 'set', dev, 'mtu', self.mtu, 'up')
        sh('ip', 'addr', 'add', f'192.168.77.{OUR_ID}/24', 'dev', dev)
        sh('ip', 'addr', 'add', f'fd77::{OUR_ID}/64', 'dev', dev, 'nodad')

    def split(self, *ports):
        """Two ports leave the bridge: what goes between them is now a LossyBridge's business. Without
        ARP the kernel does not answer on them for the addresses of the netdevs beside them."""
        for port in ports:
            sh('ip', 'link', 'set', port, 'nomaster')
            sh('ip', 'link', 'set', port, 'arp', 'off', 'txqueuelen', QUEUE_FRAMES)


class LossyBridge:
    """The lossy bridge between the port of our side and that of the peer, for the time of a case."""

    def __init__(self, program, ours, peer, case, log):
        self.cmd = [program, '--seed', str(case.seed), '--ab', case.to_peer, '--ba', case.to_us, ours, peer]
        self.log = log
        self.to_peer, self.to_us = {}, {}      # counts by name, afterwards

    def __enter__(self):
        self.program = Program(self.cmd, self.log)
        end = time.monotonic() + PATIENCE_S
        while 'ready' not in self.log.read_text():
            if not self.program.running():
                raise Trouble(f'the lossy bridge does not start: {self.log.read_text()}')
            if time.monotonic() > end:
                raise Disturbed(f'the lossy bridge is not ready: {self.log.read_text()}')
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.program.proc.send_signal(signal.SIGTERM)
        if not self.program.passed(PATIENCE_S):
            raise Trouble(f'lossy bridge: {self.program.outcome()}')
        self.to_peer, self.to_us = ({what: int(n) for n, what in re.findall(r'(\d+) (\w+)', line)}
                                    for line in self.log.read_text().splitlines()[1:3])

    def check(self, case):
        """Raises Trouble when the case proves nothing."""
        for asked, count, where in ((case.to_peer, self.to_peer, 'to the peer'),
                                    (case.to_us, self.to_us, 'to us')):
            if count['missed'] or count['unsent']:
                raise Disturbed(f'the lossy bridge lost frames {where} that it should not: {count}')
            for kind in re.findall(r'(\w+)=[1-9]', asked):
                if not count[kind]:
                    raise Trouble(f'not one frame {where} met "{kind}": more messages are needed')


class Capture:
    """tcpdump on a device, from before the first frame until a moment after the last."""
    QUIET_S = 0.1         # ACKs of the last messages come so soon, and nobody misses one that does not
    LIMIT_S = 180         # on a busy machine it had not begun after a minute
    # The kernel keeps room for so much in each of the frames that it holds: more than a RoCE frame of the
    # largest MTU wastes it, and what is kept while tcpdump does not run would be few.
    FRAME_BYTES, BUFFER_KIB = 5000, 128 << 10

    def __init__(self, dev, path):
        self.dev, self.path, self.missed = dev, path, 0

    def _log(self):
        return Path(self.log.name).read_text()

    def __enter__(self):
        self.log = open(f'{self.path}.log', 'w')
        # Without immediate mode tcpdump ends with frames unread in the kernel's ring.
        self.proc = subprocess.Popen(
            ['tcpdump', '-n', '-s', str(self.FRAME_BYTES), '-B', str(self.BUFFER_KIB), '-U',
             '--immediate-mode', '-Z', 'root', '-i', self.dev, '-w', self.path], stderr=self.log,
            stdin=subprocess.DEVNULL)
        end = time.monotonic() + self.LIMIT_S
        while 'listening on' not in self._log():
            if self.proc.poll() is not None or time.monotonic() > end:
                self.proc.kill()
                self.proc.wait()
                raise Disturbed(f'tcpdump does not start: {self._log()}')
            time.sleep(0.02)
        return self

    def _counts(self):
        """What tcpdump said last: frames captured, received, dropped."""
        return [int(n) for n in re.findall(r'(\d+) packets? (?:captured|received|dropped)', self._log())][-3:]

    def _ask(self, end):
        said = self._log().count('dropped')
        self.proc.send_signal(signal.SIGUSR1)
        while self._log().count('dropped') == said and time.monotonic() < end:
            time.sleep(0.02)
        return self._counts()

    def __exit__(self, *_):
        """Ends when nothing more comes and all that came is written."""
        end, before = time.monotonic() + self.LIMIT_S, None
        while time.monotonic() < end:
            counts = self._ask(end)
            if counts == before and counts[0] + counts[2] == counts[1]:
                break
            before = counts
            time.sleep(self.QUIET_S)
        self.proc.send_signal(signal.SIGINT)
        self.proc.wait()
        self.log.close()
        captured, received, dropped = self._counts()
        self.missed = max(received - captured, dropped)


class Program:
    """A program that runs on one of the sides."""

    def __init__(self, cmd, log, env=None, name=''):
        self.log, self.name = log, name
        with open(log, 'w') as f:
            self.proc = subprocess.Popen([str(c) for c in cmd], stdout=f, stderr=subprocess.STDOUT,
                                         stdin=subprocess.DEVNULL, env=env)

    def running(self):
        return self.proc.poll() is None

    def passed(self, timeout, bad_output=None):
        """Waits for a program that ends by itself, or by its own timeout."""
        try:
            rc = self.proc.wait(timeout + 10)
        except subprocess.TimeoutExpired:
            self.end()
            rc = self.proc.wait()
        return rc == 0 and not (bad_output and bad_output in self.log.read_text(errors='replace'))

    # Exit statuses of what had no time, sentences of those who waited for it, and of those who found fault.
    LATE = {**dict.fromkeys((124, 143), 'ran into its time limit'), 125: 'the guest does not answer',
            **dict.fromkeys((137, -signal.SIGTERM, -signal.SIGKILL), 'was ended: the other one had failed')}
    WAITED = re.compile(r'transport retr|hung up|said nothing|says nothing|no completion|cannot (connect|serve|send)')
    BLAMED = re.compile(r'expected|instead|invalid data|which nobody|not what was sent|out of order|no message behind')

    def had_no_time(self):
        """Whether it failed for no other reason than that it, or another, was not fast enough."""
        text = self.log.read_text(errors='replace')
        return bool(self.proc.returncode in self.LATE or self.WAITED.search(text)) and not self.BLAMED.search(text)

    def end(self):
        """Now: nobody waits for it any more."""
        if self.running():
            self.proc.terminate()       # timeout passes it on to what it runs
        self.proc.wait()

    def outcome(self):
        rc, text = self.proc.returncode, self.log.read_text(errors='replace').splitlines()[-12:]
        what = self.LATE.get(rc, f'exit status {rc}')
        return '\n  '.join([what] + text)


class Guest:
    """Linux soft-RoCE in QEMU."""
    known = True          # what it does wrong under loss is listed, and fails nothing
    gid_index = {'v4': 1, 'v6': 2}
    programs = {'pingpong': 'ibv_rc_pingpong', 'ud': 'ibv_ud_pingpong', 'peer': 'verbs_peer'}
    waived = ()
    cm_listens = 'rdma resource show cm_id | grep -q LISTEN'

    def __init__(self, name, ident, net, work, state):
        self.name, self.port = name, f'tap{ident}'
        net.add_tap(self.port)
        self.tcp_address = f'192.168.77.{ident}'
        self.addresses = [self.tcp_address, f'fd77::{ident}']
        self.env = dict(os.environ, WORKDIR=str(work), STATE=str(state), NAME=name, ID=str(ident),
                        NET=f'tap:{self.port}', MTU=str(net.mtu))

    def boot(self):
        r = subprocess.run([HERE / 'run-guest.sh', 'start'], env=self.env, stderr=subprocess.PIPE,
                           text=True)
        if r.returncode:
            raise Trouble(f'the guest does not start: {r.stderr}')

    def managing_congestion(self, _case):
        """soft-RoCE cannot."""
        return contextlib.nullcontext()

    def stop(self):
        """A guest ends with its namespace."""

    def start(self, program, args, log, timeout):
        """The guest's own timeout ends the program there, whatever happens to the connection."""
        command = shlex.join([self.programs.get(program, program)] + args)
        return Program([HERE / 'guest-exec.sh', f'timeout {timeout} {command}'], log, self.env, command.split()[0])

    def wait_cm_listening(self, program):
        self._wait_until(self.cm_listens, program)

    def wait_cm_idle(self):
        self._wait(f'! {{ {self.cm_listens}; }}')

    def wait_listening(self, port, program):
        self._wait_until(listening(port), program)

    def _wait(self, condition):
        """@return whether it came true."""
        wait = f'for i in $(seq {10 * PATIENCE_S}); do {condition} && exit 0; sleep 0.1; done; exit 1'
        return not subprocess.run([HERE / 'guest-exec.sh', wait], env=self.env).returncode

    def _wait_until(self, condition, program):
        if not self._wait(condition):
            self.end(program)
            raise Disturbed(f'server: does not listen; {program.outcome()}')

    def end(self, program):
        """There and here, where only its output comes."""
        if program.running():
            subprocess.run([HERE / 'guest-exec.sh', 'killall -q -9 ' + ' '.join({*self.programs.values(), program.name})],
                           env=self.env)
        program.end()


class Local:
    """Our side: rocid on a veth of the bridge, and programs on <roci.h>."""
    known = False
    waived = ()
    tcp_address = f'192.168.77.{OUR_ID}'
    addresses = [tcp_address, f'fd77::{OUR_ID}']
    name, dev, port = 'ours', 'roce0', 'roce0-br'

    def __init__(self, net, build, state):
        net.add_veth(self.dev, self.port)
        self.build, self.log = build, state / 'rocid.log'
        self.rocid, self.gid_index = None, {}
        pingpong = build / 'app/examples/roci-pingpong'
        self.programs = {'pingpong': [pingpong], 'ud': [pingpong, '-u'],
                         'peer': [build / 'test/interop/roci_peer']}

    def boot(self):
        for program, *_ in self.programs.values():
            if not program.exists():
                raise Trouble(f'finds no {program}: build first')
        self.start_rocid()

    @contextlib.contextmanager
    def managing_congestion(self, case):
        """QPs that connect meanwhile send ECN-capable packets. Over a link that marks, ours alone sends CNPs."""
        self.set_cc(case.cc)
        before = self.counters()
        try:
            yield
        finally:
            self.set_cc('off')
        moved = {k: v - before[k] for k, v in self.counters().items() if 'cnp' in k or 'ecn' in k}
        for name, marked in (('np_ecn_marked_roce_packets', True), ('np_cnp_sent', True), ('rp_cnp_handled', False),
                             ('rp_cnp_ignored', False)):
            expected = marked and 'mark=' in case.to_us and not (case.one_way and case.we_drive)
            if bool(moved[name]) != expected:
                raise Trouble(f'{name} moved by {moved[name]}: {moved}')

    def counters(self):
        said = subprocess.run([self.build / 'app/rocictl/rocictl', '--json', 'show', 'counters'], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return json.loads(said)['counters']

    def set_cc(self, value):
        sh(self.build / 'app/rocictl/rocictl', 'set', 'port', 1, 'cc', value)

    def start_rocid(self, *more):
        """Its socket is the default one: /run is private in here."""
        self.rocid = Program([self.build / 'app/rocid/rocid', '--no-huge', '-m', '256', '--no-pci', '--',
                              '--share', self.dev, '--idle', 'adaptive', '--stats-on-exit', *more], self.log)
        end = time.monotonic() + PATIENCE_S
        while 'rocid: ready' not in self.log.read_text():
            if not self.rocid.running() or time.monotonic() > end:
                raise Trouble(f'rocid does not start; {self.log.read_text()}')
            time.sleep(0.05)
        self.gid_index = {'v4' if gid.startswith('::ffff:') else 'v6': index for index, gid in
                          re.findall(r'GID (\d+): (\S+) RoCEv2', self.log.read_text())
                          if gid.removeprefix('::ffff:') in self.addresses}
        if len(self.gid_index) != 2:
            raise Trouble(f'rocid lacks a GID of {self.addresses}; {self.log.read_text()}')

    def stop(self):
        """@return what is wrong with the way rocid ended, or None."""
        if not self.rocid:
            return None
        died = not self.rocid.running()
        self.rocid.proc.send_signal(signal.SIGTERM)
        if died or not self.rocid.passed(PATIENCE_S):
            return f'rocid {"died" if died else "did not end cleanly"}: {self.rocid.outcome()}'
        return None

    def start(self, program, args, log, timeout):
        return Program(['timeout', '-k', '5', timeout, *self.programs[program]] + args, log)

    @property
    def cm_listens(self):
        return f'{self.build}/app/rocictl/rocictl show cm listeners | grep -q "^ *[0-9]\\|TCP\\|UDP"'

    def wait_cm_listening(self, program):
        self._wait_until(self.cm_listens, program)

    def wait_cm_idle(self):
        end = time.monotonic() + PATIENCE_S
        while self._holds(self.cm_listens) and time.monotonic() < end:
            time.sleep(0.05)

    def wait_listening(self, port, program):
        self._wait_until(listening(port), program)

    @staticmethod
    def _holds(condition):
        return not subprocess.run(['sh', '-c', condition]).returncode

    def _wait_until(self, condition, program):
        end = time.monotonic() + PATIENCE_S
        while not self._holds(condition):
            if not program.running():
                late = program.had_no_time()
                raise (Disturbed if late else Trouble)(f'server: does not listen; {program.outcome()}')
            if time.monotonic() > end:
                program.end()
                raise Disturbed(f'server: does not listen; {program.outcome()}')
            time.sleep(0.05)

    @staticmethod
    def end(program):
        program.end()


class Verbs(Local):
    """The same with programs on the verbs API: those of the guest, as they are, with our libibverbs."""

    def __init__(self, net, build, state):
        super().__init__(net, build, state)
        self.programs = {'pingpong': ['ibv_rc_pingpong'], 'ud': ['ibv_ud_pingpong'],
                         'peer': [build / 'test/interop/verbs_peer'],
                         'cm_peer': [build / 'test/interop/cm_peer']}
        self.env = dict(os.environ, LD_LIBRARY_PATH=f'{build}/lib/verbs:{build}/lib/client', ROCI_VERBOSE='1')

    def boot(self):
        missing = [p for p in ('ibv_rc_pingpong', 'ib_write_bw', 'rping') if not shutil.which(p)]
        if missing:
            raise Trouble(f'lacks {missing}: apt-get install ibverbs-utils perftest rdmacm-utils')
        self.start_rocid()

    def start(self, program, args, log, timeout):
        command = self.programs.get(program, [program])
        return Program(['timeout', '-k', '5', timeout, *command] + args, log, self.env)
