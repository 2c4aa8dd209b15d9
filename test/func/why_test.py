#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""why_test.py ROCID ROCICTL WHY pair|wire [MISTAKE...]: mistakes that people make, each really made with
real daemons, and what is said about them: to the program of either end (roci_qp_error), by `rocictl show
errors` and `show qp`. pair: both ends in one daemon. wire: two daemons in two namespaces, as root.

A row names words and the rule's id that must be in the sentence; and a run in which all is well, but
packets are lost, says nothing."""
import json
import re
import subprocess
import sys
import tempfile

import rocid
from netlab import Lab, Lines, ping, settle, veth, wait_for
from rocid import RING_PAIR, check

# mistake: requester's words, responder's (None: it does not fail), what else stands in `show errors`
PAIR = {
    'rkey_unknown': ('remote access error; refused the RDMA WRITE; rocictl show errors; [REQ-33]',
                     'no region of rkey 0xfffe00; [RSP-13]'),
    'rkey_swapped': ('remote access error; [REQ-33]', 'bytes were swapped; [RSP-13]'),
    'rkey_other_pd': ('another protection domain; [REQ-33]',
                      'belongs to another protection domain than the QP; [RSP-13]'),
    'rkey_other_program': ('remote access error; [REQ-33]',
                           'this program has no region of rkey; not the peer\'s own key; [RSP-13]'),
    'rkey_no_write': ('remote access error; the right to write; [REQ-33]',
                      'without ROCI_ACCESS_REMOTE_WRITE; add it; [RSP-13]'),
    'rkey_gone': ('that was deregistered; [REQ-33]', 'was deregistered at; keep it; [RSP-14]'),
    'rkey_range': ('address range is not all in it; [REQ-33]',
                   'are not all in the region of rkey; 65536 bytes; 50 bytes are past its end; [RSP-13]'),
    'rkey_range_gone': ('remote access error; [REQ-33]', '50 bytes are past its end; [RSP-13]'),
    'rkey_other_pd_gone': ('remote access error; [REQ-33]',
                           'belongs to another protection domain than the QP; [RSP-13]'),
    'rkey_offset': ('100 bytes to 0x80 with rkey; [REQ-33]', 'looks like an offset; [RSP-13]'),
    'read_range': ('RDMA READ; right to read; [REQ-33]', 'are past its end; [RSP-13]'),
    'lkey_unknown': ('local protection error; SGE 0 of the RDMA WRITE (wr_id 7); no region of lkey '
                     '0xfffe00; [REQ-18]', None),
    'lkey_range': ('65537 bytes are more than its length; [REQ-18]', None),
    'recv_short': ('remote invalid request; receive is smaller than the message; [REQ-33]',
                   'a message of 100 bytes or more arrived; (wr_id 9) has room for 50; [RSP-20]'),
    'recv_lkey': ('remote operation error; its own receive buffer; [REQ-33]',
                  'no region of lkey 0xfffe00; [RSP-21]'),
    'no_remote_write': ('access flags lack REMOTE_WRITE; [REQ-33]',
                        'ROCI_ACCESS_REMOTE_WRITE to its qp_access_flags; [RSP-08]'),
    'no_remote_read': ('access flags lack REMOTE_READ; [REQ-33]',
                       'ROCI_ACCESS_REMOTE_READ to its qp_access_flags; [RSP-08]'),
    'too_many_reads': ('max_rd_atomic here (16) is above; [REQ-33]',
                       'max_dest_rd_atomic is 1; set the peer\'s max_rd_atomic to at most that; [RSP-30]'),
    'no_reads': ('local QP operation error; max_rd_atomic is 0; [REQ-09]', None),
    'path_mtu_differs': ('path_mtu differs from 1024; [REQ-33]',
                         'has a payload of 1000 bytes; path_mtu of 256; Set the same at both ends|set the same '
                         'path_mtu at both ends; [RSP-09]'),
    'no_receive': ('no receive posted; rnr_retry (1) is used up; [REQ-30]', None,
                   'RC_SEND_ONLY; received 2 RNR NAKs and has not retried; RSP-16'),
    'psn_ahead': ('sq_psn here and the peer\'s rq_psn must be the same; [REQ-36]', None,
                  'rq_psn here and the peer\'s sq_psn must be the same; RSP-03'),
    'psn_ahead_a_little': ('sq_psn here and the peer\'s rq_psn must be the same; [REQ-36]', None,
                           'rq_psn here and the peer\'s sq_psn must be the same; RSP-03'),
    'one_peer_for_two': ('of this rocid has the same dest_qp_num; Give each QP its own peer; [BTH-12]',
                         None),
    'psn_behind': ('sq_psn here and the peer\'s rq_psn must be the same; [REQ-36]', None,
                   'rq_psn here and the peer\'s sq_psn must be the same; none of them was executed; RSP-01'),
    'no_such_qpn': ('no such QP: dest_qp_num is wrong; [VAL-03]', None,
                    'which does not exist; dest_qp_num is wrong; VAL-03'),
    'not_rtr': ('is in INIT: modify it to RTR; [VAL-06]', None,
                'was in INIT when RC_WRITE_ONLY arrived; VAL-06'),
    'other_gid': ('no response', None, 'but the packets come from; VAL-12'),
    'peer_closed': ('was removed at; its program destroyed it; [VAL-03]', None,
                    'which no longer exists: its program (why) destroyed it at; VAL-03'),
    'cq_overflow': ('its CQ overflowed; room for 16 completions; roci_resize_cq; [CQ-01]', None),
    'command': ('moved it to ERR; [QPS-01]', None),
}


class Why(Lines):
    """The program that makes the mistake."""

    def __init__(self, why, a, port_a, gid_a, b, port_b, gid_b, mistake):
        super().__init__(subprocess.Popen(
            [why, a, str(port_a), str(gid_a), b, str(port_b), str(gid_b), mistake],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(rocid.PATIENCE_S) == 0, 'why fails')


def told(line):
    """QPN and sentence of a line."""
    head, _, text = line.partition(': ')
    return int(head.split()[1]), text


def expect(words, text, where):
    for word in words.split('; '):
        check(any(w in text for w in word.split('|')), f'{where}: "{word}" is not in "{text}"')


def rows(errors):
    return '\n'.join(f'{e["what"]} QP {e["qpn"]} {e["rule"]}: {e["why"]}' for e in errors)


def expect_row(rocictl, socket, words, where):
    """One row of `show errors` has all the words; it may come later than the other end's failure."""
    def there():
        errors = ask(rocictl, socket, 'show', 'errors')['errors']
        print(f'{where}: show errors there:', rows(errors[:3]), sep='\n')
        return any(all(w in f'{e["rule"]} {e["why"]}' for w in words.split('; ')) for e in errors)
    wait_for(f'{where}: a row of `show errors` with "{words}"', there)


