/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core_command.h"
#include "qp.h"
#include "qp_trace.h"
#include "trace.h"
#include "trace_text.h"

/* The newest; earlier QPs of a connection are gone. */
#define TRACES 2u

static struct {
	struct trace trace;
	char name;
} * traces[TRACES];

void qp_trace_begin(struct app_qp *q, char name, uint64_t now)
{
	struct core_cmd cmd = {.type = CORE_CMD_TRACING, .tracing = true, .qp = q->qp};
	unsigned i = (unsigned)(name - 'A') % TRACES;

	qp_trace_print();
	free(traces[i]);
	traces[i] = aligned_alloc(CACHE_LINE, (sizeof(*traces[i]) + CACHE_LINE - 1) & ~63ul);
	assert_non_null(traces[i]);
	memset(traces[i], 0, sizeof(*traces[i]));
	traces[i]->name = name;
	assert_int_equal(core_cmd(&q->app->host->core, &cmd, now), 0);
	cmd.type = CORE_CMD_TRACE_QP;
	cmd.trace = &traces[i]->trace;
	assert_int_equal(core_cmd(&q->app->host->core, &cmd, now), 0);
	printf("%12llu QP %c is %u on host %u\n", (unsigned long long)now, name, q->qp->qpn,
		q->app->host->id);
}

void qp_trace_print(void)
{
	struct trace_event e;

	for (unsigned i = 0; i < TRACES; i++) {
		while (traces[i] && trace_read(&traces[i]->trace, &e, 1)) {
			char line[TRACE_LINE];

			printf("%c%.*s\n", traces[i]->name, (int)trace_text(line, &e, 0), line);
		}
	}
}
