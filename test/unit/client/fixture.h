/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fixture.h
 * The fixture of most tests of libroci: a rig (harness.h) as their state.
 */
#ifndef CLIENT_FIXTURE_H
#define CLIENT_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "harness.h"

static inline int rig_setup_depth(void **state, uint32_t depth)
{
	struct rig *r = calloc(1, sizeof(*r));

	rig_make(r, depth);
	*state = r;
	return 0;
}

static inline int rig_setup(void **state)
{
	return rig_setup_depth(state, 4);
}

/* The CQ has lanes of 16. */
static inline int rig_setup_16(void **state)
{
	return rig_setup_depth(state, 16);
}

static inline int rig_teardown(void **state)
{
	struct rig *r = *state;

	atomic_store(&r->h->hook, NULL);
	rig_drop(r);
	free(r);
	return 0;
}

#endif
