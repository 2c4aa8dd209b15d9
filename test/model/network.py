# SPDX-License-Identifier: BSD-3-Clause
"""Hosts, switches and cables, packet by packet: a simulation of the same networks as rocilab's that shares no code with it.

Times are ns, rates bit/s. Queues count frame and FCS, wires also preamble and gap. There are no losses.
"""
import heapq
import random

from laws import LAWS, NEVER

FCS, GAP = 4, 20
CNP, ACK, PAUSE, DATA = range(4)


class Packet:
    __slots__ = ('kind', 'flow', 'psn', 'wire', 'ask', 'marked', 'hops', 'ingress', 'left', 'word')

    def __init__(self, kind, flow, wire, psn=0, ask=False):
        self.kind, self.flow, self.psn, self.wire, self.ask = kind, flow, psn, wire, ask
        self.marked, self.hops, self.ingress, self.left, self.word = False, (), None, 0, False


class Ack:
    __slots__ = ('psn', 'packets', 'rtt', 'hops')

    def __init__(self, psn, packets, rtt, hops):
        self.psn, self.packets, self.rtt, self.hops = psn, packets, rtt, hops


class Clock:
    def __init__(self):
        self.now, self.heap, self.n = 0., [], 0

    def at(self, when, what, *words):
        self.n += 1
        heapq.heappush(self.heap, (when, self.n, what, words))

    def run(self, until):
        heap = self.heap
        while heap and heap[0][0] <= until:
            self.now, _, what, words = heapq.heappop(heap)
            what(*words)
        self.now = until


class Cable:
    """One direction. `pull` gives its next packet, or None."""

    def __init__(self, clock, rate, delay, pull):
        self.clock, self.rate, self.delay, self.pull = clock, rate, delay, pull
        self.busy, self.to, self.bytes = False, None, 0

    def kick(self):
        if not self.busy:
            self._next()

    def _next(self):
        p = self.pull()
        self.busy = p is not None
        if p is None:
            return
        now = self.clock.now
        done = now + p.wire * 8e9 / self.rate
        self.bytes += p.wire
        self.clock.at(done, self._next)
        self.clock.at(done + self.delay, self.to, p)


class Queue:
    """A switch's port: two classes, RED as a frame leaves, and what PFC knows of the other end."""

    def __init__(self, switch, rate, delay):
        self.switch, self.clock = switch, switch.clock
        self.cable = Cable(switch.clock, rate, delay, self.pull)
        self.first, self.data = [], []          # reversed lists are slow: these are queues with a begin
        self.first_at = self.data_at = 0
        self.bytes, self.paused = 0, False
        self.area, self.since, self.marks = 0., 0., 0
        self.held, self.told, self.pauses = 0, False, 0     # bytes that came in by it, and whether it said "pause"
        self.cable_back = None

    def watch(self):
        now = self.clock.now
        self.area += self.bytes * (now - self.since)
        self.since = now

    def push(self, p):
        if p.kind == DATA:
            self.watch()
            self.bytes += p.wire - GAP
            self.data.append(p)
            self.switch.came(p)
        else:
            self.first.append(p)
        self.cable.kick()

    def pull(self):
        if self.first_at < len(self.first):
            p = self.first[self.first_at]
            self.first_at += 1
            if self.first_at > 1000:
                del self.first[:self.first_at]
                self.first_at = 0
            return p
        if self.paused or self.data_at == len(self.data):
            return None
        p = self.data[self.data_at]
        self.data_at += 1
        if self.data_at > 1000:
            del self.data[:self.data_at]
            self.data_at = 0
        self.watch()
        self.bytes -= p.wire - GAP
        if self.switch.red(self.bytes):
            p.marked = True
            self.marks += 1
        if self.switch.records:
            p.hops += ((self.cable.rate, self.clock.now, self.cable.bytes, self.bytes),)
        self.switch.went(p)
        return p


class Switch:
    def __init__(self, clock, rng, kmin=0, kmax=0, pmax=0, xoff=0, xon=0, records=False):
        self.clock, self.rng, self.records = clock, rng, records
        self.kmin, self.kmax, self.pmax, self.xoff, self.xon = kmin, kmax, pmax, xoff, xon
        self.way = {}           # to a host's number
        self.queue = []

    def red(self, bytes_):
        if not self.kmax or bytes_ <= self.kmin:
            return False
        return bytes_ > self.kmax or self.rng.random() < self.pmax * (bytes_ - self.kmin) / (self.kmax - self.kmin)

    def receive(self, port, p):
        if p.kind == PAUSE:
            port.paused = p.word
            port.cable.kick()
            return
        p.ingress = port
        to = p.flow.source if p.kind != DATA else p.flow.sink
        self.way[to.number].push(p)

    def _say(self, port, word):
        port.told = word
        port.pauses += word
        p = Packet(PAUSE, None, 84)
        p.word = word
        port.first.insert(port.first_at, p)
        port.cable.kick()

    def came(self, p):
        i = p.ingress
        i.held += p.wire - GAP
        if self.xoff and not i.told and i.held > self.xoff:
            self._say(i, True)

    def went(self, p):
        i = p.ingress
        i.held -= p.wire - GAP
        if i.told and i.held <= self.xon:
            self._say(i, False)


