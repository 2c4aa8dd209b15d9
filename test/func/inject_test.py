#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""inject_test.py ROCID ROCICTL STEPS: rocictl inject and roci_inject() between two rocid that are linked by
memif: what each fault does to known traffic, counted at both ends."""
import os
import subprocess
import sys
import tempfile
import time
from rocid import PATIENCE_S, check, eal_args, start, wait_active, wait_until
from steps import Steps, frames

IP = {'a': '192.0.2.1', 'b': '192.0.2.2'}
MAC = {'a': '02:00:00:00:00:01', 'b': '02:00:00:00:00:02'}
TIMEOUT = 20    # 4.3 s: what nobody injects does not happen,
TIMEOUT_S = 4   # at least
TRIES = 3       # unless one of the daemons is paused for so long: then again

# The fault, at which end; the traffic of a, in packets of 1024 bytes; what moves at a, and at b; the least time.
# hits=1 unless said, and nothing else of LOOKED_AT may move.
ROWS = (
    ('a', 'drop nth=2', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 1}, 0),
    ('a', 'drop last', 'write 3000',
     {'local_ack_timeout_err': 1, 'retransmits': 3}, {'duplicate_request': 2}, TIMEOUT_S),
    ('b', 'drop rx write middle', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 1, 'injected': 1}, 0),
    ('b', 'drop ack', 'write 3000',
     {'local_ack_timeout_err': 1, 'retransmits': 3}, {'duplicate_request': 3}, TIMEOUT_S),
    ('b', 'drop read_response nth=2', 'read 3000',
     {'implied_nak_seq_err': 1, 'retransmits': 1, 'read_resp_unexpected': None}, {'duplicate_request': 1}, 0),
    ('a', 'duplicate nth=2', 'write 3000', {}, {'duplicate_request': 1}, 0),
    ('b', 'duplicate rx first', 'write 3000', {}, {'duplicate_request': 1}, 0),
    ('a', 'delay last time=50ms', 'write 3000', {}, {}, 0.05),
    ('b', 'delay rx last time=50ms', 'write 3000', {}, {}, 0.05),
    ('b', 'delay ack time=50ms', 'write 3000', {}, {}, 0.05),
    ('a', 'reorder', 'write 3000',
     {'packet_seq_err': None, 'retransmits': None},
     {'out_of_sequence': None, 'psn_ahead': None, 'duplicate_request': None}, 0),
    ('a', 'reorder last time=50ms', 'write 3000', {}, {}, 0.05),
    ('b', 'reorder rx first', 'write 3000',
     {'packet_seq_err': None, 'retransmits': None},
     {'out_of_sequence': None, 'psn_ahead': None, 'duplicate_request': None}, 0),
    ('b', 'rnr timer=22 count=3', 'send 100',
     {'rnr_nak_recv': 3, 'rnr_nak_retry_err': 3, 'retransmits': 3}, {'rnr_nak_sent': 3}, 0.06),
    ('b', 'rnr read', 'read 100',
     {'rnr_nak_recv': 1, 'rnr_nak_retry_err': 1, 'retransmits': 1}, {'rnr_nak_sent': 1}, 0),
    ('a', 'icrc nth=2', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 1, 'icrc': 1}, 0),
    ('a', 'icrc rx ack mask=0xffffffff', 'write 3000',
     {'local_ack_timeout_err': 1, 'retransmits': 3, 'icrc': 1}, {'duplicate_request': 3}, TIMEOUT_S),
    ('a', 'corrupt at=payload+1023 mask=0x80', 'write 3000', {}, {}, 0),
    ('a', 'corrupt at=7 mask=1 nth=2', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 1, 'qpn_unknown': 1}, 0),
    ('a', 'ecn to=ce count=3', 'write 3000', {}, {}, 0),
    ('b', 'syndrome ack to=psn_sequence', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 1}, {'duplicate_request': 1}, 0),
    ('b', 'msn ack add=-1', 'write 3000', {}, {}, 0),
    ('a', 'psn add=100 nth=2', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 2, 'psn_ahead': 1}, 0),
    ('a', 'pkey to=0x1234 nth=2', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 1, 'pkey': 1}, 0),
    ('a', 'qpn to=0x77 nth=2', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 1, 'qpn_unknown': 1}, 0),
    ('a', 'opcode to=0x81 nth=2', 'write 3000',
     {'packet_seq_err': 1, 'retransmits': 2}, {'out_of_sequence': 1, 'cnp_ignored': None, 'header_short': None,
                                               'pad': None}, 0),
    ('a', 'drop every=5 count=3 probability=1 seed=9', 'write 9000',
     {'packet_seq_err': None, 'local_ack_timeout_err': None, 'retransmits': None},
     {'out_of_sequence': None, 'psn_ahead': None, 'duplicate_request': None}, 0),
)
LOOKED_AT = ('retransmits', 'out_of_sequence', 'duplicate_request', 'packet_seq_err', 'implied_nak_seq_err',
             'out_of_buffer', 'rnr_nak_sent', 'rnr_nak_recv', 'rnr_nak_retry_err', 'local_ack_timeout_err')
HITS = {'rnr timer=22 count=3': 3, 'ecn to=ce count=3': 3, 'drop every=5 count=3 probability=1 seed=9': 3}


def start_two(rocid, folder, args=(), ip=None):
    ip = ip or IP
    daemons = []
    for me, peer, role in (('a', 'b', 'server'), ('b', 'a', 'client')):
        link = ['--vdev', f'net_memif0,role={role},id=0,socket={folder}/link,socket-abstract=no,bsize=4608,mac={MAC[me]}']
        daemons.append(start(rocid, folder, eal=eal_args(128) + link, name=me, args=[
            '--mtu', '0,4300', '--gid', f'0,{ip[me]}', '--neigh', f'0,{ip[peer]},{MAC[peer]}', *args]))
    wait_active(daemons)
    return daemons


def counts(daemon):
    """Counters of the transport, and drops by reason."""
    found = {d['reason']: d['packets'] for d in daemon.ask('show drops')['drops']}
    found.update((k, v) for k, v in daemon.ask('show counters')['counters'].items()
                 if k in LOOKED_AT + ('injected_faults',))
    return found


def differences(before, after):
    return {k: after[k] - before.get(k, 0) for k in after if after[k] != before.get(k, 0)}


def compare(end, found, expected):
    """What is not as it should be."""
    wrong = ''
    for name in set(found) | set(expected):
        wanted = expected.get(name, 0)
        if wanted is not None and found.get(name, 0) != wanted:
            wrong += f' {name} of {end} is {found.get(name, 0)}, not {wanted};'
    return wrong


def settle(daemons, s):
    """Until nothing late comes any more."""
    def unmoved():
        before = [counts(d) for d in daemons]
        s.do('write', 1, 0)
        time.sleep(0.2)
        return before == [counts(d) for d in daemons]
    wait_until(unmoved, 'packets come for ever')


def again(what, daemons, s, attempt):
    """attempt() says what was wrong, and is wrong each time if it is not the machine's fault."""
    for _ in range(TRIES):
        wrong = attempt()
        if not wrong:
            return
        print(f'{what}:{wrong}')
        settle(daemons, s)
    check(False, f'{what}:{wrong}')


