#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rociperf.py ROCID RPERF SPOIL.so [brief]: rociperf as users run it, over a ring pair and over two rocid. Brief: each
operation with one of the options that the others have, too."""
import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from free_port import free_port
from rocid import PATIENCE_S, check, eal_args, start, wait_active, wait_until

ROCID, RPERF, SPOIL = sys.argv[1:4]
BRIEF = sys.argv[4:] == ['brief']
OPS = ['write', 'write_imm', 'send', 'read']
ATOMICS = ['fetch_add', 'cmp_swap']
WORDS = [*ATOMICS, 'atomic_write']  # of 8 bytes
ALL_OPS = [*OPS, *WORDS, 'write_flush']
PAGE = os.path.join(os.path.dirname(__file__), '../../doc/man/rociperf.1')
# A retransmission after 9 s: four threads that poll share two CPUs with what else is there.
PATIENT = ['-u', '21']
MAC = {'a': '02:00:00:00:00:0a', 'b': '02:00:00:00:00:0b'}
IP = {'a': '192.0.2.1', 'b': '192.0.2.2'}


def variants(of, all_of_them):
    """Those that number @p of of several operations is tried with."""
    return [all_of_them[of % len(all_of_them)]] if BRIEF else all_of_them


def command(words, sock):
    return [RPERF, *words, *PATIENT, '--socket', sock]


def rociperf(sock, *words, status=0, env=None):
    """Runs both ends in one process; returns standard output, or the complaint."""
    p = subprocess.run(command([*words, '--both'], sock), capture_output=True, text=True,
                       timeout=3 * PATIENCE_S, env=env, check=False)
    check(p.returncode == status, f'{words}: status {p.returncode}: {p.stdout}{p.stderr}')
    return p.stdout if status == 0 else p.stderr


def document(sock, *words):
    return json.loads(rociperf(sock, *words, '--json'))


def reap(p):
    if p.poll() is None:
        p.kill()
        p.wait()


def launch(words, sock, **how):
    """A rociperf beside the test, which leaves nothing running when it fails."""
    p = subprocess.Popen(command(words, sock), text=True, **how)
    atexit.register(reap, p)
    return p


class Pair:
    """A server, and a client that is started once the server waits."""

    def __init__(self, socks, server, client, port=None):
        port = port or free_port()
        self.server = self.run([*server, '-p', port], socks[0])
        said = self.server.stdout.readline()
        if 'waiting' in said:
            self.client = self.run([*client, '-p', port, 'localhost'], socks[1])

    @staticmethod
    def run(words, sock):
        return launch(words, sock, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self):
        """[(status, stdout, stderr)] of server and client."""
        result = []
        for p in (self.server, self.client):
            out, err = p.communicate(timeout=3 * PATIENCE_S)
            result.append((p.returncode, out, err))
        return result


# --- what is printed ------------------------------------------------------------------------

COLUMNS = {
    'bw': ['#bytes', '#iterations', 'BW peak[Gb/sec]', 'BW average[Gb/sec]', 'MsgRate[Mpps]'],
    'lat': ['#bytes', '#iterations', 't_min[usec]', 't_max[usec]', 't_typical[usec]',
            't_avg[usec]', 't_stdev[usec]', '99% percentile[usec]', '99.9% percentile[usec]'],
}


def table(text):
    """The lines of numbers below the columns' names."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith(' #bytes'))
    check(not any(line.endswith(' ') for line in lines), f'blanks at the end of a line: {lines}')
    return lines[head], [[float(n) for n in line.split()] for line in lines[head + 1:]]


def check_bw_row(row, size, iterations, seconds=None):
    check(row['bytes'] == size, f'size in {row}')
    check(row['iterations'] >= iterations, f'iterations in {row}')
    check(row['seconds'] > 0, f'seconds in {row}')
    rate = row['iterations'] / row['seconds']
    check(abs(row['msg_rate_mpps'] * 1e6 / rate - 1) < 1e-3, f'message rate in {row}')
    check(abs(row['bw_average_gbps'] * 1e9 / (rate * 8 * size) - 1) < 1e-3, f'bandwidth in {row}')
    check(row['bw_peak_gbps'] >= row['bw_average_gbps'] * 0.999, f'peak in {row}')
    if seconds:
        check(row['seconds'] >= seconds, f'duration in {row}')


