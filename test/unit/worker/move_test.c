/* SPDX-License-Identifier: BSD-3-Clause */
/* Two workers, moved by hand: what is for the other one, and QPs that change sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "core_command.h"
#include "cq.h"
#include "eal_test.h"
#include "random.h"
#include "rig.h"

#define SLOT 5u

static struct rig r;
static struct rig_qp a, b; /* on worker 0: port 0, port 1 */
static struct worker *w[2];
static struct abi_cq_lane *lane[2]; /* of worker 1 */

static struct abi_cq_lane *second_lane(struct rig_qp *q)
{
	size_t size = sizeof(struct abi_cq_lane) + 2 * RIG_DEPTH * sizeof(struct abi_cqe);
	struct abi_cq_lane *p = aligned_alloc(ABI_LINE, size);

	assert_non_null(p);
	memset(p, 0, size);
	cq_lane_init(q->cq, 1, p, 2 * RIG_DEPTH);
	return p;
}

static void up_with(bool local)
{
	rig_up(&r, 2);
	for (unsigned i = 0; i < 2; i++)
		w[i] = r.dp->worker[i];
	rig_qp_up(&r, &a, SLOT, 0);
	rig_qp_up(&r, &b, SLOT + 1, 0);
	lane[0] = second_lane(&a);
	lane[1] = second_lane(&b);
	rig_connect(&r, &a, &b, 0, local);
	rig_connect(&r, &b, &a, local ? 0 : 1, local);
}

static int up(void **state)
{
	up_with(false);
	return 0;
}

static int up_local(void **state)
{
	up_with(true);
	return 0;
}

static int give(struct rig_qp *q, uint16_t to)
{
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .qp = q->qp, .worker = to};

	return worker_call(w[qp_owner(q->qp)], &cmd);
}

static void move(struct rig_qp *q, uint16_t to)
{
	struct core_cmd cmd = {.type = CORE_CMD_TAKE_QP, .qp = q->qp};

	assert_int_equal(give(q, to), 0);
	assert_int_equal(worker_call(w[to], &cmd), 0);
}

static void bring_home(struct rig_qp *q)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_CQ, .cq = q->cq};

	if (qp_owner(q->qp))
		move(q, 0);
	assert_int_equal(worker_call(w[1], &cmd), 0);
}

static int down(void **state)
{
	bring_home(&a);
	bring_home(&b);
	rig_qp_down(&r, &a, SLOT);
	rig_qp_down(&r, &b, SLOT + 1);
	rig_down(&r);
	free(lane[0]);
	free(lane[1]);
	return 0;
}

static unsigned rx(unsigned i)
{
	bool drained;

	return rig_rx(w[i], &drained);
}

static unsigned write_and_send(uint32_t len)
{
	rig_write(&a, &b, len);
	doorbell_poll(w[0]);
	doorbell_poll(w[1]);
	return tx_poll(w[qp_owner(a.qp)]);
}

/* --- doorbells -------------------------------------------------------------------------- */

/* The bell of the old worker is heard by the new one, once, wherever the QP goes. */
static void doorbell_poll__passes_on(void **state)
{
	move(&a, 1);
	assert_int_equal(tx_poll(w[1]), 0); /* its turn: nothing posted, it asks for the bell */
	rig_write(&a, &b, 8);
	assert_int_equal(doorbell_poll(w[1]), 0);
	assert_int_equal(doorbell_poll(w[0]), 1);
	assert_int_equal(w[0]->stats.bells_passed, 1);
	assert_int_equal(tx_poll(w[0]), 0);
	assert_int_equal(doorbell_poll(w[1]), 1);
	assert_int_equal(doorbell_poll(w[1]), 0);
	assert_int_equal(tx_poll(w[1]), 1);
	abi_doorbell_ring(a.bell, SLOT);
	assert_int_equal(doorbell_poll(w[0]), 1);
	move(&a, 0); /* while the bell is under way */
	assert_int_equal(doorbell_poll(w[1]), 1);
	assert_int_equal(w[1]->stats.bells_passed, 1);
	assert_int_equal(doorbell_poll(w[0]), 1);
	assert_int_equal(doorbell_poll(w[0]), 0);
}

/* --- frames ----------------------------------------------------------------------------- */

/* Frames of a QP that has moved are handed over from its home, in order, and told of. */
static void rx_poll__hands_over_what_comes_home(void **state)
{
	move(&b, 1);
	assert_int_equal(write_and_send(10 * 1024), 10);
	assert_int_equal(rx(0), 10);
	assert_int_equal(w[0]->stats.handoffs, 10);
	assert_int_equal(rx(1), 10);
	assert_int_equal(b.qp->queue, 0);
	assert_int_equal(b.qp->queue_run, 10);
	assert_int_equal(b.qp->resp.epsn, 0xFFFFFA);
	assert_int_equal(w[1]->core.count.out_of_sequence, 0);
}

