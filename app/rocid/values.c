/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_ether.h>
#include "address.h"
#include "bits.h"
#include "icrc.h"
#include "linkemu.h"
#include "net/congestion.h"
#include "net/gids.h"
#include "net/priority.h"
#include "number.h"
#include "option_links.h"
#include "path.h"
#include "refuse.h"
#include "rib.h"
#include "uaccess.h"
#include "values.h"

#define MTU_MIN (PATH_MTU_MIN + 96) /* mtu_of_ethernet() */
#define VID_MAX 4094
#define MS_MAX	60000

static bool number(const char *text, int base, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t v;

	if (!parse_in_base(text, base, max, &v) || v < min)
		return false;
	*out = (uint32_t)v;
	return true;
}

/* The slot of the port that is named @p name. */
static int name_port(
	struct options *o, const char *by, const char *name, uint32_t *port, char why[VALUE_MAX])
{
	for (uint32_t i = 0; i < o->nnames; i++) {
		if (!strcmp(o->name[i], name)) {
			*port = PORT_MAX + i;
			return 0;
		}
	}
	if (strlen(name) >= sizeof(o->name[0]))
		return refuse(why, -EINVAL, "port name '%s' is too long: at most %zu characters",
			name, sizeof(o->name[0]) - 1);
	if (o->nnames == PORT_MAX)
		return refuse(why, -EINVAL, "too many ports: at most %u", PORT_MAX);
	*port = PORT_MAX + o->nnames;
	strcpy(o->name[o->nnames], name);
	snprintf(o->named_by[o->nnames++], sizeof(o->named_by[0]), "%s", by);
	return 0;
}

/* Removes "PORT," from the front of @p value: a number, or a name that options_resolve() looks up.
 */
static int take_port(struct options *o, const char *by, const char *value, uint32_t *port,
	const char **rest, char why[VALUE_MAX])
{
	size_t len = strcspn(value, ",");
	char text[VALUE_MAX];

	if (!len || !value[len] || *value == '-')
		return refuse(why, -EINVAL,
			"'%s' does not begin with a port's number or name and a comma", value);
	*rest = value + len + 1;
	snprintf(text, sizeof(text), "%.*s", (int)len, value);
	if (strspn(text, "0123456789") < len)
		return name_port(o, by, text, port, why);
	if (!number(text, 10, 0, PORT_MAX - 1, port))
		return refuse(why, -EINVAL, "port %s is beyond the last possible one, %u", text,
			PORT_MAX - 1);
	if ((int)*port > o->highest_port) {
		o->highest_port = (int)*port;
		snprintf(o->highest_by, sizeof(o->highest_by), "%s", by);
	}
	return 0;
}

/* Neither multicast nor the unspecified address. */
static bool is_host(const uint8_t gid[16])
{
	static const uint8_t none[16];
	static const uint8_t ip4[12] = {[10] = 0xFF, [11] = 0xFF};

	if (!memcmp(gid, ip4, sizeof(ip4)))
		return gid[12] != 0 && gid[12] < 224;
	return gid[0] != 0xFF && memcmp(gid, none, sizeof(none));
}

static int copy_text(
	char *to, size_t size, const char *value, const char *what, char why[VALUE_MAX])
{
	if (!*value)
		return refuse(why, -EINVAL, "%s is missing", what);
	if (strlen(value) >= size)
		return refuse(why, -EINVAL, "%s is longer than %zu bytes", what, size - 1);
	strcpy(to, value);
	return 0;
}

/* As the kernel has it; a '%' would have the kernel choose. */
static int netdev_name(char *to, size_t size, const char *name, char why[VALUE_MAX])
{
	if (strpbrk(name, "/:% \t\n") || !strcmp(name, ".") || !strcmp(name, ".."))
		return refuse(why, -EINVAL,
			"'%s' is not a netdev name: use letters, digits, - and _", name);
	return copy_text(to, size, name, "the netdev's name", why);
}

/* --- values of a type --------------------------------------------------------------------- */

static int set_text(
	void *field, const struct value_type *type, const char *value, char why[VALUE_MAX])
{
	return copy_text(field, type->max, value, type->what, why);
}

