#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The golden runner on generated files, and on files that are wrong.

    selftest.py VECTORS [SEED]

1. What the rules say of generated frames and sequences holds, and each drop moves its counter.
2. Each wrong expectation is a failure with a line that names its item: a runner that passes
   everything proves nothing.
3. Without the skip list, what was skipped fails.
4. A malformed file gives a sentence and an exit status, never a crash."""
import copy
import json
import os
import re
import random
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from mutate import make            # noqa: E402

# A cross build runs its programs in an emulator.
vectors = [*shlex.split(os.environ.get('MESON_EXE_WRAPPER', '')), sys.argv[1]]
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
rng = random.Random(seed)
folder = tempfile.TemporaryDirectory(prefix='golden.')
bad = 0


def complain(text):
    global bad
    bad += 1
    print('seed %d: %s' % (seed, text))


def run(content, *args, **env):
    path = os.path.join(folder.name, 'x.json')
    with open(path, 'w') as f:
        f.write(content if isinstance(content, str) else json.dumps(content))
    r = subprocess.run([*vectors, *args, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       universal_newlines=True, errors='replace', timeout=300,
                       env={**os.environ, **env})
    if 'runtime error' in r.stderr or 'Sanitizer' in r.stderr:
        keep(content, r.stderr[-2000:])
    return r


def keep(content, why):
    path = os.path.join(tempfile.gettempdir(), 'golden-malformed.json')
    with open(path, 'w') as f:
        f.write(content if isinstance(content, str) else json.dumps(content))
    complain('%s is kept: %s' % (path, why))


def counts(r):
    words = r.stdout.splitlines()[-1].split() if r.stdout else []
    return tuple(int(words[i]) for i in (0, 2, 4)) if len(words) == 6 else None


# --- 1: generated files --------------------------------------------------------------------------

def generated():
    doc, want = make(seed, 400, 120)
    r = run(doc, '-v')
    for line in r.stdout.splitlines()[:-1]:
        if ': passed' not in line and ': skipped' not in line:
            complain(line)
    got = dict(line.split(': passed, counter ') for line in r.stdout.splitlines()
               if ': passed, counter ' in line)
    for name, counter in want.items():
        if got.get(name) != counter:
            complain('%s: counter %s moved, not %s' % (name, got.get(name), counter))
    c = counts(r)
    if r.returncode or not c or c[1]:
        complain('the generated file fails: %s, exit status %d' % (c, r.returncode))
    elif c[2] > c[0] / 4:
        complain('%d of a file are skipped' % c[2])
    r = run(doc, GOLDEN_SKIPS=os.devnull)
    if counts(r) != (c[0], c[2], 0):
        complain('without a skip list %s instead of %s' % (counts(r), (c[0], c[2], 0)))
    return doc


# --- 2: wrong expectations -------------------------------------------------------------------------

class Wrong:
    """items of which each has one thing wrong, so each must fail"""

    def __init__(self, doc):
        self.doc, self.out = doc, {k: [] for k in ('frames', 'sequences')}
        self.names = []

    def item(self, group, name, want, change):
        for it in self.doc[group]:
            if not want(it):
                continue
            it = copy.deepcopy(it)
            if change(it) is False:
                continue
            it['name'] = '%s wrong %s' % (group, name)
            self.names.append(it['name'])
            self.out[group].append(it)
            return
        complain('no %s to make wrong: %s' % (group, name))

    def frame(self, name, want, change):
        self.item('frames', name, want, change)

    def sequence(self, name, want, change):
        self.item('sequences', name, want, change)


def result(*names, op=None, has=None):
    """frames with one of these results"""
    def want(f):
        b = f['bth_fields']
        return f['expect']['result'] in names and (op is None or b['opcode'] in op) and \
            (has is None or has in b) and b['opcode'] not in (0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D)
    return want


RC = range(0x0D)
NOT_BUILT = (0x12, 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D)


def more(v):
    return '0x%x' % (int(v, 0) ^ 1) if isinstance(v, str) else v ^ 1


def setter(*path, value):
    def change(it):
        for k in path[:-1]:
            it = it[k]
        it[path[-1]] = value(it.get(path[-1])) if callable(value) else value
    return change


def remover(*path):
    def change(it):
        for k in path[:-1]:
            it = it[k]
        del it[path[-1]]
    return change


def wrong_frames(w):
    ok = result('accept')
    for k in ('opcode', 'se', 'm', 'pad', 'pkey', 'dest_qp', 'ackreq', 'psn', 'payload_len', 'tver'):
        w.frame('field ' + k, ok, setter('bth_fields', k, value=more))
        w.frame('no field ' + k, ok, remover('bth_fields', k))
    for h, keys in (('reth', ('va', 'rkey', 'dmalen')), ('aeth', ('syndrome', 'msn')),
                    ('deth', ('qkey', 'src_qp')), ('immdt', ('value',)), ('xrceth', ('srqn',)),
                    ('atomiceth', ('va', 'rkey', 'swap_add', 'cmp')), ('atomicacketh', ('orig',)),
                    ('ieth', ('rkey',)), ('feth', ('plt', 'sel'))):
        any_of = lambda f, h=h: f['expect']['result'] == 'accept' and h in f['bth_fields']
        for k in keys:
            w.frame('%s.%s' % (h, k), any_of, setter('bth_fields', h, k, value=more))
            w.frame('no %s.%s' % (h, k), any_of, remover('bth_fields', h, k))
        w.frame('no ' + h, any_of, remover('bth_fields', h))
        w.frame('strange member of ' + h, any_of, setter('bth_fields', h, 'x', value=0))
        w.frame('too much ' + h, lambda f, h=h: ok(f) and h not in f['bth_fields'],
                setter('bth_fields', h, value={k: 0 for k in keys}))
    w.frame('CNP', result('accept', op=[0x81]),
            setter('bth_fields', 'cnp_reserved', 'zero_bytes', value=7))
    w.frame('strange field', ok, setter('bth_fields', 'x', value=0))
    for k in ('icrc_offset', 'icrc_u32_le', 'len'):
        w.frame(k, ok, setter(k, value=more))
        w.frame('no ' + k, ok, remover(k))
    w.frame('icrc_wire', ok, setter('icrc_wire', value='00000000'))
    w.frame('icrc_valid', ok, setter('icrc_valid', value=False))
    w.frame('icrc_valid of a drop', lambda f: not f['icrc_valid'] and 'bit' not in f['name'],
            setter('icrc_valid', value=True))
    w.frame('kind', ok, setter('kind', value=lambda k: 'v6' if k == 'v4' else 'v4'))
    w.frame('payload', lambda f: ok(f) and f['payload'],
            setter('payload', value=lambda p: '%02x' % (int(p[:2], 16) ^ 1) + p[2:]))
    w.frame('payload length', lambda f: ok(f) and f['payload'],
            setter('payload', value=lambda p: p[2:]))
    w.frame('frame bit', lambda f: ok(f) and f['payload'], flip_payload)
    w.frame('frame hex', ok, setter('frame', value=lambda h: h[:-1] + 'x'))
    w.frame('strange member', ok, setter('x', value=1))
    w.frame('strange expectation', ok, setter('expect', 'x', value=1))
    for key, value in (('x', 1), ('QP_state', 'XX'), ('QP_gid_type', 'x'), ('recv_len', -1),
                       ('B_rc_access', 'REMOTE_X'), ('max_dest_rd_atomic', 1000),
                       ('B_expected_psn', 1 << 24)):
        w.frame('context ' + key, result('accept', op=RC), setter('expect', 'context',
                                                                  value={key: value}))


def flip_payload(f):
    at = f['icrc_offset'] * 2 - 1 - 2 * (-len(f['payload']) // 2 & 3)
    f['frame'] = f['frame'][:at] + '%x' % (int(f['frame'][at], 16) ^ 1) + f['frame'][at + 1:]


def wrong_results(w):
    fresh = lambda f: 'duplicate' not in f['name'] and 'context' not in f['expect']
    request = lambda f: result('accept', op=RC)(f) and fresh(f)
    # Of a wrong GID type or VLAN, or a duplicate, only the reason tells: without it the frame is a good one.
    drop = lambda f: result('drop_silent')(f) and f['bth_fields']['opcode'] in RC and \
        not re.search('gid_type|vlan|duplicate', f['expect']['reason'], re.I)
    nak = result('nak')
    for r, more_of in (('drop_silent', {}), ('nak', {'syndrome': 98}), ('rnr_nak', {'syndrome': 33}),
                       ('cqe_error', {'status': 'LOC_LEN_ERR'}), ('nonsense', {})):
        w.frame('accept for ' + r, request, setter('expect', value={'result': r, **more_of}))
        if r != 'drop_silent':
            w.frame('drop for ' + r, drop, setter('expect', 'result', value=r))
    w.frame('drop for accept', drop, setter('expect', 'result', value='accept'))
    w.frame('drop for accept, ICRC', lambda f: drop(f) and not f['icrc_valid'],
            setter('expect', 'result', value='accept'))
    for r in ('accept', 'drop_silent', 'rnr_nak', 'cqe_error'):
        # (a MIDDLE or LAST that is to be accepted gets the FIRST whose lack is NAKed, or whose PSN is)
        w.frame('nak for ' + r, lambda f: nak(f) and 'alt' not in f['expect'] and
                not re.search('op_sequence|ahead', f['name']),
                setter('expect', 'result', value=r))
    for s in (0x60, 0x61, 0x62):
        w.frame('syndrome of 0x%x' % s, lambda f: nak(f) and f['expect']['syndrome'] == s,
                setter('expect', 'syndrome', value=lambda v: v ^ 3))
    w.frame('no syndrome', nak, remover('expect', 'syndrome'))
    w.frame('syndrome of rnr_nak', result('rnr_nak'), setter('expect', 'syndrome', value=more))
    w.frame('nak_psn', lambda f: nak(f) and 'nak_psn' in f['expect'],
            setter('expect', 'nak_psn', value=more))
    w.frame('an alternative that is no better', request,
            setter('expect', value={'result': 'drop_silent', 'alt': 'rnr_nak'}))
    # the expected PSN, the region, the receive buffer are what the frame needs them to be
    w.frame('a PSN that is not expected', request, lambda f: f['expect'].update(
        context={'B_expected_psn': (f['bth_fields']['psn'] - 5) & 0xFFFFFF}))
    w.frame('a P_Key that is another', request,
            setter('expect', 'context', value={'pkey_table': ['0x9111']}))
    w.frame('a QP that is not ready', request,
            setter('expect', 'context', value={'QP_state': 'INIT'}))
    w.frame('an address of another kind', lambda f: request(f) and f['kind'] == 'v4',
            setter('expect', 'context', value={'QP_gid_type': 'IPv6'}))
    for op in (0x04, 0x0A, 0x0C):
        w.frame('no access for 0x%x' % op, lambda f: request(f) and op == f['bth_fields']['opcode'],
                setter('expect', 'context', value={'recv_wqes': 0} if op == 4 else
                       {'B_rc_access': 'REMOTE_ATOMIC'}))


def step_with(test, change):
    """change(step) at the first step that is fit"""
    def f(seq):
        for s in seq['steps']:
            if test(s):
                return change(s)
        return False
    return f


def wrong_sequences(w):
    responder = lambda s: s['side'] == 'responder'
    requester = lambda s: s['side'] == 'requester'
    sent = lambda s: s.get('tx') and 'tx_alternatives' not in s
    for side, which in (('responder', responder), ('requester', requester)):
        for k in ('opcode', 'psn', 'dest_qp', 'payload_len', 'pkey', 'pad', 'msn', 'syndrome', 'va',
                  'rkey', 'dmalen', 'imm', 'se', 'ackreq'):
            if side == 'requester' and k in ('msn', 'syndrome') or \
                    side == 'responder' and k in ('va', 'rkey', 'dmalen', 'imm'):
                continue
            value = (lambda v: 0x60 if v == 'ack' else v ^ 1) if k == 'syndrome' else more
            w.sequence('%s tx %s' % (side, k), which,
                       step_with(lambda s: sent(s) and k in s['tx'][0],
                                 lambda s: s['tx'][0].update({k: value(s['tx'][0][k])})))
        w.sequence(side + ' tx payload', which,
                   step_with(lambda s: sent(s) and s['tx'][0].get('payload'),
                             lambda s: s['tx'][0].update(
                                 payload='%02x' % (int(s['tx'][0]['payload'][:2], 16) ^ 1) +
                                 s['tx'][0]['payload'][2:])))
        w.sequence(side + ' strange member of tx', which,
                   step_with(sent, lambda s: s['tx'][0].update(x=1)))
        w.sequence(side + ' sends more than said', which, step_with(sent, lambda s: s['tx'].pop()))
        w.sequence(side + ' sends less than said', which,
                   step_with(sent, lambda s: s['tx'].append(s['tx'][0])))
        w.sequence(side + ' sends when nothing is said to be', which,
                   step_with(sent, lambda s: s.update(tx=[])))
        w.sequence(side + ' tx is no list', which, step_with(sent, lambda s: s.update(tx=7)))
        w.sequence(side + ' alternatives are no better', which,
                   step_with(sent, lambda s: s.update(tx=[], tx_alternatives=[[], [{'psn': -1}]])))
        w.sequence(side + ' allows another extra', which,
                   step_with(sent, lambda s: s.update(tx=s['tx'][:-1],
                                                      tx_allow_extra=[{'opcode': 0x55}])))
        done = lambda s: s.get('cqes')
        w.sequence(side + ' completes more than said', which,
                   step_with(done, lambda s: s['cqes'].pop()))
        w.sequence(side + ' completes less than said', which,
                   step_with(done, lambda s: s['cqes'].append(s['cqes'][0])))
        for k in ('status', 'wr_id', 'recv_index', 'byte_len', 'opcode', 'imm', 'solicited'):
            if k == 'wr_id' and side == 'responder' or \
                    k in ('recv_index', 'imm', 'solicited') and side == 'requester':
                continue
            value = (lambda v: 'X' + v) if k in ('status', 'opcode') else more
            w.sequence('%s completion %s' % (side, k), which,
                       step_with(lambda s: done(s) and k in s['cqes'][0],
                                 lambda s: s['cqes'][0].update({k: value(s['cqes'][0][k])})))
        w.sequence(side + ' strange completion', which,
                   step_with(done, lambda s: s['cqes'][0].update(x=1)))
        w.sequence(side + ' state', which,
                   step_with(lambda s: 'qp_state' in s, lambda s: s.update(qp_state='SQD')))
        w.sequence(side + ' strange member of a step', which, step_with(lambda s: True, lambda s: s.update(x=1)))
        w.sequence(side + ' rx', which,
                   step_with(lambda s: s.get('rx'), lambda s: s.update(rx='xyz')))
        w.sequence(side + ' rx is lost', which,
                   step_with(lambda s: s.get('cqes') and s.get('rx'), lambda s: s.update(rx=None)))
        w.sequence(side + ' strange setup', which, setter('setup', 'x', value=1))
        w.sequence(side + ' MTU', which, setter('setup', 'path_mtu', value=1000))
    w.sequence('any error', responder,
               step_with(lambda s: s.get('cqes') and s['cqes'][0]['status'] == 'SUCCESS',
                         lambda s: s.update(cqes_any_error=True)))
    w.sequence('expected_psn', responder,
               step_with(lambda s: 'expected_psn' in s,
                         lambda s: s.update(expected_psn=s['expected_psn'] ^ 1)))
    w.sequence('memory_u64', responder,
               step_with(lambda s: 'memory_u64' in s, lambda s: s.update(memory_u64='0x123')))
    w.sequence('receives', responder, step_with(lambda s: s.get('cqes'), lambda s: s.update(post_recv=65)))
    w.sequence('side', responder, setter('side', value='referee'))
    w.sequence('posts of a responder', responder, setter('posts', value=[{'opcode': 'SEND'}]))
    w.sequence('strange sequence', responder, setter('x', value=1))
    w.sequence('no steps', responder, setter('steps', value=[]))
    w.sequence('kind of QP', responder, setter('setup', 'qp_type', value='RX'))
    w.sequence('post', requester, lambda s: s['posts'][0].update(opcode='SAND'))
    w.sequence('post member', requester, lambda s: s['posts'][0].update(x=1))
    w.sequence('post flag', requester, lambda s: s['posts'][0].update(flags=['X']))
    w.sequence('post length', requester,
               lambda s: s['posts'][0].update(length=s['posts'][0]['length'] + 1, payload=''))
    w.sequence('earlier than it may be', requester,
               step_with(lambda s: s.get('advance_us') and s['tx'],
                         lambda s: s.update(advance_us=[s['advance_us'][0] * 2 + 10, None])))
    w.sequence('later than it may be', requester,
               step_with(lambda s: s.get('advance_us') and s['tx'] and s['advance_us'][0] > 100,
                         lambda s: s.update(advance_us=[0, s['advance_us'][0] / 2])))
    w.sequence('range', requester,
               step_with(lambda s: s.get('advance_us'), lambda s: s.update(advance_us=5)))
    w.sequence('retries', lambda s: s['side'] == 'requester' and any(
        c['status'] == 'RETRY_EXC_ERR' for x in s['steps'] for c in x.get('cqes', [])),
        lambda s: s['setup'].update(retry_cnt=s['setup']['retry_cnt'] + 1 & 7))


def wrong_tables(doc):
    """-> groups of rows that are all wrong, and how many"""
    t, e, n = copy.deepcopy(doc['tables']), copy.deepcopy(doc['entropy']), 0
    key = {'psn_compare': 'sign', 'read_psn_count': 'packets', 'gid_map': 'gid',
           'mac_to_eui64_gid': 'gid', 'flow_label_to_sport': 'udp_sport_hex',
           'qpn_to_flow_label': 'flow_label'}
    for group in (t, e):
        for name, rows in group.items():
            n += len(rows)
            for i in rows if isinstance(rows, dict) else range(len(rows)):
                if name not in key:
                    rows[i] += 1
                elif key[name] == 'sign':
                    rows[i]['sign'] = rows[i]['sign'] + 1 if rows[i]['sign'] < 1 else 0
                elif key[name] == 'gid':
                    rows[i]['gid'] = 'fe80::1:2'
                else:
                    rows[i][key[name]] = more(rows[i][key[name]])
    t['strange'] = [1]
    return {'tables': t, 'entropy': e}, n + 1


def wrong_expectations(doc):
    big, _ = make(seed + 1000, 3000, 400)
    w = Wrong({**big, 'context': doc['context']})
    wrong_frames(w)
    wrong_results(w)
    wrong_sequences(w)
    r = run({'context': big['context'], **w.out})
    failed = {line.split(': ')[0] for line in r.stdout.splitlines()}
    failed |= {name.rsplit(' step ', 1)[0] for name in failed}
    for name in w.names:
        if name not in failed:
            complain('not a failure: ' + name)
    if r.returncode != 1 or counts(r) != (0, len(w.names), 0):
        complain('%d wrong items: %s, exit status %d' % (len(w.names), counts(r), r.returncode))
    groups, n = wrong_tables(doc)
    r = run({'context': doc['context'], **groups, 'strange': 1})
    if r.returncode != 1 or counts(r) != (0, n + 1, 0):
        complain('%d wrong rows: %s, exit status %d' % (n + 1, counts(r), r.returncode))
    return len(w.names) + n + 1


# --- 4: malformed files ------------------------------------------------------------------------------

def replace_one(doc):
    """puts something else in some place"""
    place = doc
    while True:
        keys = list(place.keys()) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(place[key], (dict, list)) or rng.random() < .15:
            break
        place = place[key]
    value = rng.choice([None, -1, 0, 1 << 62, 1e300, 0.5, '', 'x', '0x', '-1', '00', 'ff' * 5000, [],
                        {}, [[]], [None], {'x': {}}, True, '18446744073709551616', 'é', 255,
                        1 << 31, '0xffffffff', 'DELETE'])
    if value == 'DELETE':
        del place[key]
    else:
        place[key] = value


def malformed(doc):
    small = {**doc, 'frames': rng.sample(doc['frames'], 12),
             'sequences': rng.sample(doc['sequences'], 6)}
    small['tables'] = {k: v[:2] if isinstance(v, list) else v for k, v in doc['tables'].items()}
    text = json.dumps(small)
    files = ['', '{', '[]', '7', 'null', '{}', '{"frames":[{}]}', '{"frames":7,"sequences":7}',
             '{"context":{}}', '{"a":1,"a":2}', '[' * 100000, '{"a":' * 5000, '\0\0', '"\xff"',
             text[:len(text) // 2], text + '}', text.replace('"context"', '"cantext"')]
    for _ in range(120):
        m = json.loads(text)
        if rng.random() < .3:
            m['context'] = json.loads(json.dumps(m['context']))
            replace_one(m['context'])
        else:
            for _ in range(rng.randrange(1, 4)):
                replace_one(m)
        files.append(json.dumps(m))
    for _ in range(30):
        at = rng.randrange(len(text))
        files.append(text[:at] + chr(rng.randrange(32, 127)) + text[at + rng.randrange(3):])
    for f in files:
        r = run(f)
        if r.returncode not in (0, 1, 2):
            keep(f, 'exit status %d, %s' % (r.returncode, r.stderr[-2000:]))
        elif r.returncode == 2 and not r.stderr.strip():
            complain('no sentence about a malformed file: ' + f[:60])
        elif r.returncode == 1 and not counts(r):
            complain('no count for ' + f[:60])
    return len(files)


doc = generated()
n = wrong_expectations(doc)
m = malformed(doc)
for path in (folder.name, os.path.join(folder.name, 'none')):
    if subprocess.run([*vectors, path], stderr=subprocess.DEVNULL).returncode != 2:
        complain('%s is taken for a file' % path)
print('seed %d: %d wrong expectations, %d malformed files, %d complaints' % (seed, n, m, bad))
sys.exit(1 if bad else 0)
