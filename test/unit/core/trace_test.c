/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace of one QP; without a trace nothing is spent. */
#include <errno.h>
#include <stdlib.h>
#include "core_command.h"
#include "fixture.h"
#include "headers.h"
#include "opcode.h"
#include "qp.h"
#include "trace.h"
#include "trace_text.h"

static struct trace *t;

static int command(enum core_cmd_type type, bool tracing, struct trace *trace)
{
	struct core_cmd cmd = {.type = type, .qp = l.qp->qp, .tracing = tracing, .trace = trace};

	return core_cmd(&l.host->core, &cmd, l.now);
}

static int setup(void **state)
{
	lone_setup(state);
	t = aligned_alloc(CACHE_LINE, sizeof(*t));
	assert_non_null(t);
	memset(t, 0, sizeof(*t));
	return 0;
}

static int teardown(void **state)
{
	lone_fini(&l);
	free(t);
	return 0;
}

static void start(void)
{
	lone_start(&l);
	assert_int_equal(command(CORE_CMD_TRACING, true, NULL), 0);
	assert_int_equal(command(CORE_CMD_TRACE_QP, false, t), 0);
}

/* All events that are there, without times, PSNs counted from those of lone.h. */
static const char *events(void)
{
	static char text[16384];
	struct trace_event e[64];
	size_t len = 0;
	unsigned n;

	while ((n = trace_read(t, e, ARRAY_SIZE(e))) > 0) {
		for (unsigned i = 0; i < n; i++) {
			char line[TRACE_LINE];
			size_t size, skip = strlen("           0 worker 0 ");

			assert_true(len + TRACE_LINE < sizeof(text));
			size = trace_text(line, &e[i], e[i].time);
			memcpy(text + len, line + skip, size - skip);
			len += size - skip;
			text[len++] = '\n';
		}
	}
	text[len] = '\0';
	return text;
}

static void trace_qp__is_one_at_a_time(void **state)
{
	struct trace *second = t + 1;

	start();
	assert_int_equal(command(CORE_CMD_TRACE_QP, false, second), -EBUSY);
	assert_int_equal(command(CORE_CMD_TRACE_QP, false, NULL), 0);
	assert_int_equal(command(CORE_CMD_TRACE_QP, false, t), 0);
}

static void trace_qp__off_notes_nothing(void **state)
{
	start();
	assert_int_equal(command(CORE_CMD_TRACE_QP, false, NULL), 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 64, 0);
	lone_tx(&l);
	lone_ack(&l, SQ_PSN, 1);
	assert_string_equal(events(), "");
}

static void trace_rx__tells_what_became_of_a_packet(void **state)
{
	start();
	lone_recv(&l, 7, 0, 4096);
	lone_rx(&l, &(struct shot){OPC_RC | OP_SEND_ONLY, RQ_PSN, .len = 8, .ackreq = true});
	lone_rx(&l, &(struct shot){OPC_RC | OP_SEND_ONLY, RQ_PSN, .len = 8});
	lone_rx(&l, &(struct shot){OPC_RC | OP_SEND_ONLY, RQ_PSN + 1, .len = 8, .bad_icrc = true});
	assert_string_equal(events(), "receive opcode RC_SEND_ONLY psn 256 bytes 8 ackreq\n"
				      "take wr_id 0x7 bytes 4096\n"
				      "complete of RECV wr_id 0x7 status SUCCESS bytes 8\n"
				      "receive opcode RC_SEND_ONLY psn 256 bytes 8 again\n"
				      "receive opcode RC_SEND_ONLY psn 257 bytes 8 dropped icrc\n");
}

static void trace_rx__tells_of_a_wait_for_the_receiver(void **state)
{
	start();
	lone_post(&l, ABI_WR_SEND, 3, 64, ABI_WQE_SIGNALED);
	lone_tx(&l);
	events();
	lone_nak(&l, AETH_RNR_NAK | 1, SQ_PSN, 0);
	assert_string_equal(events(),
		"receive opcode RC_ACKNOWLEDGE psn 512 bytes 0 syndrome RNR_NAK msn 0\n"
		"go_back psn 512 from 513\n"
		"window packets 64 before 128\n"
		"timer_stopped timer ACK\n"
		"timer_armed timer RNR after 10000\n");
	lone_wait(&l, 20000);
	assert_string_equal(events(), "timer_fired timer RNR\n");
}

static void trace_end__tells_of_an_error(void **state)
{
	start();
	lone_post(&l, ABI_WR_RDMA_WRITE, 5, 64, 0);
	lone_tx(&l);
	events();
	lone_nak(&l, NAK_REMOTE_ACCESS, SQ_PSN, 0);
	assert_string_equal(events(),
		"receive opcode RC_ACKNOWLEDGE psn 512 bytes 0 syndrome NAK_REMOTE_ACCESS msn 0\n"
		"complete of WRITE wr_id 0x5 status REM_ACCESS_ERR bytes 64\n"
		"timer_stopped timer ACK\n"
		"state state ERR before RTS\n");
}

static void trace_tx_end__tells_of_bad_wqes(void **state)
{
	start();
	lone_post(&l, 99, 6, 64, 0);
	lone_tx(&l);
	assert_string_equal(events(),
		"doorbell\n"
		"complete of SEND wr_id 0x6 status LOC_QP_OP_ERR bytes 0\n"
		"fetch request ? wr_id 0x6 bytes 0 psn 512 last_psn 512 refused\n"
		"state state ERR before RTS\n");
}

static void note__says_how_much_was_lost(void **state)
{
	struct trace_event e;
	unsigned n = 0;

	start();
	/* two a turn */
	for (unsigned i = 0; i < TRACE_EVENTS; i++) {
		lone_rx(&l, &(struct shot){OPC_RC | OP_SEND_ONLY, RQ_PSN + 5, .len = 8});
	}
	while (trace_read(t, &e, 1))
		n++;
	assert_int_equal(n, TRACE_EVENTS);
	lone_rx(&l, &(struct shot){OPC_RC | OP_SEND_ONLY, RQ_PSN + 5, .len = 8});
	lone_rx(&l, &(struct shot){OPC_RC | OP_SEND_ONLY, RQ_PSN + 5, .len = 8});
	while (trace_read(t, &e, 1))
		n++;
	assert_int_equal(n, TRACE_EVENTS + 2);
	assert_int_equal(t->lost, 0);
}

static void trace_gone__lets_go_of_the_ring(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QP};

	start();
	assert_false(atomic_load(&t->ended));
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_true(atomic_load(&t->ended));
	assert_null(l.qp->qp->trace);
	assert_string_equal(events(), "destroyed\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(trace_qp__is_one_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_qp__off_notes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			trace_rx__tells_what_became_of_a_packet, setup, teardown),
		cmocka_unit_test_setup_teardown(
			trace_rx__tells_of_a_wait_for_the_receiver, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_end__tells_of_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_tx_end__tells_of_bad_wqes, setup, teardown),
		cmocka_unit_test_setup_teardown(note__says_how_much_was_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_gone__lets_go_of_the_ring, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
