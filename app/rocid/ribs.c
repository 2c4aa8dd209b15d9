/* SPDX-License-Identifier: BSD-3-Clause */
/* The netdevs of IP over InfiniBand (--ipoib). */
#include <string.h>
#include <jansson.h>
#include "daemon.h"
#include "ipoib.h"
#include "rib.h"
#include "row.h"
#include "text/sentence.h"

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

bool ribs_show(void *arg, uint32_t i, json_t **element)
{
	const struct daemon *d = arg;
	uint64_t count[IPOIB_COUNTS];
	char gid[GID_TEXT];
	struct rib_view v;
	struct row row;

	if (i >= d->opt->nipoibs || !d->rib[i])
		return false;
	rib_look(d->rib[i], &v, count);
	row_begin(&row);
	put_text(&row, "netdev", v.name);
	put_int(&row, "port", rib_config_of(d->rib[i])->port);
	put_hex(&row, "pkey", rib_config_of(d->rib[i])->pkey, 4);
	put_bool(&row, "up", v.up);
	put_int(&row, "sessions", v.sessions);
	put_int(&row, "qpn", v.qpn);
	put_text(&row, "gid", v.up ? gid_text(v.gid, gid) : "");
	put_int(&row, "mtu", v.mtu);
	put_int(&row, "neighbours", v.neighs);
	put_int(&row, "bridged", v.bridged);
	put_int(&row, "groups", v.groups);
	put_int(&row, "groups_missing", v.missing);
	for (unsigned k = 0; k < IPOIB_COUNTS; k++)
		put_int(&row, ipoib_count_name((enum ipoib_count)k), (int64_t)count[k]);
	put_int(&row, "kernel_full", (int64_t)v.tap_full);
	put_text(&row, "said", v.said);
	*element = row_end(&row);
	return true;
}
