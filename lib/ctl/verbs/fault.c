/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/alloc.h"
#include "refuse.h"
#include "verbs/fault.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "config/ctl_parts.h"
#include "core.h"
#include "inject.h"
#include "session/handles.h"
#include "session/session.h"
#include "text/fault.h"
#include "verbs/command.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* --- arming ----------------------------------------------------------------------------- */

static int call_owner(struct ctl *ctl, const struct qp_obj *o, struct core_cmd *cmd)
{
	cmd->qp = o->qp;
	return worker_call(ctl->dp->worker[o->worker], cmd);
}

/* While no QP has faults, workers need not check for any. */
static void tell_workers(struct ctl *ctl, bool injecting)
{
	struct core_cmd cmd = {.type = CORE_CMD_INJECTING, .tracing = injecting};

	for (uint32_t i = 0; i < ctl->dp->nworkers; i++)
		worker_call(ctl->dp->worker[i], &cmd);
}

/* Reserves some QPs for administrators. */
static int check_room(
	const struct ctl *ctl, const struct qp_obj *o, bool application, char why[ABI_SENTENCE_MAX])
{
	uint32_t most = INJECT_QPS_MAX - (application ? INJECT_SESSION_QPS_MAX : 0);

	if (application && o->session->ninjected >= INJECT_SESSION_QPS_MAX)
		return refuse(why, -EDQUOT,
			"%u QPs of this program have faults, which is the maximum: clear those of "
			"one",
			INJECT_SESSION_QPS_MAX);
	if (ctl->objects->ninjected >= most)
		return refuse(why, -EBUSY,
			"%u QPs have faults, which is the maximum: \"show faults\" lists them, "
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
		return refuse_memory(why);
	if (!ctl->objects->ninjected++)
		tell_workers(ctl, true);
	o->session->ninjected++;
	cmd.inject = o->inject;
	err = call_owner(ctl, o, &cmd);
	if (!err)
		return 0;
	fault_qp_gone(ctl, o);
	return refuse(why, err, "the worker cannot inject faults into QP %u (%s): try again",
		o->qpn, strerror(-err));
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
			"%u faults of QP %u are armed, which is the maximum: clear some",
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
	if (!--ctl->objects->ninjected)
		tell_workers(ctl, false);
}

/* --- looking ---------------------------------------------------------------------------- */

static const struct inject_rule *fault_find(const struct qp_obj *o, uint32_t id)
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

/* --- commands of programs ------------------------------------------------------------ */

static int find(struct session *s, uint32_t handle, struct qp_obj **o, struct reply *r)
{
	if (!s->ctl->application_faults)
		return refuse(r->why, -EPERM,
			"this rocid does not let programs inject faults: start it with "
			"--application-faults, or let its administrator do it (rocictl inject)");
	*o = handle_get(&s->qps, handle);
	return *o ? 0 : refuse(r->why, -EINVAL, "there is no QP %u", handle);
}

int cmd_inject_fault(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_inject_fault in;
	struct abi_fault_id out;
	struct qp_obj *o;
	int err;

	memcpy(&in, q->body, sizeof(in));
	out.qp = in.qp;
	err = find(s, in.qp, &o, r);
	if (!err)
		err = fault_arm(s->ctl, o, &in.fault, true, &out.id, r->why);
	if (!err)
		reply_body(r, &out, sizeof(out));
	return err;
}

int cmd_query_fault(struct session *s, const struct request *q, struct reply *r)
{
	const struct inject_rule *rule;
	struct abi_fault_count out = {0};
	struct abi_fault_id in;
	struct qp_obj *o;
	int err;

	memcpy(&in, q->body, sizeof(in));
	err = find(s, in.qp, &o, r);
	if (err)
		return err;
	rule = in.id ? fault_find(o, in.id) : NULL;
	if (!rule)
		return refuse(r->why, -ENOENT, "QP %u has no fault %u", o->qpn, in.id);
	out.id = in.id;
	out.matched = __atomic_load_n(&rule->matched, __ATOMIC_RELAXED);
	out.hits = __atomic_load_n(&rule->hits, __ATOMIC_RELAXED);
	out.missed = __atomic_load_n(&rule->missed, __ATOMIC_RELAXED);
	reply_body(r, &out, sizeof(out));
	return 0;
}

int cmd_clear_fault(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_fault_id in;
	struct qp_obj *o;
	int err;

	memcpy(&in, q->body, sizeof(in));
	err = find(s, in.qp, &o, r);
	return err ? err : fault_clear(s->ctl, o, in.id, r->why);
}
