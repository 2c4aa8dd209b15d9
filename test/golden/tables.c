/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and entropy: one item per entry, each against the product's function. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "address.h"
#include "completer.h"
#include "encap.h"
#include "golden.h"
#include "mcast.h"
#include "net/gids.h"
#include "opcode.h"
#include "qp_impl.h"
#include "seq24.h"
#include "text/sentence.h"
#include "timers.h"

#define PSN_MASK 0xFFFFFFu

static void equal(struct golden *g, const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		item_fail(g, "%s is 0x%llx, not 0x%llx", what, (unsigned long long)got,
			(unsigned long long)want);
}

static uint32_t member(struct golden *g, const json_t *e, const char *key, uint64_t max)
{
	return (uint32_t)number_upto(g, key, json_object_get(e, key), max);
}

/* --- entropy -------------------------------------------------------------------------- */

/* The port is written as a number, in hex, or both. */
static void check_sport(struct golden *g, const json_t *e, uint16_t sport)
{
	const json_t *hex = json_object_get(e, "udp_sport_hex");
	const json_t *dec = json_object_get(e, "udp_sport");

	if (!hex && !dec)
		item_fail(g, "no port is given");
	if (hex)
		same_number(g, "udp_sport_hex", sport, hex);
	if (dec)
		same_number(g, "udp_sport", sport, dec);
}

static void flow_label_to_sport_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {"flow_label", "udp_sport", "udp_sport_hex", "note"};

	if (KNOWN(g, "entry", e, known))
		check_sport(g, e, flow_label_to_sport(member(g, e, "flow_label", 0xFFFFF)));
}

static void qpn_to_flow_label_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {
		"src_qpn", "dst_qpn", "flow_label", "udp_sport", "udp_sport_hex", "note"};
	uint32_t label;

	if (!KNOWN(g, "entry", e, known))
		return;
	label = flow_label_of_qpns(
		member(g, e, "src_qpn", PSN_MASK), member(g, e, "dst_qpn", PSN_MASK));
	same_number(g, "flow_label", label, json_object_get(e, "flow_label"));
	check_sport(g, e, flow_label_to_sport(label));
}

/* --- sequence numbers ------------------------------------------------------------------- */

static void psn_compare_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {"a", "b", "sign", "note"};
	uint32_t a, b;
	int32_t d;

	if (!KNOWN(g, "entry", e, known))
		return;
	a = member(g, e, "a", PSN_MASK);
	b = member(g, e, "b", PSN_MASK);
	d = seq24_diff(a, b);
	if (!json_is_integer(json_object_get(e, "sign")))
		item_fail(g, "no sign is given");
	else if ((d > 0) - (d < 0) != json_integer_value(json_object_get(e, "sign")))
		item_fail(g, "the difference is %d", d);
	if (seq24_lt(a, b) != (d < 0))
		item_fail(g, "seq24_lt() disagrees with seq24_diff()");
}

static void read_psn_count_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {"length", "mtu", "packets", "note"};
	struct qp qp = {0};
	uint32_t mtu;

	if (!KNOWN(g, "entry", e, known))
		return;
	mtu = member(g, e, "mtu", PATH_MTU_MAX);
	if (mtu < PATH_MTU_MIN || mtu & (mtu - 1)) {
		item_fail(g, "%u is no MTU", mtu);
		return;
	}
	qp.mtu_shift = (uint8_t)__builtin_ctz(mtu);
	same_number(g, "packets", qp_packets(&qp, member(g, e, "length", MSG_LEN_MAX)),
		json_object_get(e, "packets"));
}

/* --- tables by index ------------------------------------------------------------------ */

static void rnr_timer_at(struct golden *g, unsigned i, const json_t *v)
{
	same_number(g, "the timer", timers_rnr_usec(i), v);
}

