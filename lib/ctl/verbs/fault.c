/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/fault.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inject.h"
#include "seq24.h"
#include "state.h"
#include "text/sentence.h"
#include "verbs/object.h"

/* --- may it be? ------------------------------------------------------------------------- */

static int check_which(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	if (f->direction > ABI_FAULT_RX || (f->flags & ~ABI_FAULT_FLAGS))
		return refuse(why, -EINVAL,
			"direction %u or flags 0x%x are unknown: see abi_fault.h", f->direction,
			f->flags);
	if (f->packets & ~(ABI_FAULT_WHAT | ABI_FAULT_PLACE))
		return refuse(why, -EINVAL, "there are no packets of kind 0x%x", f->packets);
	if (f->psn_first > SEQ24_MASK || f->psn_last > SEQ24_MASK)
		return refuse(why, -EINVAL, "a PSN has 24 bits: 0 to 0x%x", SEQ24_MASK);
	if (!f->nth || !f->every)
		return refuse(why, -EINVAL, "packets count from 1: nth and every are 1 or more");
	if (!f->chance || f->chance > ABI_FAULT_ALWAYS)
		return refuse(why, -EINVAL, "a probability is above 0 and at most 1");
	return 0;
}

static int check_direction(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	if (f->kind == ABI_FAULT_RNR && f->direction != ABI_FAULT_RX)
		return refuse(why, -EINVAL,
			"an RNR NAK answers a request that is received: rnr wants rx");
	if (f->kind == ABI_FAULT_QPN && f->direction != ABI_FAULT_TX)
		return refuse(why, -EINVAL,
			"a packet for another QP is none of this one's: qpn wants tx");
	return 0;
}

/* The most that `value` can be. */
static uint32_t value_max(const struct abi_fault *f)
{
	static const uint32_t most[ABI_FAULT_KINDS] = {
		[ABI_FAULT_REORDER] = INJECT_HELD - 1,
		[ABI_FAULT_RNR] = 31,
		[ABI_FAULT_ECN] = 3,
		[ABI_FAULT_SYNDROME] = 0xFF,
		[ABI_FAULT_MSN] = SEQ24_MASK,
		[ABI_FAULT_PSN] = SEQ24_MASK,
		[ABI_FAULT_OPCODE] = 0xFF,
		[ABI_FAULT_PKEY] = 0xFFFF,
		[ABI_FAULT_QPN] = SEQ24_MASK,
	};

	return most[f->kind];
}

static int check_amount(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	bool holds = f->kind == ABI_FAULT_DELAY || f->kind == ABI_FAULT_REORDER;

	if (f->value > value_max(f) || (f->kind == ABI_FAULT_REORDER && !f->value))
		return refuse(why, -EINVAL, "%s: 0x%x is none of %u to 0x%x", inject_names[f->kind],
			f->value, f->kind == ABI_FAULT_REORDER, value_max(f));
	if (holds && (!f->time || f->time > FAULT_TIME_MAX))
		return refuse(why, -EINVAL, "%s: a packet is held back for 1 ns to 10 s",
			inject_names[f->kind]);
	if (f->kind == ABI_FAULT_ICRC && !f->mask)
		return refuse(why, -EINVAL, "icrc: mask 0 changes nothing");
	if (f->kind != ABI_FAULT_CORRUPT)
		return 0;
	if (!f->mask || f->mask > 0xFF)
		return refuse(why, -EINVAL, "corrupt: the mask of a byte is 1 to 0xff");
	if (f->offset >= FRAME_MAX)
		return refuse(why, -EINVAL, "corrupt: no packet has %u bytes", f->offset + 1);
	return 0;
}

int fault_check(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	int err;

	if (f->kind == ABI_FAULT_NONE || f->kind >= ABI_FAULT_KINDS)
		return refuse(why, -EINVAL, "there is no fault %u: see abi_fault.h", f->kind);
	err = check_which(f, why);
	if (!err)
		err = check_direction(f, why);
	return err ? err : check_amount(f, why);
}

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
