#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""cnp_flood_test.py ROCID ROCICTL ROCIGEN ROCISINK STEPS WORKERS: floods of CNPs and Fast CNPs at one program's queue
pairs, from its peer, from a switch, and from strangers. Another program's WRITEs over another port of the same workers
go on meanwhile: all arrive, none is sent again, no queue pair of it is limited. Counted work, not time."""
import sys
import tempfile
import threading
from fast_cnp_test import HANDLED, IGNORED, OTHER, PEER, PLAIN, QPS, SWITCH, Lab
from rocid import PATIENCE_S, check, wait_until
from steps import Steps

FLOOD = 200000
TRIES = 20          # floods, until enough WRITEs have ended during them
LEAST = 20          # Mb/s
WRITES = 50         # of 9,000 bytes
OTHERS = ['--ring-pair', '--gid', '1,192.0.2.1', '--gid', '2,192.0.2.2', '--cc', '1,dcqcn,line=1G', '--cc', '2,dcqcn,line=1G']
PORT_A, PORT_B = 2, 3
CC = f'dcqcn,line=1G,rp_min_rate={LEAST},fastcnp={SWITCH},fastcnp_burst=65536'
HOLD = f'{CC},rp_time_reset=131071,rp_byte_reset=0,rp_ai_rate=0.1,rp_hai_rate=0.1'     # less than 1 Mb/s per second

# Options of rocigen; what counts the packets, and by how much each; whether the flooded queue pairs are limited.
FLOODS = (
    ([*PLAIN], {'rp_cnp_handled': 1}, True),
    ([*PLAIN, '--src', 'fd00::3'], {'qp_address': 1}, False),
    ([], {HANDLED: 1, 'fast_cnp_rate': 1}, True),
    (['--src', OTHER], {'fast_cnp_source': 1}, False),
)
# None of these may move: the other program would have been harmed.
HARM = ('retransmits', 'local_ack_timeout_err', 'packet_seq_err', 'out_of_sequence', 'duplicate_request', 'rnr_nak_sent',
        'qp_state', 'psn_ahead')


class Other:
    """The other program, whose WRITEs go on until it ends. Nothing that is lost is sent again: it has no timer."""

    def __init__(self, steps, lab):
        self.steps = Steps(steps, lab.daemon, PORT_A, PORT_B, timeout=0)
        self.done = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        while not self.ended.is_set():
            self.steps.do('write', 1, 9000)
            self.done += 1

    def end(self):
        self.ended.set()
        self.thread.join()
        self.steps.end()


def weights(lab, counted):
    """Of counters, in packets * QPS. A copy for another worker that finds no room there tells none of its queue pairs."""
    workers = [lab.daemon.ask(f'show qp {n}')['qp']['worker'] for n in lab.qpns]
    away = QPS - workers.count(0)       # worker 0 has the only queue of the port
    found = {k: n * QPS for k, n in counted.items()}
    if HANDLED in counted:
        found.update({HANDLED: 1, IGNORED: 1, 'handoff_full': away})
    else:
        found['handoff_full'] = QPS
    return found


def flood(lab, other, row):
    arguments, counted, limits = row
    each = weights(lab, counted)
    lab.set(HOLD)
    before, done = lab.counts(), other.done

    def seen():
        moved = lab.moved(before)
        return sum(moved.get(k, 0) * n for k, n in each.items())
    for sent in range(FLOOD, (TRIES + 1) * FLOOD, FLOOD):
        process = lab.send(arguments, FLOOD)     # which returns when they have been sent
        wait_until(lambda n=sent: seen() == n * QPS, lambda: f'{arguments}: {lab.moved(before)}')
        process.stdin.close()
        check(process.wait(PATIENCE_S) == 0, 'rocigen fails')
        if other.done - done >= WRITES:
            break
    state = lab.daemon.ask(f'show qp {lab.qpns[0]}')['rate']
    rate = state['rate_mbps']
    print(f'{arguments}: {sent} packets, {other.done - done} WRITEs, rate {rate} Mb/s, {lab.moved(before)}')
    check(other.done - done >= WRITES and other.thread.is_alive(), f'{arguments}: {other.done - done} WRITEs')
    check(LEAST <= rate < 5 * LEAST if limits else rate == 1000, f'{arguments}: {rate} Mb/s')
    source = 'the last from a switch' if HANDLED in counted else f'from {PEER}'
    check(not limits or state['why'].endswith(source), f'{state}')
    lab.set(CC)


def unharmed(lab, other, before):
    moved = lab.moved(before)
    check(not set(HARM) & set(moved), f'{moved}')
    for qpn in other.steps.a, other.steps.b:
        qp = lab.daemon.ask(f'show qp {qpn}')
        check(qp['qp']['state'] == 'RTS' and not qp['rate']['limited'] and not qp['rate']['cnps_handled'], f'{qp}')
    for qpn in lab.qpns:
        check(lab.daemon.ask(f'show qp {qpn}')['qp']['state'] == 'RTS', f'QP {qpn} fails')
        wait_until(lambda n=qpn: not lab.daemon.ask(f'show qp {n}')['rate']['limited'], f'QP {qpn} does not recover')


def main(*arguments):
    *programs, steps, workers = arguments
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(programs, folder, [*OTHERS, '--queues', '0,1', '--migrate', 'off'] if int(workers) > 1 else OTHERS, int(workers))
        lab.start_sink('busy')
        lab.set(CC)
        before = lab.counts()
        other = Other(steps, lab)
        for row in FLOODS:
            # proves CNP-11, CNP-13, CNP-16, FCN-10, FCN-11, FCN-16
            flood(lab, other, row)
            unharmed(lab, other, before)
        other.end()
        lab.end()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