def inject_row(daemons, s, row):
    a, b = daemons
    end, fault, traffic, at_a, at_b, least = row
    daemon, qpn = (a, s.a) if end == 'a' else (b, s.b)
    before = counts(a), counts(b)
    armed = daemon.ask(f'inject qp {qpn} {fault}')
    check('faults' in armed and armed['faults'][-1]['armed'], f'{fault}: {armed}')
    began = time.monotonic()
    what, length = traffic.split()
    s.do(what, 1, int(length))
    if not least:   # late packets may follow the completion
        s.do('write', 1, 0)
    check(time.monotonic() - began >= least, f'{fault} took no time')
    hits = HITS.get(fault, 1)
    expected = ({'injected_faults': hits, **at_a}, at_b) if end == 'a' else \
        (at_a, {'injected_faults': hits, **at_b})
    after = counts(a), counts(b)
    wrong = ''.join(compare('ab'[i], differences(before[i], after[i]), expected[i]) for i in range(2))
    shown = daemon.ask('show faults')['faults'][-1]
    check(shown['qpn'] == qpn and shown['hits'] == hits and not shown['missed'] and
          shown['fault'].split()[0] == fault.split()[0], f'{fault}: {shown}')
    check('done' in daemon.ask(f'inject clear qp {qpn}'), f'{fault} stays')
    check(not daemon.ask('show faults')['faults'], f'{fault} is left')
    return wrong


