# SPDX-License-Identifier: BSD-3-Clause
"""A TCP port for a server that is started later."""
import random
import socket

BELOW_THE_KERNELS = range(20000, 32000)  # the kernel gives other programs those from 32768 on


def free_port():
    while True:
        port = random.choice(BELOW_THE_KERNELS)
        with socket.socket() as s:
            try:
                s.bind(('', port))
                return str(port)
            except OSError:
                continue  # in use