def check_lat_row(row, size, iterations):
    order = ['t_min_usec', 'p50_usec', 'p90_usec', 'p99_usec', 'p99_9_usec', 'p99_99_usec',
             't_max_usec']
    check(row['bytes'] == size and row['iterations'] == iterations, f'size, iterations in {row}')
    check(all(row[a] <= row[b] for a, b in zip(order, order[1:])), f'percentiles in {row}')
    check(row['t_min_usec'] > 0 and row['t_stdev_usec'] >= 0, f'times in {row}')
    check(row['t_min_usec'] <= row['t_avg_usec'] <= row['t_max_usec'], f'average in {row}')
    check(row['t_typical_usec'] == row['p50_usec'], f'typical in {row}')


# --- cases ----------------------------------------------------------------------------------

def every_operation(sock):
    for i, op in enumerate(OPS):
        for more in variants(i + 1, [[], ['-b'], ['-e'], ['-q', '3', '-s', '100'], ['-l', '8', '-t', '24']]):
            d = document(sock, op, '-n', '200', *more)
            qps = 3 if '-q' in more else 1
            check((d['operation'], d['test']) == (op, 'bw'), f'{d}')
            check_bw_row(d['results'][0], 100 if '-s' in more else 65536, 200 * qps)
        d = document(sock, op, 'rate', '-D', '0.02')
        check_bw_row(d['results'][0], 64, 1, seconds=0.02)
        d = document(sock, op, 'lat', '-n', '200')
        check_lat_row(d['results'][0], 2, 200)
        # The distribution has each message once.
        check(sum(n for _, n in d['distribution']) == 200, f'distribution of {op}')
        if op != 'write':
            check_lat_row(document(sock, op, 'lat', '-e', '-n', '30')['results'][0], 2, 30)
    d = document(sock, 'write', '-I', '64', '-s', '64', '-n', '500')
    check(d['parameters']['inline_size'] == 64 and d['parameters']['mtu'] == 4096, f'{d}')


def verified(sock):
    for i, op in enumerate(OPS):
        for words in variants(i, [['-n', '300'], ['-q', '3', '-s', '5001', '-b', '-n', '100'],
                                  ['lat', '-s', '9000', '-n', '100'], ['--memory', '1M', '-s', '77', '-n', '300']]):
            check(document(sock, op, '--verify', *words)['parameters']['verify'], 'verify is on')


def spoilt(sock):
    """Each way by which data arrives, with one bit of one message that is another."""
    env = dict(os.environ, LD_PRELOAD=SPOIL, ASAN_OPTIONS='verify_asan_link_order=0')
    for i, op in enumerate(OPS):
        # Few slots, so that the spoilt WRITE is still there at the end. Depth 1: see spoil.c.
        for words in variants(i, [['-s', '5000', '-t', '1', '-n', '20', '--memory', '1M'],
                                  ['lat', '-s', '5000', '-n', '20']]):
            for byte in ('0', '4998'):
                said = rociperf(sock, op, '--verify', *words, status=1,
                                env=dict(env, SPOIL='7', SPOIL_BYTE=byte))
                check(f'differs from byte {byte} on' in said, f'{op} {words}: {said}')
                check('wrong data: message ' in said, f'{op} {words}: {said}')
        # Harmless settings cause no advice.
        rociperf(sock, op, '--verify', '-n', '20', env=dict(env, SPOIL='1000000'))


def atomics(sock):
    env = dict(os.environ, LD_PRELOAD=SPOIL, ASAN_OPTIONS='verify_asan_link_order=0', SPOIL='7', SPOIL_BYTE='5')
    for op in ATOMICS:
        for words in (['-n', '200'], ['rate', '-n', '200'], ['-b', '-q', '3', '-o', '3', '-n', '200', '--verify'],
                      ['-e', '-n', '200']):
            iterations = 600 if '-q' in words else 200
            check_bw_row(document(sock, op, *words)['results'][0], 8, iterations)
        check_lat_row(document(sock, op, 'lat', '-n', '100')['results'][0], 8, 100)
        said = rociperf(sock, op, '--verify', '-t', '1', '-n', '20', status=1, env=env)
        check('differs from byte 5 on' in said, f'{op}: {said}')
        said = rociperf(sock, op, '-s', '8', status=2)
        check('one size only' in said, f'{op}: {said}')


