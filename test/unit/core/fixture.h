/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fixture.h
 * The fixture of most tests of the core: a lone host whose QP is not started yet, so that a test
 * can choose its attributes. A test that needs more calls these functions from a setup() of its
 * own.
 */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "lone.h"

static struct lone l;

static inline int lone_setup(void **state)
{
	lone_init(&l);
	return 0;
}

/* With a path MTU at which a few hundred bytes are several packets. */
static inline int lone_setup_256(void **state)
{
	lone_init(&l);
	l.attr.path_mtu = 256;
	return 0;
}

static inline int lone_teardown(void **state)
{
	lone_fini(&l);
	return 0;
}

static inline const struct core_counters *count(void)
{
	return &l.host->core.count;
}

#endif
