/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups that the kernel joins on the netdev of a port. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <net/if.h>
#include "config/ctl_parts.h"
#include "fixture.h"
#include "net/rtnl.h"
#include "patience.h"
#include "session/account.h"
#include "verbs/objects.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/group.h"

static const uint8_t mgid4[16] = {[10] = 0xFF, [11] = 0xFF, 239, 1, 2, 3};
static const uint8_t mgid6[16] = {0xFF, 0x15, [15] = 0x42};

#define VLAN_NETDEV "rt5"
#define VLANS	    5

/* Kernels without VLAN netdevs are common in containers: any netdevs of these names are some. */
int __wrap_rtnl_vlans(struct rtnl *r, uint32_t parent, struct rtnl_vlan *list, unsigned max);

int __wrap_rtnl_vlans(struct rtnl *r, uint32_t parent, struct rtnl_vlan *list, unsigned max)
{
	int n = 0;

	for (uint16_t vid = 5; vid < 5 + VLANS; vid++) {
		char name[] = {'r', 't', (char)('0' + vid), '\0'};
		uint32_t ifindex = if_nametoindex(name);

		if (ifindex)
			list[n++] = (struct rtnl_vlan){.ifindex = ifindex, .vid = vid};
	}
	return n;
}

/* How often the owner of port 2 heard that the kernel refused to join. */
static atomic_uint unjoined;

static void take_news(void *arg, uint32_t port, unsigned what, const struct ctl_netdev *netdev)
{
	if (port == 1 && (what & CTL_NETDEV_UNJOINED))
		unjoined++;
}

static int setup(void **state)
{
	struct test_daemon *d = *state;

	config_veth_second(d);
	d->cfg.netdev_changed = take_news;
	unjoined = 0;
	daemon_run(d);
	return 0;
}

static uint32_t make_qp(struct client *c, uint32_t port)
{
	struct abi_create_qp in = client_qp_request(client_pd(c), client_cq(c, ABI_NO_HANDLE));
	struct abi_modify_qp init = {
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY,
		.attr = {.qp_state = ABI_QPS_INIT, .port = (uint8_t)port}};
	struct answer a;

	in.type = ABI_QPT_UD;
	assert_int_equal(client_call(c->sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), 0);
	init.handle = ((struct abi_create_qp_reply *)a.body)->handle;
	answer_close(&a);
	client_must(c->sock, ABI_MODIFY_QP, &init, sizeof(init), NULL, 0);
	return init.handle;
}

static void mcast(struct client *c, uint32_t type, uint32_t qp, const uint8_t mgid[16])
{
	struct abi_mcast in = {.qp = qp};

	memcpy(in.mgid, mgid, sizeof(in.mgid));
	client_must(c->sock, type, &in, sizeof(in), NULL, 0);
}

#define JOINED	   "ip maddr show dev " NETNS_OURS " | grep -q "
#define NOT_JOINED "! ip maddr show dev " NETNS_OURS " | grep -q "

/* proves MC-02, MC-03: the netdev has the group's MAC, and the kernel the membership of which IGMP
 * and MLD tell, while a QP is attached */
static void attach_mcast__joins_on_the_netdev(void **state)
{
	struct client c;
	uint32_t one, two;

	client_open(*state, &c);
	one = make_qp(&c, 2);
	two = make_qp(&c, 2);
	netns_run(NOT_JOINED "239.1.2.3");
	mcast(&c, ABI_ATTACH_MCAST, one, mgid4);
	mcast(&c, ABI_ATTACH_MCAST, two, mgid4);
	mcast(&c, ABI_ATTACH_MCAST, one, mgid6);
	netns_run(JOINED "239.1.2.3");
	netns_run(JOINED "01:00:5e:01:02:03");
	netns_run(JOINED "ff15::42");
	netns_run(JOINED "33:33:00:00:00:42");
	mcast(&c, ABI_DETACH_MCAST, one, mgid4);
	netns_run(JOINED "239.1.2.3");
	mcast(&c, ABI_DETACH_MCAST, two, mgid4);
	netns_run(NOT_JOINED "239.1.2.3");
	client_close(&c); /* still attached to the other */
	WAIT_UNTIL(!system(NOT_JOINED "ff15::42"));
	netns_run(NOT_JOINED "ff15::42");
}

static void wait_for(const char *command)
{
	WAIT_UNTIL(!system(command));
	netns_run(command);
}

#define JOINED_IN_VLAN "ip maddr show dev " VLAN_NETDEV " | grep -q "