class Flow:
    """A queue pair that is never out of messages."""

    def __init__(self, host, sink, law, profile, net, interval):
        self.source, self.sink, self.net, self.clock = host, sink, net, host.clock
        self.law = LAWS[law](profile, host.line, **net.law_changes) if law != 'off' else None
        self.interval = interval
        self.ask_each = 1 if law in ('hpcc', 'swift') else net.window // 4
        self.psn = self.acked = self.delivered = self.cnps = 0
        self.last, self.last_wire = -NEVER, 0
        self.next_cnp = -NEVER
        self.open = {}
        self.timer = NEVER

    # the sender
    def may_send(self):
        """When the next packet may leave, or NEVER: an ACK must come first."""
        if self.psn - self.acked >= self.net.window:
            return NEVER
        law = self.law
        if law is None:
            return 0
        if law.window_unit == 'packets' and self.psn - self.acked + 1 > law.window:
            return NEVER
        if law.window_unit == 'bytes' and (self.psn - self.acked) * self.net.wire >= law.window:
            return NEVER
        rate = law.rate
        return self.last + self.last_wire * 8e9 / rate if rate else 0

    def send(self):
        net, now = self.net, self.clock.now
        first = self.psn % net.message == 0
        p = Packet(DATA, self, net.wire + (16 if first else 0), self.psn)
        self.psn += 1
        p.ask = self.psn % self.ask_each == 0
        if p.ask:
            self.open[p.psn] = now
        # nothing is saved up: a departure that is late moves those after it
        self.last, self.last_wire = now, p.wire
        if self.law:
            self.law.on_sent(now, p.wire, p.psn)
            self.arm()
        return p

    def arm(self):
        due = self.law.due
        if due < NEVER and due != self.timer:
            self.timer = due
            self.clock.at(due, self.tick, due)

    def tick(self, due):
        if due != self.timer:
            return
        self.timer = NEVER
        self.law.run(self.clock.now)
        self.arm()
        self.source.cable.kick()

    def ack(self, p):
        now = self.clock.now
        packets = p.psn + 1 - self.acked
        self.acked = p.psn + 1
        left = self.open.pop(p.psn)
        if self.law:
            self.law.on_ack(now, Ack(p.psn, packets, now - left, p.hops))
        self.source.cable.kick()

    def cnp(self):
        self.cnps += 1
        if self.law:
            self.law.on_cnp(self.clock.now)
            self.arm()
        self.source.cable.kick()

    # the receiver
    def arrive(self, p):
        now = self.clock.now
        self.delivered += 1
        if p.marked and now >= self.next_cnp and self.law:
            self.next_cnp = now + self.interval
            self.sink.say(Packet(CNP, self, 98 + self.net.ip_more))
        if p.ask:
            a = Packet(ACK, self, 86 + self.net.ip_more + self.net.record_bytes, p.psn)
            a.hops = p.hops
            self.sink.say(a)


class Host:
    def __init__(self, clock, number, line, delay):
        self.clock, self.number, self.line = clock, number, line
        self.cable = Cable(clock, line, delay, self.pull)
        self.flows, self.out, self.paused, self.turn = [], [], False, 0
        self.wake_at = NEVER

    def say(self, p):
        if p.kind == CNP:
            self.out.insert(0, p)
        else:
            self.out.append(p)
        self.cable.kick()

    def pull(self):
        if self.out:
            return self.out.pop(0)
        if self.paused:
            return None
        now, soonest = self.clock.now, NEVER
        n = len(self.flows)
        for i in range(n):
            f = self.flows[(self.turn + i) % n]
            at = f.may_send()
            if at <= now + 1e-6:
                self.turn = (self.turn + i + 1) % n
                return f.send()
            soonest = min(soonest, at)
        if soonest < NEVER and not now < self.wake_at <= soonest:
            self.wake_at = soonest
            self.clock.at(soonest, self.wake, soonest)
        return None

    def wake(self, at):
        if at == self.wake_at:
            self.wake_at = NEVER
        self.cable.kick()

    def receive(self, p):
        if p.kind == PAUSE:
            self.paused = p.word
            self.cable.kick()
        elif p.kind == DATA:
            p.flow.arrive(p)
        elif p.kind == ACK:
            p.flow.ack(p)
        else:
            p.flow.cnp()


