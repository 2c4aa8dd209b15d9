# SPDX-License-Identifier: BSD-3-Clause
"""Messages of the communication manager that are refused, or fit nothing: a stranger, whom this file plays frame by
frame, sends the same to Linux soft-RoCE and to us, and the answers that tshark decodes must be equal, field by
field. What differs on purpose is in OURS_ALONE."""
import random
import re
import socket
import struct
import subprocess
import time
import xml.etree.ElementTree
from dataclasses import dataclass

from mad_packet import HEADERS, MAD_LEN, ROCE_PORT, cm_mad, packet
from sides import BRIDGE, Disturbed, PATIENCE_S, Trouble, sh

STRANGER, MAC = '192.168.77.9', bytes.fromhex('020000000009')
DEV, PORT_OF_BRIDGE = 'stranger0', 'stranger-br'
ARP, IPV4 = 0x0806, 0x0800
REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR = range(0x10, 0x1B)
DEST_QP = slice(47, 50)
MAD_AT = 14 + HEADERS
MAD_HEAD = 24
TCP, UDP = 0x106, 0x111
PORT, CLOSED = 7471, 7999
MARK = 0x6D61726B00000000
# Fields that each side chooses for itself.
OWN = re.compile(r'psn|guid|localcomm|localqpn|eecn|ackdelay|rej\.ari|\.mad$|mad\.data$|cm\.[a-z]+$')
# Where Linux is silent: IBA 12.6.7.2 has reason 6 for a message that names no connection, and 4 for one that is not
# answered (CM-11, CM-15). A LAP gets APR 2 (CM-32).
OURS_ALONE = {'a REP that nobody asked for': (REJ,), 'no RTU comes': (REJ,), 'a LAP': (APR,)}


@dataclass
class Request:
    """A REQ for port @port; the time-outs are the shortest, for those that are kept. Its ID and QPN are @base and more:
    a side that still knows those of the case before, whose DREQ nobody answered, answers a REQ with them by nothing."""
    number: int
    port: int = PORT
    qpn: int = 0
    cma_version: int = 0
    timeout: int = 20       # of our answers: 4 us * 2^20
    retries: int = 15
    tid: int = 0
    pkey: int = 0xFFFF
    mtu: int = 3
    transport: int = 0

    def mad(self, to, base, _rep=None):
        gids = b''.join(bytes(10) + b'\xff\xff' + socket.inet_aton(a) for a in (STRANGER, to))
        cma = struct.pack('!BBH', self.cma_version << 4, 4 << 4, 40000)
        cma += b''.join(bytes(12) + socket.inet_aton(a) for a in (STRANGER, to))
        data = struct.pack('!II', base + self.number, 0) + struct.pack('!Q', TCP << 16 | self.port)
        data += struct.pack('!QII', 0x0200000000000009, 0, 0)
        data += struct.pack('!III', base + (self.qpn or self.number) << 8 | 1, 1, self.timeout << 3 | self.transport << 1)
        data += struct.pack('!IHBB', 0x123456 << 8 | self.timeout << 3 | 7, self.pkey, self.mtu << 4 | 7, self.retries << 4)
        data += struct.pack('!HH', 0xFFFF, 0xFFFF) + gids + struct.pack('!IBBBB', 3, 0, 64, 1 << 3, 18 << 3)
        return cm_mad(REQ, self.tid or 0x77000000 + self.number, data.ljust(140, b'\0') + cma)


@dataclass
class Plain:
    """Any other message."""
    attribute: int
    data: bytes
    tid: int = 0x99

    def mad(self, _to, _base, _rep=None):
        return cm_mad(self.attribute, self.tid, self.data)


@dataclass
class Named:
    """A message of the connection that the last REP made; @data follows its two ids. the QPN of the REP goes to
    @qpn_at."""
    attribute: int
    data: bytes = b''
    qpn_at: int = -1
    tid: int = 0x98

    def mad(self, _to, base, rep):
        data = bytearray(ids(base + 1, struct.unpack_from('!I', rep, MAD_HEAD)[0]) + self.data)
        if self.qpn_at >= 0:
            data[self.qpn_at:self.qpn_at + 3] = rep[MAD_HEAD + 12:MAD_HEAD + 15]
        return cm_mad(self.attribute, self.tid, bytes(data))