def ask(rocictl, socket, *words):
    return json.loads(subprocess.run([rocictl, '--socket', socket, '--json', *words], check=True,
                                     capture_output=True, text=True).stdout)


def judge(rocictl, program, sockets, mistake, row):
    """`sockets`: of requester and responder."""
    for i, who in enumerate(('requester', 'responder')):
        if row[i] is None:
            continue
        qpn, text = told(program.wait(who))
        print(f'{mistake}: {who}: {text}')
        expect(row[i], text, f'{mistake}, {who}')
        shown = ask(rocictl, sockets[i], 'show', 'qp', str(qpn))
        sentence, _, rule = text.rpartition(' [')
        state, shown = shown['qp']['state'], shown['why']
        check(state == 'ERR' and sentence.endswith(shown['why']) and
              rule == shown['rule'] + ']', f'{mistake}: show qp {qpn}: {shown}')
        if mistake != 'command':
            errors = ask(rocictl, sockets[i], 'show', 'errors')['errors']
            check(any(e['qpn'] == qpn and e['why'] == shown['why'] and e['what'] == 'failed'
                      for e in errors), f'{mistake}: {who} not in show errors:\n{rows(errors)}')
    program.wait('done')
    if len(row) > 2:
        expect_row(rocictl, sockets[1], row[2], mistake)
    program.end()