def unreliable(sock):
    """UC: messages arrive whole, or not at all; spoilt ones are found, lost ones are not blamed."""
    uc = ['-c', 'UC']
    for op in ('write', 'write_imm', 'send'):
        d = document(sock, op, '-n', '300', *uc)
        check(d['parameters']['connection'] == 'UC', f'{d}')
        check_bw_row(d['results'][0], 65536, 300)
        check_lat_row(document(sock, op, 'lat', '-n', '100', *uc)['results'][0], 2, 100)
    check(', UC, ' in rociperf(sock, 'write', 'rate', '-b', '-q', '3', '-n', '300', *uc), 'head')
    document(sock, 'send', '--verify', '-q', '3', '-s', '9001', '-n', '200', *uc)
    env = dict(os.environ, LD_PRELOAD=SPOIL, ASAN_OPTIONS='verify_asan_link_order=0', SPOIL='7', SPOIL_BYTE='4998')
    said = rociperf(sock, 'send', '--verify', '-s', '5000', '-t', '1', '-n', '20', *uc, status=1, env=env)
    check('wrong data: message ' in said, said)
    for words, why in ((['read'], 'SEND and WRITE only'), (['cmp_swap'], 'SEND and WRITE only'),
                       (['write', '--verify'], 'use send'), (['write_flush'], 'SEND and WRITE only')):
        check(why in rociperf(sock, *words, *uc, status=2), f'{words}')


def late_ones(daemon):
    """What nobody answers may come when the next size has begun: it counts for neither."""
    daemon.ask('set port 2 impair delay=1500ms')
    for words in variants(1, [['-c', 'UD', '-m', '4096'], ['-c', 'UC', '-q', '2']]):
        rows = document(daemon.socket, 'send', *words, '-a', '-n', '10', '--verify')['results']
        check(all(r['sent'] - r['received'] == r['lost'] for r in rows), f'{words}: {rows}')
        # A program that pauses for seconds has its duration, but not each size.
        check(any(r['lost'] for r in rows), f'{words}: {rows}')
    daemon.ask('set port 2 impair none')


def datagrams(sock):
    """UD: messages of one packet, behind 40 bytes."""
    ud = ['send', '-c', 'UD']
    d = document(sock, *ud, '-n', '300')
    check(d['parameters']['connection'] == 'UD', f'{d}')
    check_bw_row(d['results'][0], 1024, 300)
    check_lat_row(document(sock, *ud, 'lat', '-n', '100')['results'][0], 2, 100)
    check_lat_row(document(sock, *ud, 'lat', '-e', '-n', '30')['results'][0], 2, 30)
    for words in (['-q', '3', '-s', '4000', '-b'], ['--srq', '-s', '999'], ['lat', '-s', '77', '-I', '77']):
        document(sock, *ud, '--verify', '-n', '200', *words)
    check_bw_row(document(sock, *ud, '-q', '3', '--srq', '-n', '100')['results'][0], 1024, 300)
    rows = document(sock, *ud, '-a', '-m', '4096', '-n', '10', '--verify')['results']
    check([r['bytes'] for r in rows] == [2 << i for i in range(12)], f'sizes of datagrams: {rows}')
    env = dict(os.environ, LD_PRELOAD=SPOIL, ASAN_OPTIONS='verify_asan_link_order=0', SPOIL='7', SPOIL_BYTE='498')
    said = rociperf(sock, *ud, '--verify', '-s', '500', '-t', '1', '-n', '20', status=1, env=env)
    check('wrong data: message ' in said and 'differs from byte 498 on' in said, said)
    check('SEND only' in rociperf(sock, 'write', '-c', 'UD', status=2), 'UD has no WRITE')
    check('--size must be at most' in rociperf(sock, *ud, '-s', '4097', status=2), 'UD has one packet')


