/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/pkeys.h"
#include "session/session.h"
#include "verbs/object.h"

#define PKEY_DEFAULT 0xFFFFu

void pkeys_init(struct port *p, const struct ctl_pkey *k, uint32_t n)
{
	p->pkeys = PKEY_MAX;
	p->pkey[0] = PKEY_DEFAULT; /* GID-07 */
	for (uint32_t i = 0; i < n; i++)
		p->pkey[k[i].index] = k[i].pkey;
}

/* A QP keeps a copy of its entry, so that packets need not look it up. */
static void reload(struct ctl *ctl, const struct session *s)
{
	struct core_cmd cmd = {.type = CORE_CMD_RELOAD_PKEYS};
	struct qp_obj *o[QPS_CALL_MAX];
	uint32_t cursor = 0;
	uint32_t n;

	do {
		n = 0;
		while (n < QPS_CALL_MAX && (o[n] = handle_next(&s->qps, &cursor)))
			n++;
		qps_call(ctl, &cmd, o, n);
	} while (n == QPS_CALL_MAX);
}

void pkeys_set(struct ctl *ctl, uint32_t port, uint32_t index, uint16_t pkey)
{
	struct port *p = ctl->port[port].shared;

	if (atomic_load(&p->pkey[index]) == pkey)
		return;
	atomic_store(&p->pkey[index], pkey);
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->session[i])
			reload(ctl, ctl->session[i]);
	session_port_event(ctl, port, ABI_EVENT_PKEY_CHANGE);
}