@dataclass
class Lookup:
    """A SIDR_REQ for @port."""
    port: int
    number: int = 1
    cma_version: int = 0

    def mad(self, to, base, _rep=None):
        cma = struct.pack('!BBH', self.cma_version << 4, 4 << 4, 40000)
        cma += b''.join(bytes(12) + socket.inet_aton(a) for a in (STRANGER, to))
        head = ids(base + self.number, 0xFFFF0000) + struct.pack('!Q', UDP << 16 | self.port)
        return cm_mad(SIDR_REQ, 0x66, head + cma)


def ids(*words):
    return struct.pack(f'!{len(words)}I', *words)


SIDR = ids(0x5555, 0xFFFF0000) + struct.pack('!Q', UDP << 16 | CLOSED)

# A name, the message, and the attributes of the answers that are waited for; others may not come.
FITS_NOTHING = (
    ('nobody listens', Request(1, port=CLOSED), (REJ,)),
    ('the same again', Request(1, port=CLOSED), (REJ,)),
    ('a DREQ of no connection', Plain(DREQ, ids(0x111, 0x222, 0x33300)), (DREP,)),
    ('an RTU of no connection', Plain(RTU, ids(0x111, 0x222)), ()),
    ('an MRA of no connection', Plain(MRA, ids(0x111, 0x222)), ()),
    ('a REJ of no connection', Plain(REJ, ids(0x111, 0x222, 0x00000008)), ()),
    ('a DREP of no connection', Plain(DREP, ids(0x111, 0x222)), ()),
    ('a LAP of no connection', Plain(LAP, ids(0x111, 0x222)), ()),
    ('a REP that nobody asked for', Plain(REP, ids(0x111, 0x222)), ()),
    ('no such datagram service', Plain(SIDR_REQ, SIDR), (SIDR_REP,)),
)
# `ucmatose -c 1` accepts one connection, rejects another, and ends with that.
WITH_A_PROGRAM = (
    ('accepted', Request(1), (REP,)),
    ('its REQ again', Request(1), (REP,)),
    ('another version of the IP header', Request(2, cma_version=1), (REJ,)),
    ('rejected by the program', Request(3), (REJ, REJ)),
)
CONNECTED = (
    ('accepted', Request(1), (REP,)),
    ('a new connection of a QP that is connected', Request(2, qpn=1), (REJ,)),
)
ESTABLISHED = (
    ('accepted', Request(1), (REP,)),
    ('an RTU', Named(RTU), ()),
    ('a new connection of a QP that is connected', Request(2, qpn=1), (REJ, DREQ)),
)
NO_RTU = (('no RTU comes', Request(1, timeout=14, retries=2), (REP, REP, REP)),)

# `cm_peer reject`: with as many bytes of private data as there may be.
REJECTED = (
    ('rejected', Request(1), (REJ,)),
    ('its REQ again', Request(1), (REJ,)),
    ('a REQ of the largest MTU', Request(4, mtu=5), (REJ,)),
    ('a REQ of another partition', Request(5, pkey=0x8123), (REJ,)),
    ('a REQ of UC', Request(6, transport=1), (REJ,)),
)
DATAGRAMS_REJECTED = (
    ('rejected', Lookup(PORT), (SIDR_REP,)),
    ('the same again', Lookup(PORT), (SIDR_REP,)),
    ('another version of the IP header', Lookup(PORT, 2, cma_version=1), (SIDR_REP,)),
    ('another service', Lookup(CLOSED, 3), (SIDR_REP,)),
)
DATAGRAMS = (
    ('accepted', Lookup(PORT), (SIDR_REP,)),
    ('the same again', Lookup(PORT), (SIDR_REP,)),
)
# `cm_peer accept`
CONNECTION = (
    ('accepted', Request(1), (REP,)),
    ('an RTU', Named(RTU), ()),
    ('an RTU again', Named(RTU), ()),
    ('its REQ again', Request(1), ()),
    ('an MRA for the REP', Named(MRA, bytes((1 << 6, 20 << 3))), ()),
    ('a DREQ for another QPN', Named(DREQ, ids(0xABCD00)), ()),
    ('a LAP', Named(LAP, bytes(4) + ids(0), 12), ()),
    ('a DREP', Named(DREP), ()),
    ('a DREQ', Named(DREQ, ids(0), 8), (DREP,)),
    ('a DREQ again', Named(DREQ, ids(0), 8), (DREP,)),
)