def check_arrived(row, members=1):
    """What was lost and what was not add up; the whole run is more than what is measured."""
    check(row['sent'] >= row['iterations'], f'sent in {row}')
    check(row['sent'] * members - row['received'] == row['lost'], f'lost in {row}')


def check_lost(sock, words, members, least, most):
    """So many are lost. Who is paused for long loses more, but not each time."""
    rows = []
    for _ in range(10):
        rows += document(sock, 'send', *words)['results']
        check_arrived(rows[-1], members)
        if least(rows[-1]['sent']) <= rows[-1]['lost'] <= most(rows[-1]['sent']):
            return
    check(False, f'{words}: {rows}')


def groups(sock):
    """--mcast: one QP sends, all of the other end get each message."""
    ud = ['send', '-c', 'UD']
    for i, group in enumerate(('239.1.2.3', 'ff1e::102:304')):
        for words, members in variants(i + 1, [(['--verify'], 1), (['-q', '3', '-t', '8', '--verify'], 3),
                                               (['-q', '3', '--srq'], 3), (['-q', '2', '-e'], 2),
                                               (['-q', '2', '--peer-port', '1'], 2)]):
            d = document(sock, *ud, '-M', group, '-n', '200', *words)
            check(d['parameters']['mcast'] == group, f'{d}')
            check_bw_row(d['results'][0], 1024, 200)
            check(d['results'][0]['iterations'] < 400, f'one QP sends: {d}')
            check_arrived(d['results'][0], members)
        check_lat_row(document(sock, *ud, 'lat', '-M', group, '--verify', '-n', '100')['results'][0], 2, 100)
        check_bw_row(document(sock, *ud, 'rate', '-M', group, '-D', '0.02')['results'][0], 64, 1, seconds=0.02)
        rows = document(sock, *ud, '-a', '-m', '4096', '-n', '10', '-M', group, '--verify', '-q', '2')['results']
        check([r['bytes'] for r in rows] == [2 << i for i in range(12)], f'sizes of datagrams: {rows}')
    check_lost(sock, ['-c', 'UD', '-M', '239.1.2.3', '-q', '3', '-t', '8', '-n', '200'], 3, lambda sent: 0, lambda sent: 0)
    check(' 4 QPs in group 239.1.2.3,' in rociperf(sock, *ud, '-M', '239.1.2.3', '-q', '4', '-n', '9'), 'head')
    for words, status, why in ((['--mcast', '192.0.2.1'], 2, '224.0.0.0 to'), (['--mcast', 'fe80::1'], 2, 'begins with ff'),
                               (['--mcast', 'lab7'], 2, '--mcast lab7: this is not the address'),
                               (['--mcast', '239.1.2.3', '-b'], 2, 'remove --bidirectional'),
                               (['--mcast', '239.1.2.3', '-c', 'RC'], 2, 'add --connection UD'),
                               (['--mcast', 'ff1e::1', '-x', '0'], 1, 'GID 0 is IPv4')):
        said = rociperf(sock, *ud, *words, status=status)
        check(why in said, f'{words}: {said}')