def test_pair(binary, rocictl, why, names):
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = rocid.start(binary, folder, args=[*RING_PAIR, '--gid', '0,192.0.2.65'])
        at = daemon.socket
        check(ask(rocictl, at, 'show', 'errors') == {'errors': []}, 'errors at first')
        for mistake, row in PAIR.items():
            if not names or mistake in names:
                judge(rocictl, Why(why, at, 1, '-', at, 2, '-', mistake), (at, at), mistake, row)
        text = subprocess.run([rocictl, '--socket', at, 'show', 'errors'], check=True,
                              capture_output=True, text=True).stdout
        check('this program has no region' in text or names, 'rocictl show errors: no sentences')
        drops = ask(rocictl, at, 'show', 'drops')['drops']
        check(all(d['packets'] and d['means'] and d['rule'] for d in drops), f'show drops: {drops}')
        daemon.check_ends()


def test_lossy(binary, rocictl, why):
    """Loss, and nothing else: that is no error, at no time."""
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = rocid.start(binary, folder, args=['--ring-pair=loss=0.02,dup=0.02,seed=5',
                                                   *RING_PAIR[1:]])
        at = daemon.socket
        program = Why(why, at, 1, '-', at, 2, '-', 'none_lossy')
        program.wait('done')
        errors = ask(rocictl, at, 'show', 'errors')['errors']
        check(not errors, f'all is well, but:\n{rows(errors)}')
        counters = ask(rocictl, at, 'show', 'counters')['counters']
        check(counters['retransmits'] > 10, 'nothing was lost')
        program.end()
        errors = ask(rocictl, at, 'show', 'errors')['errors']
        check(not errors, f'all was well, but:\n{rows(errors)}')
        daemon.check_ends()


