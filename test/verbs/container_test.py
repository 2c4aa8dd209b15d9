#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""container_test.py ROCID BUILD-FOLDER

doc/cluster.md's containers, by systemd-nspawn: programs of a user without rights in two containers, which have the
folder of rocid's socket and nothing else of the host, meet; with namespaces of their own as nspawn has it, and with
none, as container engines' filters of system calls have it. Needs root."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'func'))
from netlab import Namespace, PATIENCE_S, skip, wait_for  # noqa: E402
from rocid import Rocid, check, settled  # noqa: E402

INSIDE = '/opt/rocinante'
RUN = f'{INSIDE}/app/run/roci-run'
# Without them roci-run cannot make nodes: the container has them from outside, as compose.yaml and pod.yaml say.
DENIED = ['--system-call-filter=~unshare mount', '--bind=/dev/null:/dev/infiniband/uverbs0',
          '--bind=/dev/null:/dev/infiniband/rdma_cm']
WRITE = 'ib_write_bw -d roci0 -x 0 -s 65536 -n 200'
TAG = 'ucx_perftest -t tag_lat -s 1024 -n 200'
UCX = {'UCX_TLS': 'rc_verbs,ud_verbs', 'UCX_NET_DEVICES': 'roci0:1'}


def container(folder, build, words, options=(), env=()):
    """The host's /usr and /etc, read only; no other folder, and a network of its own: packets are rocid's."""
    variables = [f'--setenv={k}={v}' for k, v in {'LC_ALL': 'C', **dict(env)}.items()]
    return ['systemd-nspawn', '--quiet', '--directory=/', '--volatile=yes', '--bind-ro=/etc', '--register=no',
            '--keep-unit', '--as-pid2', '--pipe', f'--machine=roci-{time.monotonic_ns()}', '--link-journal=no',
            f'--bind={folder}:/run/rocid', f'--bind-ro={build}:{INSIDE}', '--user=nobody', *variables, *options, *words]


def start(*args, **kw):
    return subprocess.Popen(container(*args, **kw), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def out(*args, **kw):
    p = start(*args, **kw)
    text = p.communicate(timeout=PATIENCE_S)[0]
    return p.returncode, text


def test_look(folder, build):
    tools = 'id -u; ibv_devinfo; ibstat -l; stat -c %F /dev/infiniband/uverbs0'
    status, text = out(folder, build, [RUN, 'sh', '-ec', tools])
    check(not status and '65534\nhca_id:\troci0' in text and '\nroci0\ncharacter special file' in text, text)
    status, text = out(folder, build, [RUN, 'sh', '-ec', 'ibv_devinfo; stat -c %F /dev/infiniband/uverbs0'], DENIED)
    check(not status and 'user namespaces, or mapping a user in them, are denied here' in text and 'hca_id:\troci0' in text, text)
    check('character special file' in text, text)


def listens(namespace):
    tables = [f'/proc/{namespace.pid}/net/{t}' for t in ('tcp', 'tcp6')]
    return any(' 0A ' in Path(t).read_text() for t in tables)


def test_pair(folder, build, namespace, line, options, env=()):
    """The programs' own words go over the loopback of one network, their data by rocid."""
    options = [f'--network-namespace-path=/proc/{namespace.pid}/ns/net', *options]
    server = start(folder, build, [RUN, *line.split()], options, env)
    try:
        wait_for(f'{line} to listen', lambda: listens(namespace) or server.poll() is not None)
        status, text = out(folder, build, [RUN, *line.split(), '127.0.0.1'], options, env)
        said = server.communicate(timeout=PATIENCE_S)[0]
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    check((status, server.returncode) == (0, 0), f'{line} {options}:\n-- client: {text}\n-- server: {said}')
    print(f'ok   {line} {options[1:]}', flush=True)


def main():
    rocid, build = sys.argv[1:]
    if os.geteuid() or not shutil.which('systemd-nspawn'):
        skip('needs root and systemd-nspawn (systemd-container)')
    with tempfile.TemporaryDirectory(prefix='roci-') as folder:
        os.chmod(folder, 0o755)
        status, text = out(folder, build, ['true'])
        if status:
            skip(f'systemd-nspawn cannot start a container here: {text.strip()}')
        daemon = Rocid(rocid, folder, args=['--ring-pair', '--gid', '0,10.7.0.1', '--gid', '1,10.7.0.2',
                                            '--idle', 'yield', '--socket-mode', '0666'])
        check(daemon.wait_ready(), daemon.said())
        test_look(folder, build)
        before = settled(daemon.totals)
        namespace = Namespace()
        namespace.run('ip link set lo up')
        for options in [], DENIED:
            test_pair(folder, build, namespace, WRITE, options)
            if shutil.which('ucx_perftest'):
                test_pair(folder, build, namespace, TAG, options, UCX.items())
        after = settled(daemon.totals)
        check(after == before, f'{before} before, {after} after')
        namespace.close()
        daemon.check_ends()


if __name__ == '__main__':
    main()
