/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters under the names of /sys/class/infiniband: hw_counters of the daemon, counters of its
 * ports. They only rise: "reset counters" does not touch them. */
#include <string.h>
#include <rte_ethdev.h>
#include "config/parts.h"
#include "net/net.h"
#include "port.h"
#include "show/counters.h"
#include "show/show.h"
#include "text/row.h"
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

/* Words of four bytes, as InfiniBand counts them. */
static bool next_port_counters(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	struct port_counts n;
	uint32_t i = at->index++;

	if (i >= ctl->net->nports)
		return false;
	port_counts(ctl, i, &n);
	row_begin(&row);
	put_int(&row, "port", i + 1);
	put_int(&row, "port_xmit_data", n.roce.tx_bytes / 4);
	put_int(&row, "port_rcv_data", n.roce.rx_bytes / 4);
	put_int(&row, "port_xmit_packets", n.roce.tx_packets);
	put_int(&row, "port_rcv_packets", n.roce.rx_packets);
	put_int(&row, "unicast_xmit_packets", n.roce.tx_packets);
	put_int(&row, "unicast_rcv_packets", n.roce.rx_packets);
	put_int(&row, "port_rcv_errors", n.errors);
	put_int(&row, "port_xmit_discards", n.discards);
	put_int(&row, "link_downed", n.link_downed);
	put_int(&row, "bad_pkey", n.bad_pkey);
	put_int(&row, "qkey_viol", n.bad_qkey);
	*element = row_end(&row);
	return true;
}

static json_t *hw_counters(struct ctl *ctl, const struct argument arg[])
{
	struct core_counters sum;
	const uint64_t *value = (const uint64_t *)&sum; /* by declaration order, as the names */
	json_t *o = json_object();
	const char *name;

	worker_counters(ctl->dp, &sum);
	for (unsigned i = TOTALS; o && (name = core_counter_name(i)); i++)
		json_object_set_new(o, name, json_integer((json_int_t)value[i]));
	json_object_set_new(
		o, "rx_icrc_encapsulated", json_integer((json_int_t)sum.drop[DROP_ICRC]));
	return o;
}

const struct document_section show_port_counters = {
	.name = "port_counters", .next = next_port_counters};
const struct document_section show_hw_counters = {.name = "hw_counters", .object = hw_counters};
