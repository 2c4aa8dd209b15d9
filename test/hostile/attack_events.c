/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion notices that nobody reads, beside a program that reads its own. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "crowd.h"
#include "proc.h"

enum {
	CHANNELS = ASAN ? 300 : 1000, /* that are full */
	CQS = 400, /* of the reader, on one channel, which has no room for so many notices */
	ROUNDS = 10,
	CALM_US = 200000 /* after which the notifier looks seldom */
};

struct deaf {
	struct raw s;
	unsigned n;
	int channel[CHANNELS];
	struct raw_cq cq[CHANNELS];
	struct raw_qp qp[CHANNELS];
};

static struct deaf deaf;
static struct crowd reader;

/* All requests complete at once. */
static void fail(struct raw_qp *qp)
{
	must(!raw_init(qp, 1, 0) && !raw_state(qp, ABI_QPS_ERR), "ERR");
}

/* Has @p cq tell of a completion of @p qp. */
static void tell(struct raw_cq *cq, struct raw_qp *qp)
{
	struct abi_cq *head = (struct abi_cq *)cq->region;

	atomic_store(&head->arm,
		((atomic_load(&head->arm) & ~ABI_CQ_ARM_MASK) + ABI_CQ_ARM_STEP) | ABI_CQ_ARM_ANY);
	crowd_post(qp, ABI_WR_SEND, NULL, 0, 0, 0);
}

static void take(struct raw_cq *cq)
{
	struct abi_cqe cqe;

	must(raw_wait(cq, &cqe), "a request of a QP that failed completes");
}

static void open_deaf(const struct arena *a)
{
	struct rlimit rl;

	must(!getrlimit(RLIMIT_NOFILE, &rl), "no limit of descriptors");
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
	raw_open(&deaf.s, a->socket);
	while (deaf.n < CHANNELS) {
		unsigned i = deaf.n++;
		struct abi_create_qp in;
		uint32_t channel;

		must(!raw_call(&deaf.s, ABI_CREATE_CHANNEL, NULL, 0, -1, &channel, sizeof(channel),
			     &deaf.channel[i], 1),
			"a channel");
		raw_cq(&deaf.s, &deaf.cq[i], 16, channel);
		in = raw_qp_request(&deaf.s, &deaf.cq[i], 8);
		raw_qp(&deaf.s, &deaf.qp[i], &deaf.cq[i], &in);
		fail(&deaf.qp[i]);
	}
}

/* @return bytes of notices that wait to be read. */
static uint64_t unread(void)
{
	uint64_t sum = 0;
	int bytes;

	for (unsigned i = 0; i < deaf.n; i++)
		sum += ioctl(deaf.channel[i], FIONREAD, &bytes) ? 0 : (unsigned)bytes;
	return sum;
}

/* Until nothing fits any more. */
static void fill(void)
{
	uint64_t before = 0, now = 0;

	for (unsigned same = 0; same < 5; before = now) {
		for (unsigned i = 0; i < deaf.n; i++)
			tell(&deaf.cq[i], &deaf.qp[i]);
		for (unsigned i = 0; i < deaf.n; i++)
			take(&deaf.cq[i]);
		usleep(2000);
		now = unread();
		same = now == before ? same + 1 : 0;
	}
}

/* The reader has more notices than its channel takes, and then reads them all.  @return for how
 * long it waited for the last. */
static uint64_t read_all(const struct proc *p)
{
	time_t until = time(NULL) + RAW_PATIENCE_S;
	struct look begin, now, look, end;
	struct abi_event ev;
	unsigned got = 0;

	for (unsigned i = 0; i < CQS; i++)
		tell(&reader.cq[i], &reader.qp[i]);
	for (unsigned i = 0; i < CQS; i++)
		take(&reader.cq[i]);
	usleep(CALM_US);
	proc_look(p, &begin);
	now = begin;
	for (;;) {
		proc_look(p, &look); /* before the look */
		while (recv(reader.channel, &ev, sizeof(ev), MSG_DONTWAIT) == sizeof(ev))
			got++;
		if (got >= CQS)
			break;
		now = look;
		must(time(NULL) < until, "an event is lost");
		usleep(50);
	}
	proc_look(p, &end);
	return proc_waited(p, THREAD_NOTIFIER, &begin, &now, &end);
}

/* One session's channels are full. Events that another's had no room for come soon after it was
 * read, and not after all of those have been tried. */
static void full_channels(struct arena *a)
{
	const struct crowd_spec spec = {
		.n = CQS, .cqs = CQS, .channel = true, .depth = 8, .sges = 1, .memory = 4096};
	uint64_t sum = 0;
	struct proc p;

	proc_open(&p, a->socket);
	crowd_open(&reader, a, &spec);
	must(reader.n == CQS, "queue pairs for the reader");
	for (unsigned i = 0; i < CQS; i++)
		fail(&reader.qp[i]);
	open_deaf(a);
	fill();
	for (unsigned i = 0; i < ROUNDS; i++)
		sum += read_all(&p);
	printf("    %.1f ms on average until a channel that was full has all\n",
		(double)sum / ROUNDS / 1e6);
	must(sum / ROUNDS < EVENT_NS / 2, "full channels of one session delay another's events");
	for (unsigned i = 0; i < deaf.n; i++) {
		raw_qp_unmap(&deaf.qp[i]);
		raw_cq_unmap(&deaf.cq[i]);
		close(deaf.channel[i]);
	}
	raw_close(&deaf.s);
	crowd_close(&reader);
}

const struct attack attacks_events[] = {
	{"channels that nobody reads", full_channels},
	{NULL, NULL},
};
