/* SPDX-License-Identifier: BSD-3-Clause */
/* Entropy, timers, credits, PSN arithmetic: one item an entry. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "completer.h"
#include "golden.h"
#include "seq24.h"
#include "timers.h"

static void equal(struct golden *g, uint64_t got, uint64_t want)
{
	if (got != want)
		item_fail(g, "0x%llx instead of 0x%llx", (unsigned long long)got,
			(unsigned long long)want);
}

/* --- entropy -------------------------------------------------------------------------- */

static void flow_label_to_sport_entry(struct golden *g, const json_t *e)
{
	uint32_t fl = (uint32_t)json_u64_of(g, e, "flow_label");

	equal(g, flow_label_to_sport(fl), json_u64_of(g, e, "udp_sport_hex"));
}

static void qpn_to_flow_label_entry(struct golden *g, const json_t *e)
{
	uint32_t fl = flow_label_of_qpns(
		(uint32_t)json_u64_of(g, e, "src_qpn"), (uint32_t)json_u64_of(g, e, "dst_qpn"));

	equal(g, fl, json_u64_of(g, e, "flow_label"));
	equal(g, flow_label_to_sport(fl), json_u64_of(g, e, "udp_sport_hex"));
}

static void psn_compare_entry(struct golden *g, const json_t *e)
{
	int32_t d = seq24_diff((uint32_t)json_u64_of(g, e, "a"), (uint32_t)json_u64_of(g, e, "b"));

	equal(g, (uint64_t)(int64_t)((d > 0) - (d < 0)), json_u64_of(g, e, "sign"));
}

static void read_psn_count_entry(struct golden *g, const json_t *e)
{
	struct qp qp = {.mtu_shift = (uint8_t)__builtin_ctz((unsigned)json_u64_of(g, e, "mtu"))};

	equal(g, qp_packets(&qp, (uint32_t)json_u64_of(g, e, "length")),
		json_u64_of(g, e, "packets"));
}

/* --- tables by index ------------------------------------------------------------------ */

static void rnr_timer_at(struct golden *g, unsigned i, const json_t *v)
{
	equal(g, timers_rnr_usec(i), json_u64(g, v));
}

/* The limit that an ACK with code @p i and MSN 100 sets; null: none. */
static void credit_at(struct golden *g, unsigned i, const json_t *v)
{
	static struct node n;
	struct node_spec s = node_spec_of(g, true);
	struct pkt ack = {.op = opcode_row(0x11), .syndrome = (uint8_t)i, .msn = 100};

	node_init(&n, g, &s);
	ack.psn = (s.sq_psn - 1) & 0xFFFFFF;
	completer_rx(&n.host->core, n.qp->qp, &ack, n.now);
	equal(g, n.qp->qp->comp.limited, !json_is_null(v));
	if (!json_is_null(v))
		equal(g, n.qp->qp->comp.limit - 100, json_u64(g, v));
	node_fini(&n);
}

/* --- tables by key -------------------------------------------------------------------- */

static void ack_timeout_of(struct golden *g, const char *key, const json_t *v)
{
	double usec = json_number_value(v);

	equal(g, timers_ack_timeout((unsigned)atoi(key)), (uint64_t)(usec * 1000 + 0.5));
}

static void max_mtu_of(struct golden *g, const char *key, const json_t *v)
{
	equal(g, mtu_of_ethernet((uint32_t)atoi(key)), json_u64(g, v));
}

/* --- all of them ---------------------------------------------------------------------- */

static const struct table {
	const char *name;
	void (*entry)(struct golden *g, const json_t *e);		/* array of objects */
	void (*at)(struct golden *g, unsigned i, const json_t *v);	/* array of values */
	void (*of)(struct golden *g, const char *key, const json_t *v); /* object */
} tables[] = {
	{"flow_label_to_sport", flow_label_to_sport_entry, NULL, NULL},
	{"qpn_to_flow_label", qpn_to_flow_label_entry, NULL, NULL},
	{"psn_compare", psn_compare_entry, NULL, NULL},
	{"read_psn_count", read_psn_count_entry, NULL, NULL},
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

	if (t->of) {
		json_object_foreach((json_t *)table, key, v)
		{
			snprintf(name, sizeof(name), "%s %s", t->name, key);
			item_begin(g, name);
			t->of(g, key, v);
			item_end(g);
		}
		return;
	}
	json_array_foreach((json_t *)table, i, v)
	{
		snprintf(name, sizeof(name), "%s %zu", t->name, i);
		item_begin(g, name);
		if (t->entry)
			t->entry(g, v);
		else
			t->at(g, (unsigned)i, v);
		item_end(g);
	}
}

static void run_all(struct golden *g, const json_t *all, const char *group)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)all, key, v)
	{
		unsigned i = 0;

		if (json_is_string(v)) /* a note */
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
