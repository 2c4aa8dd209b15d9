/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fixture.h"
#include "patience.h"

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int query(struct rig *r, struct roci_device_attr *attr)
{
	attr->size = sizeof(*attr);
	return roci_query_device(r->ctx, attr);
}

static bool refuse(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	static const char why[] = "the cat sleeps on the NIC: wake it";

	harness_reply(h, msg, -EBUSY, why, sizeof(why), NULL, 0);
	return true;
}

static void call__passes_errno_and_sentence_on(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr;

	atomic_store(&r->h->hook, refuse);
	assert_int_equal(query(r, &attr), EBUSY);
	assert_string_equal(roci_last_error(), "the cat sleeps on the NIC: wake it");
	assert_null(roci_alloc_pd(r->ctx));
	assert_int_equal(errno, EBUSY);
}

static bool refuse_silently(struct harness *h, const struct abi_msg *msg, const void *b, size_t len)
{
	harness_reply(h, msg, -ENOSPC, NULL, 0, NULL, 0);
	return true;
}

static void call__refusal_without_a_sentence(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr;

	atomic_store(&r->h->hook, refuse_silently);
	assert_int_equal(query(r, &attr), ENOSPC);
	assert_true(strlen(roci_last_error()) > 10);
}

static bool refuse_without_nul(
	struct harness *h, const struct abi_msg *msg, const void *b, size_t n)
{
	char text[ABI_MSG_MAX - sizeof(*msg)];

	memset(text, 'x', sizeof(text));
	harness_reply(h, msg, -EINVAL, text, sizeof(text), NULL, 0);
	return true;
}

static void call__endless_sentence(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr;

	atomic_store(&r->h->hook, refuse_without_nul);
	assert_int_equal(query(r, &attr), EINVAL);
	assert_true(strlen(roci_last_error()) < 1024);
}

static bool reply_short(struct harness *h, const struct abi_msg *msg, const void *b, size_t len)
{
	struct abi_device_attr attr = {.ports = 3, .max_qp = 4};

	harness_reply(h, msg, 0, &attr, offsetof(struct abi_device_attr, max_qp), NULL, 0);
	return true;
}