static int set_octal(
	void *field, const struct value_type *type, const char *value, char why[VALUE_MAX])
{
	if (!number(value, 8, 1, type->max, field))
		return refuse(why, -EINVAL, "'%s' is not %s", value, type->what);
	return 0;
}

static int set_count(
	void *field, const struct value_type *type, const char *value, char why[VALUE_MAX])
{
	if (!number(value, 10, 1, type->max, field))
		return refuse(
			why, -EINVAL, "'%s' is not %s from 1 to %u", value, type->what, type->max);
	return 0;
}

/* An option without a value means yes. */
static int set_flag(
	void *field, const struct value_type *type, const char *value, char why[VALUE_MAX])
{
	(void)type;
	*(bool *)field = strcmp(value, "no") != 0;
	if (*value && strcmp(value, "yes") && strcmp(value, "no"))
		return refuse(why, -EINVAL, "'%s' is neither yes nor no", value);
	return 0;
}

int value_set(
	struct options *o, const struct value_type *type, const char *value, char why[VALUE_MAX])
{
	static int (*const set[])(void *, const struct value_type *, const char *, char *) = {
		[VALUE_TEXT] = set_text,
		[VALUE_OCTAL] = set_octal,
		[VALUE_COUNT] = set_count,
		[VALUE_FLAG] = set_flag,
	};

	if (type->own)
		return type->own(o, value, why);
	return set[type->kind]((char *)o + type->offset, type, value, why);
}

/* --- values of one option ----------------------------------------------------------------- */

int set_share(struct options *o, const char *value, char why[VALUE_MAX])
{
	const char *eq = strchr(value, '=');
	const char *netdev = eq ? eq + 1 : value;
	struct option_share *s = &o->share[o->nshares];
	char port[VALUE_MAX];
	const char *rest;
	int err;

	if (o->nshares == PORT_MAX)
		return refuse(why, -EINVAL, "there are already %u ports, the maximum", PORT_MAX);
	s->port = PORT_NEW;
	if (eq) {
		snprintf(port, sizeof(port), "%.*s,", (int)(eq - value), value);
		err = take_port(o, "share", port, &s->port, &rest, why);
		if (err)
			return err;
	}
	err = copy_text(s->netdev, sizeof(s->netdev), netdev, "the netdev's name", why);
	if (!err)
		o->nshares++;
	return err;
}

int set_tap(struct options *o, const char *value, char why[VALUE_MAX])
{
	const char *eq = strchr(value, '=');
	struct option_tap *t = &o->tap[o->ntaps];
	char port[VALUE_MAX];
	const char *rest;
	int err;

	if (o->ntaps == PORT_MAX)
		return refuse(why, -EINVAL, "there are already %u taps, the maximum", PORT_MAX);
	snprintf(port, sizeof(port), "%.*s,", eq ? (int)(eq - value) : (int)strlen(value), value);
	err = take_port(o, "tap", port, &t->port, &rest, why);
	if (err)
		return err;
	for (uint32_t i = 0; i < o->ntaps; i++)
		if (o->tap[i].port == t->port)
			return refuse(why, -EINVAL, "that port already has a tap");
	t->netdev[0] = '\0';
	if (eq)
		err = netdev_name(t->netdev, sizeof(t->netdev), eq + 1, why);
	if (!err)
		o->ntaps++;
	return err;
}

/* --- IP over InfiniBand */

static int ipoib_number(const char *text, const char *what, uint32_t min, uint32_t max,
	uint16_t *to, char why[VALUE_MAX])
{
	uint32_t v;

	if (!number(text, 0, min, max, &v))
		return refuse(why, -EINVAL, "'%s' is not %s from %u to %u", text, what, min, max);
	*to = (uint16_t)v;
	return 0;
}

/* One of name=, pkey= and mtu=. */
static int ipoib_part(struct option_ipoib *n, const char *part, char why[VALUE_MAX])
{
	if (!strncmp(part, "name=", 5))
		return netdev_name(n->netdev, sizeof(n->netdev), part + 5, why);
	if (!strncmp(part, "mtu=", 4))
		return ipoib_number(part + 4, "an IP MTU", RIB_MTU_MIN, RIB_MTU_MAX, &n->mtu, why);
	if (strncmp(part, "pkey=", 5) != 0)
		return refuse(why, -EINVAL, "'%s' is not name=, pkey= or mtu=", part);
	if (ipoib_number(part + 5, "a P_Key", 0x8001, UINT16_MAX, &n->pkey, why))
		return refuse(why, -EINVAL,
			"'%s' is not the P_Key of a full member, from 0x8001 to 0xffff: limited "
			"members cannot reach each other",
			part + 5);
	return 0;
}