/* Packets handed to a worker that has given the QP away are passed to its new one. */
static void rx_poll__hands_over_again(void **state)
{
	move(&b, 1);
	assert_int_equal(write_and_send(4 * 1024), 4);
	assert_int_equal(rx(0), 4); /* lies in the inbox of worker 1 */
	w[1]->mailbox.waited = UINT32_MAX - 1;
	assert_int_equal(give(&b, 0), 0);
	assert_int_equal(rx(1), 4);
	assert_int_equal(rx(0), 4);
	assert_int_equal(b.qp->resp.epsn, 0xFFFFF4);
	assert_int_equal(b.qp->queue, 0); /* where the port had put them */
}

/* A port with a queue for some workers only says nothing of where a QP belongs. */
static void rx_poll__port_that_does_not_spread(void **state)
{
	w[0]->port[1].spreads = false;
	assert_int_equal(write_and_send(8), 1);
	assert_int_equal(rx(0), 1);
	assert_int_equal(b.qp->queue, PKT_NO_QUEUE);
}

/* Local packets are put into the inbox of their owner, and tell nothing either. */
static void tx_poll__local_packets_find_their_owner(void **state)
{
	move(&b, 1);
	random_fill(&(struct random){.state = 1}, a.memory, RIG_MEMORY);
	assert_int_equal(write_and_send(3 * 1024), 3);
	assert_int_equal(w[0]->core.count.named_packets, 3);
	assert_int_equal(rx(0), 0);
	assert_int_equal(rx(1), 3);
	assert_memory_equal(b.memory, a.memory, 3 * 1024);
	assert_int_equal(w[0]->stats.handoffs + w[1]->stats.handoffs, 0);
	assert_int_equal(b.qp->queue, PKT_NO_QUEUE);
	assert_int_equal(tx_poll(w[1]), 1); /* the ACK */
	assert_int_equal(rx(0), 1);
	assert_int_equal(rig_poll(&a), ABI_WC_SUCCESS);
}

/* Frames that are no RoCE, as if worker @p from had so many for worker @p to that there is room for
 * @p room more. */
static void fill_inbox(unsigned to, unsigned kind, unsigned from, unsigned room)
{
	struct rte_ring *ring = w[to]->inbox.ring[kind][from];

	while (rte_ring_free_count(ring) > room) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(w[from]->pool);

		assert_non_null(m);
		memset(rte_pktmbuf_append(m, 60), 0, 60);
		m->port = 0; /* as origin() writes it */
		assert_int_equal(rte_ring_enqueue(ring, m), 0);
	}
	w[from]->looped |= 1u << to;
}

/* Their payload is found by whichever worker has the QP, also where half of the room is taken and
 * frames need a good ICRC. */
static void rx_poll__hands_over_named_packets(void **state)
{
	move(&b, 1);
	random_fill(&(struct random){.state = 2}, a.memory, RIG_MEMORY);
	assert_int_equal(write_and_send(4 * 1024), 4);
	w[1]->mailbox.waited = UINT32_MAX - 1;
	assert_int_equal(give(&b, 0), 0);
	fill_inbox(0, INBOX_HANDED, 1, 8);
	assert_int_equal(rx(1), 4);
	assert_int_equal(w[1]->stats.handoffs, 4);
	while (!inbox_empty(&w[0]->inbox))
		rx(0);
	assert_int_equal(b.qp->resp.epsn, 0xFFFFF4);
	assert_memory_equal(b.memory, a.memory, 4 * 1024);
}

/* Packets that are under way when their QP goes to ERR read nothing any more, by whichever worker,
 * although its memory is still registered. The workers stand still. */
static void worker_call__ends_names(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.qp = a.qp,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_ERR}};
	static const uint8_t untouched[3 * 1024];

	move(&b, 1);
	memset(a.memory, 0x5A, RIG_MEMORY);
	assert_int_equal(write_and_send(3 * 1024), 3);
	assert_int_equal(worker_call(w[0], &cmd), 0);
	assert_int_equal(core_grace_wanted(&w[0]->core), 0);
	assert_int_equal(rx(1), 3);
	assert_int_equal(w[1]->core.count.drop[DROP_NAMELESS], 1);
	assert_int_equal(b.qp->resp.epsn, 0xFFFFF0);
	assert_memory_equal(b.memory, untouched, sizeof(untouched));
}

