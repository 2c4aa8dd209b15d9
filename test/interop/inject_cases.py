# SPDX-License-Identifier: BSD-3-Clause
"""The worked examples of doc/inject.md: their commands are read from there and run while soft-RoCE's
ibv_rc_pingpong talks to roci-pingpong; what the text says of soft-RoCE is looked for in the counters
and the trace of our queue pair."""
import json
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from cases import CASE_TIMEOUT, PINGPONG_PORT
from sides import Disturbed, PATIENCE_S, Program, Trouble

TEXT = Path(__file__).resolve().parents[2] / 'doc/inject.md'
MESSAGES = 20           # of four packets, each way
ACK_TIMEOUT_NS = 4096 << 14     # ibv_rc_pingpong's
RNR_TIMER_NS = {22: 20480000}
NAKS = {'NAK_PSN_SEQUENCE', 'NAK_INVALID_REQUEST', 'NAK_REMOTE_ACCESS', 'NAK_REMOTE_OPERATION'}


@dataclass
class Outcome:
    """What a run has shown."""
    events: list        # of our trace
    counters: dict      # how far they went
    faults: list        # `show faults`
    client: Program     # soft-RoCE's, ended
    server: Program

    def of(self, event, **members):
        return [e for e in self.events if e['event'] == event and
                all(e.get(k) == v for k, v in members.items())]

    def injected(self):
        return self.of('inject')

    def behind(self, one, event, **members):
        """The first such event behind @one."""
        later = [e for e in self.of(event, **members) if e['ns'] > one['ns']]
        expect(later, f'no {event} {members} behind {one}')
        return later[0]

    def ended_well(self):
        expect(self.client.proc.returncode == 0 and self.server.proc.returncode == 0,
               f'client: {self.client.outcome()}; server: {self.server.outcome()}')


def expect(true, what):
    if not true:
        raise Trouble(what)


def expect_wait(waited, at_least, what):
    """soft-RoCE's patience by our clock: when we stood still at its beginning, it looks shorter."""
    if waited < at_least:
        raise Disturbed(f'{what} after {waited} ns: too early, or we saw the beginning late')


# --- what the text says ---------------------------------------------------------------------

