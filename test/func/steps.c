/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pair of queue pairs that executes commands, one per line, and says "done" after each:
 * for tests that look at what rocid makes of known traffic.
 *
 *     steps SOCKET PORT_A PORT_B MTU TIMEOUT [SOCKET_B]
 *
 * prints the QPNs of both ends, then reads lines:
 *
 *     write|send|read COUNT LENGTH	requests of end A, one after the other
 *     lose N 0				end A injects a fault: the N-th packet that it sends is lost
 *     keep 0 0				and ends all of its faults
 *     post COUNT LENGTH		WRITEs of end A, and waits for none of them
 *     fetch COUNT LENGTH		the same of READs
 *     limit KBPS 0			end A limits its rate
 *     reset 0 0			both ends go to RESET while requests wait: says how many
 *					had ended
 *     connect 0 0			and are connected again
 *
 * A refusal is said instead of "done".
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pair.h"

#define ROOM 65536u

static const struct {
	const char *name;
	enum roci_wr_opcode opcode;
} words[] = {{"write", ROCI_WR_RDMA_WRITE}, {"send", ROCI_WR_SEND}, {"read", ROCI_WR_RDMA_READ}};

static enum roci_wr_opcode opcode_of(const char *word)
{
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].name, word))
			return words[i].opcode;
	errx(2, "%s: write, send or read", word);
}

static void post_recv(struct end *e)
{
	struct roci_sge sge = {(uintptr_t)e->mr->addr, ROOM, e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	if (roci_post_recv(e->qp, &wr, NULL))
		errx(1, "post_recv: %s", roci_last_error());
}

static void step(struct end e[2], enum roci_wr_opcode opcode, unsigned count, uint32_t length)
{
	while (count--) {
		if (opcode == ROCI_WR_SEND)
			post_recv(&e[1]);
		pair_post(&e[0], &e[1], opcode, 0, length);
		pair_wait(&e[0]);
		if (opcode == ROCI_WR_SEND)
			pair_wait(&e[1]);
	}
}

/* The caller checks refusals. */
static bool inject(struct end *e, const char *word, unsigned count)
{
	struct roci_fault fault = {
		.size = sizeof(fault), .kind = ROCI_FAULT_DROP, .nth = count, .count = 1};
	struct roci_fault_count hits = {.size = sizeof(hits)};
	uint32_t id = 0;
	int err;

	if (strcmp(word, "lose") && strcmp(word, "keep"))
		return false;
	err = *word == 'l' ? roci_inject(e->qp, &fault, &id) : roci_clear_faults(e->qp, 0);
	if (!err && id)
		err = roci_query_fault(e->qp, id, &hits);
	puts(err ? roci_last_error() : "done");
	return true;
}

/* --- life ----------------------------------------------------------------------------------- */

static unsigned ended(struct end *e)
{
	struct roci_wc wc;
	unsigned n = 0;

	while (roci_poll_cq(e->cq, 1, &wc) > 0)
		n += wc.status == ROCI_WC_SUCCESS;
	return n;
}

static void reset(struct end e[2])
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RESET};

	for (int i = 0; i < 2; i++)
		if (roci_modify_qp(e[i].qp, &attr, ROCI_QP_STATE))
			errx(1, "RESET: %s", roci_last_error());
	printf("%u\n", ended(&e[0]));
}

/* Steps that do not wait for their requests. */
static bool leave(struct end e[2], const char *word, unsigned count, uint32_t length)
{
	struct roci_rate_limit rate = {.size = sizeof(rate), .kbps = count};

	if (!strcmp(word, "limit")) {
		puts(roci_limit_qp(e[0].qp, &rate) ? roci_last_error() : "done");
		return true;
	}
	if (strcmp(word, "post") && strcmp(word, "fetch"))
		return false;
	while (count--)
		pair_post(&e[0], &e[1], *word == 'p' ? ROCI_WR_RDMA_WRITE : ROCI_WR_RDMA_READ, 0,
			length);
	puts("done");
	return true;
}

int main(int argc, char *argv[])
{
	char line[256], word[16];
	struct end e[2];
	unsigned count, length;
	enum roci_mtu mtu;
	uint8_t timeout;

	if (argc != 6 && argc != 7)
		errx(2, "usage: steps SOCKET PORT_A PORT_B MTU TIMEOUT [SOCKET_B]");
	struct place place[2] = {{argv[1], (uint8_t)atoi(argv[2]), 0},
		{argv[argc == 7 ? 6 : 1], (uint8_t)atoi(argv[3]), 0}};

	mtu = (enum roci_mtu)roci_mtu_of_bytes((uint32_t)atoi(argv[4]));
	timeout = (uint8_t)atoi(argv[5]);
	pair_open_at(e, place, ROOM, mtu, timeout);
	printf("%u %u\n", e[0].qp->qp_num, e[1].qp->qp_num);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%15s %u %u", word, &count, &length) != 3 || length > ROOM)
			errx(2, "not understood: %s", line);
		if (!strcmp(word, "reset")) {
			reset(e);
		} else if (!strcmp(word, "connect")) {
			pair_connect_at(e, place, mtu, timeout);
			puts("done");
		} else if (!inject(&e[0], word, count) && !leave(e, word, count, length)) {
			step(e, opcode_of(word), count, length);
			puts("done");
		}
		fflush(stdout);
	}
	pair_close(e);
	return 0;
}
