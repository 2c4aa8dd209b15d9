/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "chaos.h"
#include "core_command.h"
#include "qp.h"

#define FULL	0xFFFFu
#define LIMITED 0x7FFFu

struct path_spec path_any(struct chaos_world *w, const struct chaos_conn *c, int e)
{
	struct path_spec path = host_path(c->end[e].app->host, c->end[!e].app->host, 0, w->gid);

	path.hop_limit = (uint8_t)pick(w, 1, 255);
	path.traffic_class = (uint8_t)pick(w, 0, 255);
	path.flow_label = chance(w, 50) ? pick(w, 0, 0xFFFFF) : 0;
	path.sport = chance(w, 30) ? (uint16_t)pick(w, SPORT_MIN, 0xFFFF) : 0;
	path.plain_label = chance(w, 50);
	path.pcp = (uint8_t)pick(w, 0, 7);
	path.priority_tag = chance(w, 30); /* ETH-04: the same as none to the receiver */
	return path;
}

/* As an administrator does it: no packet may be lost or refused because of it. */
void path_change(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct chaos_end *end = &c->end[e];
	struct core_cmd cmd = {.type = CORE_CMD_REPATH_QP,
		.qp = end->qp->qp,
		.attr = end->attr,
		.path = path_any(w, c, e)};

	chaos_actions[ACT_REPATH]++;
	cmd.sgid = *cmd.path.sgid;
	assert_int_equal(core_cmd(&end->app->host->core, &cmd, now_of(w)), 0);
}

/* BTH-11, VAL-08, VAL-09: one full member is enough. The other host stays one, and nobody talks to
 * himself, so that all that flies and comes still matches. */
void path_change_pkey(struct chaos_world *w)
{
	struct sim_host *host = w->host[0];
	_Atomic uint16_t *pkey = &host->ports.port[0].pkey[0];
	struct core_cmd cmd = {.type = CORE_CMD_RELOAD_PKEYS};
	struct qp *qps[CHAOS_CONNS];

	for (unsigned i = 0; i < w->conns; i++)
		if (w->conn[i].end[A].app == w->conn[i].end[B].app)
			return;
	if (flows_loop(&w->flows, &w->app[0]))
		return;
	chaos_actions[ACT_PKEY]++;
	w->flows.sure = false; /* members of a group on that host do not hear it any more */
	*pkey = *pkey == FULL ? LIMITED : FULL;
	for (unsigned i = 0; i < w->conns; i++)
		for (int e = A; e < ENDS; e++)
			if (w->conn[i].end[e].app->host == host && w->conn[i].end[e].qp)
				qps[cmd.n++] = w->conn[i].end[e].qp->qp;
	cmd.qps = qps;
	assert_int_equal(core_cmd(&host->core, &cmd, now_of(w)), 0);
	for (uint32_t i = 0; i < cmd.n; i++)
		if (qps[i]->attr.port)
			assert_int_equal(qps[i]->pkey, *pkey);
}
