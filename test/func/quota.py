#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""quota.py ROCID HOLDER: what one application, and all of one user, may have is limited; the
refusal names the limit, and what others have does not count. As root, the users are two others."""
import os
import shutil
import subprocess
import sys
import tempfile
from rocid import PATIENCE_S, RING_PAIR, check, start, wait_until

LIMITS = {'max-sessions': 3, 'max-qps': 6, 'max-cqs': 4, 'max-mrs': 5, 'max-queues': 1,
          'max-memory': 1, 'max-user-qps': 8, 'max-user-memory': 1, 'max-user-cqs': 5, 'max-user-mrs': 6,
          'max-user-queues': 2, 'max-connections': 7, 'max-user-connections': 8}
SHOWN = {'sessions': 3, 'qps': 6, 'cqs': 4, 'mrs': 5, 'queues_mb': 1, 'memory_mb': 1, 'user_qps': 8,
         'user_memory_mb': 1, 'user_cqs': 5, 'user_mrs': 6, 'user_queues_mb': 2, 'connections': 7,
         'user_connections': 8}
ONE, OTHER = '65534', '65533'


def become(user):
    return ['setpriv', '--reuid', user, '--regid', user, '--clear-groups']


def hold(holder, daemon, *counts, user=None):
    p = subprocess.Popen([*(become(user) if user else []), holder, daemon.socket, *map(str, counts)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.ready = p.stdout.readline() == b'ready\n'
    return p


def holds(*args, **who):
    p = hold(*args, **who)
    check(p.ready, f'{args[2:]}: {"" if p.ready else p.stderr.read()}')
    return p


def sessions(daemon):
    return daemon.totals()['sessions']


def refused(word, *args, **who):
    """What is refused ends before the next one comes: until then it counts."""
    daemon = args[1]
    before = sessions(daemon)
    p = hold(*args, **who)
    said = p.communicate(timeout=PATIENCE_S)[1].decode()
    wait_until(lambda: sessions(daemon) == before, 'who was refused stays')
    check(not p.ready and p.returncode == 1 and word in said, f'{args[2:]}: {said or "granted"}')


def release(daemon, *programs):
    for p in programs:
        p.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not any(daemon.totals().values()), 'something stays')


def test_application(holder, daemon):
    full = holds(holder, daemon, 1, 4, 6, 5)
    row, = daemon.ask('show sessions')['sessions']
    check([row[k] for k in ('cqs', 'qps', 'mrs')] == [4, 6, 5], f'{row}')
    refused('--max-qps', holder, daemon, 1, 1, 7, 0)
    refused('--max-cqs', holder, daemon, 1, 5, 0, 0)
    refused('--max-mrs', holder, daemon, 1, 1, 0, 6)
    refused('--max-memory', holder, daemon, 1, 1, 0, 1, 1 << 21)
    refused('--max-queues', holder, daemon, 1, 1, 1, 0, 4096, 16384)
    release(daemon, full)


def test_user(holder, daemon):
    first = holds(holder, daemon, 1, 1, 5, 1, 600000, user=ONE)
    refused('--max-user-qps', holder, daemon, 1, 1, 4, 0, user=ONE)
    refused('--max-user-memory', holder, daemon, 1, 1, 0, 1, 600000, user=ONE)
    others = [holds(holder, daemon, 1, 1, 5, 1, 600000, user=OTHER), holds(holder, daemon, 1, 1, 3, 0, user=ONE),
              holds(holder, daemon, 1, 0, 0, 0, user=ONE)]
    refused('--max-sessions', holder, daemon, 1, 0, 0, 0, user=ONE)
    others.append(holds(holder, daemon, 1, 1, 1, 1, user=OTHER))
    roots = [holds(holder, daemon, 1, 1, 5, 1, 600000) for _ in range(4)]
    release(daemon, first, *others, *roots)


def test_kinds_of_a_user(holder, daemon):
    """Two applications of a user, each within its own limits."""
    for first, second, word in (((1, 4, 0, 0), (1, 2, 0, 0), '--max-user-cqs'),
                                ((1, 0, 0, 5), (1, 0, 0, 2), '--max-user-mrs')):
        p = holds(holder, daemon, *first, user=ONE)
        refused(word, holder, daemon, *second, user=ONE)
        other = holds(holder, daemon, *second, user=OTHER)
        release(daemon, p, other)


def test_queues_of_a_user(holder, daemon):
    queues = (1, 1, 1, 0, 4096, 2048)
    programs = [holds(holder, daemon, *queues, user=ONE)]
    row, = daemon.ask('show sessions')['sessions']
    fit = (1 << 20) // row['queue_bytes']
    daemon.ask('set limit user_queues_mb 1')
    programs += [holds(holder, daemon, *queues, user=ONE) for _ in range(1, fit)]
    refused('--max-user-queues', holder, daemon, *queues, user=ONE)
    programs += [holds(holder, daemon, *queues, user=who) for who in (OTHER, None)]
    release(daemon, *programs)


def test_without_an_option(holder, daemon):
    """What has no option is set by rocictl."""
    daemon.ask('set limit user_pds 3')
    programs = [holds(holder, daemon, 2, 0, 0, 0, user=ONE)]
    refused('rocictl set limit user_pds', holder, daemon, 2, 0, 0, 0, user=ONE)
    programs += [holds(holder, daemon, 2, 0, 0, 0, user=OTHER), holds(holder, daemon, 9, 0, 0, 0)]
    release(daemon, *programs)


def machine_mb():
    return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 20


def test_defaults(limits):
    """Half of what there is; three quarters of the QPs, so that 10,000 fit one user."""
    check([limits[k] for k in ('sessions', 'user_qps', 'user_cqs', 'user_pds', 'user_srqs', 'user_ahs',
                               'user_connections', 'user_cm_ids', 'user_cm_ports', 'user_listeners', 'user_cm_events',
                               'user_cm_requests')] ==
          [256, 12288, 16384, 16384, 2048, 16384, 16384, 32768, 14116, 2048, 32768, 10240], f'{limits}')
    check(limits['memory_mb'] == machine_mb() and abs(limits['user_memory_mb'] - machine_mb() // 2) < 8 and
          abs(limits['user_queues_mb'] - machine_mb() // 8) < 8, f'{limits}, {machine_mb()} MB')
    for name in ('user_mappings', 'user_descriptors'):
        check(0 < limits[name], f'{name}: {limits}')


def main():
    rocid, holder = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        os.chmod(folder, 0o755)
        words = [w for name, n in LIMITS.items() for w in ('--' + name, str(n))]
        daemon = start(rocid, folder, args=RING_PAIR + ['--socket-mode', '0666', *words])
        try:
            limits = daemon.ask('show limits')['limits']
            check({**limits, **SHOWN} == limits, f'{limits}')
            test_application(holder, daemon)
            if os.getuid() == 0 and shutil.which('setpriv'):
                test_user(holder, daemon)
                test_kinds_of_a_user(holder, daemon)
                test_queues_of_a_user(holder, daemon)
                test_without_an_option(holder, daemon)
            else:
                print("not root: limits of users are not tried")
        finally:
            ended = daemon.end()
        check(ended == 0, daemon.said())
        daemon = start(rocid, folder)
        test_defaults(daemon.ask('show limits')['limits'])
        daemon.check_ends()


if __name__ == '__main__':
    main()
