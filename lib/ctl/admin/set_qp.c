/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "abi_ctl.h"
#include "admin/set_qp.h"
#include "headers.h"
#include "net/congestion.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "net/net.h"
#include "net/priority.h"
#include "path.h"
#include "qp.h"
#include "refuse.h"
#include "verbs/av.h"
#include "verbs/device.h"
#include "verbs/dest.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* --- QPs -------------------------------------------------------------------------------- */

/* Makes the worker of @p o rebuild its path from address vector @p av. */
static int repath(
	struct ctl *ctl, struct qp_obj *o, const struct abi_ah_attr *av, char why[ABI_SENTENCE_MAX])
{
	struct core_cmd cmd = {.type = CORE_CMD_REPATH_QP, .qp = o->qp, .attr = {.ah = *av}};

	cmd.sgid = o->hold.gids->table.entry[o->hold.index];
	memcpy(cmd.sgid.mac, o->dest->smac, 6);
	av_path(ctl, av, &cmd.path);
	cmd.path.sport = o->sport;
	memcpy(cmd.path.dmac, o->dest->dmac, 6);
	cmd.path.local = o->dest->local;
	if (worker_call(ctl->dp->worker[o->worker], &cmd))
		return refuse(why, -EINVAL, "QP %u has no path in its current state", o->qpn);
	return 0;
}

/* Applies arg[1] by @p change to the attributes from which the path of the QP in arg[0] is built.
 * Workers write a QP's address vector only on the control thread's behalf. */
static int set_qp(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX],
	void (*change)(struct qp_obj *o, struct abi_ah_attr *av, uint32_t value))
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	struct abi_ah_attr av;

	if (!o->dest)
		return refuse(why, -EINVAL,
			"QP %u has no path: a connected QP has one from RTR on, and a datagram QP "
			"uses those of its address handles",
			o->qpn);
	av = o->qp->attr.ah;
	change(o, &av, (uint32_t)arg[1].number);
	return repath(ctl, o, &av, why);
}

static void set_sport(struct qp_obj *o, struct abi_ah_attr *av, uint32_t value)
{
	o->sport = (uint16_t)value;
}

static void set_flow_label(struct qp_obj *o, struct abi_ah_attr *av, uint32_t value)
{
	av->flow_label = value;
	o->sport = 0; /* UDP-11: it follows the label again */
}

static void set_traffic_class(struct qp_obj *o, struct abi_ah_attr *av, uint32_t value)
{
	av->traffic_class = (uint8_t)value;
}

static void set_hop_limit(struct qp_obj *o, struct abi_ah_attr *av, uint32_t value)
{
	av->hop_limit = (uint8_t)value;
}

static void set_sl(struct qp_obj *o, struct abi_ah_attr *av, uint32_t value)
{
	av->sl = (uint8_t)value;
}

int admin_set_qp_sport(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	const struct qp_obj *o = find_qp(ctl, arg[0].number);

	if (o->dest && o->qp->path.net == NET_ROCEV1)
		return refuse(why, -EINVAL, "QP %u is RoCEv1, which has no UDP: set its flow-label",
			o->qpn);
	return set_qp(ctl, arg, why, set_sport);
}

int admin_set_qp_flow_label(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	return set_qp(ctl, arg, why, set_flow_label);
}

int admin_set_qp_traffic_class(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	return set_qp(ctl, arg, why, set_traffic_class);
}

int admin_set_qp_hop_limit(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	return set_qp(ctl, arg, why, set_hop_limit);
}

int admin_set_qp_sl(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	return set_qp(ctl, arg, why, set_sl);
}

/* --- ports ------------------------------------------------------------------------------ */

int admin_set_port_pkey(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	port_set_pkey(
		ctl, (uint32_t)arg[0].number - 1, (uint32_t)arg[1].number, (uint16_t)arg[2].number);
	return 0;
}

int admin_set_port_priority(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct priority_map map;
	int err = priority_parse(&map, arg[1].word, why, ABI_SENTENCE_MAX);

	if (!err)
		netport_set_priority(&ctl->net->port[arg[0].number - 1], &map);
	return err;
}

int admin_set_port_cc(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct netport *port = &ctl->net->port[arg[0].number - 1];
	const struct cc_config *config, *former;
	struct switch_list *old;
	struct congestion c = *port->congestion;
	int err = congestion_change(&c, arg[1].word, why, ABI_SENTENCE_MAX);

	if (err)
		return err;
	congestion_port(&c, port->speed_mbps);
	if (congestion_config(&c, &config))
		return refuse_memory(why);
	if (switches_publish(&c.switches, port->shared, &old)) {
		free((void *)config);
		return refuse_memory(why);
	}
	*port->congestion = c;
	former = congestion_publish(&c, config, port->shared);
	net_telemetry(ctl->net, ctl->dp->ports);
	port_tell(ctl, port->index, netport_share(port));
	net_tell_owner(ctl->net, port->index, CTL_NETDEV_SWITCHES);
	qps_congestion(ctl);
	worker_grace(ctl->dp);
	free((void *)former);
	free(old);
	return 0;
}