def test_each(daemons, s):
    for row in ROWS:
        again(row, daemons, s, lambda row=row: inject_row(daemons, s, row))


def test_probability(daemons, s):
    """The same seed and the same packets: the same faults."""
    def attempt():
        hits = []
        for _ in range(2):
            daemons[0].ask(f'inject qp {s.a} ecn to=ce count=all probability=0.5 seed=11')
            s.do('write', 1, 60000)
            shown = daemons[0].ask(f'show faults')['faults'][0]
            hits.append((shown['matched'], shown['hits']))
            daemons[0].ask(f'inject clear qp {s.a}')
        return '' if hits[0] == hits[1] and 10 < hits[0][1] < 50 else f' {hits}'
    again('probability', daemons, s, attempt)


def test_words(rocictl, daemons, s):
    a = daemons[0]
    for words, sentence in (
            (f'inject qp {s.a} spoil', 'is not one of: drop, duplicate'),
            (f'inject qp {s.a} drop upwards', 'drop does not accept "upwards"'),
            (f'inject qp {s.a} drop time=5ms', 'drop does not accept "time="'),
            (f'inject qp {s.a} delay', 'delay needs time=TIME'),
            (f'inject qp {s.a} delay time=11s', 'needs 1ns to 10s'),
            (f'inject qp {s.a} delay time=5', 'needs 1ns to 10s'),
            (f'inject qp {s.a} rnr tx', 'rnr needs rx'),
            (f'inject qp {s.a} qpn rx to=5', 'qpn needs tx'),
            (f'inject qp {s.a} syndrome', 'syndrome needs to=VALUE'),
            (f'inject qp {s.a} syndrome to=256', 'is out of range: use 0 to 0xff'),
            (f'inject qp {s.a} psn to=0x1000000', 'is out of range: use 0 to 0xffffff'),
            (f'inject qp {s.a} drop psn=5-', 'a PSN, or a range'),
            (f'inject qp {s.a} drop nth=0', 'from 1'),
            (f'inject qp {s.a} drop probability=1.5', 'above 0, at most 1'),
            (f'inject qp {s.a} reorder packets=128', '1 to 127'),
            (f'inject qp {s.a} corrupt mask=0x100', 'the mask must be'),
            (f'inject qp {s.b} drop', 'does not exist'),
            (f'inject clear qp {s.a}', 'has no such fault'),
            (f'inject clear qp {s.a} fault 0', 'count from 1')):
        said = a.ask(words).get('error', '')
        check(sentence in said, f'{words}: {said}')
    for i in range(17):
        said = a.ask(f'inject qp {s.a} drop nth={1000 + i}')
    check('16 faults of QP' in said.get('error', ''), f'17 faults: {said}')
    ids = [f['id'] for f in a.ask(f'show qp {s.a}')['faults']]
    check(len(ids) == 16 and ids == sorted(ids), f'{ids}')
    check('done' in a.ask(f'inject clear qp {s.a} fault {ids[3]}'), 'clear one')
    check([f['id'] for f in a.ask('show faults')['faults']] == ids[:3] + ids[4:], 'show faults')
    for column, values in ('qpn', [str(s.a)] * 15), ('id', [str(i) for i in ids[:3] + ids[4:]]):
        offers = a.ask(f'complete show faults {column} ')['completions']
        check([o['word'] for o in offers] == values, f'{offers}')
    check('done' in a.ask('inject clear') and not a.ask('show faults')['faults'], 'clear all')
    offers = [o['word'] for o in a.ask(f'complete inject qp {s.a} delay rx ti')['completions']]
    check(offers == ['time='], f'{offers}')
    offers = [o['word'] for o in a.ask(f'complete inject qp {s.a} drop ')['completions']]
    check('rx' in offers and 'psn=' in offers and 'time=' not in offers, f'{offers}')
    told = subprocess.run([rocictl, '--socket', a.socket, 'inject', 'qp', str(s.a), 'psn', 'add=-1', 'send',
                           'psn=5-7', 'count=all'], capture_output=True, text=True, timeout=PATIENCE_S)
    check('psn add=-1' in told.stdout and 'tx send psn=5-7 count=all' in told.stdout, told.stdout + told.stderr)
    a.ask('inject clear')


