/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pair.h
 * For functional tests: two connected RC queue pairs in one program, on ports 1 and 2 of one
 * rocid whose ports are a ring pair. Every failure ends the program with a sentence.
 */
#ifndef PAIR_H
#define PAIR_H

#include <roci.h>
#include <stddef.h>
#include <stdint.h>

struct end {
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_channel *channel; /* of cq */
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mr *mr;
};

/** Opens a session for each end of @p e on the rocid at @p socket and connects them; each has
 *  @p size bytes of memory that the other may read and write. */
void pair_open(struct end e[2], const char *socket, size_t size, enum roci_mtu mtu);

#define ANY_GID UINT32_MAX

/** An end of a pair whose ends are anywhere. */
struct place {
	const char *socket;
	uint8_t port;
	uint32_t gid;	 /* index; ANY_GID: the first */
	uint8_t timeout; /* as in roci_modify_qp() */
};

/** pair_open() with each end where @p at says. */
void pair_open_at(struct end e[2], const struct place at[2], size_t size, enum roci_mtu mtu);

void pair_close(struct end e[2]);

/** Posts a signaled request of @p from for the other end's memory at @p offset, both sides. */
void pair_post(struct end *from, const struct end *to, enum roci_wr_opcode opcode, size_t offset,
	uint32_t length);

/** Waits for one completion of @p e, which must be a success. */
void pair_wait(struct end *e);

#endif
