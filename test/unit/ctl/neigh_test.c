/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolution through the kernel, as a session sees it: the reply of MODIFY_QP comes late and
 * nobody waits for it but its sender. */
#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>
#include "fixture.h"
#include "headers.h"
#include "net/neigh.h"
#include "patience.h"
#include "qp.h"
#include "qp_table.h"

static const uint8_t peer4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 2};
static const uint8_t peer6[16] = {0x20, 1, 0xd, 0xb8, 0, 9, [15] = 2};
static const uint8_t nobody4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 77};
static const uint8_t far4[16] = {[10] = 0xFF, [11] = 0xFF, 198, 51, 100, 1};
static const uint8_t loop4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 99, 0, 1};
static const uint8_t own4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 1};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0x99};

static struct client c;
static uint32_t pd, cq;

static int setup(void **state)
{
	struct test_daemon *d = *state;

	config_veth_alone(d);
	daemon_run(d);
	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	return 0;
}

static int teardown(void **state)
{
	client_close(&c);
	return daemon_teardown(state);
}

/* The index of the first GID of @p type. */
static uint8_t find_gid(uint32_t type, const uint8_t prefix[2])
{
	struct abi_query_gid in = {.port = 1};
	struct abi_gid g;

	for (in.index = 0; in.index < GID_MAX; in.index++) {
		client_must(c.sock, ABI_QUERY_GID, &in, sizeof(in), &g, sizeof(g));
		if (g.type == type && !memcmp(g.gid, prefix, 2))
			return (uint8_t)in.index;
	}
	fail();
	return 0;
}

static void to_init(const struct abi_create_qp_reply *qp)
{
	struct abi_modify_qp m = {.handle = qp->handle,
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS,
		.attr = {.qp_state = ABI_QPS_INIT, .port = 1}};

	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static struct abi_modify_qp to_rtr(const struct abi_create_qp_reply *qp, const uint8_t dgid[16])
{
	struct abi_modify_qp m = {.handle = qp->handle,
		.mask = ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN |
			ABI_QP_RQ_PSN | ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER,
		.attr = {.qp_state = ABI_QPS_RTR,
			.path_mtu = 1024,
			.ah = {.port = 1, .is_global = 1, .hop_limit = 1, .sgid_index = 1}}};

	if (dgid[0] == 0x20)
		m.attr.ah.sgid_index = find_gid(ABI_GID_ROCEV2_IPV6, dgid);
	memcpy(m.attr.ah.dgid, dgid, 16);
	memset(m.attr.ah.dmac, 0xFF, 6);
	return m;
}

/* Sends without waiting for the reply. */
static void post(const struct abi_modify_qp *m, uint32_t seq)
{
	uint8_t buf[sizeof(struct abi_msg) + sizeof(*m)];
	struct abi_msg msg = {.type = ABI_MODIFY_QP, .seq = seq};

	memcpy(buf, &msg, sizeof(msg));
	memcpy(buf + sizeof(msg), m, sizeof(*m));
	client_send(c.sock, buf, sizeof(buf), NULL, 0);
}

static void modify_qp__kernel_finds_the_peer(void **state)
{
	const uint8_t *const dgid[] = {peer4, peer6};
	struct test_daemon *d = *state;

	for (int i = 0; i < 2; i++) {
		struct abi_create_qp_reply qp = client_qp(&c, pd, cq);
		struct abi_modify_qp m = to_rtr(&qp, dgid[i]);
		const struct path *path = &atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)])->path;

		to_init(&qp);
		netns_run("ip neigh flush dev " NETNS_OURS);
		client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
		assert_memory_equal(path->hdr + ETH_DST, peer_mac, 6);
		assert_int_equal(path->net, i ? NET_IPV6 : NET_IPV4);
	}
}

