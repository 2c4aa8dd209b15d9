/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/fault.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inject.h"
#include "state.h"
#include "text/fault.h"
#include "text/sentence.h"
#include "verbs/object.h"

/* --- arming ----------------------------------------------------------------------------- */

static int call_owner(struct ctl *ctl, const struct qp_obj *o, struct core_cmd *cmd)
{
	cmd->qp = o->qp;
	return worker_call(ctl->dp->worker[o->worker], cmd);
}

/* Without a QP that has faults workers need not ask for any. */
static void tell_workers(struct ctl *ctl, bool injecting)
{
	struct core_cmd cmd = {.type = CORE_CMD_INJECTING, .tracing = injecting};

	for (uint32_t i = 0; i < ctl->dp->nworkers; i++)
		worker_call(ctl->dp->worker[i], &cmd);
}

/* Programs leave some to administrators. */
static int check_room(
	const struct ctl *ctl, const struct qp_obj *o, bool application, char why[ABI_SENTENCE_MAX])
{
	uint32_t most = INJECT_QPS_MAX - (application ? INJECT_SESSION_QPS_MAX : 0);

	if (application && o->session->ninjected >= INJECT_SESSION_QPS_MAX)
		return refuse(why, -EDQUOT,
			"%u QPs of this program have faults, the most there can be: clear those of "
			"one",
			INJECT_SESSION_QPS_MAX);
	if (ctl->ninjected >= most)
		return refuse(why, -EBUSY,
			"%u QPs have faults, the most there can be: \"show faults\" lists them, "
			"clear those of one",
			most);
	return 0;
}

static int begin(struct ctl *ctl, struct qp_obj *o, bool application, char why[ABI_SENTENCE_MAX])
{
	struct core_cmd cmd = {.type = CORE_CMD_INJECT_QP};
	int err = check_room(ctl, o, application, why);

	if (err)
		return err;
	o->inject = object_alloc(sizeof(*o->inject));
	if (!o->inject)
		return refuse(why, -ENOMEM, "rocid is out of memory");
	if (!ctl->ninjected++)
		tell_workers(ctl, true);
	o->session->ninjected++;
	cmd.inject = o->inject;
	err = call_owner(ctl, o, &cmd);
	if (!err)
		return 0;
	fault_qp_gone(ctl, o);
	return refuse(why, err, "QP %u takes no faults (%s): try again", o->qpn, strerror(-err));
}

static void end(struct ctl *ctl, struct qp_obj *o)
{
	struct core_cmd cmd = {.type = CORE_CMD_INJECT_QP};

	call_owner(ctl, o, &cmd);
	fault_qp_gone(ctl, o);
}

static bool has_any(const struct qp_obj *o)
{
	for (unsigned i = 0; i < INJECT_RULES; i++)
		if (o->inject->rule[i].id)
			return true;
	return false;
}

int fault_arm(struct ctl *ctl, struct qp_obj *o, const struct abi_fault *f, bool application,
	uint32_t *id, char why[ABI_SENTENCE_MAX])
{
	struct core_cmd cmd = {.type = CORE_CMD_ARM_FAULT, .fault = f};
	int err = fault_check(f, why);

	if (!err && !o->inject)
		err = begin(ctl, o, application, why);
	if (err)
		return err;
	err = call_owner(ctl, o, &cmd);
	if (err)
		return refuse(why, err,
			"%u faults of QP %u are armed, the most there can be: clear some",
			INJECT_RULES, o->qpn);
	*id = cmd.n;
	return 0;
}

int fault_clear(struct ctl *ctl, struct qp_obj *o, uint32_t id, char why[ABI_SENTENCE_MAX])
{
	struct core_cmd cmd = {.type = CORE_CMD_CLEAR_FAULT, .n = id};

	if (!o->inject || (id && call_owner(ctl, o, &cmd)))
		return refuse(why, -ENOENT, "QP %u has no such fault: \"show faults\" lists them",
			o->qpn);
	if (!id || !has_any(o))
		end(ctl, o);
	return 0;
}

void fault_qp_gone(struct ctl *ctl, struct qp_obj *o)
{
	if (!o->inject)
		return;
	free(o->inject);
	o->inject = NULL;
	o->session->ninjected--;
	if (!--ctl->ninjected)
		tell_workers(ctl, false);
}

/* --- looking ---------------------------------------------------------------------------- */

const struct inject_rule *fault_find(const struct qp_obj *o, uint32_t id)
{
	for (unsigned i = 0; o->inject && i < INJECT_RULES; i++)
		if (o->inject->rule[i].id == id)
			return &o->inject->rule[i];
	return NULL;
}

uint64_t fault_hits(const struct qp_obj *o)
{
	uint64_t hits = 0;

	for (unsigned i = 0; o->inject && i < INJECT_RULES; i++)
		hits += __atomic_load_n(&o->inject->rule[i].hits, __ATOMIC_RELAXED);
	return hits;
}
