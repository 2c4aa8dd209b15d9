/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include "gso/gso.h"
#include "packet.h"
#include "daemon.h"

int packet_create(struct daemon *d, const char *netdev, uint16_t *ethdev, struct gsoport **gso,
	char why[VALUE_MAX * 2])
{
	uint16_t queues = (uint16_t)d->opt->workers;

	*gso = NULL;
	if (d->opt->gso != GSO_NO)
		*gso = gsoport_create(netdev, queues, ethdev, why, VALUE_MAX * 2);
	if (*gso)
		return 0;
	if (d->opt->gso == GSO_YES)
		return -errno;
	/* As before an automatic choice; for example on a kernel that is too old. */
	return share_create(netdev, queues, ethdev, why, VALUE_MAX * 2);
}

void packet_describe(struct daemon_port *p, const char *netdev)
{
	snprintf(p->info.netdev, sizeof(p->info.netdev), "%s", netdev);
	if (p->gso)
		gsoport_describe(p->gso, &p->info);
}

/* Afterwards, frames from a NIC arrive merged by GRO if they have UDP checksums. When they are cut
 * again, their IPv4 identifications increase by one, whatever they were before: harmless between
 * two rocids, but the ICRC of other senders' frames may fail. */
void packet_guard(const struct daemon *d, const struct daemon_port *p)
{
	if (p->gso && (d->opt->gso == GSO_YES || !share_is_device(p->info.netdev)))
		share_guard_whole(&p->guard);
}

int packet_start(struct daemon *d, uint32_t i)
{
	struct daemon_port *p = &d->port[i];
	struct rte_mempool *pool[WORKER_MAX];

	if (!p->gso) {
		unstick_watch(&p->unstick, p->info.netdev);
		return 0;
	}
	for (uint16_t q = 0; q < d->dp->nworkers; q++)
		pool[q] = port_pool(d->dp, q);
	d->dp->count_arg[i] = p->gso;
	d->dp->count[i] = gsoport_count;
	return gsoport_start(p->gso, pool, &d->dp->ports->port[i], d->opt->gso == GSO_AUTO);
}

void packet_stop(struct daemon *d, uint32_t i)
{
	unstick_forget(&d->port[i].unstick);
	d->dp->count[i] = NULL;
	gsoport_stop(d->port[i].gso);
}

void packet_remove(struct daemon *d, uint32_t i)
{
	struct daemon_port *p = &d->port[i];

	if (p->gso)
		gsoport_destroy(p->gso);
	else
		share_remove(p->info.netdev);
	p->gso = NULL;
}

bool packet_stuck(const struct daemon_port *p, uint64_t now_ms)
{
	return p->gso && gsoport_stuck(p->gso, now_ms);
}

int packet_look(struct daemon_port *p, uint64_t now_ms)
{
	uint32_t shortest, passed;
	uint64_t count;

	if (!p->gso)
		return unstick_poll(&p->unstick, now_ms);
	count = gsoport_refused(p->gso, &shortest, &passed);
	return unstick_tell(&p->unstick, count, shortest, passed, now_ms);
}