/* Of workers that run: a completion that fails waits for a grace period of all of them. */
static void worker_run__failed_names_end(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.qp = a.qp,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_ERR}};
	uint32_t epoch = a.qp->epoch;

	move(&b, 1);
	rig_start(&r);
	rig_write(&a, &b, 64 * 1024 - 8);
	assert_int_equal(rig_poll(&a), ABI_WC_SUCCESS);
	rig_write(&a, &b, 64 * 1024 - 8);
	assert_int_equal(worker_call(w[0], &cmd), 0);
	assert_int_equal(a.qp->epoch, epoch + 1);
	assert_in_range(rig_poll(&a), ABI_WC_SUCCESS, ABI_WC_WR_FLUSH_ERR);
	rig_stop(&r);
	assert_true(w[0]->core.count.named_packets >= 63);
}

/* Others fill its inbox, and a worker keeps sending. */
static void tx_poll__a_flooded_worker_sends(void **state)
{
	fill_inbox(0, INBOX_LOCAL, 1, 0);
	fill_inbox(0, INBOX_HANDED, 1, 0);
	move(&b, 1); /* so that there are frames to send */
	assert_int_equal(write_and_send(60 * 1024), BURST);
}

/* Where there is no room for a burst of local packets, none is built, and none is lost; by a port,
 * and to another worker, all continues. */
static void tx_poll__full_inbox_holds_up_its_senders_alone(void **state)
{
	struct rig_qp c, d; /* by the wire */
	unsigned rounds = 0;

	rig_qp_up(&r, &c, SLOT + 2, 0);
	rig_qp_up(&r, &d, SLOT + 3, 0);
	rig_connect(&r, &c, &d, 0, false);
	rig_connect(&r, &d, &c, 1, false);
	move(&b, 1);
	fill_inbox(1, INBOX_LOCAL, 0, BURST - 1);
	assert_int_equal(write_and_send(60 * 1024), 0);
	rig_write(&c, &d, 1024);
	doorbell_poll(w[0]);
	assert_int_equal(tx_poll(w[0]), 1);
	assert_int_equal(tx_poll(w[0]), 0);
	while (b.qp->resp.epsn != ((0xFFFFF0 + 60) & 0xFFFFFF) && ++rounds < 1000) {
		rx(1);
		tx_poll(w[0]);
	}
	assert_in_range(rounds, 2, 999);
	assert_int_equal(w[0]->core.count.drop[DROP_HANDOFF_FULL], 0);
	assert_int_equal(w[0]->core.count.retransmits, 0);
	rig_qp_down(&r, &c, SLOT + 2);
	rig_qp_down(&r, &d, SLOT + 3);
}

/* The egress of these packets was found open before their QP moved to the worker whose inbox has
 * room for three of them. */
static void tx_poll__full_inbox_of_a_moved_qp_loses_nothing(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .qp = a.qp, .worker = 1};
	struct rig_qp c, d; /* by the wire */
	unsigned rounds = 0;

	rig_qp_up(&r, &c, SLOT + 2, 0);
	rig_qp_up(&r, &d, SLOT + 3, 0);
	rig_connect(&r, &c, &d, 0, false);
	rig_connect(&r, &d, &c, 1, false);
	move(&b, 1);
	fill_inbox(1, INBOX_LOCAL, 0, 3);
	w[0]->looped = 0; /* as if that worker had not been asked */
	assert_int_equal(write_and_send(60 * 1024), BURST);
	assert_int_equal(w[0]->stats.local_waits, 1);
	rig_write(&c, &d, 10 * 1024);
	doorbell_poll(w[0]);
	assert_int_equal(tx_poll(w[0]), 10);	/* they hold up no other */
	atomic_store(&w[0]->mailbox.cmd, &cmd); /* its packets are not to be overtaken */
	mailbox_poll(w[0]);
	assert_non_null(atomic_load(&w[0]->mailbox.cmd));
	atomic_store(&w[0]->mailbox.cmd, NULL);
	while (b.qp->resp.epsn != ((0xFFFFF0 + 60) & 0xFFFFFF) && ++rounds < 1000) {
		rx(1);
		tx_poll(w[0]);
	}
	assert_in_range(rounds, 2, 999);
	assert_int_equal(w[0]->core.count.drop[DROP_HANDOFF_FULL], 0);
	assert_int_equal(w[0]->core.count.retransmits, 0);
	assert_int_equal(w[1]->core.count.out_of_sequence, 0);
	rig_qp_down(&r, &c, SLOT + 2);
	rig_qp_down(&r, &d, SLOT + 3);
}

/* Nobody knows before which packets will have to wait for which inbox: for each there is room aside
 * for as many as are built. */
