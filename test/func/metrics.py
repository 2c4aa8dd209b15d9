#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""metrics.py ROCID ROCICTL HOLDER COUNTED: what a real rocid counts, by DPDK's telemetry socket, as OpenMetrics
and as documents, against work that was counted."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from rocid import PATIENCE_S, check, start

MESSAGES = 300
PAYLOAD = 5000  # five packets of path MTU 1024
PORTS = ['--ring-pair', '--gid', '0,192.0.2.1', '--gid', '1,192.0.2.2']


class Telemetry:
    """A plain client of DPDK's protocol."""

    def __init__(self, daemon):
        found = re.search(r'^telemetry: (\S+),', daemon.said(), re.M)
        check(found, 'the banner does not tell the telemetry socket: ' + daemon.said())
        hello = b''
        while not hello:  # DPDK serves ten clients and hangs up on others
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.socket.connect(found.group(1))
            self.socket.settimeout(PATIENCE_S)
            try:
                hello = self.socket.recv(1024)
            except ConnectionError:
                pass
        self.limit = json.loads(hello)['max_output_len']

    def ask(self, command):
        self.socket.send(command.encode())
        return json.loads(self.socket.recv(self.limit))[command.split(',')[0]]


def rocictl(program, daemon, *words):
    r = subprocess.run([program, '--socket', daemon.socket, *words], capture_output=True, text=True,
                       timeout=PATIENCE_S)
    check(r.returncode == 0, f'rocictl {words}: {r}')
    return r.stdout