/* The limit that an ACK with code @p i and MSN 100 sets; null: none. */
static void credit_at(struct golden *g, unsigned i, const json_t *v)
{
	const uint32_t msn = 100;
	struct node_spec s = node_spec_of(g, true);
	struct pkt ack = {.op = opcode_row(OP_ACKNOWLEDGE), .syndrome = (uint8_t)i, .msn = msn};
	struct node n;

	if (g->bad || !node_init(&n, g, &s))
		return;
	ack.psn = (s.sq_psn - 1) & PSN_MASK;
	completer_rx(&n.host->core, n.qp->qp, &ack, n.now);
	if (json_is_null(v))
		equal(g, "a limit", n.qp->qp->comp.limited, false);
	else
		same_number(g, "the limit", n.qp->qp->comp.limit - msn, v);
	node_fini(&n);
}

/* --- tables by key -------------------------------------------------------------------- */

static uint32_t key_number(struct golden *g, const char *key, uint32_t max)
{
	char *end;
	unsigned long n = strtoul(key, &end, 10);

	if (*key && !*end && n <= max)
		return (uint32_t)n;
	item_fail(g, "'%.40s' is no number up to %u", key, max);
	return 0;
}

static void ack_timeout_of(struct golden *g, const char *key, const json_t *v)
{
	equal(g, "the timeout in ns", timers_ack_timeout(key_number(g, key, 31)),
		nanoseconds(g, key, v));
}

static void max_mtu_of(struct golden *g, const char *key, const json_t *v)
{
	same_number(g, "the MTU", mtu_of_ethernet(key_number(g, key, 65535)), v);
}

/* --- addresses ---------------------------------------------------------------------------- */

static void check_gid(struct golden *g, const char *what, const uint8_t gid[16], const json_t *want)
{
	uint8_t other[16];

	if (inet_pton(AF_INET6, json_is_string(want) ? json_string_value(want) : "", other) != 1)
		item_fail(g, "%s is no GID", what);
	else if (memcmp(gid, other, 16))
		item_fail(g, "%s differs", what);
}

/* Text to GID and back, as the options and the sentences of the daemon have it. */
static void gid_map_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {"ip", "gid", "gid_hex", "note"};
	char back[GID_TEXT];
	uint8_t gid[16], again[16];
	uint8_t *hex;
	size_t len;

	if (!KNOWN(g, "entry", e, known))
		return;
	if (!gid_of_text(gid, text(e, "ip"))) {
		item_fail(g, "'%.60s' is taken for no address", text(e, "ip"));
		return;
	}
	check_gid(g, "gid", gid, json_object_get(e, "gid"));
	hex = hex_bytes(g, "gid_hex", json_object_get(e, "gid_hex"), &len);
	if (hex && (len != 16 || memcmp(hex, gid, 16)))
		item_fail(g, "gid_hex differs");
	free(hex);
	if (!gid_of_text(again, gid_text(gid, back)) || memcmp(again, gid, 16))
		item_fail(g, "the GID is written %s", back);
}

static void mac_to_gid_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {"mac", "gid", "note"};
	uint8_t mac[6], gid[16];

	if (!KNOWN(g, "entry", e, known))
		return;
	if (!mac_of(text(e, "mac"), mac)) {
		item_fail(g, "'%.40s' is no MAC address", text(e, "mac"));
		return;
	}
	gid_of_mac(gid, mac);
	check_gid(g, "gid", gid, json_object_get(e, "gid"));
}

static void mcast_mac_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {"group", "mac", "note"};
	uint8_t gid[16] = {[10] = 0xFF, [11] = 0xFF}, want[6], got[6];
	const char *group = text(e, "group");

	if (!KNOWN(g, "entry", e, known))
		return;
	if (inet_pton(AF_INET6, group, gid) != 1 && inet_pton(AF_INET, group, gid + 12) != 1)
		item_fail(g, "'%.40s' is no address", group);
	else if (!mac_of(text(e, "mac"), want))
		item_fail(g, "'%.40s' is no MAC address", text(e, "mac"));
	if (g->bad)
		return;
	mcast_mac(got, gid);
	if (!gid_is_multicast(gid) || memcmp(got, want, sizeof(got)))
		item_fail(g, "the MAC is another");
}

