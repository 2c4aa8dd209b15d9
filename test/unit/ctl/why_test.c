/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about what the workers noted. The test writes the notes: what they say when something
 * really fails is for core/cause and test/func/why_test.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "cause.h"
#include "config/ctl_parts.h"
#include "daemon.h"
#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"
#include "drop_log.h"
#include "headers.h"
#include "qp.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/dest.h"
#include "verbs/mr_obj.h"
#include "verbs/qp_obj.h"
#include "worker_impl.h"

static struct test_daemon *d;
static struct client c;
static struct qp_obj *o;
static struct abi_create_qp_reply made;
static uint64_t now_ns;

static void modify(uint32_t mask, struct abi_qp_attr attr)
{
	struct abi_modify_qp m = {.handle = made.handle, .mask = mask, .attr = attr};

	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static void connect_qp(void)
{
	struct abi_qp_attr a = {.qp_state = ABI_QPS_INIT, .port = 1, .path_mtu = 1024};

	a.dest_qpn = 0x1234;
	a.ah = (struct abi_ah_attr){.port = 1, .is_global = 1, .hop_limit = 1};
	memcpy(a.ah.dgid, gid_peer4, 16);
	memset(a.ah.dmac, 0xFF, 6);
	modify(ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS, a);
	a.qp_state = ABI_QPS_RTR;
	modify(ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
			ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER,
		a);
}

static int setup(void **state)
{
	uint32_t pd;

	daemon_setup(state);
	d = *state;
	client_open(d, &c);
	pd = client_pd(&c);
	made = client_qp(&c, pd, client_cq(&c, ABI_NO_HANDLE));
	connect_qp();
	daemon_pause(d);
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (d->ctl->sessions->session[i])
			o = handle_get(&d->ctl->sessions->session[i]->qps, made.handle);
	assert_non_null(o);
	return 0;
}

static int teardown(void **state)
{
	daemon_resume(d);
	client_close(&c);
	return daemon_teardown(state);
}

/* The QP fails (again) for @p n. */
static const struct failure *fail_for(struct cause_note n)
{
	n.time = ++now_ns;
	n.known = true;
	if (!n.pd)
		n.pd = o->qp->pd;
	o->qp->why.error = n;
	return failure_of_qp(d->ctl, o);
}

static void note_drop(enum drop why, struct drop_note n)
{
	struct core *core = &d->dp->worker[o->worker]->core;

	n.version = 2;
	n.count = (uint32_t)now_ns + 1; /* more each time */
	n.time = ++now_ns;
	core->count.drop[why] = 3;
	core->cfg.drops->note[why][n.dest_qp % DROP_NOTES] = n;
}

static struct drop_note from_peer(void)
{
	struct drop_note n = {.dest_qp = made.qpn, .has_qp = true, .opcode = 0x0A};

	memcpy(n.sgid, gid_peer4, 16);
	memcpy(n.dgid, gid_own4, 16);
	return n;
}

static void why_of_qp__every_cause(void **state)
{
	assert_null(failure_of_qp(d->ctl, o));
	for (unsigned i = CAUSE_NONE + 1; i < CAUSE_MAX; i++) {
		const struct failure *e = fail_for((struct cause_note){.cause = (uint8_t)i});

		assert_non_null(e);
		assert_string_equal(e->cause, cause_name((enum cause)i));
		assert_true(strlen(e->text) > 20);
		assert_true(strlen(e->text) < ABI_WHY_MAX - 1); /* nothing is cut off */
		assert_non_null(e->rule);
		assert_int_equal(e->qpn, made.qpn);
	}
}

/* Largest numbers everywhere: still whole sentences. */
static void why_of_qp__long_numbers(void **state)
{
	struct cause_note n;

	for (unsigned i = CAUSE_NONE + 1; i < CAUSE_MAX; i++)
		for (uint8_t mr = MR_OK; mr <= MR_RANGE; mr++) {
			const struct failure *e;

			memset(&n, 0xFF, sizeof(n));
			n.cause = (uint8_t)i;
			n.heard = mr & 1;
			n.found.named = NAMED_REGION;
			n.found.status = mr;
			e = fail_for(n);
			assert_true(strlen(e->text) < ABI_WHY_MAX - 1);
		}
}

/* The advice for a READ would be wrong for an atomic. */
static void why_of_qp__atomics(void **state)
{
	const struct {
		struct cause_note n;
		const char *says;
	} row[] = {
		{{.cause = CAUSE_POST_INLINE}, "posted with ROCI_SEND_INLINE: remove the flag"},
		{{.cause = CAUSE_READ_SEQUENCE}, "answered a fetch and add"},
		{{.cause = CAUSE_ATOMIC_ALIGNMENT, .va = 0x1004}, "the address of an atomic must"},
		{{.cause = CAUSE_ATOMIC_ALIGNMENT, .va = 0x1008}, "register a region for atomics"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct cause_note n = row[i].n;

		n.opcode = ABI_WR_ATOMIC_FETCH_AND_ADD;
		assert_non_null(strstr(fail_for(n)->text, row[i].says));
	}
}

static void why_of_qp__told_once(void **state)
{
	const struct failure *e = fail_for((struct cause_note){.cause = CAUSE_POST_NO_READS});
	uint32_t id = e->id;

	assert_ptr_equal(failure_of_qp(d->ctl, o), e);
	assert_int_equal(e->id, id);
	assert_ptr_equal(failure_before(d->ctl, UINT32_MAX), e);
	assert_null(failure_before(d->ctl, id));
}

/* The newest are kept, and told first. */
static void failure_before__newest_first(void **state)
{
	uint32_t below = UINT32_MAX, n = 0;
	const struct failure *e;

	for (unsigned i = 0; i < FAILURES_MAX + 10; i++)
		fail_for((struct cause_note){.cause = CAUSE_POST_SGES, .value = i});
	for (; (e = failure_before(d->ctl, below)); n++) {
		char words[32];

		snprintf(words, sizeof(words), "with %u SGEs", FAILURES_MAX + 9 - n);
		assert_non_null(strstr(e->text, words));
		assert_true(e->id < below);
		below = e->id;
	}
	assert_int_equal(n, FAILURES_MAX);
}

/* Failures of one millisecond are in their order, too, whatever they are. */
static void failure_before__within_a_millisecond(void **state)
{
	struct drop_note n = from_peer();
	const struct failure *e;

	note_drop(DROP_PKEY, n);
	o->qp->why.error = (struct cause_note){
		.cause = CAUSE_POST_SGES, .known = true, .pd = o->qp->pd, .time = ++now_ns};
	note_drop(DROP_QP_ADDRESS, n);
	diagnose_all(d->ctl);
	e = failure_before(d->ctl, UINT32_MAX);
	assert_string_equal(e->cause, drop_name(DROP_QP_ADDRESS));
	e = failure_before(d->ctl, e->id);
	assert_string_equal(e->cause, cause_name(CAUSE_POST_SGES));
	e = failure_before(d->ctl, e->id);
	assert_string_equal(e->cause, drop_name(DROP_PKEY));
}

/* Equal failures are listed once, with their count: sentences that differ in plain numbers. */
static void failure_times__of_equal_failures(void **state)
{
	const struct failure *e, *old;
	uint32_t session = o->session->number;

	for (unsigned i = 0; i < 5; i++)
		e = fail_for((struct cause_note){.cause = CAUSE_POST_SGES, .value = i});
	assert_int_equal(failure_times(d->ctl, e, UINT32_MAX), 5);
	old = failure_before(d->ctl, e->id);
	assert_int_equal(failure_times(d->ctl, old, UINT32_MAX), 0); /* told by the newest */
	assert_int_equal(failure_times(d->ctl, old, e->id), 4); /* of a list that began before */
	o->session->number = session + 1;			/* another program's */
	e = fail_for((struct cause_note){.cause = CAUSE_POST_SGES, .value = 5});
	assert_int_equal(failure_times(d->ctl, e, UINT32_MAX), 1);
	o->session->number = session;
	e = fail_for((struct cause_note){.cause = CAUSE_POST_INLINE, .value = 5});
	assert_int_equal(failure_times(d->ctl, e, UINT32_MAX), 1);
	e = fail_for((struct cause_note){.cause = CAUSE_RETRIES});
	o->qp->attr.ah.dgid[15]++; /* another peer's */
	e = fail_for((struct cause_note){.cause = CAUSE_RETRIES});
	assert_int_equal(failure_times(d->ctl, e, UINT32_MAX), 1);
	o->qp->attr.dest_qpn++;
	e = fail_for((struct cause_note){.cause = CAUSE_RETRIES});
	assert_int_equal(failure_times(d->ctl, e, UINT32_MAX), 2);
}

/* ETH-11: the sentence names the neighbour. */
static void why_of_qp__neighbour_moved(void **state)
{
	struct dest *dest = o->dest;
	const struct cause_note n = {.cause = CAUSE_RETRIES, .heard = true};

	assert_null(strstr(fail_for(n)->text, "neighbour"));
	dest->probed_ms = loop_now_ms();
	assert_non_null(strstr(fail_for(n)->text, "was probed a moment ago and has not answered"));
	dest->probed_ms = 0;
	o->qp->ack_timeout = 4000000000u;
	memcpy(dest->former, "\2\0\0\0\0\7", 6);
	dest->moved_ms = loop_now_ms();
	assert_non_null(strstr(fail_for(n)->text, "had MAC 02:00:00:00:00:07 and now has"));
	assert_string_equal(fail_for(n)->rule, "ETH-11");
}

/* When more QPs have failed than are remembered, the latest are listed, and each once. */
static void diagnose_all__more_than_are_remembered(void **state)
{
	struct session *s = o->session;
	const struct failure *e = NULL;
	uint32_t pd, cq, id;
	struct qp_obj *q;

	daemon_resume(d);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (unsigned i = 0; i < FAILURES_MAX + 20; i++)
		client_qp(&c, pd, cq);
	daemon_pause(d);
	for (uint32_t i = 0; (q = handle_next(&s->qps, &i));) {
		q->qp->why.error = (struct cause_note){
			.cause = CAUSE_POST_NO_READS, .time = 1000 - i, .known = true};
	}
	diagnose_all(d->ctl);
	id = d->ctl->failures->next_id;
	assert_int_equal(id, FAILURES_MAX);
	do
		e = failure_before(d->ctl, e ? e->id : UINT32_MAX);
	while (e && e->qpn != o->qpn);
	assert_non_null(e); /* it failed last */
	diagnose_all(d->ctl);
	assert_int_equal(d->ctl->failures->next_id, id);
}

/* A program with thousands of QPs must not push out what is remembered of others, nor hold up the
 * control thread. */
static void why_qp_goes__a_session_that_ends_tells_so_many(void **state)
{
	const struct failures *w = d->ctl->failures;
	uint32_t told = 0;
	uint64_t failed = 0;

	o->session->closing = 2;
	for (unsigned i = 0; i < FAILURES_MAX; i++) {
		o->qp->why.error = (struct cause_note){
			.known = true, .cause = CAUSE_RETRIES, .time = ++now_ns};
		failure_keep(d->ctl, o);
	}
	o->session->closing = 0;
	for (unsigned i = 0; i < FAILURES_MAX; i++) {
		told += w->error[i].id != 0;
		failed += w->error[i].id ? w->error[i].count : 0;
	}
	assert_int_equal(told, FAILURES_AT_ONCE);
	assert_int_equal(failed, FAILURES_MAX); /* the others are counted */
}

/* An action of the program itself is no error. */
static void failure_before__no_commands(void **state)
{
	assert_non_null(fail_for((struct cause_note){.cause = CAUSE_COMMAND}));
	assert_null(failure_before(d->ctl, UINT32_MAX));
}

/* The QP that @p qpn should be, also on this rocid, does not answer. */
static const struct failure *silent(uint32_t qpn)
{
	memcpy(o->qp->attr.ah.dgid, gid_own4, 16);
	o->qp->attr.dest_qpn = qpn;
	return fail_for((struct cause_note){.cause = CAUSE_RETRIES});
}

static struct qp_obj *another_qp(void)
{
	struct abi_create_qp_reply r;

	daemon_resume(d);
	r = client_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	daemon_pause(d);
	return handle_get(&o->session->qps, r.handle);
}

static void why_of_qp__local_peer(void **state)
{
	struct qp_obj *peer = another_qp();
	const struct failure *e = silent(peer->qpn);

	assert_non_null(strstr(e->text, "also on this rocid, is in RESET"));
	assert_string_equal(e->rule, "VAL-06");
	peer->qp->state = ABI_QPS_ERR;
	assert_non_null(strstr(silent(peer->qpn)->text, "is in ERR"));
	peer->qp->state = ABI_QPS_RTS;
	e = silent(peer->qpn);
	assert_non_null(strstr(e->text, "Nothing was ever received"));
	assert_string_equal(e->rule, cause_rule(CAUSE_RETRIES));
	assert_non_null(strstr(silent(1)->text, "but no such QP"));
}

/* Packets within this rocid cross no link, whatever their size. */
static void why_of_qp__local_peer_has_no_mtu(void **state)
{
	const struct cause_note n = {.cause = CAUSE_RETRIES, .heard = true, .value = 4096};
	struct cause_note unheard = n;
	struct qp_obj *peer = another_qp();

	unheard.heard = false;
	peer->qp->state = ABI_QPS_RTS;
	silent(peer->qpn);
	assert_non_null(strstr(fail_for(n)->text, "the path MTU may be too large"));
	assert_non_null(strstr(fail_for(unheard)->text, "the path MTU is too large"));
	o->qp->path.local = true;
	assert_null(strstr(fail_for(n)->text, "MTU"));
	assert_null(strstr(fail_for(unheard)->text, "MTU"));
	o->qp->path.local = false;
}

/* A later event is no cause. */
static void why_of_qp__local_peer_failed_later(void **state)
{
	struct qp_obj *peer = another_qp();
	struct gone_qp *gone = &d->ctl->failures->qp[0];

	peer->qp->state = ABI_QPS_ERR;
	peer->qp->why.error.time = now_ns + 1000;
	peer->qp->why.error.known = true;
	assert_null(strstr(silent(peer->qpn)->text, "is in ERR"));
	*gone = (struct gone_qp){.qpn = 1, .time_ms = 1, .how = "ended"};
	d->ctl->failures->qps = 1;
	assert_non_null(strstr(silent(1)->text, "its program ended"));
	gone->time_ms = UINT64_MAX;
	assert_null(strstr(silent(1)->text, "its program ended"));
}

/* A program cannot ask for other users' QPs. */
static void why_of_qp__peer_of_another_user(void **state)
{
	struct ucred *own = &o->session->peer, was = *own;
	struct qp_obj *peer = another_qp();
	struct session other = *o->session;

	own->uid = 1000;
	other.peer.uid = 1001;
	peer->session = &other;
	d->ctl->failures->qp[0] = (struct gone_qp){.qpn = 1, .uid = 1001, .time_ms = 1, .how = "-"};
	d->ctl->failures->qps = 1;
	assert_non_null(strstr(silent(2)->text, "user 1000 has no such QP"));
	assert_non_null(strstr(silent(peer->qpn)->text, "user 1000 has no such QP"));
	assert_non_null(strstr(silent(1)->text, "user 1000 has no such QP"));
	peer->session = o->session;
	assert_non_null(strstr(silent(peer->qpn)->text, "is in RESET"));
	*own = was;
}

/* Numbers of protection domains come again, in other programs. */
static void why_of_qp__region_gone_of_another_program(void **state)
{
	const struct cause_note n = {
		.cause = CAUSE_RKEY, .key = 0xFFFFFF77, .found = {.status = MR_NO_KEY}, .len = 8};
	struct gone_mr *gone = &d->ctl->failures->mr[0];

	*gone = (struct gone_mr){.key = n.key, .pd = o->qp->pd, .time_ms = 1};
	d->ctl->failures->mrs = 1;
	assert_null(strstr(fail_for(n)->text, "was deregistered"));
	gone->session = o->session->number;
	assert_non_null(strstr(fail_for(n)->text, "was deregistered"));
}

/* As the core would refuse it. */
static const struct failure *fail_for_key(struct cause_note n, uint32_t pd)
{
	n.pd = pd;
	cause_find(d->dp->mrs, o->qp->session, o->qpn, &n);
	return fail_for(n);
}

static struct pd *another_pd(struct abi_reg_mr_reply *mr)
{
	uint32_t handle;

	daemon_resume(d);
	handle = client_pd(&c);
	*mr = client_mr(&c, handle, client_memfd(4096), 4096);
	daemon_pause(d);
	return handle_get(&o->session->pds, handle);
}

/* The key of a receive from an SRQ counts in the SRQ's protection domain, not in the QP's; that of
 * another program, whose SRQ it is with XRC, is not told of. */
static void why_of_qp__domain_of_the_srq(void **state)
{
	struct cause_note n = {.cause = CAUSE_RECV_KEY, .len = 8};
	struct abi_reg_mr_reply mr;
	struct pd *pd = another_pd(&mr);

	n.key = mr.lkey;
	assert_non_null(strstr(
		fail_for_key(n, o->qp->pd)->text, "to another protection domain than the QP"));
	assert_non_null(strstr(fail_for_key(n, o->qp->pd + 1000)->text,
		"to another protection domain than the SRQ"));
	n.va = UINT64_MAX - 64;
	assert_non_null(strstr(fail_for_key(n, pd->number)->text, "are not all in the region"));
	o->qp->session++; /* another program's */
	assert_non_null(strstr(fail_for_key(n, pd->number)->text, "this program has no region"));
	o->qp->session--;
}

/* The cause is that of the moment of the refusal, whatever the program does before it asks. */
static void why_of_qp__region_deregistered_since(void **state)
{
	struct cause_note n = {.cause = CAUSE_RKEY, .len = 8, .va = UINT64_MAX - 64};
	struct abi_reg_mr_reply mr;
	struct pd *pd = another_pd(&mr);
	uint32_t own = pd->number;

	n.key = mr.rkey;
	n.pd = own;
	cause_find(d->dp->mrs, o->qp->session, o->qpn, &n);
	daemon_resume(d);
	client_must(c.sock, ABI_DEREG_MR, &(struct abi_handle){.handle = mr.handle},
		sizeof(struct abi_handle), NULL, 0);
	daemon_pause(d);
	assert_non_null(strstr(fail_for(n)->text, "are not all in the region"));
	assert_string_equal(fail_for(n)->rule, "RSP-13");
	n.found.status = MR_NO_ACCESS;
	assert_non_null(strstr(fail_for(n)->text, "was registered without"));
	n.found.status = MR_NO_KEY;
	n.pd = o->qp->pd;
	assert_non_null(strstr(fail_for(n)->text, "to another protection domain than the QP"));
}

static const char *drop_text(enum drop why, struct drop_note n)
{
	const struct failure *e;

	note_drop(why, n);
	diagnose_all(d->ctl);
	e = failure_before(d->ctl, UINT32_MAX);
	return e && e->drop && !strcmp(e->cause, drop_name(why)) ? e->text : "";
}

/* Packets of others to the QP are no cause; an answer is one, whoever sent it. */
static void why_of_qp__stray_packets(void **state)
{
	struct drop_note n = from_peer();

	o->qp->ack_timeout = 1000;
	n.sgid[15]++;
	note_drop(DROP_QP_ADDRESS, n);
	assert_null(strstr(
		fail_for((struct cause_note){.cause = CAUSE_RETRIES})->text, "dropped here"));
	n.opcode = 0x11; /* an ACK: the peer has another address than it told */
	note_drop(DROP_QP_ADDRESS, n);
	assert_non_null(strstr(
		fail_for((struct cause_note){.cause = CAUSE_RETRIES})->text, "dropped here"));
	n.opcode = 0x0A;
	note_drop(DROP_QP_ADDRESS, n);
	/* One stray packet does not hide what was dropped of the peer's. */
	n = from_peer();
	note_drop(DROP_PKEY, n);
	assert_non_null(strstr(
		fail_for((struct cause_note){.cause = CAUSE_RETRIES})->text, "P_Key mismatch"));
}

/* The same at a peer in this daemon: it dropped what another sent. */
static void why_of_qp__local_peer_and_a_stranger(void **state)
{
	struct qp_obj *peer = another_qp();
	struct drop_note n = from_peer();

	o->qp->ack_timeout = 1000;
	peer->qp->state = ABI_QPS_RTS;
	n.dest_qp = peer->qpn;
	note_drop(DROP_PKEY, n);
	assert_null(strstr(silent(peer->qpn)->text, "dropped the packets"));
	memcpy(n.sgid, gid_own4, 16);
	n.opcode = 0x11; /* no request */
	note_drop(DROP_PKEY, n);
	assert_null(strstr(silent(peer->qpn)->text, "dropped the packets"));
	n.opcode = 0x0A;
	note_drop(DROP_PKEY, n);
	assert_non_null(strstr(silent(peer->qpn)->text, "dropped the packets: P_Key mismatch"));
}

/* Frames that the netdev refused a minute ago say nothing of a peer that is silent now. */
static uint64_t refused_ms_ago;

static uint32_t refused(void *arg, uint32_t port, uint64_t now_ms, uint64_t within_ms)
{
	return refused_ms_ago < within_ms ? 1100 : 0;
}

static void why_of_qp__refused_meanwhile(void **state)
{
	const struct ctl_devices *before = d->ctl->devices;
	static const struct ctl_devices devices = {.refused = refused};
	const struct cause_note n = {.cause = CAUSE_RETRIES, .value = 1024};

	d->ctl->devices = &devices;
	o->qp->ack_timeout = 1000000000; /* retries take eight seconds */
	refused_ms_ago = 5000;
	assert_non_null(strstr(fail_for(n)->text, "refuses frames of 1100 bytes"));
	refused_ms_ago = 55000;
	assert_null(strstr(fail_for(n)->text, "refuses"));
	d->ctl->devices = before;
}

/* RSP-16: of a QP that lives, and has not failed. */
static void diagnose_all__peer_that_gave_up(void **state)
{
	const struct failure *e;
	char text[ABI_WHY_MAX];

	o->qp->resp.rnr_sent = true;
	o->qp->why.rnr_times = 3;
	o->qp->why.rnr_psn = 0x77;
	o->qp->why.rnr_opcode = 0x04;
	o->qp->why.rnr_time = worker_now_ns(d->ctl); /* just now: it may come again */
	diagnose_all(d->ctl);
	assert_null(failure_before(d->ctl, UINT32_MAX));
	diagnose_hint(d->ctl, o, text);
	assert_non_null(strstr(text, "before the peer's rnr_retry is used up"));
	o->qp->why.rnr_time -= 10000000000u;
	diagnose_all(d->ctl);
	e = failure_before(d->ctl, UINT32_MAX);
	assert_non_null(e);
	assert_true(e->stalled);
	assert_non_null(strstr(e->text, "RC_SEND_ONLY (PSN 0x77) found no receive posted"));
	assert_non_null(strstr(e->text, "received 3 RNR NAKs and has not retried"));
	diagnose_hint(d->ctl, o, text);
	assert_string_equal(text, e->text);
	assert_null(failure_of_qp(d->ctl, o));
	o->qp->resp.rnr_sent = false; /* it came after all */
	diagnose_hint(d->ctl, o, text);
	assert_string_equal(text, "");
}

/* One QP is connected with one QP. */
static void why_of_qp__rival(void **state)
{
	struct qp_obj *rival = another_qp();
	const struct failure *e;
	struct drop_note n = from_peer();

	rival->qp->attr.dest_qpn = o->qp->attr.dest_qpn;
	rival->qp->state = ABI_QPS_RTS;
	rival->dest = o->dest;
	list_push(&o->dest->qps, &rival->dest_node);
	e = fail_for((struct cause_note){.cause = CAUSE_RETRIES});
	assert_non_null(strstr(e->text, "has the same dest_qp_num (4660)"));
	assert_string_equal(e->rule, "BTH-12");
	n.opcode = 0x11;
	o->qp->why.error.known = false;
	assert_non_null(strstr(drop_text(DROP_GHOST_ACK, n), "has the same dest_qp_num"));
	list_del(&rival->dest_node);
	rival->dest = NULL;
	n.syndrome = 0x60;
	assert_non_null(strstr(drop_text(DROP_GHOST_ACK, n), "another QP sends to the peer's QP"));
	n.psn += 5;
	assert_non_null(strstr(drop_text(DROP_GHOST_ACK, n), "must be the same"));
}

static void diagnose_all__every_reason(void **state)
{
	for (unsigned i = DROP_NONE + 1; i < DROP_MAX; i++) {
		struct drop_note n = from_peer();
		char text[ABI_WHY_MAX];
		struct sentence t = {.text = text};

		assert_true(strlen(drop_means((enum drop)i)) > 20);
		diagnose_drop(&t, d->ctl, o, (enum drop)i, &n);
		assert_true(strlen(text) > 20);
		memset(&n, 0xFF, sizeof(n));
		diagnose_drop(&t, d->ctl, o, (enum drop)i, &n);
		diagnose_drop(&t, d->ctl, NULL, (enum drop)i, &n);
		assert_true(strlen(text) < ABI_WHY_MAX - 1);
	}
	assert_null(drop_means(DROP_MAX));
}

/* RSP-01: the peer takes it for done. */
static void diagnose_all__before_the_first(void **state)
{
	struct drop_note n = from_peer();

	n.psn = 0xFFFFF0;
	assert_non_null(strstr(drop_text(DROP_PSN_BEHIND, n), "none of them was executed"));
	qp_note_gone(o);
	assert_non_null(
		strstr(failure_before(d->ctl, UINT32_MAX)->text, "begins with PSN 0xfffff0"));
}

/* REQ-37: old ACKs are no silence. */
static void why_of_qp__old_acks(void **state)
{
	const struct failure *e;

	o->qp->why.old_acks = 8;
	o->qp->why.old_ack_psn = 0xFFFFFF;
	e = fail_for((struct cause_note){.cause = CAUSE_RETRIES});
	assert_non_null(strstr(e->text, "old ACKs (8, the latest of PSN 0xffffff)"));
	assert_non_null(strstr(e->text, "sq_psn here and the peer's rq_psn differ"));
	assert_null(strstr(e->text, "Nothing was ever received"));
	assert_string_equal(e->rule, "REQ-37");
	o->qp->comp.acked = 1; /* they are of a loss */
	assert_null(
		strstr(fail_for((struct cause_note){.cause = CAUSE_RETRIES})->text, "old ACKs"));
}

static void diagnose_all__address(void **state)
{
	struct drop_note n = from_peer();

	n.net = NET_ROCEV1;
	assert_non_null(strstr(drop_text(DROP_QP_ADDRESS, n), "GID type mismatch"));
	n.net = NET_IPV4;
	n.vid = 5;
	assert_non_null(strstr(drop_text(DROP_QP_ADDRESS, n), "VLAN 5"));
	n.vid = 0;
	n.sgid[15]++;
	assert_non_null(strstr(drop_text(DROP_QP_ADDRESS, n), "but the packets come from"));
	n.sgid[15]--;
	assert_non_null(strstr(drop_text(DROP_QP_ADDRESS, n), "which is not the QP's GID"));
	n.has_qp = false;
	n.net = NET_ROCEV1;
	n.dest_qp = 8;
	assert_non_null(strstr(drop_text(DROP_DGID, n), "GID type mismatch"));
}

/* Packets that pretend to come from here. */
static void diagnose_all__pretenders(void **state)
{
	struct drop_note n = from_peer();

	n.source_qp = 77;
	assert_non_null(strstr(drop_text(DROP_QP_PEER, n), "comes from QP 77 of this rocid"));
	memcpy(n.smac, (uint8_t[6]){2, 0, 0, 0, 0, 0x1F}, 6);
	assert_non_null(strstr(drop_text(DROP_MARTIAN, n), "02:00:00:00:00:1f"));
	assert_non_null(strstr(drop_text(DROP_MARTIAN, n), "its own address"));
}

/* The effects of loss are no errors. */
static void diagnose_all__not_of_loss(void **state)
{
	static const enum drop why[] = {DROP_PSN_AHEAD, DROP_DUP_NO_RESOURCE, DROP_RNR_PENDING,
		DROP_READ_RESP_UNEXPECTED, DROP_GHOST_ACK};
	struct drop_note n = from_peer();

	n.begun = true;
	n.heard = true;
	n.psn = n.epsn + 0x200000;
	for (unsigned i = 0; i < ARRAY_SIZE(why); i++)
		assert_string_equal(drop_text(why[i], n), "");
	n.psn = n.epsn + 127; /* the first was lost */
	n.begun = false;
	assert_string_equal(drop_text(DROP_PSN_AHEAD, n), "");
	o->qp->why.ahead_psn = n.psn;
	o->qp->why.ahead_times = 4; /* it begins so again and again */
	assert_string_equal(drop_text(DROP_PSN_AHEAD, n), "");
	o->qp->why.ahead_times = 5;
	assert_non_null(strstr(drop_text(DROP_PSN_AHEAD, n), "begins with PSN 0x7f"));
	o->qp->why.ahead_times = 0;
	n.psn = n.epsn + 0x200000;
	assert_non_null(strstr(drop_text(DROP_PSN_AHEAD, n), "rq_psn here"));
	n.state = ABI_QPS_ERR;
	assert_string_equal(drop_text(DROP_QP_STATE, n), "");
}

/* A QP takes what there is to say about it with it into the log. */
static void why_qp_goes__keeps_it(void **state)
{
	struct drop_note n = from_peer();

	n.pkey = 0x8001;
	n.qp_pkey = 0xFFFF;
	note_drop(DROP_PKEY, n);
	qp_note_gone(o);
	assert_non_null(strstr(failure_before(d->ctl, UINT32_MAX)->text, "P_Key mismatch"));
	assert_string_equal(failures_gone_qp(d->ctl->failures, made.qpn)->how, "destroyed it");
	assert_null(failures_gone_qp(d->ctl->failures, made.qpn + 1));
}

static void diagnose_hint__of_a_live_qp(void **state)
{
	char text[ABI_WHY_MAX];
	struct drop_note n = from_peer();

	diagnose_hint(d->ctl, o, text);
	assert_string_equal(text, "");
	o->qp->why.old_acks = 1;
	diagnose_hint(d->ctl, o, text);
	assert_non_null(strstr(text, "responds with old ACKs"));
	n.psn = n.epsn + 0x200000;
	note_drop(DROP_PSN_AHEAD, n);
	diagnose_hint(d->ctl, o, text);
	assert_non_null(strstr(text, "sq_psn must be the same"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(why_of_qp__every_cause),
		T(why_of_qp__long_numbers),
		T(why_of_qp__atomics),
		T(diagnose_all__peer_that_gave_up),
		T(why_of_qp__rival),
		T(why_of_qp__told_once),
		T(why_of_qp__local_peer),
		T(why_of_qp__local_peer_has_no_mtu),
		T(why_of_qp__local_peer_failed_later),
		T(why_of_qp__peer_of_another_user),
		T(why_of_qp__stray_packets),
		T(why_of_qp__local_peer_and_a_stranger),
		T(why_of_qp__refused_meanwhile),
		T(why_of_qp__region_gone_of_another_program),
		T(why_of_qp__domain_of_the_srq),
		T(why_of_qp__region_deregistered_since),
		T(failure_before__newest_first),
		T(failure_before__within_a_millisecond),
		T(failure_times__of_equal_failures),
		T(why_of_qp__neighbour_moved),
		T(failure_before__no_commands),
		T(why_qp_goes__a_session_that_ends_tells_so_many),
		T(diagnose_all__more_than_are_remembered),
		T(diagnose_all__every_reason),
		T(diagnose_all__before_the_first),
		T(why_of_qp__old_acks),
		T(diagnose_all__address),
		T(diagnose_all__pretenders),
		T(diagnose_all__not_of_loss),
		T(why_qp_goes__keeps_it),
		T(diagnose_hint__of_a_live_qp),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