/* Two on one link would have the same GID, and so the same link-local address. */
static int ipoib_differs(
	const struct option_ipoib *old, const struct option_ipoib *n, char why[VALUE_MAX])
{
	if (!strcmp(old->netdev, n->netdev))
		return refuse(why, -EINVAL,
			"there is already a netdev %s: choose another name=", n->netdev);
	if (old->port == n->port && old->pkey == n->pkey)
		return refuse(why, -EINVAL,
			"%s is already the netdev of P_Key 0x%04x on port %u: give this one "
			"another "
			"pkey=",
			old->netdev, n->pkey, n->port);
	return 0;
}

/* "PORT[,name=NAME][,pkey=PKEY][,mtu=BYTES]" */
int set_ipoib(struct options *o, const char *value, char why[VALUE_MAX])
{
	struct option_ipoib *n = &o->ipoib[o->nipoibs];
	char text[VALUE_MAX + 1], *part, *save;
	const char *rest;
	int err;

	if (o->nipoibs == IPOIB_NETDEVS_MAX)
		return refuse(why, -EINVAL,
			"there are already %u netdevs of IP over InfiniBand, the maximum",
			o->nipoibs);
	snprintf(text, sizeof(text), "%s,", value);
	err = take_port(o, "ipoib", text, &n->port, &rest, why);
	n->pkey = 0xFFFF;
	n->mtu = RIB_MTU_DEFAULT;
	snprintf(n->netdev, sizeof(n->netdev), "rib%u", o->nipoibs);
	for (part = err ? NULL : strtok_r(text + (rest - text), ",", &save); part && !err;
		part = strtok_r(NULL, ",", &save))
		err = ipoib_part(n, part, why);
	for (uint32_t i = 0; !err && i < o->nipoibs; i++)
		err = ipoib_differs(&o->ipoib[i], n, why);
	if (!err)
		o->nipoibs++;
	return err;
}

int set_gid(struct options *o, const char *value, char why[VALUE_MAX])
{
	struct option_gid *g = &o->gid[o->ngids];
	char ip[VALUE_MAX];
	const char *rest;
	uint32_t vid = 0;
	char *vlan;
	int err;

	if (o->ngids == STATIC_MAX)
		return refuse(
			why, -EINVAL, "there are already %u static GIDs, the maximum", STATIC_MAX);
	err = take_port(o, "gid", value, &g->port, &rest, why);
	if (err)
		return err;
	snprintf(ip, sizeof(ip), "%s", rest);
	vlan = strstr(ip, ",vid=");
	if (vlan) {
		*vlan = '\0';
		if (!number(vlan + 5, 10, 1, VID_MAX, &vid))
			return refuse(why, -EINVAL, "'%s' is not a VLAN id from 1 to %d", vlan + 5,
				VID_MAX);
	}
	if (!gid_of_text(g->gid.gid, ip))
		return refuse(why, -EINVAL, "'%s' is not an IPv4 or IPv6 address", ip);
	if (!is_host(g->gid.gid))
		return refuse(why, -EINVAL, "'%s' is not the address of a single host", ip);
	g->gid.vid = (uint16_t)vid;
	o->ngids++;
	return 0;
}

int set_neigh(struct options *o, const char *value, char why[VALUE_MAX])
{
	struct option_neigh *n = &o->neigh[o->nneighs];
	struct rte_ether_addr mac;
	char ip[VALUE_MAX];
	const char *rest;
	char *comma;
	int err;

	if (o->nneighs == STATIC_MAX)
		return refuse(why, -EINVAL, "there are already %u static neighbours, the maximum",
			STATIC_MAX);
	err = take_port(o, "neigh", value, &n->port, &rest, why);
	if (err)
		return err;
	snprintf(ip, sizeof(ip), "%s", rest);
	comma = strchr(ip, ',');
	if (!comma)
		return refuse(why, -EINVAL, "'%s' is not PORT,IP,MAC", value);
	*comma = '\0';
	if (!gid_of_text(n->neigh.gid, ip))
		return refuse(why, -EINVAL, "'%s' is not an IPv4 or IPv6 address", ip);
	if (!mac_of_text(mac.addr_bytes, comma + 1) || !rte_is_valid_assigned_ether_addr(&mac))
		return refuse(why, -EINVAL, "'%s' is not a MAC address such as 02:00:00:00:00:01",
			comma + 1);
	memcpy(n->neigh.mac, mac.addr_bytes, 6);
	o->nneighs++;
	return 0;
}

