/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that share a destination. The test is the control thread, so that it can count turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "ah.h"
#include "config/ctl_parts.h"
#include "daemon.h"
#include "headers.h"
#include "loop/loop.h"
#include "net/net.h"
#include "qp.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/ah_obj.h"
#include "verbs/dest.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

#define QPS  200u
#define TURN 64u /* QPs that one turn readdresses */

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0xA, 0xA};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0xB, 0xB};

static struct test_daemon *d;
static struct client c;
static struct abi_create_qp_reply reply[QPS];
static struct qp_obj *obj[QPS];

/* How many more objects there is memory for. */
static unsigned memory = UINT32_MAX;

void *__real_object_alloc(size_t size);
void *__wrap_object_alloc(size_t size);

void *__wrap_object_alloc(size_t size)
{
	if (!memory)
		return NULL;
	memory -= memory != UINT32_MAX;
	return __real_object_alloc(size);
}

static void modify(unsigned i, uint32_t mask, struct abi_qp_attr attr)
{
	struct abi_modify_qp m = {.handle = reply[i].handle, .mask = mask, .attr = attr};

	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static struct abi_qp_attr attr_to(uint8_t state)
{
	struct abi_qp_attr a = {.qp_state = state, .port = 1, .path_mtu = 1024};

	a.ah = (struct abi_ah_attr){.port = 1, .is_global = 1, .hop_limit = 1};
	memcpy(a.ah.dgid, gid_peer4, 16);
	memset(a.ah.dmac, 0xFF, 6); /* to be looked up */
	return a;
}

static void connect_qp(unsigned i)
{
	modify(i, ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS,
		attr_to(ABI_QPS_INIT));
	modify(i,
		ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
			ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER,
		attr_to(ABI_QPS_RTR));
}

static struct session *session_of(struct ctl *ctl)
{
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			return ctl->sessions->session[i];
	return NULL;
}

static void setup_some(void **state, unsigned n)
{
	uint32_t pd, cq;

	d = *state;
	daemon_config(d);
	daemon_run(d);
	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (unsigned i = 0; i < n; i++) {
		reply[i] = client_qp(&c, pd, cq);
		connect_qp(i);
	}
	daemon_pause(d);
	for (unsigned i = 0; i < n; i++)
		obj[i] = handle_get(&session_of(d->ctl)->qps, reply[i].handle);
}

static int setup(void **state)
{
	setup_some(state, QPS);
	return 0;
}

static int setup_one(void **state)
{
	setup_some(state, 1);
	return 0;
}

static int teardown(void **state)
{
	daemon_resume(d);
	client_close(&c);
	daemon_stop(d);
	return 0;
}

static bool sends_to(unsigned i, const uint8_t mac[6])
{
	return !memcmp(obj[i]->qp->path.hdr + ETH_DST, mac, 6);
}

static unsigned count(const uint8_t mac[6])
{
	unsigned n = 0;

	for (unsigned i = 0; i < QPS; i++)
		n += sends_to(i, mac);
	return n;
}

static void peer_gets(const uint8_t mac[6])
{
	memcpy(d->ctl->net->port[0].neighs[0].mac, mac, 6);
	dests_touch_all(d->ctl);
}

/* One turn of the control thread, at a time when all that was touched is due. */
static int turn(void)
{
	return dests_poll(d->ctl, loop_now_ms() + 1000);
}

/* Other commands come in between. */
static void readdress__in_turns(void **state)
{
	peer_gets(mac_a);
	for (unsigned done = TURN; done < QPS; done += TURN) {
		assert_int_equal(turn(), 0);
		assert_int_equal(count(mac_a), done);
	}
	assert_int_equal(turn(), -1);
	assert_int_equal(count(mac_a), QPS);
}

/* A MAC that changes faster than QPs can follow queues no work: each gets the newest one,
 * and those first that have waited for longest. */
static void readdress__latest_wins(void **state)
{
	peer_gets(mac_a);
	turn();
	turn();
	assert_int_equal(count(mac_a), 2 * TURN);
	peer_gets(mac_b);
	assert_int_equal(turn(), 0);
	assert_int_equal(count(mac_a), 2 * TURN);
	for (unsigned i = 2 * TURN; i < 3 * TURN; i++)
		assert_true(sends_to(i, mac_b));
	for (unsigned done = 2 * TURN; done < QPS; done += TURN)
		assert_int_equal(turn(), 0);
	assert_int_equal(turn(), -1);
	assert_int_equal(count(mac_b), QPS);
	assert_int_equal(turn(), -1);
}

/* A QP that is destroyed, or updated at once, waits for no turn. */
static void readdress__leaves_meanwhile(void **state)
{
	const unsigned last = QPS - 1;

	peer_gets(mac_a);
	turn();
	dest_leave(obj[last]);
	while (!turn())
		;
	assert_int_equal(count(mac_a), QPS - 1);
	assert_true(sends_to(last, mac_peer));
	peer_gets(mac_b);
	turn();
	for (unsigned i = 0; i < last; i++)
		dest_leave(obj[i]);
	assert_int_equal(turn(), -1);
	assert_int_equal(count(mac_b), TURN);
}

/* QPS-10: an address vector that leads where the QP's packets go already. */
static void dest_join__the_same_again(void **state)
{
	daemon_resume(d);
	modify(0,
		ABI_QP_STATE | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY |
			ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC,
		attr_to(ABI_QPS_RTS));
	modify(0, ABI_QP_STATE, attr_to(ABI_QPS_SQD));
	modify(0, ABI_QP_STATE | ABI_QP_AV, attr_to(ABI_QPS_SQD));
	daemon_pause(d);
	assert_ptr_equal(dest_get(d->ctl, &obj[0]->key), obj[0]->dest);
	peer_gets(mac_a);
	turn();
	assert_true(sends_to(0, mac_a));
}

/* Address handles for which there was no memory keep their MAC, and are updated later. */
static void readdress__without_memory(void **state)
{
	struct abi_create_ah in = {.attr = attr_to(ABI_QPS_INIT).ah};
	struct ah_obj *ah[3];

	daemon_resume(d);
	in.pd = client_pd(&c);
	for (unsigned i = 0; i < 3; i++) {
		struct abi_handle_reply out;

		client_must(c.sock, ABI_CREATE_AH, &in, sizeof(in), &out, sizeof(out));
		ah[i] = handle_get(&d->ctl->objects->ahs, out.handle);
	}
	daemon_pause(d);
	memory = 1;
	peer_gets(mac_a);
	turn();
	/* Not at once again: there is none in a moment either. */
	assert_true(list_empty(&d->ctl->objects->dests->late));
	assert_memory_equal(ah[0]->ah->path.hdr + ETH_DST, mac_a, 6);
	assert_memory_equal(ah[1]->ah->path.hdr + ETH_DST, mac_peer, 6);
	memory = 0;
	turn();
	assert_true(list_empty(&d->ctl->objects->dests->late));
	memory = UINT32_MAX;
	assert_int_equal(turn(), -1);
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(ah[i]->ah->path.hdr + ETH_DST, mac_a, 6);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(readdress__in_turns),
		T(readdress__latest_wins),
		T(readdress__leaves_meanwhile),
		cmocka_unit_test_setup_teardown(dest_join__the_same_again, setup_one, teardown),
		cmocka_unit_test_setup_teardown(readdress__without_memory, setup_one, teardown),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