def losses(daemon):
    """What does not come is counted, of each member of a group; what cannot be lost is not."""
    sock = daemon.socket
    daemon.ask('set port 2 impair nth=10')
    # Of a group all members miss the same packets. Of UC a message is lost with one of its packets.
    for words, members, packets in ((['-c', 'UD', '-M', '239.1.2.3', '-q', '3', '--verify'], 3, 1), (['-c', 'UD'], 1, 1),
                                    (['-c', 'UC', '-s', '9000'], 1, 3)):
        check_lost(sock, [*words, '-t', '8', '-n', '300'], members, lambda sent: sent * packets // 10 * members,
                   lambda sent: (sent * packets // 10 + 1) * members)
    head, rows = table(rociperf(sock, 'send', '-c', 'UD', '-b', '-n', '300'))
    check(head.split()[-2:] == ['#sent', '#lost'], f'columns: {head}')
    check(rows[0][-2] >= 600 and rows[0][-1] >= 30, f'{rows}')
    check('lost' not in document(sock, 'send', '-n', '100')['results'][0], 'RC loses nothing')
    daemon.ask('set port 2 impair none')


def op_length(op):
    """The one size of an operation, 0: any."""
    return 8 if op in WORDS else 0


def extended(sock):
    """XRC: every operation, and each message completes at the SRQ that it names."""
    for i, op in enumerate(ALL_OPS):
        size = [] if op_length(op) else ['-s', '9000']
        for words, messages in variants(i, [(['-q', '3', '-n', '50'], 150), (['-b', '--verify', '-n', '50'], 100),
                                            (['-e', '-n', '50'], 50)]):
            d = document(sock, op, '-c', 'XRC', *size, *words)
            check(d['parameters']['connection'] == 'XRC', f'{d}')
            check_bw_row(d['results'][0], op_length(op) or 9000, messages)
        check_lat_row(document(sock, op, 'lat', '-c', 'XRC', '-n', '50')['results'][0], op_length(op) or 2, 50)


def words_and_flushes(sock):
    """ATOMIC WRITE and WRITE with FLUSH."""
    env = dict(os.environ, LD_PRELOAD=SPOIL, ASAN_OPTIONS='verify_asan_link_order=0', SPOIL_BYTE='5')
    for op, size, spoilt_one in (('atomic_write', 8, '7'), ('write_flush', 65536, '14')):
        for words in (['-n', '200'], ['-l', '8', '-t', '24', '-n', '200'], ['-b', '-q', '3', '-o', '3', '-n', '200', '--verify']):
            check_bw_row(document(sock, op, *words)['results'][0], size, 600 if '-q' in words else 200)
        said = rociperf(sock, op, '--verify', '-t', '1', '-n', '20', '--memory', '8M', status=1,
                        env=dict(env, SPOIL=spoilt_one))
        check('differs from byte 5 on' in said, f'{op}: {said}')
    check_lat_row(document(sock, 'atomic_write', 'lat', '-n', '100', '--verify')['results'][0], 8, 100)
    check_lat_row(document(sock, 'write_flush', 'lat', '-e', '-n', '100')['results'][0], 2, 100)
    document(sock, 'write_flush', '-t', '8191', '-s', '64', '-n', '50')
    check('at most 8191' in rociperf(sock, 'write_flush', '-t', '8192', status=2), 'a FLUSH is a request, too')
    check('FLUSH is answered' in rociperf(sock, 'write_flush', 'lat', '-n', '10'), 'what is timed')


def windows(daemon):
    """--mw: the key of a window, which goes when the run ends."""
    sock = daemon.socket
    for op in ALL_OPS:
        if op != 'send':
            d = document(sock, op, '--mw', '-b', '-n', '100', '--verify', '-m', '1024')
            check(d['parameters']['mw'], f'{d}')
    document(sock, 'write', '--mw', '-c', 'XRC', 'lat', '-n', '50')
    document(sock, 'write', '--mw', '-c', 'UC', '-n', '50')
    document(sock, 'write', '--mw', '-t', '16383', '-s', '64', '-n', '50')
    check('--mw' in rociperf(sock, 'send', '--mw', status=2), 'SEND names no memory')
    p = launch(['write', '--both', '-D', '600', '--mw'], sock, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: [w['bound'] for w in daemon.ask('show mws')['mws']] == [True], 'the target binds a window')
    p.terminate()
    p.wait(PATIENCE_S)


def all_sizes(sock):
    text = rociperf(sock, 'write', '-a', '-n', '5')
    head, rows = table(text)
    check([head.find(c) for c in COLUMNS['bw']] == sorted(head.find(c) for c in COLUMNS['bw'])
          and all(c in head for c in COLUMNS['bw']), f'columns: {head}')
    check([r[0] for r in rows] == [2 << i for i in range(23)], f'sizes: {rows}')
    if BRIEF:   # megabytes are compared, byte by byte
        return
    head, rows = table(rociperf(sock, 'send', 'lat', '-a', '-n', '5', '--verify'))
    check(all(c in head for c in COLUMNS['lat']), f'columns: {head}')
    check(len(rows) == 23 and all(len(r) == 10 for r in rows), f'rows: {rows}')
    d = document(sock, 'read', '-a', '-n', '10', '--verify')
    for i, row in enumerate(d['results']):
        check_bw_row(row, 2 << i, 10)


def local_and_far(sock):
    """The ends are on the ports of the pair; --peer-port 1 has both on the same."""
    d = document(sock, 'write', '-n', '50')
    check((d['gid'], d['peer_gid']) == ('::ffff:192.0.2.1', '::ffff:192.0.2.2'), f'{d}')
    d = document(sock, 'write', '-n', '50', '--peer-port', '1')
    check((d['gid'], d['peer_gid']) == ('::ffff:192.0.2.1', '::ffff:192.0.2.1'), f'{d}')
    d = document(sock, 'write', '-n', '50', '-i', '2', '-x', '0')
    check((d['gid'], d['peer_gid']) == ('::ffff:192.0.2.2', '::ffff:192.0.2.2'), f'{d}')


def pictures(sock, folder):
    if not shutil.which('gnuplot'):
        print('no gnuplot here: pictures are not tested')
        return
    for name, words in {'sizes': ['write', '-a', '-n', '5'], 'lat': ['send', 'lat', '-n', '200'],
                        'lats': ['read', 'lat', '-a', '-n', '5']}.items():
        file = os.path.join(folder, f"it's {name}.svg")
        rociperf(sock, *words, '--plot', file)
        root = xml.etree.ElementTree.parse(file).getroot()
        check(root.tag.endswith('svg'), f'{file} is no SVG')
        points = [p.get('d') for p in root.iter() if p.tag.endswith('path') and p.get('d')]
        check(max(len(p) for p in points) > 200, f'{file} has no curve')
    said = rociperf(sock, 'send', 'lat', '-n', '5', '--plot', '/nonexistent/x.svg', status=1)
    check('could not write' in said, said)


def documented():
    """What --help lists is in the manual page, and nothing else."""
    text = subprocess.run([RPERF, '--help'], capture_output=True, text=True, check=True).stdout
    offered = set(re.findall(r'^  (?:-.,|   ) --([a-z0-9_-]+)', text, re.M))
    with open(PAGE, encoding='utf-8') as f:
        page = f.read().replace('\\-', '-')
    told = set(re.findall(r'^\.TP\n\.B.*?--([a-z0-9_-]+)', page, re.M)) | {'help', 'version'}
    check(len(offered) > 25, f'--help lists {offered}')
    check(offered == told, f'--help and the page differ: {offered ^ told}')


def refusals(sock):
    for words, about in ((['fly'], 'not an operation'), (['write', '-s', '0'], '--size 0'),
                         (['write', '-n', '5', '-D', '5'], '--duration'),
                         (['write', 'lat', '-e'], '--events'), (['write', '-Z'], 'no such option'),
                         (['write', 'bw', 'host'], '--both'),
                         (['write', '--plot', 'x.svg'], '--all')):
        said = rociperf(sock, *words, status=2)
        check(about in said and said.startswith('rociperf: '), f'{words}: {said}')
    p = subprocess.run([RPERF, 'write', '-s'], capture_output=True, text=True, check=False)
    check(p.returncode == 2 and 'needs a value' in p.stderr, p.stderr)
    said = rociperf('/nonexistent/rocid.sock', 'write', status=1)
    check('/nonexistent/rocid.sock' in said, said)
    said = rociperf(sock, 'read', '-o', '200', status=1)
    check('lower --outs' in said, said)
    said = rociperf(sock, 'write', '-n', '5', '-x', '77', status=1)
    check('GID' in said, said)
    env = dict(os.environ, PATH='/nonexistent')
    said = rociperf(sock, 'write', '-a', '--plot', 'x.svg', status=1, env=env)
    check('gnuplot-nox' in said, said)


def no_way(sock):
    """A host that is not reached is another mistake than one where nobody listens."""
    for host, says in (('255.255.255.255', 'cannot reach'), ('127.0.0.1', 'start the other side first')):
        p = subprocess.run([RPERF, 'write', '-p', free_port(), '--socket', sock, host], capture_output=True,
                           text=True, timeout=PATIENCE_S, check=False)
        check(p.returncode == 1 and says in p.stderr, p.stderr)


def reasons(daemon):
    """A QP that fails is told with rocid's own sentence."""
    p = launch(['write', '--both', '-D', '600'], daemon.socket, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_until(lambda: [q['state'] for q in daemon.ask('show qps')['qps']] == ['RTS'] * 2, 'two QPs are connected')
    qpn, peer = (q['qpn'] for q in daemon.ask('show qps')['qps'])
    check('done' in daemon.ask(f'kill qp {qpn}'), f'QP {qpn} is killed')
    _, err = p.communicate(timeout=PATIENCE_S)
    check(p.returncode == 1 and ' failed: ' in err, err)
    named = re.search(r'on QP (\d+) failed', err)
    check(named and int(named[1]) in (qpn, peer), f'the QP by the number of `rocictl show qps`: {err}')
    # The owner of the QP; its peer's sentence names the consequence.
    check('(kill qp) moved it to ERR' in err or 'is in ERR' in err, err)
    daemon.ask('set port 2 pkey 0 0x1234')
    p = subprocess.run([RPERF, 'send', '--both', '-n', '5', '-u', '12', '--socket', daemon.socket],
                       capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    check(p.returncode == 1 and 'dropped the packets: P_Key mismatch' in p.stderr and '[VAL-08]' in p.stderr, p.stderr)
    daemon.ask('set port 2 pkey 0 0xffff')


def services_between_two(socks):
    for op, words in (('send', ['-c', 'UD']), ('send', ['-c', 'UD', 'lat']),
                      ('send', ['-c', 'UD', '-M', '239.1.2.3', '-q', '3', '--verify']), ('send', ['-c', 'UD', '-M', '239.1.2.3', 'lat']), ('send', ['-c', 'XRC', '-q', '3']),
                      ('write_imm', ['-c', 'XRC', '-b', '--verify']), ('write', ['-c', 'XRC', '--mw', 'lat']),
                      ('write_flush', ['--mw']), ('atomic_write', ['lat'])):
        results = Pair(socks, [op], [op, *words, '-n', '100']).end()
        check([r[0] for r in results] == [0, 0], f'{op} {words}: {results}')
        (_, server, _), (_, client, _) = results
        check(table(server)[1] == table(client)[1] and len(table(client)[1]) == 1, f'{op} {words}: {results}')


def two_processes(socks):
    for i, op in enumerate(OPS):
        for words in variants(i, [['-n', '200'], ['-b', '-n', '200', '--verify'], ['lat', '-n', '100'],
                                  ['-e', '-n', '100', '-q', '5']]):
            pair = Pair(socks, [op], [op, *words])
            (_, server, _), (_, client, _) = results = pair.end()
            check([r[0] for r in results] == [0, 0], f'{op} {words}: {results}')
            # Both print the same figures.
            check(table(server)[1] == table(client)[1] and len(table(client)[1]) == 1,
                  f'{op} {words}: {results}')


def mismatch(socks):
    check('GID for the group' in rociperf(socks[0], 'send', '-c', 'UD', '-M', 'ff1e::1', status=1), 'a group wants its family')
    server, client = Pair(socks, ['write', '-s', '4096'], ['write', '-s', '64']).end()
    sentence = 'the server runs with --size 4096, the client with --size 64'
    check(server[0] == 1 and sentence in server[2], f'{server}')
    check(client[0] == 1 and sentence in client[2], f'{client}')
    server, client = Pair(socks, ['send'], ['write', '-n', '5']).end()
    check('the server runs send, the client write' in client[2], f'{client}')


def strangers(socks):
    """Who is no rociperf is told so, and harms nobody."""
    for words in (b'GET / HTTP/1.0\r\n\r\n', b'rocp\0\x63\0\0\0\0\0\x01' + b'\0' * 8):
        port = free_port()
        server = Pair.run(['write', '-p', port], socks[0])
        check('waiting' in server.stdout.readline(), 'the server waits')
        with socket.create_connection(('localhost', port)) as s:
            s.sendall(words)
            _, err = server.communicate(timeout=PATIENCE_S)
        check(server.returncode == 1 and ('not rociperf' in err or 'version 99' in err), err)


def killed(socks, daemons):
    """The end that stays ends with a sentence, whichever it is and whatever it waits for."""
    for op, words in (('send', []), ('write', []), ('write', ['lat']), ('send', ['-e'])):
        for victim in ('server', 'client'):
            pair = Pair(socks, [op], [op, '-D', '600', *words])
            # Under way: the client prints its head before that, and the daemons know the QPs.
            check(pair.client.stdout.readline(), 'the client begins')
            time.sleep(0.1)
            other = {'server': pair.client, 'client': pair.server}[victim]
            getattr(pair, victim).send_signal(signal.SIGKILL)
            _, err = other.communicate(timeout=PATIENCE_S)
            check(other.returncode == 1 and err.startswith('rociperf: '), f'{op} {victim}: {err}')
            check(err.count('\n') == 1, f'one sentence: {err}')
            getattr(pair, victim).communicate()
    pair = Pair(socks, ['write'], ['write', '-D', '600'])
    check(pair.client.stdout.readline(), 'the client begins')
    time.sleep(0.1)
    daemons[0].end(signal.SIGKILL)
    for p in (pair.server, pair.client):
        _, err = p.communicate(timeout=PATIENCE_S)
        check(p.returncode == 1 and err.startswith('rociperf: '), f'rocid killed: {err}')
    check('rocid has ended' in err or 'the peer has disconnected' in err, err)


def start_pair(folder):
    """Two rocid, linked by memif."""
    daemons = []
    for me, peer, role in (('a', 'b', 'server'), ('b', 'a', 'client')):
        link = ['--vdev', f'net_memif0,role={role},id=0,socket={folder}/link,socket-abstract=no,'
                f'bsize=4608,mac={MAC[me]}']
        args = ['--mtu', '0,4300', '--gid', f'0,{IP[me]}', '--neigh', f'0,{IP[peer]},{MAC[peer]}']
        daemons.append(start(ROCID, folder, args=args, eal=eal_args(128) + link, name=f'rocid-{me}'))
    wait_active(daemons)
    return daemons


def main():
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = start(ROCID, folder, args=['--ring-pair', '--gid', '0,192.0.2.1', '--gid',
                                            '1,192.0.2.2', '--gid', '0,2001:db8::1', '--gid',
                                            '1,2001:db8::2', '--mtu', '0,4300', '--mtu', '1,4300'],
                       eal=eal_args(128))
        every_operation(daemon.socket)
        verified(daemon.socket)
        spoilt(daemon.socket)
        atomics(daemon.socket)
        unreliable(daemon.socket)
        datagrams(daemon.socket)
        groups(daemon.socket)
        losses(daemon)
        late_ones(daemon)
        extended(daemon.socket)
        words_and_flushes(daemon.socket)
        windows(daemon)
        all_sizes(daemon.socket)
        local_and_far(daemon.socket)
        pictures(daemon.socket, folder)
        refusals(daemon.socket)
        reasons(daemon)
        no_way(daemon.socket)
        documented()
        check(not any(daemon.totals().values()), f'rociperf leaves nothing: {daemon.totals()}')
        daemon.check_ends()

        daemons = start_pair(folder)
        socks = [d.socket for d in daemons]
        both = ['--peer-socket', socks[1]]
        check_bw_row(document(socks[0], 'write', '-n', '200', *both)['results'][0], 65536, 200)
        check_lat_row(document(socks[0], 'send', 'lat', '-n', '50', *both)['results'][0], 2, 50)
        two_processes(socks)
        services_between_two(socks)
        mismatch(socks)
        strangers(socks)
        killed(socks, daemons)
        daemons[1].check_ends()
    print('rociperf: passed')


if __name__ == '__main__':
    main()
