/* SPDX-License-Identifier: BSD-3-Clause */
/** @file fixture.h  Two ends on the ports of one device, for programs on the verbs API. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_SIZE 65536
#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

#define CHECK(ok)                                                                              \
	do {                                                                                   \
		if (!(ok)) {                                                                   \
			fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #ok, \
				errno, strerror(errno));                                       \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

/** One end. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL unless its CQ is an extended one */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex; /* NULL: not created with send_ops_flags */
	struct ibv_mr *mr;
	uint8_t *buf;
	uint8_t port;
	uint8_t timeout; /* of ACKs, for to_rts(); 0: 20 */
};

/** The parts of a pair. */
struct recipe {
	enum ibv_qp_type type;
	bool extended;	/* the wr_* calls, with all that the type has */
	bool cq_ex;	/* completions are read in place */
	uint32_t depth; /* 0: 64 */
};

/** Opens device 0, a PD, a CQ, a region of malloc()ed memory and a QP at each end, and connects
 *  them. */
void pair_open(struct end e[2], const struct recipe *r);

/** Destroys all objects; each call must succeed. */
void pair_close(struct end e[2]);

/** Moves a QP to RTS; @p peer is ignored for datagrams. */
void to_rts(struct end *e, struct ibv_qp *qp, uint32_t peer_qpn, const struct end *peer);

/** Waits for one completion, which must be a success. */
struct ibv_wc poll_one(struct end *e);

/** Posts a receive into the whole buffer. */
void post_recv(struct end *e, uint64_t wr_id);

/** An address handle of @p e for @p peer. */
struct ibv_ah *address(struct end *e, const struct end *peer);

/** @return how many entries @p folder has: /proc/self/fd, /proc/self/map_files. */
unsigned count_entries(const char *folder);

#endif
