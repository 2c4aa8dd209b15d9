/* SPDX-License-Identifier: BSD-3-Clause */
/* Two communication managers: one listens, and the other connects. */
#ifndef PAIR_H
#define PAIR_H

#include "ends.h"

struct pair {
	struct ends *net;
	struct end *a, *b; /* active, passive */
	uint32_t listener;
	uint32_t id, passive;
	uint8_t req[MAD_LEN], rep[MAD_LEN];
};

/* cmocka: *state becomes a struct pair. */
int setup(void **state);
int teardown(void **state);

/* Advances the time until the network is idle. */
void soon(struct pair *p);

/* Advances the connection to a stage, taking each event. */
void to_req(struct pair *p);
void to_rep(struct pair *p);
void to_established(struct pair *p);

/* The connection must be in this state. */
void is(struct end *e, uint32_t id, int want);

/* Neither side has a connection or a pending event left. */
void drained(struct pair *p);

#endif