/* The kernel is asked, and the session is not made to wait for it. */
static void create_ah__at_once(void **state)
{
	struct abi_create_ah in = {.pd = pd,
		.attr = {.port = 1, .is_global = 1, .hop_limit = 1, .sgid_index = 1},
		.flags = ABI_AH_AT_ONCE};
	struct answer a;
	int err;

	memcpy(in.attr.dgid, peer4, 16);
	memset(in.attr.dmac, 0xFF, 6);
	netns_run("ip neigh flush dev " NETNS_OURS);
	err = client_call(c.sock, ABI_CREATE_AH, &in, sizeof(in), -1, &a);
	assert_int_equal(err, -EAGAIN);
	for (unsigned i = 0; i < 30000 && err == -EAGAIN; i++) {
		usleep(1000);
		err = client_call(c.sock, ABI_CREATE_AH, &in, sizeof(in), -1, &a);
	}
	assert_int_equal(err, 0);
	in.flags = 2 * ABI_AH_AT_ONCE;
	assert_int_equal(client_call(c.sock, ABI_CREATE_AH, &in, sizeof(in), -1, &a), -EINVAL);
}

static void modify_qp__by_a_gateway(void **state)
{
	struct abi_create_qp_reply qp = client_qp(&c, pd, cq);
	struct abi_modify_qp m = to_rtr(&qp, far4);
	struct test_daemon *d = *state;

	netns_run("ip route add 198.51.100.0/24 via 10.9.0.2");
	to_init(&qp);
	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	assert_memory_equal(
		atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)])->path.hdr + ETH_DST, peer_mac, 6);
	netns_run("ip route del 198.51.100.0/24");
}

/* For a test that has to do something before the kernel gives up, after three seconds. */
#define TRIES 10

static bool in_vain(int status)
{
	return status == -EHOSTUNREACH || status == -ETIMEDOUT;
}

/* All of this while the kernel asks in vain for what @p m wants.
 * @return false when the kernel gave up meanwhile: the machine stood still, or they waited. */
static bool others_are_served(const struct test_daemon *d, const struct abi_modify_qp *m)
{
	struct client other;
	bool late = false;
	struct answer a;

	post(m, 777);
	client_open(d, &other);
	client_qp(&other, client_pd(&other), client_cq(&other, ABI_NO_HANDLE));
	client_close(&other);
	post(m, 778); /* the QP itself is busy */
	assert_true(client_receive(c.sock, &a));
	if (a.msg.seq == 778) {
		assert_int_equal(a.msg.status, -EBUSY);
		assert_true(client_receive(c.sock, &a));
	} else {
		late = true;
	}
	assert_int_equal(a.msg.seq, 777);
	assert_true(in_vain(a.msg.status));
	assert_non_null(strstr((char *)a.body, "10.9.0.77"));
	if (late)
		assert_true(client_receive(c.sock, &a));
	return !late;
}

static void modify_qp__others_do_not_wait(void **state)
{
	struct abi_create_qp_reply qp = client_qp(&c, pd, cq);
	struct abi_modify_qp m = to_rtr(&qp, nobody4);
	unsigned tries = 0;

	to_init(&qp);
	while (!others_are_served(*state, &m))
		assert_true(++tries < TRIES);
	/* the QP is as before and usable: ETH-12, QPS-14 */
	m = to_rtr(&qp, peer4);
	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

/* @return false when the kernel gave up before that. */
static bool destroy_meanwhile(void)
{
	struct abi_create_qp_reply qp = client_qp(&c, pd, cq);
	struct abi_modify_qp m = to_rtr(&qp, nobody4);
	struct abi_handle h = {qp.handle};
	uint8_t buf[sizeof(struct abi_msg) + sizeof(h)];
	struct abi_msg msg = {.type = ABI_DESTROY_QP, .seq = 2};
	struct answer a;
	int status;

	to_init(&qp);
	post(&m, 1);
	memcpy(buf, &msg, sizeof(msg));
	memcpy(buf + sizeof(msg), &h, sizeof(h));
	client_send(c.sock, buf, sizeof(buf), NULL, 0);
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.seq, 1);
	status = a.msg.status;
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.seq, 2);
	assert_int_equal(a.msg.status, 0);
	if (!in_vain(status))
		assert_int_equal(status, -ECANCELED);
	return status == -ECANCELED;
}

