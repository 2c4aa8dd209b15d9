/* SPDX-License-Identifier: BSD-3-Clause */
#include "refuse.h"
#include "verbs/qp_cc.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "config/ctl_parts.h"
#include "core.h"
#include "net/net.h"
#include "net/netport.h"
#include "qp.h"
#include "session/session.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* Congestion control of the port of @p o; NULL: it has no port before INIT. */
static const struct congestion *of_port(const struct qp_obj *o)
{
	uint8_t port = __atomic_load_n(&o->qp->attr.port, __ATOMIC_RELAXED);

	return port ? o->session->ctl->net->port[port - 1].congestion : NULL;
}

/* Has the worker of @p o use @p cfg instead of the port's parameters, if @p own. */
static int tell(const struct qp_obj *o, bool own, const struct cc_config *cfg)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_CC, .qp = o->qp, .cc = {own, cfg}};

	return worker_call(o->session->ctl->dp->worker[o->worker], &cmd);
}

/* --- checks ------------------------------------------------------------------------------- */

static int check_qp(const struct qp_obj *o, char why[ABI_SENTENCE_MAX])
{
	if (o->qp->type == ABI_QPT_GSI)
		return refuse(why, -EINVAL, "QP1 has no congestion control: name another QP");
	if (!of_port(o))
		return refuse(why, -EINVAL,
			"QP %u has no port yet, whose rate the algorithm needs: move it to "
			"INIT first",
			o->qpn);
	return 0;
}

/* An algorithm can use only features that the port has enabled. */
static bool port_permits(const struct congestion *port, const struct congestion *wanted)
{
	return port && port->on && (!congestion_header(wanted) || congestion_header(port));
}

static int check_port(
	const struct qp_obj *o, const struct congestion *wanted, char why[ABI_SENTENCE_MAX])
{
	const struct congestion *port = of_port(o);

	if (!wanted->on || port_permits(port, wanted))
		return 0;
	if (!port->on)
		return refuse(why, -EINVAL,
			"congestion control of port %u is off: run \"set port %u cc notify\" first",
			o->qp->attr.port, o->qp->attr.port);
	return refuse(why, -EINVAL,
		"%s needs telemetry, and port %u makes room for it only with \"set port %u cc %s\"",
		wanted->cfg.ops->name, o->qp->attr.port, o->qp->attr.port, wanted->cfg.ops->name);
}

/* --- the choice --------------------------------------------------------------------------- */

/* Replaces the setting of @p o, which becomes effective as far as the port permits it. */
static int use(struct qp_obj *o, const struct congestion *wanted, const struct cc_config *config)
{
	struct qp_cc *cc = o->cc;
	const struct cc_config *former = cc->config;
	int err;

	cc->wanted = *wanted;
	cc->config = config;
	err = tell(o, true, port_permits(of_port(o), wanted) ? config : NULL);
	if (former != config)
		free((void *)former);
	return err;
}

static int give_back(struct qp_obj *o, char why[ABI_SENTENCE_MAX])
{
	if (o->cc && tell(o, false, NULL))
		return refuse(why, -EIO, "worker %u does not answer", o->worker);
	qp_cc_release(o);
	return 0;
}

int qp_cc_set(struct qp_obj *o, const char *text, char why[ABI_SENTENCE_MAX])
{
	const struct cc_config *config;
	struct congestion wanted;
	int err = check_qp(o, why);

	if (err)
		return err;
	if (!strcmp(text, "port"))
		return give_back(o, why);
	wanted = o->cc ? o->cc->wanted : *of_port(o);
	wanted.of_qp = true;
	err = congestion_change(&wanted, text, why, ABI_SENTENCE_MAX);
	if (!err)
		err = check_port(o, &wanted, why);
	if (err)
		return err;
	cc_config_line(&wanted.cfg, of_port(o)->cfg.line);
	if (congestion_config(&wanted, &config))
		return refuse_memory(why);
	if (!o->cc)
		o->cc = calloc(1, sizeof(*o->cc));
	if (!o->cc) {
		free((void *)config);
		return refuse_memory(why);
	}
	return use(o, &wanted, config) ? refuse(why, -EIO, "worker %u does not answer", o->worker)
				       : 0;
}

void qp_cc_follow(struct qp_obj *o)
{
	struct congestion wanted = o->cc->wanted;
	const struct congestion *port = of_port(o);
	const struct cc_config *config;

	if (port)
		cc_config_line(&wanted.cfg, port->cfg.line);
	/* No reply can say that memory is short: the line stays as it was then. */
	if (congestion_config(&wanted, &config)) {
		wanted = o->cc->wanted;
		config = o->cc->config;
	}
	use(o, &wanted, config);
}

const char *qp_cc_text(const struct qp_obj *o, char text[CONGESTION_TEXT])
{
	return o->cc ? congestion_text(&o->cc->wanted, text) : NULL;
}

void qp_cc_release(struct qp_obj *o)
{
	if (!o->cc)
		return;
	free((void *)o->cc->config);
	free(o->cc);
	o->cc = NULL;
}