/* proves MC-02, MC-03: a group is joined on the VLANs of the port, too, those that come later as
 * well. */
static void attach_mcast__joins_on_vlans(void **state)
{
	struct client c;
	uint32_t qp;

	client_open(*state, &c);
	qp = make_qp(&c, 2);
	mcast(&c, ABI_ATTACH_MCAST, qp, mgid4);
	mcast(&c, ABI_ATTACH_MCAST, qp, mgid6);
	netns_run("ip link add " VLAN_NETDEV " type veth peer name pt5");
	netns_run("ip link set " VLAN_NETDEV " up");
	netns_run("ip addr add 10.9.5.1/24 dev " VLAN_NETDEV);
	wait_for(JOINED_IN_VLAN "239.1.2.3");
	wait_for(JOINED_IN_VLAN "ff15::42");
	netns_run(JOINED_IN_VLAN "01:00:5e:01:02:03");
	netns_run(JOINED "239.1.2.3");
	mcast(&c, ABI_DETACH_MCAST, qp, mgid4);
	netns_run("! " JOINED_IN_VLAN "239.1.2.3");
	mcast(&c, ABI_ATTACH_MCAST, qp, mgid4);
	netns_run(JOINED_IN_VLAN "239.1.2.3");
	netns_run("ip link del " VLAN_NETDEV);
	mcast(&c, ABI_DETACH_MCAST, qp, mgid4);
	mcast(&c, ABI_DETACH_MCAST, qp, mgid6);
	netns_run(NOT_JOINED "239.1.2.3");
	client_close(&c);
}

#define MEMBERSHIPS "/proc/sys/net/ipv4/igmp_max_memberships" /* of our namespace */

static void add_vlan(unsigned vid)
{
	char line[128];

	snprintf(line, sizeof(line),
		"ip link add rt%u type veth peer name pt%u && ip link set rt%u up", vid, vid, vid);
	netns_run(line);
}

static void wait_in_vlan(unsigned vid)
{
	char line[64];

	snprintf(line, sizeof(line), "ip maddr show dev rt%u | grep -q 239.1.2.3", vid);
	wait_for(line);
}

/* proves MC-03: with more VLANs than the kernel lets a socket be in a group on. Those that it
 * refuses are reported, once. */
static void attach_mcast__on_more_vlans_than_a_socket_takes(void **state)
{
	static const uint8_t other[16] = {[10] = 0xFF, [11] = 0xFF, 239, 1, 2, 4};
	struct test_daemon *d = *state;
	unsigned vid = 5;
	struct client c;
	uint32_t qp;

	netns_run("echo 1 >" MEMBERSHIPS);
	client_open(d, &c);
	qp = make_qp(&c, 2);
	mcast(&c, ABI_ATTACH_MCAST, qp, mgid4);
	for (; vid < 5 + GROUP_SOCKETS - 1; vid++) {
		add_vlan(vid);
		wait_in_vlan(vid);
	}
	assert_int_equal(unjoined, 0);
	add_vlan(vid);
	WAIT_UNTIL(unjoined);
	assert_int_not_equal(unjoined, 0);
	netns_run(JOINED "239.1.2.3");
	wait_in_vlan(vid - 1);
	mcast(&c, ABI_ATTACH_MCAST, qp, other);
	daemon_pause(d);
	unjoined = 0;
	groups_join_again(d->ctl, 1);
	while (groups_poll(d->ctl))
		;
	assert_int_equal(unjoined, 1);
	daemon_resume(d);
	for (; vid >= 5; vid--) {
		char line[32];

		snprintf(line, sizeof(line), "ip link del rt%u", vid);
		netns_run(line);
	}
	netns_run("echo 20 >" MEMBERSHIPS);
	client_close(&c);
}

/* proves MC-03: a VLAN that was deleted is not counted for ever. */
static void attach_mcast__joins_on_vlans_that_come_and_go(void **state)
{
	struct client c;

	netns_run("echo 1 >" MEMBERSHIPS);
	client_open(*state, &c);
	mcast(&c, ABI_ATTACH_MCAST, make_qp(&c, 2), mgid4);
	for (unsigned i = 0; i < 2 * GROUP_SOCKETS; i++) {
		add_vlan(5);
		wait_in_vlan(5);
		netns_run("ip link del rt5");
	}
	assert_int_equal(unjoined, 0);
	netns_run("echo 20 >" MEMBERSHIPS);
	client_close(&c);
}