def parse(text):
    """Strictly, with the library of those who define the format.  Returns {(name, labels): value}, {name: type}."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    values, types = {}, {}
    for family in text_string_to_metric_families(text):
        check(family.name.startswith('roci_') and family.documentation, f'{family}')
        check(family.name not in types, f'{family.name} is there twice')
        types[family.name] = family.type
        for s in family.samples:
            key = s.name, tuple(sorted(s.labels.items()))
            check(key not in values, f'{key} is there twice')
            values[key] = s.value
    return values, types


def total(values, name, **labels):
    return sum(v for (n, have), v in values.items() if n == name and set(labels.items()) <= set(have))


def work(program, daemon):
    """The client writes MESSAGES times PAYLOAD bytes to the server, both on this daemon."""
    r = subprocess.run([program, daemon.socket, str(MESSAGES), str(PAYLOAD)], capture_output=True, text=True,
                       timeout=PATIENCE_S)
    check(r.returncode == 0, f'counted: {r}')


def test_metrics(program, daemon, counted):
    before, _ = parse(rocictl(program, daemon, 'metrics'))
    work(counted, daemon)
    text = rocictl(program, daemon, 'metrics')
    after, types = parse(text)
    check(text.endswith('# EOF\n'), 'no # EOF')

    def moved(name, **labels):
        return total(after, name, **labels) - total(before, name, **labels)
    check(moved('roci_rx_write_requests_total') == MESSAGES, 'WRITEs')
    check(moved('roci_rx_send_requests_total') == 1, 'SENDs')
    packets = MESSAGES * -(-PAYLOAD // 1024) + 1 + moved('roci_tx_acks_total')
    check(moved('roci_port_packets_transmitted_total') == packets + moved('roci_retransmits_total'), 'packets sent')
    check(moved('roci_port_packets_received_total') == packets + moved('roci_retransmits_total'), 'packets received')
    check(moved('roci_port_data_transmitted_bytes_total') > MESSAGES * PAYLOAD, 'bytes')
    check(moved('roci_port_data_transmitted_bytes_total', port='1') +
          moved('roci_port_data_transmitted_bytes_total', port='2') ==
          moved('roci_port_data_transmitted_bytes_total'), 'bytes by port')
    # Work requests that were flushed when their QP went to ERR: part of the errors, as mlx5 counts them.
    check(moved('roci_resp_cqe_flush_error_total') == 3 == moved('roci_resp_cqe_error_total'), 'flushed')
    for (name, labels), value in before.items():
        if types.get(name.removesuffix('_total')) == 'counter':
            check(after[name, labels] >= value, f'{name} {labels} fell')
    check(after['roci_build_info', tuple(sorted({'version': json.loads(rocictl(
        program, daemon, '--json', 'version'))['rocid']['version'], 'abi': str(json.loads(rocictl(
            program, daemon, '--json', 'version'))['rocid']['abi'])}.items()))] == 1, 'build_info')
    check(total(after, 'roci_port_up') == 2 and total(after, 'roci_port_path_mtu_bytes', port='1') == 1024, 'ports')
    # The text is what the document says.
    families = json.loads(rocictl(program, daemon, '--json', 'metrics'))['metrics']
    check({f['name'] for f in families} == set(types), 'JSON and text have other families')
    zero = [k for k, v in after.items() if k[0] == 'roci_drops_total' and v == 0]
    check(not zero, f'a sample of reasons that never came up: {zero}')


def test_reset(program, daemon):
    """Metrics only rise: what an administrator resets is not they."""
    before, _ = parse(rocictl(program, daemon, 'metrics'))
    check('error' not in daemon.ask('reset counters') and 'error' not in daemon.ask('reset drops'), 'reset')
    check(daemon.ask('show counters')['counters']['rx_write_requests'] == 0, 'reset counters')
    after, _ = parse(rocictl(program, daemon, 'metrics'))
    check(total(after, 'roci_rx_write_requests_total') == total(before, 'roci_rx_write_requests_total'), 'fell')
    check(daemon.ask('show hw_counters')['hw_counters']['rx_write_requests'] > 0, 'hw_counters fell')


def test_telemetry(daemon, holder):
    t = Telemetry(daemon)
    listed = [c for c in t.ask('/') if c.startswith('/roci/')]
    check(len(listed) == 15, f'{listed}')
    check(t.ask('/help,/roci/qp')['/roci/qp'] if isinstance(t.ask('/help,/roci/qp'), dict) else
          t.ask('/help,/roci/qp'), 'help')
    check(t.ask('/roci/version')['pid'] == daemon.pid, 'version')
    check(t.ask('/roci/ports') == [1, 2] and t.ask('/roci/workers') == [0], 'ports, workers')
    port = t.ask('/roci/port,2')
    check(port['state'] == 'ACTIVE' and port['path_mtu'] == 1024, f'{port}')
    check(t.ask('/roci/gids,1') == ['192.0.2.1'], f'{t.ask("/roci/gids,1")}')
    hw = t.ask('/roci/hw_counters')
    check(hw == daemon.ask('show hw_counters')['hw_counters'] and hw['rx_write_requests'] >= MESSAGES, f'{hw}')
    # Names that rdma-core's and monitoring tools look for; those of what is not built are absent, not 0.
    for name in ('out_of_sequence', 'out_of_buffer', 'duplicate_request', 'rnr_nak_retry_err', 'packet_seq_err',
                 'implied_nak_seq_err', 'local_ack_timeout_err', 'rx_read_requests', 'req_cqe_error',
                 'req_cqe_flush_error', 'resp_cqe_error', 'resp_cqe_flush_error', 'resp_local_length_error',
                 'req_remote_access_errors', 'resp_remote_access_errors', 'req_remote_invalid_request',
                 'rx_icrc_encapsulated'):
        check(name in hw, f'no {name}')
    check(not {'roce_adp_retrans', 'lifespan', 'rx_packets'} & set(hw), f'{hw}')
    check({'np_cnp_sent', 'np_ecn_marked_roce_packets', 'rp_cnp_handled', 'rp_cnp_ignored', 'rp_cnp_repeated',
           'rp_fast_cnp_handled', 'rp_fast_cnp_ignored'} <= set(hw), f'{hw}')
    counters = t.ask('/roci/port_counters,1')
    check(counters['port'] == 1 and counters['port_xmit_packets'] == counters['unicast_xmit_packets'], f'{counters}')
    both = [t.ask(f'/roci/port_counters,{p}') for p in (1, 2)]
    check(sum(c['port_xmit_data'] for c in both) * 4 > MESSAGES * PAYLOAD, f'{both}')  # in words of four bytes
    check(t.ask('/roci/drops') == {d['reason']: d['packets'] for d in daemon.ask('show drops')['drops']} and t.ask('/roci/totals')['qps'] == 0, 'drops, totals')
    check(t.ask('/roci/worker,0')['state'] == 'running', 'worker')
    for wrong in ('/roci/port', '/roci/port,', '/roci/port,9', '/roci/qp,77', '/roci/port,1;show', '/roci/session,5',
                  '/roci/port,' + '1' * 40, '/roci/port,1 2'):
        check('error' in t.ask(wrong), f'{wrong}: {t.ask(wrong)}')

    p = subprocess.Popen([holder, daemon.socket, '1', '1', '600', '1'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(p.stdout.readline() == b'ready\n', 'holder: not ready')
    sessions = t.ask('/roci/sessions')
    check(len(sessions) == 1 and t.ask(f'/roci/session,{sessions[0]}')['pid'] == p.pid, f'{sessions}')
    first, rest = t.ask('/roci/qps'), t.ask('/roci/qps,512')
    want = {q['qpn'] for q in daemon.ask('show qps')['qps']}
    check(len(first) == 512 and set(first) | set(rest) == want and len(want) == len(first) + len(rest),
          f'{len(first)} {len(rest)} {len(want)}')
    qp = t.ask(f'/roci/qp,{first[0]}')
    check(qp['state'] == 'RESET' and qp['pid'] == p.pid and qp['requester']['outstanding'] == 0, f'{qp}')
    p.stdin.close()
    check(p.wait(PATIENCE_S) == 0, 'holder fails')


def test_together(daemon):
    """Several ask at the same time, and one hangs up without waiting."""
    wrong = []

    def visitor():
        t = Telemetry(daemon)
        for _ in range(50):
            if t.ask('/roci/ports') != [1, 2] or t.ask('/roci/version')['pid'] != daemon.pid:
                wrong.append(1)
    threads = [threading.Thread(target=visitor) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        t = Telemetry(daemon)
        t.socket.send(b'/roci/hw_counters')
        t.socket.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    check(not wrong and not any(thread.is_alive() for thread in threads), 'answers are lost')


def test_end(rocid, folder):
    """A daemon ends although somebody asks all the time; each has a telemetry socket of its own."""
    a, b = (start(rocid, folder, name=n, args=PORTS) for n in 'ab')
    ta, tb = Telemetry(a), Telemetry(b)
    check(ta.ask('/roci/version')['pid'] == a.pid and tb.ask('/roci/version')['pid'] == b.pid, 'whose?')

    def nag():
        try:
            while True:
                ta.ask('/roci/hw_counters')
        except (OSError, ValueError):
            pass
    thread = threading.Thread(target=nag, daemon=True)
    thread.start()
    a.check_ends()
    check(tb.ask('/roci/ports') == [1, 2], 'the other one')
    b.check_ends()


def main():
    rocid, program, holder, counted = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = start(rocid, folder, args=PORTS)
        test_metrics(program, daemon, counted)
        test_telemetry(daemon, holder)
        test_together(daemon)
        test_reset(program, daemon)
        daemon.check_ends()
        test_end(rocid, folder)


if __name__ == '__main__':
    main()
