#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""events_test.py ROCID LIBRARY-FOLDER

ibv_asyncwatch, as Debian has it, while addresses, the link and rocid itself come and go. Needs root."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Lab, PATIENCE_S, skip, veth, wait_for  # noqa: E402
from rocid import ask, check  # noqa: E402

# Commands, and the event that ibv_asyncwatch names for each.
STEPS = (
    ('ip address add 10.8.0.7/24 dev e0', 'IBV_EVENT_GID_CHANGE'),
    ('ip address del 10.8.0.7/24 dev e0', 'IBV_EVENT_GID_CHANGE'),
    ('ip link set e0 down', 'IBV_EVENT_PORT_ERR'),
    ('ip link set e0 up', 'IBV_EVENT_PORT_ACTIVE'),
    ('ip link set e0 address 02:00:00:00:00:77', 'IBV_EVENT_GID_CHANGE'),
)


def events(out):
    return [line for line in out.read_text().splitlines() if 'event_type' in line]


def main():
    rocid, libraries = sys.argv[1:]
    if not shutil.which('ibv_asyncwatch'):
        skip('ibv_asyncwatch is not installed (ibverbs-utils)')
    with Lab(rocid, None) as lab:
        a, b = lab.namespace(), lab.namespace()
        veth(a, 'e0', b, 'e0')
        a.run('ip address add 10.8.0.1/24 dev e0')
        daemon = lab.rocid(a, 'a', ['--share', 'e0'])
        wait_for('the port', lambda: ask(daemon, 'show ports')['ports'][0]['state'] == 'ACTIVE')
        env = {**os.environ, 'LD_LIBRARY_PATH': libraries, 'ROCI_SOCKET': daemon.socket, 'LC_ALL': 'C'}
        out = Path(lab.path('events'))
        with open(out, 'w') as log:
            watch = subprocess.Popen(['stdbuf', '-oL', 'ibv_asyncwatch', '-d', 'roci0'], env=env, stdout=log,
                                     stderr=log, stdin=subprocess.DEVNULL)
        try:
            wait_for('ibv_asyncwatch', lambda: 'async event FD' in out.read_text())
            for what, event in STEPS:
                before = len(events(out))
                a.run(what)
                wait_for(f'{event} after {what}', lambda n=before, e=event: any(
                    e in line for line in events(out)[n:]))
            daemon.terminate()
            daemon.wait(PATIENCE_S)
            wait_for('the end of the device', lambda: 'IBV_EVENT_DEVICE_FATAL' in out.read_text())
            check(watch.poll() is None or watch.returncode >= 0, f'ibv_asyncwatch: {watch.returncode}')
        finally:
            watch.kill()
            watch.wait()
        print(out.read_text()[-1500:])


if __name__ == '__main__':
    main()