class Wire:
    """a - bridge - b; the ends take 4300 bytes, the bridge's link to b 1500; its link to a takes them as well,
    except in other_end(): a veth whose own peer drops a frame tells the packet socket."""

    def __init__(self, lab, rocictl, why):
        self.rocictl, self.why = rocictl, why
        self.a, self.b, self.m = lab.namespace(), lab.namespace(), lab.namespace()
        veth(self.a, 'e0', self.m, 'p0')
        veth(self.b, 'e0', self.m, 'p1')
        self.m.run('ip link set p0 mtu 4300; ip link add br0 type bridge; ip link set br0 up;'
                   'ip link set p0 master br0; ip link set p1 master br0')
        self.a.run('ip link set e0 mtu 4300; ip addr add 10.9.0.1/24 dev e0')
        self.b.run('ip link set e0 mtu 4300; ip addr add 10.9.0.2/24 dev e0;'
                   'ip addr add 10.10.0.2/32 dev e0')
        self.a.run('ip route add 10.10.0.2/32 via 10.9.0.2 dev e0')
        self.a.run('ip addr add 2001:db8:1::1/64 dev e0;'
                   'ip route add 2001:db8:2::/64 via 2001:db8:1::2 dev e0')
        self.b.run('ip addr add 2001:db8:1::2/64 dev e0; ip addr add 2001:db8:2::2/128 dev e0')
        settle(self.a, 'e0')
        settle(self.b, 'e0')
        self.ra = lab.rocid(self.a, 'a', ['--share', 'e0', '--rocev1'])
        self.rb = lab.rocid(self.b, 'b', ['--share', 'e0'])

    def gid(self, of, text, kind='RoCEv2'):
        return next(g['index'] for g in ask(self.rocictl, of.socket, 'show', 'gids')['gids']
                    if g['gid'] == text and g['type'].startswith(kind))

    def start(self, mistake, gid_a=None, gid_b=None):
        return Why(self.why, self.ra.socket, 1, self.gid(self.ra, '10.9.0.1') if gid_a is None
                   else gid_a, self.rb.socket, 1, self.gid(self.rb, gid_b or '10.9.0.2'), mistake)

    def judge(self, program, mistake, *row):
        judge(self.rocictl, program, (self.ra.socket, self.rb.socket), mistake, row)

    def refused(self, mistake, gid_a, gid_b, words):
        """What is certain is refused at once."""
        r = subprocess.run([self.why, self.rb.socket, '1', str(self.gid(self.rb, gid_b)),
                            self.ra.socket, '1', str(gid_a), 'silent'],  # connects the second first
                           capture_output=True, text=True, timeout=rocid.PATIENCE_S)
        print(f'{mistake}:', r.stderr)
        check(r.returncode == 1, f'{mistake}: not refused')
        expect(words, r.stderr, mistake)

    def run(self):
        own = self.gid(self.ra, '10.9.0.1')
        local = next(g['index'] for g in ask(self.rocictl, self.ra.socket, 'show', 'gids')['gids']
                     if g['gid'].startswith('fe80'))
        self.refused('family', self.gid(self.ra, '2001:db8:1::1'), '10.9.0.2',
                     f"is IPv6; the peer's GID is IPv4: use GID {own}")
        self.refused('link-local and IPv4', local, '10.9.0.2',
                     f"GID {local} is link-local; the peer's GID is IPv4: use GID {own}")
        self.refused('link-local and routed', local, '2001:db8:2::2',
                     'is link-local, but the route to 2001:db8:2::2 is through router 2001:db8:1::2')
        self.judge(self.start('no_such_qpn'), 'no_such_qpn',
                   'Nothing was ever received; may have no QP; RoCEv2 over IPv4; UDP port 4791; [REQ-26]',
                   None, 'VAL-03; 10.9.0.1 sends RC_WRITE_ONLY; which does not exist')
        self.judge(self.start('not_rtr'), 'not_rtr', 'not have it in RTR; [REQ-26]', None,
                   'VAL-06; was in INIT')
        self.judge(self.start('silent', self.gid(self.ra, '10.9.0.1', 'RoCEv1')), 'gid type',
                   'another GID type (here RoCEv1); EtherType 0x8915; [REQ-26]', None,
                   'VAL-11; GID type mismatch: 10.9.0.1 sends RoCEv1; --rocev1')
        self.judge(self.start('large_mtu'), 'large_mtu',
                   'of up to 64 bytes arrived before, but none of 4096; path MTU; '
                   'ping -M do -s 4132 10.9.0.2; [GID-09]', None)
        self.judge(self.start('large_mtu_silent'), 'large_mtu_silent',
                   'Nothing was ever received; or the path MTU is too large; ping -M do; [REQ-26]', None)
        self.other_end()
        self.neighbour_heals()
        self.with_link('own link', 'is down: bring its link up; [GID-08]',
                       lambda: self.a.run('ip link set e0 down'),
                       lambda: self.a.run('ip link set e0 up;'
                                          'ip route replace 10.10.0.2/32 via 10.9.0.2 dev e0'), state='DOWN')
        self.with_link('set down', 'was set down by an administrator; rocictl set port 1 up; [GID-08]',
                       lambda: ask(self.rocictl, self.ra.socket, 'set', 'port', '1', 'down'),
                       lambda: ask(self.rocictl, self.ra.socket, 'set', 'port', '1', 'up'), state='DISABLED')
        self.with_link('neighbour', 'does not answer ARP; ip neigh show dev e0; [ETH-11]',
                       self.lose_neighbour, lambda: self.m.run('ip link set p1 up'))
        self.with_link('route', 'It is no longer reachable: no route to 10.10.0.2; [ETH-11]',
                       self.lose_route, lambda: self.m.run('ip link set p1 up'), '10.10.0.2')
        self.with_link('peer', 'It responded before, so the connection was set up correctly; [REQ-26]',
                       self.lose_peer, lambda: None)

    def neighbour_heals(self):
        """The kernel believes in a MAC that nobody has, as when a peer changed its own in silence: rocid has the
        neighbour probed when the first timer fires, and the QP goes on with the right one."""
        program = self.start('heals')
        program.wait('taken')
        mac = self.a.output('ip neigh show 10.9.0.2 dev e0').split('lladdr ')[1].split()[0]
        self.a.run('ip neigh replace 10.9.0.2 lladdr 02:00:00:00:77:77 dev e0 nud reachable')

        def written():
            program.say('')     # the first may come through before rocid hears of the MAC
            program.wait('taken')
            return mac in self.a.output('ip neigh show 10.9.0.2 dev e0')
        wait_for('the neighbour found again', written)
        program.end()

    def refused_frames(self):
        return ask(self.rocictl, self.ra.socket, 'show', 'port', '1')['device']['refused']

    def other_end(self):
        """A frame that the other end of the veth refuses: the kernel tries it again for ever, and nothing
        behind it would leave. QPs fail sooner than rocid finds out; the next are told why."""
        check(self.refused_frames() == 0, 'frames were refused before')
        self.m.run('ip link set p0 mtu 1500')
        self.judge(self.start('large_mtu'), 'refused at first', '[GID-09]', None)
        wait_for('a refused frame', lambda: self.refused_frames() > 0)
        others = self.start('none')
        self.judge(self.start_refused(), 'refused', 'Netdev e0 refuses frames of 4; although its MTU is 4300; '
                   'other end of this veth; `ip link set DEV mtu 41; [GID-09]', None)
        others.wait('done')
        others.end()
        self.m.run('ip link set p0 mtu 4300')

    def start_refused(self):
        """A QP that failed when rocid had found a refused frame: sooner or later one does not fail before that."""
        for _ in range(20):
            program = self.start('large_mtu')
            line = program.wait('requester')
            program.seen.append(line)
            if 'refuses frames' in line:
                break
            program.end()
        return program

    def lose_neighbour(self):
        self.m.run('ip link set p1 down')
        self.a.run('ip neigh flush dev e0')

    def lose_route(self):
        self.m.run('ip link set p1 down')
        self.a.run('ip route del 10.10.0.2/32')

    def lose_peer(self):
        self.rb.kill()
        self.rb.wait()

    def port_is(self, daemon, state):
        wait_for(f'a port that is {state}', lambda: ask(
            self.rocictl, daemon.socket, 'show', 'ports')['ports'][0]['state'] == state)

    def with_link(self, mistake, words, lose, mend, gid_b=None, state='ACTIVE'):
        """Something gets through, then the link is spoilt; rocid knows of it, and its own port is in `state`."""
        program = self.start('link', gid_b=gid_b)
        program.wait('ready')
        lose()
        self.port_is(self.ra, state)
        program.say('')
        self.judge(program, mistake, words, None)
        mend()
        for daemon in self.ra, self.rb:
            if daemon.poll() is None:
                self.port_is(daemon, 'ACTIVE')
        ping(self.a, '10.9.0.2')  # the bridge hears of its port a moment later


def test_wire(binary, rocictl, why, names):
    with Lab(binary, why) as lab:
        Wire(lab, rocictl, why).run()


def main():
    binary, rocictl, why, what, *names = sys.argv[1:]
    {'pair': test_pair, 'wire': test_wire}[what](binary, rocictl, why, names)
    if what == 'pair' and not names:
        test_lossy(binary, rocictl, why)


main()