def a_psn_is_lost(o):
    """Of ours: soft-RoCE asks for it by a NAK. Of its own, the last of a message: its timer brings it."""
    o.ended_well()
    ours, theirs = o.of('inject', direction='tx'), o.of('inject', direction='rx')
    expect(len(ours) == 1 and len(theirs) == 1, f'faults: {o.injected()}')
    nak = o.behind(ours[0], 'receive', syndrome='NAK_PSN_SEQUENCE')
    expect(nak['psn'] == ours[0]['psn'], f'{nak} is not for {ours[0]}')
    again = o.behind(nak, 'send', again=True)
    expect(again['psn'] == ours[0]['psn'], f'{again} is not what {nak} asks for')
    expect(o.counters['packet_seq_err'] >= 1 and o.counters['retransmits'] >= 1, f'{o.counters}')
    lost = theirs[0]
    came = o.behind(lost, 'receive', psn=lost['psn'])
    waited = came['ns'] - lost['ns']
    expect_wait(waited, ACK_TIMEOUT_NS * 9 // 10, f'soft-RoCE sent PSN {lost["psn"]} again')


def it_waits_for_the_receiver(o):
    """Three refusals, and soft-RoCE is silent for the time that the RNR NAK names."""
    o.ended_well()
    naks = o.of('send', syndrome='RNR_NAK')
    # Its ACK timer runs meanwhile: what that sends may come together with the last one that is refused,
    # and then there is nothing to say no to.
    expect(len(naks) in (2, 3) and len(o.injected()) == 3, f'{len(naks)} RNR NAKs')
    expect(o.counters['rnr_nak_sent'] == 3 and not o.counters['out_of_buffer'], f'{o.counters}')
    came = o.behind(naks[0], 'receive', psn=naks[0]['psn'])
    waited = came['ns'] - naks[0]['ns']
    expect_wait(waited, RNR_TIMER_NS[22], 'soft-RoCE tried again')


def a_bad_icrc_is_silence(o):
    """Nobody answers a packet whose ICRC is bad: our timer brings it again."""
    o.ended_well()
    faults = o.of('inject', fault='icrc')
    expect(len(faults) == 1, f'faults: {o.injected()}')
    fired = o.behind(faults[0], 'timer_fired', timer='ACK')
    answers = [e for e in o.of('receive') if faults[0]['ns'] < e['ns'] < fired['ns'] and
               e.get('psn') == faults[0]['psn'] and 'syndrome' in e]
    expect(not answers, f'it was answered: {answers}')
    expect(o.counters['local_ack_timeout_err'] >= 1, f'{o.counters}')


def a_forged_nak_ends_it(o):
    """soft-RoCE believes it: its program is told of a remote access error."""
    expect(o.client.proc.returncode, 'ibv_rc_pingpong went on')
    said = o.client.log.read_text(errors='replace')
    expect('remote access error' in said, f'ibv_rc_pingpong said: {said}')
    expect(len(o.injected()) == 1, f'faults: {o.injected()}')


@dataclass
class InjectCase:
    name: str
    heading: str        # of the example in doc/inject.md
    judge: object
    timers: int = 0     # that our side has to wait for: one more, and somebody stood still
    tries: int = 10     # of less than a second each
    mtu: int = 1024
    lossy: bool = False
    often: bool = True

    def commands(self):
        """The example's lines that begin with `rocictl inject`."""
        text = TEXT.read_text()
        found = re.search(rf'^### {re.escape(self.heading)}.*?$(.*?)(?=^##|\Z)', text, re.M | re.S)
        expect(found, f'{TEXT} has no example "{self.heading}"')
        lines = re.findall(r'^(?:    )?(rocictl inject .*)$', found.group(1), re.M)
        expect(lines, f'example "{self.heading}" injects nothing')
        return lines


def inject_cases():
    return [
        InjectCase('inject-psn', 'A PSN is lost', a_psn_is_lost),
        InjectCase('inject-rnr', 'The receiver is not ready', it_waits_for_the_receiver),
        InjectCase('inject-icrc', 'A bad ICRC', a_bad_icrc_is_silence, timers=1),
        InjectCase('inject-nak', 'A forged NAK', a_forged_nak_ends_it),
    ]


# --- running --------------------------------------------------------------------------------

class Rocictl:
    def __init__(self, build):
        self.program = build / 'app/rocictl/rocictl'

    def ask(self, *words):
        r = subprocess.run([self.program, '--json', *words], capture_output=True, text=True, check=False)
        if r.returncode:
            raise Trouble(f'rocictl {" ".join(words)}: {r.stderr or r.stdout}')
        return json.loads(r.stdout)

    def run(self, line, **names):
        """A line of the text."""
        line = line.replace('rocictl', str(self.program), 1)
        r = subprocess.run(['sh', '-eu', '-c', line], capture_output=True, text=True, check=False,
                           env={k: str(v) for k, v in names.items()})
        if r.returncode:
            raise Trouble(f'{line}: {r.stderr or r.stdout}')


def find_server(server):
    """QPN and PSN, as the server prints them."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        runs = server.running()
        found = re.search(r'local address:.*QPN 0x([0-9a-f]+), PSN 0x([0-9a-f]+)', server.log.read_text())
        if found:
            return int(found.group(1), 16), int(found.group(2), 16)
        if not runs:
            raise Trouble(f'roci-pingpong ends: {server.outcome()}')
        time.sleep(0.05)
    raise Disturbed(f'roci-pingpong does not tell its address: {server.log.read_text()}')


def run_inject_case(case, ours, peer, args):
    """@return a function that judges it, and returns a summary line. Both raise Trouble."""
    ctl, state = Rocictl(args.build), args.inside
    options = ['-c', '-s', '4096', '-m', str(case.mtu), '-n', str(MESSAGES), '-g']
    before = ctl.ask('show', 'counters')['counters']
    server = Program(['timeout', '-k', '5', CASE_TIMEOUT, 'stdbuf', '-oL', *ours.programs['pingpong'], *options,
                      str(ours.gid_index['v4'])], state / f'{case.name}.server.log')
    qpn, psn = find_server(server)
    ours.wait_listening(PINGPONG_PORT, server)
    trace_path = state / f'{case.name}.trace'
    with open(trace_path, 'w') as out:
        trace = subprocess.Popen([ctl.program, '--json', 'trace', 'qp', str(qpn)], stdout=out,
                                 stdin=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_S
    while not ctl.ask('show', 'traces')['traces'] and time.monotonic() < end:
        time.sleep(0.05)
    for line in case.commands():
        ctl.run(line, QPN=qpn, PSN=psn)
    client = peer.start('pingpong', options + [str(peer.gid_index['v4']), ours.tcp_address],
                        state / f'{case.name}.client.log', CASE_TIMEOUT)
    client.passed(CASE_TIMEOUT)
    faults = ctl.ask('show', 'faults')['faults'] if server.running() else []
    if client.proc.returncode:
        server.proc.terminate()         # nobody tells it
    server.passed(CASE_TIMEOUT)
    try:
        trace.wait(PATIENCE_S)          # ends with its queue pair
    except subprocess.TimeoutExpired:
        trace.kill()
        trace.wait()
        raise Disturbed('the trace does not end with its queue pair') from None
    after = ctl.ask('show', 'counters')['counters']
    outcome = Outcome([json.loads(line) for line in trace_path.read_text().splitlines()],
                      {k: after[k] - before[k] for k in after}, faults, client, server)
    try:
        case.judge(outcome)
    except Trouble as e:
        timers = len(outcome.of('timer_fired', timer='ACK'))
        if timers > case.timers:
            raise Disturbed(f'{e}; our ACK timer fired {timers} times, not {case.timers}') from None
        raise
    return lambda: f'{len(outcome.injected())} faults, {len(outcome.events)} events'