UCMATOSE = '-b {} -c 1'


@dataclass
class RefusalCase:
    name: str
    steps: tuple
    program: str = ''
    options: str = ''
    tries: int = 10
    often: bool = True


def refusal_cases():
    return [RefusalCase('cm-refused-fits-nothing', FITS_NOTHING),
            RefusalCase('cm-refused-by-a-program', WITH_A_PROGRAM, 'ucmatose', UCMATOSE),
            RefusalCase('cm-refused-qp-connected', CONNECTED, 'ucmatose', UCMATOSE),
            RefusalCase('cm-refused-qp-established', ESTABLISHED, 'ucmatose', UCMATOSE),
            RefusalCase('cm-refused-no-rtu', NO_RTU, 'ucmatose', UCMATOSE),
            RefusalCase('cm-refused-with-data', REJECTED, 'cm_peer', 'reject tcp {}'),
            RefusalCase('cm-refused-datagrams', DATAGRAMS_REJECTED, 'cm_peer', 'reject udp {}'),
            RefusalCase('cm-refused-in-a-connection', CONNECTION, 'cm_peer', 'accept tcp {}'),
            RefusalCase('cm-accepted-datagrams', DATAGRAMS, 'cm_peer', 'accept udp {}')]


class Stranger:
    """A host on the bridge without a kernel: it has one address, which it answers for."""

    def __init__(self, pcap):
        self.path = pcap

    def __enter__(self):
        sh('ip', 'link', 'add', 'name', DEV, 'address', MAC.hex(':'), 'type', 'veth', 'peer', 'name', PORT_OF_BRIDGE)
        sh('ip', 'link', 'set', PORT_OF_BRIDGE, 'master', BRIDGE, 'up')
        sh('ip', 'link', 'set', DEV, 'arp', 'off', 'up')
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((DEV, 0))
        self.socket.settimeout(0.2)
        self.pcap = open(self.path, 'wb')
        self.pcap.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        self.marks = 0
        return self

    def __exit__(self, *_):
        self.pcap.close()
        self.socket.close()
        sh('ip', 'link', 'del', DEV)

    def frame(self):
        """The next that is for us, or None after a while."""
        try:
            frame = self.socket.recv(1 << 16)
        except TimeoutError:
            return None
        kind = struct.unpack_from('!H', frame, 12)[0]
        if kind == ARP and frame[38:42] == socket.inet_aton(STRANGER) and frame[20:22] == b'\0\1':
            answer = frame[14:20] + b'\0\2' + MAC + frame[38:42] + frame[22:32]
            self.socket.send(frame[6:12] + MAC + struct.pack('!H', ARP) + answer)
        return frame if frame[:6] == MAC else None

    def mac_of(self, address):
        ask = struct.pack('!HHBBH', 1, IPV4, 6, 4, 1) + MAC + socket.inet_aton(STRANGER) + bytes(6)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            self.socket.send(b'\xff' * 6 + MAC + struct.pack('!H', ARP) + ask + socket.inet_aton(address))
            frame = self.frame()
            if frame and frame[12:14] == b'\x08\x06' and frame[28:32] == socket.inet_aton(address):
                return frame[6:12]
        raise Disturbed(f'{address} does not answer for itself')

    def mad(self, address):
        """The next frame with a MAD from @address, or None after a while. What queue pairs of an earlier case still send
        is none: a MAD is to QP1."""
        frame = self.frame()
        if frame and len(frame) >= MAD_AT + MAD_LEN and frame[26:30] == socket.inet_aton(address) and \
                frame[23] == socket.IPPROTO_UDP and frame[36:38] == struct.pack('!H', ROCE_PORT) and \
                frame[DEST_QP] == b'\0\0\1':
            return frame
        return None

    def exchange(self, address, mac, mad, wanted, base):
        """Frames of the answers: those that are wanted, and what else comes before the answer to a message that is
        answered always. Not what a side sends again for a minute after an earlier case, whose ids were others."""
        def send(what):
            self.socket.send(mac + MAC + struct.pack('!H', IPV4) + packet(STRANGER, address, what))

        heard, left, mark = [], list(wanted), None
        send(mad)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if not left and mark is None:
                self.marks += 1
                mark = MARK + self.marks
                send(cm_mad(DREQ, mark, ids(0x777, 0x888, 0)))
            frame = self.mad(address)
            if not frame:
                continue
            tid, attribute = struct.unpack_from('!QH', frame, MAD_AT + 8)
            if tid == mark:
                return heard
            if attribute in (REP, DREQ) and struct.unpack_from('!I', frame, MAD_AT + MAD_HEAD + 4)[0] & ~15 != base:
                continue
            heard.append(frame)
            if left and left[0] == attribute:
                left.pop(0)
        raise Disturbed(f'of {wanted} came {[f[MAD_AT + 17] for f in heard]}')

    def keep(self, frames):
        for frame in frames:
            self.pcap.write(struct.pack('<IIII', 0, 0, len(frame), len(frame)) + frame)


