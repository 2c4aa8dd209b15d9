/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: each side binds one for the other's target, which then has two keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "traffic_impl.h"

#define RIGHTS                                                                         \
	(ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC | \
		ABI_ACCESS_FLUSH_GLOBAL)

void target_mw_init(struct traffic *t, int e, struct app *owner)
{
	t->side[e].window.mw = app_mw(owner, MW_TYPE_2);
}

void target_mw_forget(struct traffic_mw *w)
{
	mw_release(&w->mw->mw); /* as destroy_qp does */
	w->state = WINDOW_FREE;
}

/* The window that a message of side @p e is about: its own target's, or the peer's. */
static struct traffic_mw *target_mw_of(const struct traffic *t, int e, enum traffic_op op)
{
	bool own = op != TRAFFIC_BIND && op != TRAFFIC_LOCAL_INV;

	return (struct traffic_mw *)&t->side[own ? e : !e].window;
}

enum traffic_op target_mw_op(const struct traffic *t, int e, enum traffic_op op)
{
	const struct traffic_mw *w = target_mw_of(t, e, op);
	const struct traffic_side *peer = &t->side[!e];
	bool can = true;

	if (op == TRAFFIC_SEND_INV)
		can = w->state == WINDOW_BOUND;
	if (op == TRAFFIC_BIND)
		can = w->state == WINDOW_FREE && !peer->target.shadow;
	if (op == TRAFFIC_LOCAL_INV)
		/* Of what was flushed some may still be on its way. */
		can = w->state == WINDOW_BOUND && peer->done == peer->posted && !peer->failed;
	return can ? op : TRAFFIC_SEND;
}

void target_mw_lay_out(struct traffic *t, int e, struct traffic_message *m)
{
	struct traffic_mw *w = target_mw_of(t, e, m->wr.op);

	switch (m->wr.op) {
	case TRAFFIC_BIND: /* the same key again, now and then */
		m->window = w->mw->mw.index | (m->imm & 3);
		w->state = WINDOW_BINDING;
		break;
	case TRAFFIC_SEND_INV:
	case TRAFFIC_LOCAL_INV:
		m->window = w->key;
		w->state = WINDOW_GOING;
		break;
	default:
		if (traffic_names_target(m->wr.op) && m->wr.op != TRAFFIC_READ && !m->wr.mistake &&
			w->state == WINDOW_BOUND && (m->imm & 4))
			m->window = w->key;
		break;
	}
}

void target_mw_describe(
	const struct traffic *t, int e, const struct traffic_message *m, struct app_send *w)
{
	const struct app_mr *target = t->side[!e].target.mr;

	if (m->wr.op == TRAFFIC_SEND_INV || m->wr.op == TRAFFIC_LOCAL_INV)
		w->imm = m->window;
	else if (m->window)
		w->rkey = m->window;
	if (m->wr.op != TRAFFIC_BIND)
		return;
	w->mw = m->window;
	w->lkey = target->mr.key;
	w->access = RIGHTS;
	w->remote_addr = app_va(target, 0);
	w->bind_len = target->len;
}

void target_mw_done(struct traffic *t, int e, const struct traffic_message *m)
{
	struct traffic_mw *w = target_mw_of(t, e, m->wr.op);

	if (m->wr.op == TRAFFIC_BIND) {
		assert_int_equal(app_mw_key(w->mw), m->window);
		w->key = m->window;
		w->state = WINDOW_BOUND;
	}
	if (m->wr.op == TRAFFIC_LOCAL_INV)
		w->state = WINDOW_FREE;
}

void target_mw_invalidated(struct traffic *t, int e, const struct traffic_message *m)
{
	struct traffic_mw *w = &t->side[!e].window;

	assert_int_equal(w->state, WINDOW_GOING);
	assert_false(atomic_load(&w->mw->mw.version) & MW_BOUND); /* INV-02 */
	w->state = WINDOW_FREE;
}
