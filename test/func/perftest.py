# SPDX-License-Identifier: BSD-3-Clause
"""perftest -R connects twice, the second time perhaps before its server listens again. Then it is refused, as
nobody has this service ID, uses an id that it has freed, and crashes: a defect of perftest (4.5)."""

# A connected QP's REJ with reason 8; a datagram QP's SIDR_REP with status 1.
TOO_EARLY = 'RDMA_CM_EVENT_REJECTED; error: 8', 'RDMA_CM_EVENT_UNREACHABLE; error: 1.'


def connected_too_early(output):
    return any(sentence in output for sentence in TOO_EARLY)
