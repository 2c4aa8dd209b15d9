# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the kernel that tests need, and that several tests at once may need."""
import contextlib
import fcntl
import os
from pathlib import Path

HUGE_PAGES = 83  # enough for several tests


@contextlib.contextmanager
def is_set(path, value, keep=lambda before: False):
    """The last of several tests sets back what the first one found. A value that @keep accepts stays, and so does any
    without the right to set it."""
    setting = Path(path)
    if os.geteuid() or not os.access(path, os.W_OK):
        yield
        return
    with open(f'/dev/shm/roci-{setting.name}', 'a') as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        found = Path(lock.name)
        before = int(setting.read_text())
        if before != value and not keep(before):
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


def huge_pages():
    """The kernel makes some when they are asked for."""
    return is_set('/proc/sys/vm/nr_overcommit_hugepages', HUGE_PAGES, lambda before: before > HUGE_PAGES)


def huge_pages_for(group):
    """Users of @group may have them in System V shared memory."""
    return is_set('/proc/sys/vm/hugetlb_shm_group', group)