class Network:
    """A row of switches; hosts are added to one of them."""

    def __init__(self, seed=1, window=128, mtu=1024, ip=4, switches=1, records=False, message=1 << 20, law_changes=None, **red):
        self.clock, self.rng = Clock(), random.Random(seed)
        self.window, self.ip_more, self.message = window, 20 if ip == 6 else 0, message // mtu
        self.record_bytes = 56 if records else 0
        self.wire = mtu + 82 + self.ip_more + self.record_bytes
        self.payload = mtu
        self.law_changes = law_changes or {}
        self.switch = [Switch(self.clock, self.rng, records=records, **red) for _ in range(switches)]
        self.host, self.flow = [], []

    def _port(self, sw, rate, delay):
        q = Queue(self.switch[sw], rate, delay)
        self.switch[sw].queue.append(q)
        return q

    def add_host(self, sw, rate, delay):
        h = Host(self.clock, len(self.host), rate, delay)
        q = self._port(sw, rate, delay)
        q.cable.to = h.receive
        s = self.switch[sw]
        h.cable.to = lambda p: s.receive(q, p)
        self.host.append((h, sw))
        s.way[h.number] = q
        return h

    def join(self, rate, delay):
        """Cables between neighbours, and the ways by them."""
        for i in range(len(self.switch) - 1):
            a, b = self._port(i, rate, delay), self._port(i + 1, rate, delay)
            left, right = self.switch[i], self.switch[i + 1]
            a.cable.to = lambda p, s=right, q=b: s.receive(q, p)
            b.cable.to = lambda p, s=left, q=a: s.receive(q, p)
            for h, sw in self.host:
                if sw > i:
                    left.way[h.number] = a
                else:
                    right.way[h.number] = b

    def add_flow(self, source, sink, law, profile, at, interval=None):
        cls = LAWS.get(law)
        if interval is None:
            interval = cls.cnp_interval[profile] if cls else 50e3
        f = Flow(self.host[source][0], self.host[sink][0], law, profile, self, interval)
        self.flow.append(f)
        self.clock.at(at, self._begin, f)
        return f

    def _begin(self, f):
        f.source.flows.append(f)
        f.source.cable.kick()

    def measure(self, begin, end, step=1e6):
        """Runs to `end`. @return goodput of each flow in bit/s, Jain's index over each `step`, CNPs per flow and second"""
        self.clock.run(begin)
        queues = [q for s in self.switch for q in s.queue]
        for q in queues:
            q.watch()
            q.area, q.pauses, q.sent0 = 0, 0, q.cable.bytes
        was = [(f.delivered, f.cnps) for f in self.flow]
        jain, at, last = [], begin, [f.delivered for f in self.flow]
        while at < end:
            at = min(at + step, end)
            self.clock.run(at)
            here = [f.delivered for f in self.flow]
            x = [b - a for a, b in zip(last, here)]
            last = here
            if any(x):
                jain.append(sum(x) ** 2 / len(x) / sum(v * v for v in x))
        for q in queues:
            q.watch()
        seconds = (end - begin) * 1e-9
        rates = [(f.delivered - d) * self.payload * 8 / seconds for f, (d, _) in zip(self.flow, was)]
        cnps = sum(f.cnps - c for f, (_, c) in zip(self.flow, was)) / len(self.flow) / seconds
        return {'rate': rates, 'jain': sum(jain) / len(jain), 'cnps': cnps,
                'queue': {(i, j): q.area / (end - begin) for i, s in enumerate(self.switch) for j, q in enumerate(s.queue)},
                'util': {(i, j): (q.cable.bytes - q.sent0) * 8 / seconds / q.cable.rate
                         for i, s in enumerate(self.switch) for j, q in enumerate(s.queue)},
                'pauses': sum(q.pauses for q in queues)}


def star(n, rate, law, profile='paper', delay=1000., **cfg):
    net = Network(**cfg)
    for _ in range(n + 1):
        net.add_host(0, rate, delay)
    for i in range(n):
        net.add_flow(i, n, law, profile, net.rng.random() * 1000)
    return net


def victim(n, rate, uplink, law, profile='paper', delay=1000., **cfg):
    """n senders and a bystander on one side, two receivers on the other."""
    net = Network(switches=2, **cfg)
    for _ in range(n + 1):
        net.add_host(0, rate, delay)
    for _ in range(2):
        net.add_host(1, rate, delay)
    net.join(uplink, delay)
    for i in range(n):
        net.add_flow(i, n + 1, law, profile, net.rng.random() * 1000)
    net.add_flow(n, n + 2, law, profile, net.rng.random() * 1000)
    return net
