#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""validate.py [OPTION...] FILE.pcap...

Judges captures of RoCE traffic. Every RoCE frame: its ICRC, against the oracle. The frames that are
ours (sent from one of the --src MAC or IP addresses; without --src all of them): tshark's decode
without a complaint, and the rules of doc/rules.tsv that a capture can show. Exit status 1 with a
sentence for each complaint, 2 when nothing could be judged; an empty capture is a complaint.

With --src the capture is one from beside that side: its frames are all there, those of others may be
lost, doubled, late, or with --corrupt wrong. --list says instead how often each rule was broken, with the
first frame that did, and exits with 0: for a peer whose faults are to be known.

The oracle's folder is $SHARED_DIR/oracle, or oracle/ in ../shared beside the checkout.
"""
import argparse
import os
import subprocess
import sys
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
from judge import Judge
from rocewire import parse, read_pcap, uncut

MAX_PRINTED = 20     # complaints of a file
ORACLE_ALL = 200     # so many frames of a file go through the bitwise oracle, then every
ORACLE_EVERY = 50    # 50th: the others take the same masking and zlib's CRC-32
# Guesses at what lies in the payload complain about random bytes.
HEURISTICS = ('eth_over_ib', 'mellanox_eoib', 'sdp_infiniband', 'fc_infiniband', 'rpcrdma_infiniband',
              'smb_direct_infiniband', 'iser_infiniband', 'nvme_rdma', 'lnet_ib', 'smcr_infiniband')


def oracle_folder():
    shared = os.environ.get('SHARED_DIR') or Path(__file__).resolve().parents[2].parent / 'shared'
    return Path(shared) / 'oracle'


def load_oracle():
    sys.path.insert(0, str(oracle_folder()))
    try:
        import rocepkt
    except ImportError:
        sys.exit(f'validate: no oracle in {oracle_folder()}: set SHARED_DIR')
    return rocepkt


class Icrc:
    """Every frame's ICRC by the oracle's masking; the CRC itself bitwise or, to be done in time, zlib's
    CRC-32, which is the same function. A mismatch is always confirmed bitwise."""

    def __init__(self, oracle):
        self.oracle, self.count, self.bitwise = oracle, 0, 0

    def good(self, frame):
        self.count += 1
        masked, off = self.oracle.masked(frame)
        have = frame[off:off + 4]
        fast = zlib.crc32(masked).to_bytes(4, 'little')
        if have == fast and self.count > ORACLE_ALL and self.count % ORACLE_EVERY:
            return True
        self.bitwise += 1
        return self.oracle.icrc(frame)[0] == have


def tshark_complaints(path, args):
    """@return sentences of tshark about our RoCE frames."""
    ours = ' || '.join(f'eth.src == {s}' if s.count(':') == 5 and len(s) == 17 else
                       f'ipv6.src == {s}' if ':' in s else f'ip.src == {s}' for s in args.src)
    # 0x600000 is the severity "warning".
    bad = 'infiniband && (_ws.malformed || _ws.expert.severity >= 0x600000)'
    # UDP without a checksum over IPv6 is as it must be (A17.3.2.4, RFC 6935).
    cmd = ['tshark', '-n', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE', '-r', str(path),
           '-Y', f'{bad} && ({ours})' if ours else bad, '-T', 'fields', '-e', 'frame.number', '-e', '_ws.expert.message', '-e', '_ws.malformed']
    for h in HEURISTICS:
        cmd += ['--disable-heuristic', h]
    r = subprocess.run(cmd, capture_output=True, text=True)
    if r.returncode:
        return [f'tshark failed: {r.stderr.strip()}']
    return [f'tshark about frame {line.strip()}' for line in r.stdout.splitlines()]


def path_mtu(packets):
    """What the first packet of a longer message carries, or None when all messages are short."""
    for p in packets:
        if p.op and p.op.payload and p.op.first and not p.op.last:
            return len(p.payload)
    return None


def frames_of(path):
    """As read_pcap(), and each frame as it is on a wire."""
    for n, whole, truncated, stamp in read_pcap(path):
        for frame in uncut(whole):
            yield n, frame, truncated, stamp


def judge_file(path, args, oracle):
    icrc, complaints, packets, corrupt = Icrc(oracle), [], [], 0
    for n, frame, truncated, stamp in frames_of(path):
        p = parse(n, frame)
        if not p:
            continue
        p.time = stamp
        try:
            good = icrc.good(frame)
        except (ValueError, IndexError):    # no place for an ICRC
            good = False
        if truncated:
            complaints.append(f'frame {n} is cut off in the capture: capture with -s 0')
        elif not good and args.corrupt and p.src not in args.src:
            corrupt += 1
        elif not good:
            complaints.append(f'frame {n} from {p.src}: the ICRC is wrong')
        else:
            packets.append(p)
    judge = Judge(args, path, args.mtu or path_mtu(packets), packets)
    judge.corrupt = corrupt
    judge.complaints += complaints
    for p in packets:
        judge.packet(p)
    if not args.broken_off:
        judge.finish()
    if args.silent and set(judge.ours) - {'CNP'}:       # which answer marks
        judge.complaints.append('UC-02: frames of ours were captured, although it had nothing to say')
    if not (judge.ours or args.silent or args.broken_off):
        judge.complaints.append('not one RoCE frame' + (' of ours' if args.src else '') +
                                ' was captured')
    judge.complaints += tshark_complaints(path, args) if args.tshark else []
    return judge, icrc


def summary(judge, icrc):
    def kinds(c):
        return ', '.join(f'{n} {k}' for k, n in sorted(c.items(), key=lambda x: -x[1]))
    again = sum(f.retransmitted for f in judge.flows.values()
                if f.ours)
    return (f'{judge.path}: {icrc.count} RoCE frames with ICRC checked ({icrc.bitwise} bitwise); '
            f'ours {sum(judge.ours.values())} ({kinds(judge.ours)}), {again} sent again, '
            f'{judge.naks} NAK; others {sum(judge.others.values())}; '
            f'{len(judge.complaints)} complaints')


def report(judge):
    for c in judge.complaints[:MAX_PRINTED]:
        print(f'{judge.path}: {c}')
    if len(judge.complaints) > MAX_PRINTED:
        print(f'{judge.path}: {len(judge.complaints) - MAX_PRINTED} complaints more')


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument('--src', action='append', default=[])
    ap.add_argument('--mtu', type=int)
    ap.add_argument('--waive', action='append', default=[])
    ap.add_argument('--list', action='store_true')
    ap.add_argument('--corrupt', action='store_true')
    ap.add_argument('--timeout', type=int, help='code of the ACK time-out: REQ-22 is judged')
    ap.add_argument('--retry', type=int, help='retry_cnt: REQ-25 is judged')
    ap.add_argument('--rd-atomic', type=int, help='max_rd_atomic: REQ-08 is judged')
    ap.add_argument('--ecn', action='store_true', help='ours manages congestion: its packets are ECN-capable')
    ap.add_argument('--silent', action='store_true', help='ours sends nothing: UC-02')
    ap.add_argument('--broken-off', action='store_true',
                    help='its programs gave up: nothing need be there, or have an end')
    ap.add_argument('--no-tshark', dest='tshark', action='store_false')
    ap.add_argument('files', nargs='+', type=Path)
    args = ap.parse_args()
    oracle, bad = load_oracle(), False
    for path in args.files:
        try:
            judge, icrc = judge_file(path, args, oracle)
        except (OSError, ValueError) as e:
            print(f'{path}: {e}')
            return 2
        if args.list:
            for rule, (count, first) in sorted(judge.rules.items()):
                print(f'{path}: {count} times {rule}, first {first}')
        else:
            report(judge)
            bad |= bool(judge.complaints)
        print(summary(judge, icrc))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
