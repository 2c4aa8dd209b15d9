/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "daemon.h"
#include "headers.h"
#include "net/gids.h"
#include "session/sessions.h"

static struct ctl *to_stop;

static void on_signal(int sig)
{
	ctl_stop(to_stop);
}

static void ctl_stop__from_a_signal_handler(void **state)
{
	struct test_daemon *d = *state;

	daemon_config(d);
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), 0);
	to_stop = d->ctl;
	signal(SIGALRM, on_signal);
	alarm(1);
	assert_int_equal(ctl_run(d->ctl), 0);
	ctl_destroy(d->ctl);
	ctl_destroy(NULL);
	rmdir(d->dir);
}

static void ctl_stop__before_run(void **state)
{
	struct test_daemon *d = *state;

	daemon_config(d);
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), 0);
	ctl_stop(d->ctl);
	assert_int_equal(ctl_run(d->ctl), 0);
	ctl_destroy(d->ctl);
	rmdir(d->dir);
}

static void ctl_start__ports(void **state)
{
	struct test_daemon *d = *state;
	struct port *port = d->dp->ports->port;

	daemon_config(d);
	d->cfg.rocev1 = true;
	daemon_run(d);
	assert_int_equal(d->dp->ports->count, 2);
	assert_int_equal(atomic_load(&port[0].mac), mac_word(mac_own));
	assert_int_equal(port[0].active_mtu, 1024);
	assert_int_equal(port[1].active_mtu, 4096);
	assert_int_equal(port[0].pkey[0], 0xFFFF);
	assert_int_equal(gid_find(atomic_load(&port[0].gids), gid_own4, NET_IPV4, 0), 0);
	assert_int_equal(
		gid_find(atomic_load(&port[0].gids), gid_own4, NET_ROCEV1, 0), GID_ROCEV1_FIRST);
	daemon_stop(d);
	assert_int_equal(atomic_load(&port[0].gids)->count, 0); /* still there for workers */
}

static void ctl_start__bad_ports(void **state)
{
	struct test_daemon *d = *state;

	daemon_config(d);
	strcpy(d->cfg.port[1].netdev, "nonesuch0");
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), -ENODEV);
	assert_non_null(strstr(d->why, "nonesuch0"));
	d->cfg.port[1].netdev[0] = '\0';
	d->cfg.port[1].eth_mtu = 300;
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), -EINVAL);
	assert_non_null(strstr(d->why, "300"));
	d->cfg.nports = 0;
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), -EINVAL);
	d->cfg.nports = PORT_MAX + 1;
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), -EINVAL);
	rmdir(d->dir);
}

/* @return places in the table of descriptors of this process. */
static unsigned long descriptor_table(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long size = 0;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "FDSize: %lu", &size);
	fclose(f);
	return size;
}

/* The kernel has whoever opens a descriptor wait for an RCU grace period when the table grows. */
static void ctl_start__table_of_descriptors(void **state)
{
	struct test_daemon *d = *state;
	struct rlimit rl;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	daemon_config(d);
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), 0);
	if (rl.rlim_max > DESCRIPTOR_TABLE)
		rl.rlim_max = DESCRIPTOR_TABLE;
	assert_true(descriptor_table() >= rl.rlim_max);
	ctl_destroy(d->ctl);
	rmdir(d->dir);
}

/* --- the loop: events without end, and background work that takes a millisecond each time ---- */

#define EVENTS	      1000u
#define BACKGROUND_NS 1000000u

static struct ctl *looping; /* NULL: not now */
static unsigned events, backgrounds;

int __real_epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout);
int __wrap_epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout);
bool __real_sessions_close_some(struct ctl *ctl);
bool __wrap_sessions_close_some(struct ctl *ctl);

static void event_ready(struct watch *w)
{
	if (++events == EVENTS)
		ctl_stop(looping);
}

static struct watch endless = {.fd = -1, .ready = event_ready};

int __wrap_epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout)
{
	if (!looping || events >= EVENTS)
		return __real_epoll_wait(epfd, ev, max, timeout);
	ev->data.ptr = &endless;
	return 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool __wrap_sessions_close_some(struct ctl *ctl)
{
	uint64_t until = now_ns() + BACKGROUND_NS;

	if (!looping)
		return __real_sessions_close_some(ctl);
	backgrounds++;
	while (now_ns() < until)
		;
	return true;
}

static void run_loop(struct ctl *ctl, uint32_t nclosing)
{
	ctl->sessions->nclosing = nclosing;
	looping = ctl;
	events = backgrounds = 0;
	assert_int_equal(ctl_run(ctl), 0);
	looping = NULL;
	ctl->sessions->nclosing = 0;
}

/* Work in the background has half of the time, not a turn before each event; unless sessions end
 * more slowly than they come. */
static void ctl_run__work_in_the_background(void **state)
{
	struct test_daemon *d = *state;

	daemon_config(d);
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), 0);
	run_loop(d->ctl, 1);
	assert_in_range(backgrounds, 1, EVENTS / 2);
	run_loop(d->ctl, SESSION_MAX / 4);
	assert_int_equal(backgrounds, EVENTS + 1); /* the last event ends the loop */
	ctl_destroy(d->ctl);
	rmdir(d->dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ctl_stop__from_a_signal_handler),
		cmocka_unit_test(ctl_stop__before_run),
		cmocka_unit_test(ctl_start__ports),
		cmocka_unit_test(ctl_start__bad_ports),
		cmocka_unit_test(ctl_start__table_of_descriptors),
		cmocka_unit_test(ctl_run__work_in_the_background),
	};

	return cmocka_run_group_tests_name("ctl", tests, daemon_group_setup, daemon_group_teardown);
}