def capture_spoilt(rocictl, b, s, folder):
    path = os.path.join(folder, 'spoilt.pcapng')
    c = subprocess.Popen([rocictl, '--socket', b.socket, 'capture', path], stderr=subprocess.PIPE)
    c.stderr.readline()
    for fault in ('drop rx first', 'icrc rx first nth=2', 'drop ack', 'duplicate ack nth=2'):
        check('faults' in b.ask(f'inject qp {s.b} {fault}'), fault)
    s.do('write', 2, 2000)
    c.send_signal(2)
    c.communicate(timeout=PATIENCE_S)
    comments = [f['comment'] for f in frames(path) if f['comment']]
    b.ask('inject clear')
    wanted = {'dropped: injected', 'dropped: icrc (CA17-24), injected: icrc', 'injected: duplicate'}
    return '' if wanted <= set(comments) and comments.count('dropped: injected') == 2 else f' {comments}'


def test_capture(rocictl, daemons, s, folder):
    """Nobody takes a spoilt frame for a real one."""
    again('capture', daemons, s, lambda: capture_spoilt(rocictl, daemons[1], s, folder))


def test_failure(daemons, steps):
    """Who asks why a QP failed is told."""
    a, b = daemons
    s = Steps(steps, a, port_b=1, timeout=TIMEOUT, other=[b])
    a.ask(f'inject qp {s.a} syndrome rx ack to=remote_access')
    check(s.ask('write', 1, 100) == '', 'a forged NAK fails nothing')
    s.process.wait(PATIENCE_S)
    errors = [e['why'] for e in a.ask('show errors')['errors'] if e['qpn'] == s.a]
    check(errors and 'faults were injected into this QP on this side, 1 times' in errors[0], f'{errors}')
    wait_until(lambda: not a.ask('show faults')['faults'], 'faults outlive their QP')


def test_deaths(daemons, steps):
    """Faults, and what they hold back, end with the program."""
    a, b = daemons
    for sig in (9, 15):
        s = Steps(steps, a, port_b=1, timeout=TIMEOUT, other=[b])
        a.ask(f'inject qp {s.a} delay time=10s count=all')
        b.ask(f'inject qp {s.b} delay rx time=10s count=all')
        s.process.stdin.write('write 1 3000\n')
        s.process.stdin.flush()
        wait_until(lambda: a.ask('show faults')['faults'][0]['hits'] >= 3, 'nothing is held back')
        s.process.send_signal(sig)
        s.process.wait(PATIENCE_S)
        for d in daemons:
            wait_until(lambda d=d: not d.ask('show faults')['faults'] and not any(d.totals().values()),
                       'something is left')


def test_programs(rocid, steps, folder, refused):
    """Programs may do it only where they are let."""
    check('rocid does not let programs inject faults' in refused.ask('lose', 2), 'not refused')
    check('rocid does not let programs inject faults' in refused.ask('keep', 0), 'not refused')
    daemon = start(rocid, folder, name='lab', args=[
        '--ring-pair', '--gid', '0,192.0.2.1', '--gid', '1,192.0.2.2', '--application-faults'])
    s = Steps(steps, daemon, timeout=TIMEOUT)
    s.do('lose', 2)
    s.do('write', 1, 3000)
    shown = daemon.ask('show faults')['faults']
    check(len(shown) == 1 and shown[0]['qpn'] == s.a and shown[0]['hits'] == 1 and
          shown[0]['packets'] == 'tx nth=2 count=1', f'{shown}')
    s.do('keep', 0)
    check('has no such fault' in s.ask('keep', 0), 'clear nothing')
    many = [Steps(steps, daemon, timeout=TIMEOUT) for _ in range(3)]
    for one in many:
        one.do('lose', 2)
        one.end()
    s.end()
    check(not daemon.ask('show faults')['faults'], 'faults are left')
    daemon.check_ends()


def main():
    rocid, rocictl, steps = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemons = start_two(rocid, folder)
        s = Steps(steps, daemons[0], port_b=1, timeout=TIMEOUT, other=daemons[1:])
        test_each(daemons, s)
        test_probability(daemons, s)
        test_words(rocictl, daemons, s)
        test_capture(rocictl, daemons, s, folder)
        test_failure(daemons, steps)
        test_programs(rocid, steps, folder, s)
        s.end()
        test_deaths(daemons, steps)
        for d in daemons:
            d.check_ends()


if __name__ == '__main__':
    main()
