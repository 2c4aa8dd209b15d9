#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pyverbs_cm_test.py ROCID ROCI-RUN: rdma-core's own tests of RDMA CM (package python3-pyverbs), as they are.

They look for the device's netdev in /sys and for its addresses: rocid serves one of a namespace, and roci-run shows
which. Needs root."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Lab, ping  # noqa: E402
from pyverbs_test import need_tests, run, unpack  # noqa: E402
from rdmacm import SIX, link  # noqa: E402
from rocid import check  # noqa: E402

FEWEST = 10
SYSFS = ('unshare', '-m', 'sh', '-c', 'mount -t sysfs sysfs /sys; exec "$@"', 'sh')


def main():
    rocid, roci_run = sys.argv[1:]
    need_tests()
    with Lab(rocid, None) as lab:
        a, b = link(lab)
        daemon = lab.rocid(a, 'a', ['--share', 'e0'])
        ping(b, SIX['server'])
        unpack(lab.path('tests'))
        passed, wrong = run('test_rdmacm', lab.path('tests'), {**os.environ, 'ROCI_SOCKET': daemon.socket}, FEWEST,
                            a.command([*SYSFS, roci_run]))
        check(not wrong, wrong)
        print(f'ok   test_rdmacm: {passed} passed')


if __name__ == '__main__':
    main()
