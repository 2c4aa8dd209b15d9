/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon.h"
#include "net/gids.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ctl_stop__from_a_signal_handler),
		cmocka_unit_test(ctl_stop__before_run),
		cmocka_unit_test(ctl_start__ports),
		cmocka_unit_test(ctl_start__bad_ports),
	};

	return cmocka_run_group_tests_name("ctl", tests, daemon_group_setup, daemon_group_teardown);
}
