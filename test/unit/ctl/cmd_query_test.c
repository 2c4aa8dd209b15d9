/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include "config/ctl_parts.h"
#include "core_counters.h"
#include "daemon.h"
#include "net/net.h"
#include "session/bells.h"
#include "session/session.h"
#include "session/sessions.h"
#include "worker_impl.h"

static void get_wake__an_eventfd_for_each_worker(void **state)
{
	struct test_daemon *d = *state;
	struct abi_get_wake in = {.worker = 1};
	struct answer a, again;
	const uint64_t one = 1;
	struct client c;
	uint64_t count;

	client_open(d, &c);
	assert_int_equal(c.hello.sleeps, 0);
	client_close(&c);
	d->dp->idle = IDLE_ADAPTIVE;
	client_open(d, &c);
	d->dp->idle = IDLE_POLL;
	assert_int_equal(c.hello.sleeps, 1);
	assert_false(atomic_load(&d->ctl->sessions->session[0]->bells->w[1].wakes));
	assert_int_equal(client_call(c.sock, ABI_GET_WAKE, &in, sizeof(in), -1, &a), 0);
	assert_int_equal(a.nfds, 1);
	assert_true(atomic_load(&d->ctl->sessions->session[0]->bells->w[1].wakes));
	assert_false(atomic_load(&d->ctl->sessions->session[0]->bells->w[0].wakes));
	assert_int_equal(client_call(c.sock, ABI_GET_WAKE, &in, sizeof(in), -1, &again), 0);
	assert_int_equal(write(a.fd[0], &one, sizeof(one)), sizeof(one));
	assert_int_equal(read(again.fd[0], &count, sizeof(count)), sizeof(count)); /* the same */
	answer_close(&a);
	answer_close(&again);
	in.worker = d->dp->nworkers;
	assert_int_equal(client_call(c.sock, ABI_GET_WAKE, &in, sizeof(in), -1, &a), -EINVAL);
	client_close(&c);
}

static void query_device__limits(void **state)
{
	static const uint8_t guid[8] = {0, 0, 0, 0xFF, 0xFE, 0, 0, 1};
	struct abi_device_attr dev;
	struct client c;

	client_open(*state, &c);
	client_must(c.sock, ABI_QUERY_DEVICE, NULL, 0, &dev, sizeof(dev));
	assert_int_equal(dev.ports, 2);
	assert_int_equal(dev.max_sge, SGE_MAX);
	assert_int_equal(dev.max_qp_wr, WR_MAX);
	assert_true(dev.max_qp >= 10000);
	assert_memory_equal(&dev.node_guid, guid, 8);
	assert_true(strlen(dev.version) > 0);
	client_close(&c);
}

/* proves GID-08 */
static void query_port__state_of_the_link(void **state)
{
	struct test_daemon *d = *state;
	struct abi_query_port in = {.port = 1};
	struct abi_port_attr p;
	struct client c;

	client_open(d, &c);
	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.state, 4);
	daemon_pause(d);
	d->ctl->net->port[0].up = false;
	daemon_resume(d);
	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.state, 1);
	client_close(&c);
}

/* proves GID-10 */
static void hello__versions_of_roce(void **state)
{
	struct test_daemon *d = *state;
	struct client c;

	client_open(d, &c);
	assert_int_equal(c.hello.rocev1, 0);
	client_close(&c);
	daemon_stop(d);
	daemon_config(d);
	d->cfg.rocev1 = true;
	daemon_run(d);
	client_open(d, &c);
	assert_int_equal(c.hello.rocev1, 1);
	client_close(&c);
}

/* proves GID-09 */
static void query_port__active_mtu(void **state)
{
	struct abi_query_port in = {.port = 1};
	struct abi_port_attr p;
	struct answer a;
	struct client c;

	client_open(*state, &c);
	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.state, 4);
	assert_int_equal(p.active_mtu, 1024); /* of 1500: GID-09 */
	assert_int_equal(p.pkeys, PKEY_MAX);
	assert_memory_equal(p.mac, mac_own, 6);
	in.port = 2;
	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.active_mtu, 4096); /* of 9000 */
	for (in.port = 0; in.port < 9; in.port += 3)
		assert_int_equal(
			client_call(c.sock, ABI_QUERY_PORT, &in, sizeof(in), -1, &a), -EINVAL);
	client_close(&c);
}

/* proves VAL-10: all workers' violations on this port, no more than 16 bits hold. */
static void query_port__bad_pkey_counter(void **state)
{
	struct test_daemon *d = *state;
	struct abi_query_port in = {.port = 2};
	struct abi_port_attr p;
	struct client c;

	client_open(d, &c);
	for (uint32_t i = 0; i < d->dp->nworkers; i++)
		d->dp->worker[i]->core.count.bad_pkey[1] = 3;
	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.bad_pkey_cntr, 3 * d->dp->nworkers);
	for (uint32_t i = 0; i < d->dp->nworkers; i++)
		d->dp->worker[i]->core.count.bad_pkey[1] = BAD_PKEY_MAX;
	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.bad_pkey_cntr, 0xFFFF);
	in.port = 1;
	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.bad_pkey_cntr, 0);
	client_close(&c);
}

/* proves GID-01 */
static void query_gid__entries(void **state)
{
	struct abi_query_gid in = {.port = 1};
	struct abi_gid g;
	struct answer a;
	struct client c;

	client_open(*state, &c);
	client_must(c.sock, ABI_QUERY_GID, &in, sizeof(in), &g, sizeof(g));
	assert_memory_equal(g.gid, gid_own4, 16);
	assert_int_equal(g.type, ABI_GID_ROCEV2_IPV4);
	in.index = 1;
	client_must(c.sock, ABI_QUERY_GID, &in, sizeof(in), &g, sizeof(g));
	assert_memory_equal(g.gid, gid_own6, 16);
	assert_int_equal(g.type, ABI_GID_ROCEV2_IPV6);
	assert_memory_equal(g.mac, mac_own, 6);
	in.index = GID_MAX - 1; /* empty */
	client_must(c.sock, ABI_QUERY_GID, &in, sizeof(in), &g, sizeof(g));
	for (int i = 0; i < 16; i++)
		assert_int_equal(g.gid[i], 0);
	in.index = GID_MAX;
	assert_int_equal(client_call(c.sock, ABI_QUERY_GID, &in, sizeof(in), -1, &a), -EINVAL);
	client_close(&c);
}

/* proves GID-07, VRB-07 */
static void query_pkey__table(void **state)
{
	struct abi_query_pkey in = {.port = 1};
	struct abi_pkey p;
	struct answer a;
	struct client c;

	client_open(*state, &c);
	client_must(c.sock, ABI_QUERY_PKEY, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.pkey, 0xFFFF); /* GID-07 */
	in.index = 1;
	client_must(c.sock, ABI_QUERY_PKEY, &in, sizeof(in), &p, sizeof(p));
	assert_int_equal(p.pkey, 0);
	in.index = PKEY_MAX;
	assert_int_equal(client_call(c.sock, ABI_QUERY_PKEY, &in, sizeof(in), -1, &a), -EINVAL);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			get_wake__an_eventfd_for_each_worker, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			query_device__limits, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			query_port__state_of_the_link, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			hello__versions_of_roce, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			query_port__active_mtu, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			query_port__bad_pkey_counter, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(query_gid__entries, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(query_pkey__table, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_query", tests, daemon_group_setup, daemon_group_teardown);
}