int set_mtu(struct options *o, const char *value, char why[VALUE_MAX])
{
	const char *rest;
	uint32_t port;
	uint32_t mtu;
	int err = take_port(o, "mtu", value, &port, &rest, why);

	if (err)
		return err;
	if (!number(rest, 10, MTU_MIN, UINT16_MAX, &mtu))
		return refuse(why, -EINVAL, "'%s' is not an Ethernet MTU from %u to %u", rest,
			MTU_MIN, UINT16_MAX);
	o->mtu[port] = (uint16_t)mtu;
	return 0;
}

int set_queues(struct options *o, const char *value, char why[VALUE_MAX])
{
	const char *rest;
	uint32_t port, queues;
	int err = take_port(o, "queues", value, &port, &rest, why);

	if (err)
		return err;
	if (!number(rest, 10, 1, WORKER_MAX, &queues))
		return refuse(why, -EINVAL, "'%s' is not a number of queues from 1 to %u", rest,
			WORKER_MAX);
	o->queues[port] = (uint16_t)queues;
	return 0;
}

/* "PORT,INDEX,VALUE" */
int set_pkey(struct options *o, const char *value, char why[VALUE_MAX])
{
	struct option_pkey *k = &o->pkey[o->npkeys];
	char index[VALUE_MAX];
	const char *rest;
	uint32_t pkey;
	char *comma;
	int err;

	if (o->npkeys == STATIC_MAX)
		return refuse(why, -EINVAL, "there are already %u P_Keys, the maximum", STATIC_MAX);
	err = take_port(o, "pkey", value, &k->port, &rest, why);
	if (err)
		return err;
	snprintf(index, sizeof(index), "%s", rest);
	comma = strchr(index, ',');
	if (!comma)
		return refuse(
			why, -EINVAL, "'%s' is not an index and P_Key such as 1,0x8001", rest);
	*comma = '\0';
	if (!number(index, 10, 0, PKEY_MAX - 1, &k->pkey.index))
		return refuse(
			why, -EINVAL, "'%s' is not an index from 0 to %u", index, PKEY_MAX - 1);
	if (!number(comma + 1, 0, 0, UINT16_MAX, &pkey))
		return refuse(why, -EINVAL, "'%s' is not a P_Key from 0 to 0xffff", comma + 1);
	k->pkey.pkey = (uint16_t)pkey;
	o->npkeys++;
	return 0;
}

int set_priority(struct options *o, const char *value, char why[VALUE_MAX])
{
	const char *rest;
	uint32_t port;
	int err = take_port(o, "priority", value, &port, &rest, why);

	if (err)
		return err;
	o->prioritized[port] = true;
	return priority_parse(&o->priority[port], rest, why, VALUE_MAX);
}

int set_cc(struct options *o, const char *value, char why[VALUE_MAX])
{
	const char *rest;
	uint32_t port;
	int err = take_port(o, "cc", value, &port, &rest, why);

	if (err)
		return err;
	o->congested[port] = true;
	return congestion_parse(&o->links->congestion[port], rest, why, VALUE_MAX);
}

int set_flow_label(struct options *o, const char *value, char why[VALUE_MAX])
{
	o->plain_label = !strcmp(value, "av");
	if (!o->plain_label && strcmp(value, "hash") != 0)
		return refuse(why, -EINVAL, "'%s' is neither hash nor av", value);
	return 0;
}

int set_rocev1(struct options *o, const char *value, char why[VALUE_MAX])
{
	o->cm_rocev1 = !strcmp(value, "connect");
	if (set_flag(&o->rocev1, NULL, o->cm_rocev1 ? "yes" : value, why))
		return refuse(why, -EINVAL, "'%s' is neither yes, no nor connect", value);
	return 0;
}

