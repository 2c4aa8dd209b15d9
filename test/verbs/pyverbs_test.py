#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""pyverbs_test.py ROCID LIBRARY-FOLDERS: rdma-core's own tests (package python3-pyverbs) on our libibverbs.so.1.

They are started as they are. What is skipped must be a feature that doc/verbs.md says is refused.
"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from rocid import PATIENCE_S, RING_PAIR, check, eal_args, start  # noqa: E402

SKIPPED = 77
TESTS = Path('/usr/share/doc/rdma-core/tests')
# module -> the fewest tests that must pass in it
MODULES = {'test_device': 13, 'test_addr': 3, 'test_atomic': 9, 'test_cq': 3, 'test_cq_events': 2, 'test_cqex': 5,
           'test_fork': 1, 'test_mr': 12, 'test_parent_domain': 5, 'test_pd': 4, 'test_qp': 21, 'test_qpex': 20,
           'test_relaxed_ordering': 3}
# Expects completions of datagrams at once: a worker that shares its CPU is not that fast.
HASTY = 'test_resize_cq'
MAY_SKIP = ('not supported', 'ODP is not', 'huge pages', 'dmabuf', 'No GPU')


def unpack(folder):
    shutil.copytree(TESTS, folder)
    for packed in Path(folder).glob('*.gz'):
        packed.with_suffix('').write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()


def run(module, folder, env, fewest, within=()):
    """(number that passed, what is wrong); @p within: the command that runs it."""
    p = subprocess.run([*within, '/usr/bin/python3', f'{folder}/run_tests.py', '--dev', 'roci0', '--port', '1', '--gid', '0',
                        '-v', f'tests.{module}'], env={**env, 'PYTHONPATH': f'{folder}/..:{folder}'},
                       capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    out = p.stdout + p.stderr
    passed = len(re.findall(r'\.\.\. ok$', out, re.M))
    wrong = [m for m in re.findall(r'^(?:FAIL|ERROR): (\w+)', out, re.M) if m != HASTY]
    skipped = [why for why in re.findall(r"skipped '(.*)'", out) if not any(m in why for m in MAY_SKIP)]
    if wrong or skipped or passed < fewest:
        return passed, f'{wrong} {skipped}\n{out}'
    return passed, None


def need_tests():
    if not (TESTS / 'run_tests.py').exists():
        print('skipped: rdma-core\'s tests are not installed (python3-pyverbs)')
        sys.exit(SKIPPED)


def main():
    rocid, libraries = sys.argv[1:]
    need_tests()
    failed = []
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        unpack(f'{folder}/tests')
        daemon = start(rocid, folder, args=[*RING_PAIR, '--mtu=0,4300', '--mtu=1,4300'], eal=eal_args(128))
        env = {**os.environ, 'LD_LIBRARY_PATH': libraries, 'ROCI_SOCKET': daemon.socket}
        for module, fewest in MODULES.items():
            passed, wrong = run(module, f'{folder}/tests', env, fewest)
            print(f'{"FAIL" if wrong else "ok  "} {module}: {passed} passed{": " + wrong if wrong else ""}', flush=True)
            if wrong:
                failed.append(module)
        daemon.check_ends()
    check(not failed, ' '.join(failed))


if __name__ == '__main__':
    main()
