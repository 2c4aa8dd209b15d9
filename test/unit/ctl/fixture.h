/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fixture.h
 * What tests of a daemon beside the kernel's network begin with: namespaces (netns.h) and a daemon
 * (daemon.h) in one.
 */
#ifndef CTL_FIXTURE_H
#define CTL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "daemon.h"
#include "netns.h"

static inline int netns_daemon_setup(void **state)
{
	netns_setup(state);
	return daemon_group_setup(state);
}

static inline int netns_daemon_teardown(void **state)
{
	daemon_group_teardown(state);
	return netns_teardown(state);
}

/* Its only port is the veth. */
static inline void config_veth_alone(struct test_daemon *d)
{
	daemon_config(d);
	memset(d->cfg.port, 0, sizeof(d->cfg.port));
	strcpy(d->cfg.port[0].netdev, NETNS_OURS);
	d->cfg.nports = 1;
}

/* Port 1 has no netdev, port 2 is the veth. */
static inline void config_veth_second(struct test_daemon *d)
{
	daemon_config(d);
	memset(&d->cfg.port[1], 0, sizeof(d->cfg.port[1]));
	strcpy(d->cfg.port[1].netdev, NETNS_OURS);
}

#endif