static void tx_poll__builds_what_has_room_aside(void **state)
{
	struct handoff *h = &w[0]->handoff[INBOX_LOCAL][1];
	struct rig_qp c, d; /* by the wire */

	rig_qp_up(&r, &c, SLOT + 2, 0);
	rig_qp_up(&r, &d, SLOT + 3, 0);
	rig_connect(&r, &c, &d, 0, false);
	rig_connect(&r, &d, &c, 1, false);
	fill_inbox(1, INBOX_LOCAL, 0, 0);
	h->count = ARRAY_SIZE(h->m) - 3;
	w[0]->laid = 1u << (INBOX_LOCAL * WORKER_MAX + 1);
	rig_write(&c, &d, 10 * 1024);
	doorbell_poll(w[0]);
	assert_int_equal(tx_poll(w[0]), 3);
	h->count = 0;
	w[0]->laid = 0;
	assert_int_equal(tx_poll(w[0]), 7);
	rig_qp_down(&r, &c, SLOT + 2);
	rig_qp_down(&r, &d, SLOT + 3);
}

/* Packets that were kept go as soon as there is room, although nothing else is to be sent. */
static void tx_poll__kept_packets_need_no_others(void **state)
{
	move(&b, 1);
	fill_inbox(1, INBOX_LOCAL, 0, 3);
	w[0]->looped = 0;
	assert_int_equal(write_and_send(4 * 1024), 4);
	while (!inbox_empty(&w[1]->inbox))
		rx(1);
	assert_int_equal(b.qp->resp.epsn, 0xFFFFF3);
	assert_true(core_tx_idle(&w[0]->core));
	assert_int_equal(tx_poll(w[0]), 0);
	assert_int_equal(rx(1), 1);
	assert_int_equal(b.qp->resp.epsn, 0xFFFFF4);
}

/* --- moving ----------------------------------------------------------------------------- */

static void send_command(struct core_cmd *cmd)
{
	atomic_store(&w[0]->mailbox.cmd, cmd);
	mailbox_poll(w[0]);
}

static bool answered(void)
{
	return !atomic_load(&w[0]->mailbox.cmd);
}

/* A QP goes when nothing of it can be overtaken: frames in the inbox, packets in the backlog. */
static void mailbox_poll__gives_at_a_quiet_moment(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .qp = b.qp, .worker = 1};

	move(&a, 1);
	assert_int_equal(write_and_send(4 * 1024), 4);
	assert_int_equal(rx(1), 4); /* by queue 1: for worker 0's inbox */
	send_command(&cmd);
	assert_false(answered());
	assert_int_equal(qp_owner(b.qp), 0);
	assert_int_equal(rx(0), 4);
	w[0]->port[1].count = 1;
	mailbox_poll(w[0]);
	assert_false(answered());
	w[0]->port[1].count = 0;
	mailbox_poll(w[0]);
	assert_true(answered());
	assert_int_equal(w[0]->mailbox.result, 0);
	assert_int_equal(qp_owner(b.qp), 1);
	assert_int_equal(w[0]->stats.qps_given, 2); /* and a */
}

/* A worker that never comes to rest answers all the same. */
static void mailbox_poll__waits_not_for_ever(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .qp = b.qp, .worker = 1};
	unsigned rounds = 0;

	w[0]->port[1].count = 1;
	send_command(&cmd);
	while (!answered() && ++rounds < 10000)
		mailbox_poll(w[0]);
	w[0]->port[1].count = 0;
	assert_in_range(rounds, 10, 200);
	assert_int_equal(qp_owner(b.qp), 1);
}

/* Timers go along, so all clocks must show the same. */
static void worker_create__clocks_agree(void **state)
{
	uint64_t tsc = rte_get_tsc_cycles();
	uint64_t first = clock_at(&w[0]->clock, tsc);
	uint64_t second = clock_at(&w[1]->clock, tsc);

	assert_true(first - second + 10 <= 20); /* rounding */
}

#define T(f)	   cmocka_unit_test_setup_teardown(f, up, down)
#define T_LOCAL(f) cmocka_unit_test_setup_teardown(f, up_local, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(doorbell_poll__passes_on),
		T(rx_poll__hands_over_what_comes_home),
		T(rx_poll__hands_over_again),
		T(rx_poll__port_that_does_not_spread),
		T_LOCAL(tx_poll__local_packets_find_their_owner),
		T_LOCAL(rx_poll__hands_over_named_packets),
		T_LOCAL(worker_call__ends_names),
		T_LOCAL(worker_run__failed_names_end),
		T_LOCAL(tx_poll__full_inbox_holds_up_its_senders_alone),
		T_LOCAL(tx_poll__full_inbox_of_a_moved_qp_loses_nothing),
		T_LOCAL(tx_poll__builds_what_has_room_aside),
		T_LOCAL(tx_poll__kept_packets_need_no_others),
		T_LOCAL(tx_poll__a_flooded_worker_sends),
		T(mailbox_poll__gives_at_a_quiet_moment),
		T(mailbox_poll__waits_not_for_ever),
		T(worker_create__clocks_agree),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
