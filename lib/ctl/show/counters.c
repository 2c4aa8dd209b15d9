/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters under the names of /sys/class/infiniband: hw_counters of the daemon, counters of its
 * ports. They only rise: "reset counters" does not affect them. */
#include <string.h>
#include <rte_ethdev.h>
#include "config/ctl_parts.h"
#include "net/net.h"
#include "port.h"
#include "row.h"
#include "show/counters.h"
#include "show/show.h"
#include "worker.h"

void port_counts(struct ctl *ctl, uint32_t i, struct port_counts *to)
{
	struct core_counters sum;
	struct rte_eth_stats eth;

	worker_counters(ctl->dp, &sum);
	memset(to, 0, sizeof(*to));
	to->roce = sum.port[i];
	to->bad_pkey = sum.bad_pkey[i];
	to->bad_qkey = sum.bad_qkey[i];
	to->link_downed = ctl->net->port[i].link_downed;
	if (i < ctl->dp->nports && !port_stats(ctl->dp, i, &eth)) {
		to->errors = eth.ierrors;
		to->missed = eth.imissed + eth.rx_nombuf;
		to->discards = eth.oerrors;
	}
}

/* Data are counted in words of four bytes, as in InfiniBand. */
void port_named_counts(struct ctl *ctl, uint32_t i, struct named_count to[PORT_COUNTERS])
{
	struct port_counts n;

	port_counts(ctl, i, &n);
	memcpy(to,
		(struct named_count[PORT_COUNTERS]){
			{"port_xmit_data", n.roce.tx_bytes / 4},
			{"port_rcv_data", n.roce.rx_bytes / 4},
			{"port_xmit_packets", n.roce.tx_packets},
			{"port_rcv_packets", n.roce.rx_packets},
			{"unicast_xmit_packets", n.roce.tx_packets},
			{"unicast_rcv_packets", n.roce.rx_packets},
			{"port_rcv_errors", n.errors},
			{"port_xmit_discards", n.discards},
			{"link_downed", n.link_downed},
			{"bad_pkey", n.bad_pkey},
			{"qkey_viol", n.bad_qkey},
		},
		PORT_COUNTERS * sizeof(to[0]));
}

static bool next_port_counters(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct named_count count[PORT_COUNTERS];
	struct row row;
	uint32_t i = at->index++;

	if (i >= ctl->net->nports)
		return false;
	port_named_counts(ctl, i, count);
	row_begin(&row);
	put_int(&row, "port", i + 1);
	for (unsigned k = 0; k < PORT_COUNTERS; k++)
		put_int(&row, count[k].name, (int64_t)count[k].value);
	*element = row_end(&row);
	return true;
}

bool hw_named_count(const struct core_counters *sum, unsigned i, struct named_count *to)
{
	const uint64_t *value = (const uint64_t *)sum; /* in declaration order, as the names are */
	unsigned at = TOTALS + i - 1;

	if (!i)
		*to = (struct named_count){"rx_icrc_encapsulated", sum->drop[DROP_ICRC]};
	else
		*to = (struct named_count){core_counter_name(at), value[at]};
	return to->name;
}

static json_t *hw_counters(struct ctl *ctl, const struct argument arg[])
{
	struct core_counters sum;
	struct named_count n;
	json_t *o = json_object();

	worker_counters(ctl->dp, &sum);
	for (unsigned i = 0; o && hw_named_count(&sum, i, &n); i++)
		json_object_set_new(o, n.name, json_integer((json_int_t)n.value));
	return o;
}

const struct document_section show_port_counters = {
	.name = "port_counters", .next = next_port_counters};
const struct document_section show_hw_counters = {.name = "hw_counters", .object = hw_counters};
