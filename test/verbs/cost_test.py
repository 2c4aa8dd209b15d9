#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""cost_test.py ROCID VERBS_COST

What ibv_wr_*() and ibv_start_poll() cost against ibv_post_send() and ibv_poll_cq(): instructions, counted by
callgrind, of a program that does the same in both ways.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from rocid import check, start  # noqa: E402

ROUNDS = 128


def count(program, daemon, way, wrs, folder):
    """Instructions per round."""
    out = subprocess.run(['valgrind', '--tool=callgrind', '--collect-atstart=no', f'--toggle-collect={way}',
                          f'--callgrind-out-file={folder}/out', program, daemon.socket, way, str(wrs)],
                         env={**os.environ, 'ROCI_SOCKET': daemon.socket, 'LD_BIND_NOW': '1'},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r'Collected : (\d+)', out.stdout)
    check(not out.returncode and found and found.group(1) != '0', f'{way} {wrs}: {out.stdout}')
    return int(found.group(1)) / ROUNDS


def main():
    rocid, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        daemon = start(rocid, folder)
        for what, wrs in ('post', 1), ('post', 16), ('poll', 1):
            plain = count(program, daemon, f'{what}_list', wrs, folder)
            extended = count(program, daemon, f'{what}_ex', wrs, folder)
            print(f'{what} of {wrs}: {plain:.0f} instructions, extended {extended:.0f}')
            check(extended <= plain, f'{what} of {wrs}: the extended calls cost more')
        daemon.check_ends()


if __name__ == '__main__':
    main()