static void modify_qp__destroyed_meanwhile(void **state)
{
	unsigned tries = 0;

	while (!destroy_meanwhile())
		assert_true(++tries < TRIES);
}

static void modify_qp__session_ends_meanwhile(void **state)
{
	struct abi_create_qp_reply qp = client_qp(&c, pd, cq);
	struct abi_modify_qp m = to_rtr(&qp, nobody4);

	to_init(&qp);
	post(&m, 1);
	client_close(&c);
	client_open(*state, &c);
	for (int i = 0; i < 8; i++) { /* beyond the time-out */
		client_pd(&c);
		usleep(500000);
	}
}

static void modify_qp__unreachable_at_once(void **state)
{
	struct abi_create_qp_reply qp = client_qp(&c, pd, cq);
	struct abi_modify_qp m = to_rtr(&qp, loop4);
	struct test_daemon *d = *state;
	struct answer a;

	netns_run("ip link set lo up && ip addr add 10.99.0.1/32 dev lo");
	to_init(&qp);
	assert_int_equal(client_call(c.sock, ABI_MODIFY_QP, &m, sizeof(m), -1, &a), -EHOSTUNREACH);
	assert_non_null(strstr((char *)a.body, "not of port 1"));
	netns_run("ip route add unreachable 198.51.100.0/24");
	m = to_rtr(&qp, far4);
	client_call(c.sock, ABI_MODIFY_QP, &m, sizeof(m), -1, &a);
	assert_true(a.msg.status == -EHOSTUNREACH || a.msg.status == -ENETUNREACH);
	netns_run("ip route del unreachable 198.51.100.0/24; ip link set lo down");
	m = to_rtr(&qp, own4); /* our own needs no neighbour */
	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	assert_true(atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)])->path.local);
}

/* Live updates: a GID_CHANGE event, and the new address can be used. */
static void gid_change__is_an_event(void **state)
{
	struct pollfd pfd = {.fd = c.async, .events = POLLIN};
	struct abi_event ev;

	do { /* DAD of the link-local address may end just now and change the table too */
		assert_int_equal(read(c.async, &ev, poll(&pfd, 1, 3000) == 1 ? sizeof(ev) : 0),
			pfd.revents ? (int)sizeof(ev) : 0);
	} while (pfd.revents);
	netns_run("ip addr add 10.9.0.3/24 dev " NETNS_OURS);
	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
	assert_int_equal(read(c.async, &ev, sizeof(ev)), sizeof(ev));
	assert_int_equal(ev.type, ABI_EVENT_GID_CHANGE);
	assert_int_equal(ev.handle, 1);
	netns_run("ip addr del 10.9.0.3/24 dev " NETNS_OURS);
	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
}

/* Thousands that wait cost nothing until their time comes. */
static void neigh_poll__of_many(void **state)
{
	enum {
		MANY = 20000
	};
	static struct neigh_query q[MANY];
	struct neigh_queue nq;
	struct timespec begin, end;

	neigh_queue_init(&nq, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		q[i].next_ms = 1000;
		list_push(&nq.pending[NEIGH_PAUSES - 1], &q[i].node);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(neigh_poll(&nq, 100), 900);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	/* 10 us each: many times what it takes, and a fraction of a walk */
	assert_true(
		(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 < 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(modify_qp__kernel_finds_the_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__by_a_gateway, setup, teardown),
		cmocka_unit_test_setup_teardown(create_ah__at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__others_do_not_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__destroyed_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__session_ends_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__unreachable_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(gid_change__is_an_event, setup, teardown),
		cmocka_unit_test(neigh_poll__of_many),
	};

	return cmocka_run_group_tests_name(
		"neigh", tests, netns_daemon_setup, netns_daemon_teardown);
}