int set_gso(struct options *o, const char *value, char why[VALUE_MAX])
{
	bool yes = false;

	if (strcmp(value, "auto") && set_flag(&yes, NULL, value, why))
		return refuse(why, -EINVAL, "'%s' is neither yes, no nor auto", value);
	o->gso = !strcmp(value, "auto") ? GSO_AUTO : yes ? GSO_YES : GSO_NO;
	return 0;
}

int set_cm(struct options *o, const char *value, char why[VALUE_MAX])
{
	bool wanted;
	int err = set_flag(&wanted, NULL, value, why);

	o->no_cm = !wanted;
	return err;
}

int set_userfaultfd(struct options *o, const char *value, char why[VALUE_MAX])
{
	bool wanted;
	int err = set_flag(&wanted, NULL, value, why);

	o->no_userfaultfd = !wanted;
	return err;
}

/* Like names of netdevs: they become file names, and keys in programs' settings. */
int set_device(struct options *o, const char *value, char why[VALUE_MAX])
{
	size_t len = strlen(value);

	if (!len || len >= sizeof(o->device))
		return refuse(why, -EINVAL, "a device's name has 1 to %zu characters",
			sizeof(o->device) - 1);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)value[i]) && value[i] != '_' && value[i] != '-')
			return refuse(why, -EINVAL,
				"'%s' has characters other than A-Z, a-z, 0-9, _ and -", value);
	memcpy(o->device, value, len + 1);
	return 0;
}

int set_ring_pair(struct options *o, const char *value, char why[VALUE_MAX])
{
	if (o->npairs == PORT_MAX / 2)
		return refuse(why, -EINVAL, "there are already %u pairs, the maximum", o->npairs);
	if (linkemu_parse(&o->links->pair[o->npairs], value, why, VALUE_MAX))
		return -EINVAL;
	o->npairs++;
	return 0;
}

int set_impair(struct options *o, const char *value, char why[VALUE_MAX])
{
	const char *rest;
	uint32_t port;
	int err = take_port(o, "impair", value, &port, &rest, why);

	if (err)
		return err;
	if (linkemu_parse(&o->links->impair[port], rest, why, VALUE_MAX))
		return -EINVAL;
	o->impaired[port] = true;
	return 0;
}

int set_migrate(struct options *o, const char *value, char why[VALUE_MAX])
{
	o->migrate = strcmp(value, "off") != 0;
	o->shake_ms = 0;
	if (!o->migrate || !strcmp(value, "on"))
		return 0;
	if (!number(value, 10, 1, MS_MAX, &o->shake_ms))
		return refuse(why, -EINVAL, "'%s' is not on, off, or 1 to %d milliseconds", value,
			MS_MAX);
	return 0;
}

int set_idle(struct options *o, const char *value, char why[VALUE_MAX])
{
	for (unsigned i = 0; idle_names[i]; i++) {
		o->idle = (enum idle)i;
		if (!strcmp(value, idle_names[i]))
			return 0;
	}
	return refuse(why, -EINVAL, "'%s' is not poll, yield or adaptive", value);
}

int set_icrc(struct options *o, const char *value, char why[VALUE_MAX])
{
	o->icrc = icrc_by_name(value);
	if (!o->icrc)
		return refuse(why, -EINVAL,
			"this CPU does not support '%s'; it supports %s (the default) and table",
			value, icrc_best()->name);
	return 0;
}

int set_ready_fd(struct options *o, const char *value, char why[VALUE_MAX])
{
	uint32_t fd;

	if (!number(value, 10, 0, INT16_MAX, &fd) || fcntl((int)fd, F_GETFD) < 0)
		return refuse(why, -EINVAL, "'%s' is not an open file descriptor", value);
	o->ready_fd = (int)fd;
	return 0;
}

int set_stats(struct options *o, const char *value, char why[VALUE_MAX])
{
	if (!*value || !strcmp(value, "text"))
		o->stats = STATS_TEXT;
	else if (!strcmp(value, "json"))
		o->stats = STATS_JSON;
	else
		return refuse(why, -EINVAL, "'%s' is neither text nor json", value);
	return 0;
}
