/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory that faults under rocid: its owner pays, nobody else. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon.h"
#include "mr.h"
#include "patience.h"
#include "sigbus.h"

#define PAGE 4096u

/* Has every access to this process's mappings of memfd @p name fault, as without memory for their
 * pages: maps a file without bytes over them.  @return how many there were. */
static unsigned spoil(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int empty = memfd_create("empty", MFD_CLOEXEC);
	unsigned long first, end;
	struct {
		unsigned long first, end;
	} found[8];
	char line[512];
	unsigned n = 0;

	assert_non_null(maps);
	assert_true(empty >= 0);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, name) && sscanf(line, "%lx-%lx", &first, &end) == 2) {
			assert_true(n < 8);
			found[n].first = first;
			found[n++].end = end;
		}
	fclose(maps);
	for (unsigned i = 0; i < n; i++)
		assert_true(mmap((void *)found[i].first, found[i].end - found[i].first,
				    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty,
				    0) != MAP_FAILED);
	close(empty);
	return n;
}

/* Sends a command that has the ring looked at, and waits for the end of the connection. */
static void touch_ring(int sock, uint32_t handle)
{
	struct abi_modify_qp m = {.handle = handle, .mask = ABI_QP_STATE};
	struct abi_msg msg = {.type = ABI_MODIFY_QP};
	uint8_t buf[sizeof(msg) + sizeof(m)];
	struct answer a;

	m.attr.qp_state = ABI_QPS_RESET; /* takes what is in the ring: touches it */
	memcpy(buf, &msg, sizeof(msg));
	memcpy(buf + sizeof(msg), &m, sizeof(m));
	client_send(sock, buf, sizeof(buf), NULL, 0);
	while (client_receive(sock, &a))
		;
}

static void session_faults__ring_ends_its_session(void **state)
{
	struct test_daemon *d = *state;
	struct client c, other;
	struct answer a;
	uint32_t pd, cq;

	assert_int_equal(sigbus_install(), 0);
	client_open(d, &other);
	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	struct abi_create_qp_reply qp = client_qp(&c, pd, cq);

	assert_int_equal(spoil("memfd:roci-qp"), 1);
	touch_ring(c.sock, qp.handle);
	assert_int_equal(client_call(other.sock, ABI_QUERY_DEVICE, NULL, 0, -1, &a), 0);
	client_close(&c);
	client_close(&other);
}

/* The region's zeroes must not be taken for data; other regions stay. */
static void session_faults__region_is_withdrawn(void **state)
{
	struct test_daemon *d = *state;
	int fd = client_memfd(PAGE), good = client_memfd(PAGE);
	struct abi_reg_mr_reply mr[2];
	struct abi_handle h;
	struct client c;
	struct answer a;
	uint32_t pd;
	struct mr *bad;

	assert_int_equal(sigbus_install(), 0);
	client_open(d, &c);
	pd = client_pd(&c);
	mr[0] = client_mr(&c, pd, fd, PAGE);
	bad = atomic_load(&d->dp->mrs->slot[mr[0].lkey >> 8]);
	assert_non_null(bad);
	volatile uint8_t *p = bad->base;

	close(fd);
	spoil("memfd:test");
	mr[1] = client_mr(&c, pd, good, PAGE);
	assert_int_equal(*p, 0); /* faults */
	WAIT_UNTIL(!atomic_load(&d->dp->mrs->slot[mr[0].lkey >> 8]));
	assert_null(atomic_load(&d->dp->mrs->slot[mr[0].lkey >> 8]));
	assert_non_null(atomic_load(&d->dp->mrs->slot[mr[1].lkey >> 8]));
	/* The slot may be another's when the region is deregistered at last. */
	atomic_store(&d->dp->mrs->slot[mr[0].lkey >> 8], (struct mr *)p);
	h.handle = mr[0].handle;
	assert_int_equal(client_call(c.sock, ABI_DEREG_MR, &h, sizeof(h), -1, &a), 0);
	assert_non_null(atomic_load(&d->dp->mrs->slot[mr[0].lkey >> 8]));
	atomic_store(&d->dp->mrs->slot[mr[0].lkey >> 8], NULL);
	close(good);
	client_close(&c);
}

/* Regions that fault keep mappings: a session has few of them, less those that it gave back. */
static void session_faults__too_many_regions_end_the_session(void **state)
{
	struct test_daemon *d = *state;
	struct client c, other;
	struct answer a;
	uint32_t pd;

	assert_int_equal(sigbus_install(), 0);
	client_open(d, &other);
	client_open(d, &c);
	pd = client_pd(&c);
	for (unsigned i = 0; i <= 2 * SESSION_FAULTED_MAX; i++) {
		int fd = client_memfd(PAGE);
		struct abi_reg_mr_reply mr = client_mr(&c, pd, fd, PAGE);
		struct abi_handle h = {.handle = mr.handle};
		struct mr *bad = atomic_load(&d->dp->mrs->slot[mr.lkey >> 8]);
		volatile uint8_t *p = bad->base;

		close(fd);
		spoil("memfd:test");
		daemon_pause(d); /* a worker would have a grace period */
		assert_int_equal(*p, 0);
		daemon_resume(d);
		if (i < SESSION_FAULTED_MAX)
			assert_int_equal(client_call(c.sock, ABI_DEREG_MR, &h, 4, -1, &a), 0);
		else if (i < 2 * SESSION_FAULTED_MAX)
			assert_int_equal(client_call(c.sock, ABI_QUERY_DEVICE, NULL, 0, -1, &a), 0);
	}
	while (client_receive(c.sock, &a)) /* until its end */
		answer_close(&a);
	assert_int_equal(client_call(other.sock, ABI_QUERY_DEVICE, NULL, 0, -1, &a), 0);
	client_close(&c);
	client_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			session_faults__ring_ends_its_session, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_faults__region_is_withdrawn, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(session_faults__too_many_regions_end_the_session,
			daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
