# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the kernel that tests need, and that several tests at once may need."""
import contextlib
import fcntl
import os
from pathlib import Path

HUGE_PAGES = '/proc/sys/vm/nr_overcommit_hugepages', 83  # enough for several tests
SHM_GROUP = '/proc/sys/vm/hugetlb_shm_group'


@contextlib.contextmanager
def at_least(path, value):
    """The last of several tests sets back what the first one found. Without the right to set it, it is as it was."""
    setting = Path(path)
    if os.geteuid() or not os.access(path, os.W_OK):
        yield
        return
    with open(f'/dev/shm/roci-{setting.name}', 'a') as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        found = Path(lock.name)
        before = int(setting.read_text())
        if before < value:
            found.write_text(str(before))
            setting.write_text(str(value))
        try:
            yield
        finally:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if found.read_text() and int(setting.read_text()) == value:
                    setting.write_text(found.read_text())
                found.write_text('')
            except BlockingIOError:
                pass  # another test has it
