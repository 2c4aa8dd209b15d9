/* SPDX-License-Identifier: BSD-3-Clause */
/* The netdevs of IP over InfiniBand (--ipoib). */
#include <string.h>
#include "daemon.h"
#include "rib.h"

static int start(struct daemon *d, uint32_t i, char why[VALUE_MAX * 2])
{
	const struct option_ipoib *o = &d->opt->ipoib[i];
	struct rib_config cfg = {
		.socket = d->opt->socket, .port = o->port + 1, .pkey = o->pkey, .mtu = o->mtu};

	memcpy(cfg.name, o->netdev, sizeof(cfg.name));
	return rib_start(&d->rib[i], &cfg, why, VALUE_MAX * 2);
}

int daemon_start_ribs(struct daemon *d, char why[VALUE_MAX * 2])
{
	int err = 0;

	for (uint32_t i = 0; i < d->opt->nipoibs && !err; i++)
		err = start(d, i, why);
	return err;
}

void daemon_stop_ribs(struct daemon *d)
{
	for (uint32_t i = 0; i < d->opt->nipoibs; i++)
		rib_ask_to_stop(d->rib[i]);
}

void daemon_end_ribs(struct daemon *d)
{
	for (uint32_t i = 0; i < d->opt->nipoibs; i++) {
		rib_destroy(d->rib[i]);
		d->rib[i] = NULL;
	}
}
