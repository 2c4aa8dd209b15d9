/* SPDX-License-Identifier: BSD-3-Clause */
/* Another source port and flow label, only where no packet can overtake another. */
#include "fixture.h"
#include "headers.h"
#include "opcodes.h"
#include "pacing.h"
#include "path.h"
#include "qp.h"
#include "txd.h"
#include "txd_bth.h"

static int setup(void **state)
{
	lone_init(&l);
	l.attr.path_mtu = 1024;
	l.attr.max_rd_atomic = 1;
	return 0;
}

static struct qp *qp(void)
{
	return l.qp->qp;
}

static void ask(void)
{
	pacing_detour(&l.host->core, qp(), l.now);
}

static uint64_t detours(void)
{
	return l.host->core.count.rp_fast_cnp_detours;
}

static void send_two(void)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 2048, 0);
	lone_tx(&l);
	assert_true(qp()->comp.una != qp()->req.psn_new);
}

/* Ports of the frames, which are what switches see. */
static uint16_t sport(void)
{
	return path_sport(&qp()->path);
}

/* proves FCN-15 */
static void drained__changes_at_once(void **state)
{
	uint16_t was;

	lone_start(&l);
	was = sport();
	for (unsigned i = 1; i <= 100; i++) {
		ask();
		assert_int_not_equal(sport(), was);
		assert_in_range(sport(), SPORT_MIN, 0xFFFF);
		assert_int_equal(detours(), i);
		was = sport();
	}
	assert_false(qp()->limited);
}

/* proves FCN-15 */
static void in_flight__changes_with_the_last_ack(void **state)
{
	uint32_t psn;
	uint16_t was;

	send_two();
	was = sport();
	psn = qp()->comp.una;
	ask();
	assert_int_equal(sport(), was);
	assert_true(qp()->limited);
	lone_ack(&l, psn, 0);
	assert_int_equal(sport(), was); /* one is still under way */
	lone_ack(&l, psn + 1, 1);
	assert_int_not_equal(sport(), was);
	assert_int_equal(detours(), 1);
	assert_false(qp()->limited);
	was = sport();
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 1024, 0);
	lone_tx(&l);
	lone_ack(&l, psn + 2, 2);
	assert_int_equal(sport(), was); /* once per notice */
}

/* proves FCN-15 */
static void go_back__changes_before_the_oldest(void **state)
{
	uint16_t was;

	send_two();
	was = sport();
	ask();
	lone_nak(&l, 0x60, qp()->comp.una, 0);
	assert_int_not_equal(sport(), was);
	assert_int_equal(qp()->req.psn, qp()->comp.una);
	assert_int_equal(detours(), 1);
}

/* All frames of a turn have the path of now. */
static void frames__have_the_new_port(void **state)
{
	uint8_t frame[FRAME_MAX];
	struct txd t = {.frame = frame};

	lone_start(&l);
	ask();
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 512, 0);
	lone_tx_max(&l, 0); /* the doorbell */
	assert_int_equal(core_tx(&l.host->core, &t, 1, l.now), 1);
	assert_int_equal(get_be16(txd_bth(&t) - UDP_HLEN + UDP_SPORT), sport());
}

/* Nothing says when READ responses have arrived, and a later ACK must not overtake them. */
static void responder__stays(void **state)
{
	uint16_t was;

	send_two();
	was = sport();
	ask();
	lone_request(&l, READ_REQ, 0x100, 0, 1024, 0);
	lone_tx(&l);
	lone_ack(&l, qp()->comp.una + 1, 1);
	assert_int_equal(sport(), was);
	assert_false(qp()->limited);
	ask();
	assert_int_equal(sport(), was);
	assert_int_equal(detours(), 0);
}

/* UC has no ACK, and packets within this daemon meet no congestion. */
static void others__stay(void **state)
{
	uint16_t was;

	l.spec.type = ABI_QPT_UC;
	lone_start(&l);
	was = sport();
	ask();
	assert_int_equal(sport(), was);
	assert_false(qp()->limited);
}

static void local__stays(void **state)
{
	uint16_t was;

	lone_start(&l);
	was = sport();
	qp()->path.local = true;
	ask();
	assert_int_equal(sport(), was);
}

static void reset__forgets(void **state)
{
	send_two();
	ask();
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	assert_false(qp()->limited);
	assert_false(qp()->limiter->detours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(drained__changes_at_once, setup, lone_teardown),
		cmocka_unit_test_setup_teardown(
			in_flight__changes_with_the_last_ack, setup, lone_teardown),
		cmocka_unit_test_setup_teardown(
			go_back__changes_before_the_oldest, setup, lone_teardown),
		cmocka_unit_test_setup_teardown(frames__have_the_new_port, setup, lone_teardown),
		cmocka_unit_test_setup_teardown(responder__stays, setup, lone_teardown),
		cmocka_unit_test_setup_teardown(others__stay, setup, lone_teardown),
		cmocka_unit_test_setup_teardown(local__stays, setup, lone_teardown),
		cmocka_unit_test_setup_teardown(reset__forgets, setup, lone_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
