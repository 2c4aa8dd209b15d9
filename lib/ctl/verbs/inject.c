/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that inject faults into their own QPs, where the administrator lets them. */
#include <errno.h>
#include <string.h>
#include "inject.h"
#include "verbs/command.h"
#include "verbs/fault.h"

static int find(struct session *s, uint32_t handle, struct qp_obj **o, struct reply *r)
{
	if (!s->ctl->application_faults)
		return refuse(r->why, -EPERM,
			"this rocid lets no program inject faults: start it with "
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
