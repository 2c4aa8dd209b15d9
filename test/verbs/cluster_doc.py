#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""cluster_doc.py BUILD-FOLDER: what doc/cluster.md has a reader type for two machines, word by word.

In a mount namespace with a /run and a /tmp of its own. Only the pauses are others: they last until what they wait
for has happened. Needs root."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import PATIENCE_S, skip  # noqa: E402
from rocid import check  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = 'app/rocid/rocid', 'app/run/roci-run', 'app/rocictl/rocictl'
BEFORE = r'''
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir /tmp/bin
for p in $PROGRAMS; do ln -s $BUILD/$p /tmp/bin; done
PATH=/tmp/bin:$PATH
trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT
# Until both serve, and rping, where it runs, listens.
ready() {
	for n in 1 2; do ROCI_SOCKET=/tmp/m$n.sock rocictl show ports > /dev/null 2>&1 || return 1; done
	case $(jobs -r) in
	*rping*) ROCI_SOCKET=/tmp/m2.sock rocictl --json show cm listeners | grep -q 7174 ;;
	esac
}
sleep() {
	for i in $(seq $PATIENCE_S); do
		! ready || return 0
		command sleep 1
	done
	echo "not ready"
	exit 1
}
'''


def main():
    build = sys.argv[1]
    missing = [p for p in ('mpirun', 'mpicc', 'rping', 'ibv_devinfo', 'ip') if not shutil.which(p)]
    if missing or os.geteuid():
        skip(f'needs root, and {missing or "all that it needs is here"}')
    text = (ROOT / 'doc/cluster.md').read_text()
    part = text[text.index('## Try it'):text.index('## On each machine')]
    script = BEFORE + '\n'.join(re.findall(r'```sh\n(.*?)```', part, re.S))
    env = {**os.environ, 'BUILD': build, 'PROGRAMS': ' '.join(PROGRAMS), 'PATIENCE_S': str(PATIENCE_S)}
    done = subprocess.run(['unshare', '-m', 'bash', '-c', script], env=env, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3 * PATIENCE_S)
    print(done.stdout)
    check(not done.returncode, f'status {done.returncode}')
    for line in 'hca_id:\troci0', 'ping data: rdma-ping-2', 'rank 0: the sum is 3', 'rank 1: the sum is 3':
        check(line in done.stdout, f'{line!r} is missing')


if __name__ == '__main__':
    main()