def decoded(pcap):
    """A dictionary of fields for each MAD, without those that a side chooses."""
    r = subprocess.run(['tshark', '-r', pcap, '-T', 'pdml'], capture_output=True, text=True, check=True)
    mads = []
    for one in xml.etree.ElementTree.fromstring(r.stdout).iter('packet'):
        fields = {f.get('name'): f.get('show') for f in one.iter('field')
                  if (f.get('name') or '').startswith(('infiniband.mad', 'infiniband.cm')) and not OWN.search(f.get('name').lower())}
        if 'Malformed' in xml.etree.ElementTree.tostring(one, 'unicode'):
            raise Trouble(f'tshark finds a malformed MAD in {pcap}')
        if int(fields['infiniband.mad.attributeid'], 0) == DREQ:    # an exchange that the side begins
            del fields['infiniband.mad.transactionid']
        mads.append(fields)
    return mads


def answers(case, side, path, base, more):
    """{step: fields of each answer} of one side, which sends @more, too."""
    address, counts, rep = side.addresses[0], [], b''
    with Stranger(path) as stranger:
        mac = stranger.mac_of(address)
        program = None
        if case.program:
            program = side.start(case.program, case.options.format(address).split(), f'{path}.log', PATIENCE_S)
            side.wait_cm_listening(program)
        try:
            for what, message, wanted in case.steps:
                frames = stranger.exchange(address, mac, message.mad(address, base, rep),
                                           wanted + more.get(what, ()), base)
                rep = next((f[MAD_AT:] for f in frames if f[MAD_AT + 17] == REP), rep)
                stranger.keep(frames)
                counts.append(len(frames))
        finally:
            if program:
                side.end(program)
    mads = decoded(path)
    return {what: [mads.pop(0) for _ in range(n)] for (what, *_), n in zip(case.steps, counts)}


def run_refusal_case(case, ours, peer, args):
    """@return a function that compares, and returns a summary line."""
    base = random.randrange(0x1000, 0x800000, 16)
    a, b = (answers(case, side, args.inside / f'{case.name}.{side.name}.pcap', base, more)
            for side, more in ((ours, OURS_ALONE), (peer, {})))

    def verdict():
        for what in a:
            if len(a[what]) != len(b[what]) + len(OURS_ALONE.get(what, ())):
                raise Trouble(f'{what}: we answer {len(a[what])} messages, Linux {len(b[what])}:\n{a[what]}\n{b[what]}')
            compare(what, a[what], b[what])
        return f'{sum(map(len, a.values()))} answers as those of Linux'
    return verdict


def compare(what, ours, theirs):
    for x, y in zip(ours, theirs):
        other = {k: (x.get(k), y.get(k)) for k in {*x, *y} if x.get(k) != y.get(k)}
        if other:
            raise Trouble(f'{what}: we answer, and Linux: {other}')