static void call__missing_bytes_are_zero(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	atomic_store(&r->h->hook, reply_short);
	assert_int_equal(query(r, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 3);
	assert_int_equal(attr.max_qp, 0);
	assert_string_equal(attr.fw_ver, "");
}

static bool reply_long(struct harness *h, const struct abi_msg *msg, const void *b, size_t len)
{
	uint8_t body[sizeof(struct abi_device_attr) + 100] = {0};
	struct abi_device_attr attr = {.ports = 3, .version = "of tomorrow"};

	memcpy(body, &attr, sizeof(attr));
	memset(body + sizeof(attr), 0xee, 100);
	harness_reply(h, msg, 0, body, sizeof(body), NULL, 0);
	return true;
}

static void call__more_bytes_are_ignored(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr;

	atomic_store(&r->h->hook, reply_long);
	assert_int_equal(query(r, &attr), 0);
	assert_string_equal(attr.fw_ver, "of tomorrow");
}

/* Another request's answer first, with a descriptor, then rubbish, then the right one. */
static bool reply_astray(struct harness *h, const struct abi_msg *msg, const void *b, size_t len)
{
	struct abi_msg other = *msg;
	struct abi_device_attr attr = {.ports = 9};
	int fd = 0;

	other.seq--;
	harness_reply(h, &other, 0, &attr, sizeof(attr), &fd, 1);
	other = *msg;
	other.type = ABI_QUERY_PORT;
	harness_reply(h, &other, 0, NULL, 0, NULL, 0);
	send(h->conn, "rubbish", 7, MSG_NOSIGNAL);
	attr.ports = 1;
	harness_reply(h, msg, 0, &attr, sizeof(attr), NULL, 0);
	return true;
}

static void call__replies_that_are_not_ours(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr;
	unsigned before = open_fds();

	atomic_store(&r->h->hook, reply_astray);
	assert_int_equal(query(r, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(open_fds(), before);
}

static bool reply_with_fds(struct harness *h, const struct abi_msg *msg, const void *b, size_t len)
{
	int fds[3] = {0, 1, 2};

	harness_reply(h, msg, 0, NULL, 0, fds, 3);
	return true;
}

static bool reply_without_fds(struct harness *h, const struct abi_msg *msg, const void *b, size_t l)
{
	uint8_t body[64] = {0};

	harness_reply(h, msg, 0, body, sizeof(body), NULL, 0);
	return true;
}

static void call__wrong_number_of_descriptors(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr;
	unsigned before = open_fds();

	atomic_store(&r->h->hook, reply_with_fds);
	assert_int_equal(query(r, &attr), EPROTO);
	assert_null(roci_create_cq(r->ctx, 4, NULL, NULL, 0));
	assert_int_equal(errno, EPROTO);
	assert_int_equal(open_fds(), before);
	atomic_store(&r->h->hook, reply_without_fds);
	assert_null(roci_create_channel(r->ctx));
	assert_int_equal(errno, EPROTO);
}

static bool reply_small_region(
	struct harness *h, const struct abi_msg *msg, const void *b, size_t l)
{
	struct abi_create_cq_reply cq = {.handle = 50,
		.depth = 4096,
		.lanes = 1,
		.lane_off = 128,
		.lane_stride = 128 + 4096 * 64,
		.region_size = 128 + 128 + 4096 * 64};

	if (msg->type != ABI_CREATE_CQ)
		return false;
	harness_reply(h, msg, 0, &cq, sizeof(cq), &h->qp[0].shm.fd, 1);
	return true;
}

static bool reply_lane_outside(
	struct harness *h, const struct abi_msg *msg, const void *b, size_t l)
{
	struct abi_create_cq_reply cq = {.handle = 50,
		.depth = 16,
		.lanes = 0x10000000,
		.lane_off = 128,
		.lane_stride = 128 + 16 * 64,
		.region_size = 4096};

	if (msg->type != ABI_CREATE_CQ)
		return false;
	harness_reply(h, msg, 0, &cq, sizeof(cq), &h->session.fd, 1);
	return true;
}

static void call__regions_that_do_not_fit(void **state)
{
	struct rig *r = *state;
	unsigned before = open_fds();

	atomic_store(&r->h->hook, reply_small_region);
	assert_null(roci_create_cq(r->ctx, 4, NULL, NULL, 0));
	assert_int_equal(errno, EPROTO);
	atomic_store(&r->h->hook, reply_lane_outside);
	assert_null(roci_create_cq(r->ctx, 4, NULL, NULL, 0));
	assert_int_equal(errno, EPROTO);
	assert_int_equal(open_fds(), before);
	assert_int_equal(r->h->calls[ABI_DESTROY_CQ], 2); /* rocid destroys it, too */
}

static void on_signal(int sig)
{
}

static bool interrupt(struct harness *h, const struct abi_msg *msg, const void *b, size_t len)
{
	for (int i = 0; i < 5; i++) {
		usleep(10000);
		kill(getpid(), SIGUSR1);
	}
	return false;
}

static void call__interrupted_by_signals(void **state)
{
	struct rig *r = *state;
	struct sigaction sa = {.sa_handler = on_signal};
	struct roci_device_attr attr;

	sigaction(SIGUSR1, &sa, NULL); /* no SA_RESTART */
	atomic_store(&r->h->hook, interrupt);
	assert_int_equal(query(r, &attr), 0);
	assert_int_equal(attr.max_qp, 123);
}

struct crowd {
	struct rig *rig;
	int failures;
};

static void *hammer(void *arg)
{
	struct crowd *c = arg;
	struct roci_gid_entry e = {.size = sizeof(e)};

	for (int i = 0; i < 200; i++)
		if (roci_query_gid(c->rig->ctx, 1, 3, &e) || e.vid != 5 ||
			roci_query_gid(c->rig->ctx, 1, 2, &e) || e.vid != 0)
			c->failures++;
	return NULL;
}

static void call__from_many_threads(void **state)
{
	struct crowd c[4];
	pthread_t t[4];

	for (int i = 0; i < 4; i++) {
		c[i] = (struct crowd){.rig = *state};
		pthread_create(&t[i], NULL, hammer, &c[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(c[i].failures, 0);
	}
}

/* --- cancellation ------------------------------------------------------------------------- */

static void *cancelled_in_a_call(void *rig)
{
	struct roci_device_attr attr;

	pthread_cancel(pthread_self());
	query(rig, &attr);
	pthread_testcancel();
	return NULL;
}

static void *cancelled_polling(void *rig)
{
	struct roci_wc wc;

	pthread_cancel(pthread_self());
	for (unsigned i = 0; i < 100000; i++) /* more than between two looks at the socket */
		roci_poll_cq(((struct rig *)rig)->cq, 1, &wc);
	pthread_testcancel();
	return NULL;
}

/* The next call, which alarm(0) follows, would wait for ever for a lock that is left held. */
static void cancel(struct rig *r, void *(*run)(void *rig))
{
	void *how;
	pthread_t t;

	alarm(PATIENCE_S);
	pthread_create(&t, NULL, run, r);
	pthread_join(t, &how);
	assert_ptr_equal(how, PTHREAD_CANCELED);
}

static void call__cancelled(void **state)
{
	struct roci_device_attr attr;

	cancel(*state, cancelled_in_a_call);
	assert_int_equal(query(*state, &attr), 0);
	alarm(0);
}

static void call__cancelled_while_polling(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc;

	cancel(r, cancelled_polling);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 0);
	alarm(0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(call__passes_errno_and_sentence_on),
		T(call__refusal_without_a_sentence),
		T(call__endless_sentence),
		T(call__missing_bytes_are_zero),
		T(call__more_bytes_are_ignored),
		T(call__replies_that_are_not_ours),
		T(call__wrong_number_of_descriptors),
		T(call__regions_that_do_not_fit),
		T(call__interrupted_by_signals),
		T(call__from_many_threads),
		T(call__cancelled),
		T(call__cancelled_while_polling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