static unsigned to_join(const struct ctl *ctl)
{
	unsigned n = 0;

	for (const struct list *l = ctl->objects->groups->again.next;
		l != &ctl->objects->groups->again; l = l->next)
		n++;
	return n;
}

/* Hundreds of groups are joined anew in steps, between which others are served. One that goes
 * meanwhile is not joined. */
static void groups_join_again__in_steps(void **state)
{
	enum {
		GROUPS = 200
	};
	uint8_t mgid[16] = {[10] = 0xFF, [11] = 0xFF, 239, 7};
	struct test_daemon *d = *state;
	unsigned before, steps = 1;
	struct client c;
	uint32_t qp;

	netns_run("echo 1000 >" MEMBERSHIPS);
	client_open(d, &c);
	qp = make_qp(&c, 2);
	for (unsigned i = 0; i < GROUPS; i++) {
		mgid[15] = (uint8_t)i;
		mcast(&c, ABI_ATTACH_MCAST, qp, mgid);
	}
	daemon_pause(d);
	groups_join_again(d->ctl, 1);
	groups_join_again(d->ctl, 1); /* more news */
	assert_int_equal(to_join(d->ctl), GROUPS);
	for (before = GROUPS; groups_poll(d->ctl); steps++) {
		assert_in_range(before - to_join(d->ctl), 1, 64);
		before = to_join(d->ctl);
	}
	assert_true(steps >= GROUPS / 64);
	groups_join_again(d->ctl, 1);
	daemon_resume(d);
	mcast(&c, ABI_DETACH_MCAST, qp, mgid);
	netns_run(NOT_JOINED "239.7.0.199");
	netns_run(JOINED "239.7.0.198");
	client_close(&c);
	netns_run("echo 20 >" MEMBERSHIPS);
}

/* A user has half of the places in a group, in whatever sessions; another one finds some. */
static void group_attach__half_of_the_places_for_a_user(void **state)
{
	enum {
		HALF = MCAST_MEMBERS_MAX / 2
	};
	struct test_daemon *d = *state;
	char why[ABI_SENTENCE_MAX];
	struct account another;
	struct session *s[2];
	struct qp_obj *o[2][HALF + 1];
	struct client c[2];

	for (unsigned i = 0; i < 2; i++) {
		client_open(d, &c[i]);
		s[i] = d->ctl->sessions->session[c[i].hello.session % SESSION_MAX];
		for (unsigned k = 0; k <= HALF; k++)
			o[i][k] = handle_get(&s[i]->qps, make_qp(&c[i], 1));
	}
	daemon_pause(d);
	s[0]->peer.uid = s[1]->peer.uid = 7;
	for (unsigned k = 0; k < HALF; k++)
		assert_int_equal(group_attach(d->ctl, o[k % 2][k], 0, mgid4, why), 0);
	assert_int_equal(group_attach(d->ctl, o[0][HALF], 0, mgid4, why), -EDQUOT);
	assert_non_null(strstr(why, "128 QPs of user 7"));
	another = *s[1]->account;
	s[1]->account = &another; /* those in it are its own now */
	assert_int_equal(group_attach(d->ctl, o[1][HALF], 0, mgid4, why), 0);
	group_detach(d->ctl, o[1][HALF], mgid4);
	s[1]->account = s[0]->account;
	s[0]->peer.uid = s[1]->peer.uid = 0;
	daemon_resume(d);
	client_close(&c[0]);
	client_close(&c[1]);
}

/* A port without a netdev has nothing to join on. */
static void attach_mcast__without_a_netdev(void **state)
{
	struct client c;
	uint32_t qp;

	client_open(*state, &c);
	qp = make_qp(&c, 1);
	mcast(&c, ABI_ATTACH_MCAST, qp, mgid4);
	netns_run(NOT_JOINED "239.1.2.3");
	mcast(&c, ABI_DETACH_MCAST, qp, mgid4);
	client_close(&c);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, daemon_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(attach_mcast__joins_on_the_netdev),
		T(attach_mcast__joins_on_vlans),
		T(attach_mcast__on_more_vlans_than_a_socket_takes),
		T(attach_mcast__joins_on_vlans_that_come_and_go),
		T(groups_join_again__in_steps),
		T(group_attach__half_of_the_places_for_a_user),
		T(attach_mcast__without_a_netdev),
	};

	return cmocka_run_group_tests(tests, netns_daemon_setup, netns_daemon_teardown);
}
