/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that sleeps until an event of a completion, or of a QP that fails. Each event must
 * come. */
#include <err.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "proc.h"
#include "raw.h"
#include "victim.h"

#define ACCESS	   (ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE)
#define FAIL_EVERY 8u /* a QP fails after so many completions */

static struct victim *victim;
static struct proc proc;
static struct raw s;
static int channel;
static struct raw_cq cq;
static struct raw_mr mr;
static struct raw_qp a, b;

/* Waits for the next event of @p fd, whose cause came just before @p begin. */
static struct abi_event await(int fd, const struct look *begin, const char *what)
{
	time_t until = time(NULL) + RAW_PATIENCE_S;
	struct look now = *begin, look, end;
	struct abi_event ev;

	for (;;) {
		proc_look(&proc, &look); /* before the look */
		if (recv(fd, &ev, sizeof(ev), MSG_DONTWAIT) == sizeof(ev))
			break;
		now = look;
		if (time(NULL) > until)
			errx(1, "victim: the event of its %s is lost: none within %d s", what,
				RAW_PATIENCE_S);
		usleep(50);
	}
	proc_look(&proc, &end);
	waits_note(
		&victim->event, proc_waited(&proc, THREAD_NOTIFIER, begin, &now, &end), EVENT_NS);
	atomic_fetch_add(&victim->event.done, 1);
	return ev;
}

static struct abi_sge piece(void)
{
	return (struct abi_sge){(uintptr_t)mr.mem, 64, mr.key};
}

static void take(uint8_t status)
{
	struct abi_cqe cqe;

	if (!raw_wait(&cq, &cqe))
		errx(1, "victim: told of a completion that is not there");
	if (cqe.status != status)
		errx(1, "victim: status %u, expected %u", cqe.status, status);
}

static void complete(void)
{
	struct abi_cq *head = (struct abi_cq *)cq.region;
	struct look begin;

	atomic_store(&head->arm,
		((atomic_load(&head->arm) & ~ABI_CQ_ARM_MASK) + ABI_CQ_ARM_STEP) | ABI_CQ_ARM_ANY);
	raw_request(&a, ABI_WR_RDMA_WRITE, 1, piece(), (uintptr_t)mr.mem + 64, mr.key);
	proc_look(&proc, &begin);
	if (await(channel, &begin, "completion").handle != cq.r.handle)
		errx(1, "victim: an event of another's CQ");
	take(ABI_WC_SUCCESS);
}

/* A key that nobody has: the responder's QP fails, and raises an event. */
static void fail(void)
{
	struct abi_event ev;
	struct look begin;

	raw_request(&a, ABI_WR_RDMA_WRITE, 1, piece(), (uintptr_t)mr.mem, mr.key ^ 0x55);
	proc_look(&proc, &begin);
	do /* COMM_EST came before */
		ev = await(s.async, &begin, "failure");
	while (ev.type == ABI_EVENT_COMM_EST);
	if (ev.type != ABI_EVENT_QP_ACCESS_ERR || ev.handle != b.r.handle)
		errx(1, "victim: event %u of QP %u is another's", ev.type, ev.handle);
	take(ABI_WC_REM_ACCESS_ERR);
	if (raw_state(&a, ABI_QPS_RESET) || raw_state(&b, ABI_QPS_RESET))
		errx(1, "victim: its QPs do not go to RESET: %s", s.why);
	raw_connect_qps(&a, &b, ACCESS);
}

static void open_all(const char *socket)
{
	struct abi_create_qp in;
	uint32_t handle;

	raw_open(&s, socket);
	if (raw_call(&s, ABI_CREATE_CHANNEL, NULL, 0, -1, &handle, sizeof(handle), &channel, 1))
		errx(1, "victim: no channel: %s", s.why);
	raw_cq(&s, &cq, 64, handle);
	raw_mr(&s, &mr, 4096, 0, ACCESS);
	in = raw_qp_request(&s, &cq, 16);
	raw_qp(&s, &a, &cq, &in);
	raw_qp(&s, &b, &cq, &in);
	raw_connect_qps(&a, &b, ACCESS);
}

void victim_events(struct victim *v, const char *socket)
{
	victim = v;
	proc_open(&proc, socket);
	open_all(socket);
	atomic_fetch_add(&v->ready, 1);
	for (unsigned n = 1; !atomic_load(&v->stop); n++) {
		complete();
		if (n % FAIL_EVERY == 0)
			fail();
		usleep(PAUSE_US);
	}
}