/* proves IPB-07, IPB-09, IPB-10 */
static void ipoib_mgid_entry(struct golden *g, const json_t *e)
{
	static const char *const known[] = {"ip", "pkey", "mgid", "note"};
	uint16_t pkey = (uint16_t)member(g, e, "pkey", UINT16_MAX);
	uint8_t ip[16], mgid[16];

	if (!KNOWN(g, "entry", e, known))
		return;
	if (inet_pton(AF_INET, text(e, "ip"), ip) == 1)
		ipoib_mgid_of_ip4(mgid, pkey, IPOIB_SCOPE, ip);
	else if (inet_pton(AF_INET6, text(e, "ip"), ip) == 1)
		ipoib_mgid_of_ip6(mgid, pkey, IPOIB_SCOPE, ip);
	else
		item_fail(g, "'%.40s' is no address", text(e, "ip"));
	if (!g->bad)
		check_gid(g, "mgid", mgid, json_object_get(e, "mgid"));
}

/* --- all of them ---------------------------------------------------------------------- */

static const struct table {
	const char *name;
	void (*entry)(struct golden *g, const json_t *e);		/* array of objects */
	void (*at)(struct golden *g, unsigned i, const json_t *v);	/* array of 32 values */
	void (*of)(struct golden *g, const char *key, const json_t *v); /* object */
} tables[] = {
	{"flow_label_to_sport", flow_label_to_sport_entry, NULL, NULL},
	{"qpn_to_flow_label", qpn_to_flow_label_entry, NULL, NULL},
	{"psn_compare", psn_compare_entry, NULL, NULL},
	{"read_psn_count", read_psn_count_entry, NULL, NULL},
	{"gid_map", gid_map_entry, NULL, NULL},
	{"mac_to_eui64_gid", mac_to_gid_entry, NULL, NULL},
	{"mcast_mac", mcast_mac_entry, NULL, NULL},
	{"ipoib_mgid", ipoib_mgid_entry, NULL, NULL},
	{"rnr_timer_usec", NULL, rnr_timer_at, NULL},
	{"aeth_credits", NULL, credit_at, NULL},
	{"local_ack_timeout_usec", NULL, NULL, ack_timeout_of},
	{"roce_max_ib_mtu", NULL, NULL, max_mtu_of},
};

static void run_table(struct golden *g, const struct table *t, const json_t *table)
{
	char name[128];
	const char *key;
	json_t *v;
	size_t i;

	if (t->of ? !json_is_object(table) : !json_is_array(table)) {
		item_begin(g, t->name);
		item_fail(g, "this table is no %s", t->of ? "object" : "array");
		item_end(g);
		return;
	}
	json_object_foreach((json_t *)table, key, v)
	{
		snprintf(name, sizeof(name), "%s %.60s", t->name, key);
		item_begin(g, name);
		t->of(g, key, v);
		item_end(g);
	}
	json_array_foreach((json_t *)table, i, v)
	{
		snprintf(name, sizeof(name), "%s %zu", t->name, i);
		item_begin(g, name);
		if (t->entry)
			t->entry(g, v);
		else if (i < 32) /* a code has five bits */
			t->at(g, (unsigned)i, v);
		else
			item_fail(g, "there are 32 codes");
		item_end(g);
	}
}

static bool is_note(const char *key, const json_t *v)
{
	size_t len = strlen(key);

	return json_is_string(v) && len >= 4 && !strcmp(key + len - 4, "note");
}

static void run_all(struct golden *g, const json_t *all, const char *group)
{
	const char *key;
	json_t *v;

	if (!json_is_object(all)) {
		item_begin(g, group);
		item_fail(g, "this group is no object");
		item_end(g);
	}
	json_object_foreach((json_t *)all, key, v)
	{
		unsigned i = 0;

		if (is_note(key, v))
			continue;
		while (i < ARRAY_SIZE(tables) && strcmp(tables[i].name, key))
			i++;
		if (i < ARRAY_SIZE(tables)) {
			run_table(g, &tables[i], v);
			continue;
		}
		item_begin(g, key);
		g->skip = skips(g, "%s %s", group, key);
		if (!g->skip)
			item_fail(g, "this table is not handled");
		item_end(g);
	}
}

void run_tables(struct golden *g, const json_t *all)
{
	run_all(g, all, "table");
}

void run_entropy(struct golden *g, const json_t *all)
{
	run_all(g, all, "entropy");
}
