/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles, multicast groups and QP1 as the control thread makes them: UD-15, UD-16, MC-01,
 * MC-05, MC-06, ETH-06, ETH-12, VRB-01, VRB-05. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "ah.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "daemon.h"
#include "headers.h"
#include "mcast.h"
#include "net/net.h"
#include "qp_table.h"
#include "verbs/dest.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

static const uint8_t mgid4[16] = {[10] = 0xFF, [11] = 0xFF, 239, 1, 2, 3};
static const uint8_t mgid6[16] = {0xFF, 0x15, [15] = 9};

static struct abi_create_ah request(uint32_t pd)
{
	struct abi_create_ah in = {.pd = pd,
		.attr = {.port = 1, .is_global = 1, .traffic_class = 0xFF, .hop_limit = 9}};

	memcpy(in.attr.dgid, gid_peer4, 16);
	memset(in.attr.dmac, 0xFF, 6);
	return in;
}

static int create(struct client *c, const struct abi_create_ah *in, uint32_t *handle)
{
	struct answer a;
	int err = client_call(c->sock, ABI_CREATE_AH, in, sizeof(*in), -1, &a);

	*handle = err ? 0 : ((struct abi_handle_reply *)a.body)->handle;
	return err;
}

static int destroy(struct client *c, uint32_t handle)
{
	struct abi_handle h = {handle};
	struct answer a;

	return client_call(c->sock, ABI_DESTROY_AH, &h, sizeof(h), -1, &a);
}

static uint32_t number_of_pd(const struct test_daemon *d, uint32_t id)
{
	const struct ah *ah = atomic_load(&d->dp->ahs->slot[AH_SLOT(id)]);

	return ah ? ah->pd : UINT32_MAX;
}

/* A17.4.2, GID-05: the path is there for workers, of the PD alone. */
static void create_ah__workers_see_the_path(void **state)
{
	struct test_daemon *d = *state;
	const struct ah *ah;
	struct client c;
	uint32_t pd, id;

	client_open(d, &c);
	pd = client_pd(&c);
	{
		struct abi_create_ah in = request(pd);

		assert_int_equal(create(&c, &in, &id), 0);
	}
	ah = ah_find(d->dp->ahs, id, number_of_pd(d, id));
	assert_non_null(ah);
	assert_null(ah_find(d->dp->ahs, id, number_of_pd(d, id) + 1));
	assert_null(ah_find(d->dp->ahs, id ^ 0x10000, number_of_pd(d, id)));
	assert_memory_equal(ah->path.hdr, mac_peer, 6);
	assert_int_equal(ah->path.net, NET_IPV4);
	assert_int_equal(ah->path.hdr[ah->path.l3_off + 1], 0xFC); /* CA17-5 */
	assert_int_equal(ah->path.hdr[ah->path.l3_off + 8], 9);
	assert_int_equal(destroy(&c, id), 0);
	assert_int_equal(number_of_pd(d, id), UINT32_MAX);
	assert_int_equal(destroy(&c, id), -EINVAL);
	client_close(&c);
}

/* proves UD-15 */
static void create_ah__refusals(void **state)
{
	struct abi_create_ah good, bad;
	struct client c;
	uint32_t id;

	client_open(*state, &c);
	good = bad = request(client_pd(&c));
	bad.pd ^= 0x10000;
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	bad = good;
	bad.attr.is_global = 0; /* VRB-05 */
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	bad = good;
	bad.attr.sl = 8; /* ETH-06 */
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	bad = good;
	bad.attr.port = 3;
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	bad = good;
	bad.attr.sgid_index = 77; /* GID-06 */
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	bad = good;
	memcpy(bad.attr.dgid, gid_peer6, 16); /* families differ */
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	bad = good;
	memset(bad.attr.dgid, 0, 16);
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	memset(bad.attr.dmac, 2, 6); /* VAL-15: no frame goes to a loopback address */
	memcpy(bad.attr.dgid + 10, "\xFF\xFF\x7F\0\0\1", 6);
	assert_int_equal(create(&c, &bad, &id), -EINVAL);
	bad = good;
	memcpy(bad.attr.dgid, gid_unknown4, 16); /* ETH-12 */
	assert_int_equal(create(&c, &bad, &id), -EHOSTUNREACH);
	bad = good;
	memcpy(bad.attr.dmac, mac_peer, 6); /* ETH-11: the host's tables find it */
	assert_int_equal(create(&c, &bad, &id), -EPERM);
	assert_int_equal(create(&c, &good, &id), 0);
	client_close(&c);
}

/* proves IP4-18: 0 stays 0 where it is the scope of a group (doc/decisions/0020-hop-limit.md). */
static void create_ah__hop_limit_of_a_group(void **state)
{
	static const struct {
		const uint8_t *dgid;
		uint8_t sgid, hops, want;
	} row[] = {{mgid4, 0, 0, 0}, {mgid4, 0, 1, 1}, {mgid6, 1, 0, 0}, {mgid6, 1, 255, 255},
		{gid_peer4, 0, 0, 64}, {gid_peer6, 1, 0, 64}, {gid_peer6, 1, 1, 1}};
	struct test_daemon *d = *state;
	struct abi_create_ah in;
	const struct path *p;
	struct client c;
	uint32_t id;

	client_open(d, &c);
	in = request(client_pd(&c));
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		memcpy(in.attr.dgid, row[i].dgid, 16);
		in.attr.sgid_index = row[i].sgid;
		in.attr.hop_limit = row[i].hops;
		assert_int_equal(create(&c, &in, &id), 0);
		p = &atomic_load(&d->dp->ahs->slot[AH_SLOT(id)])->path;
		assert_int_equal(
			p->hdr[p->l3_off + (row[i].sgid ? IP6_HLIM : IP4_TTL)], row[i].want);
	}
	client_close(&c);
}

/* proves MC-07: a group's MAC is made of its GID, whatever the program says */
static void create_ah__of_a_group(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_ah in;
	struct client c;
	uint32_t id;

	client_open(d, &c);
	in = request(client_pd(&c));
	memcpy(in.attr.dgid, mgid4, 16);
	memcpy(in.attr.dmac, mac_peer, 6);
	assert_int_equal(create(&c, &in, &id), 0);
	assert_memory_equal(atomic_load(&d->dp->ahs->slot[AH_SLOT(id)])->path.hdr,
		"\x01\x00\x5e\x01\x02\x03", 6);
	memcpy(in.attr.dgid, mgid6, 16);
	in.attr.sgid_index = 1;
	assert_int_equal(create(&c, &in, &id), 0);
	assert_memory_equal(atomic_load(&d->dp->ahs->slot[AH_SLOT(id)])->path.hdr,
		"\x33\x33\x00\x00\x00\x09", 6);
	client_close(&c);
}

/* A handle is its session's: others neither destroy it nor keep it. */
static void create_ah__of_one_session(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_ah in;
	struct client one, two;
	struct abi_handle pd;
	struct answer a;
	uint32_t id;

	client_open(d, &one);
	client_open(d, &two);
	pd.handle = client_pd(&one);
	in = request(pd.handle);
	assert_int_equal(create(&one, &in, &id), 0);
	assert_int_equal(destroy(&two, id), -EINVAL);
	assert_int_equal(client_call(one.sock, ABI_DEALLOC_PD, &pd, sizeof(pd), -1, &a), -EBUSY);
	client_close(&one);
	while (atomic_load(&d->dp->ahs->slot[AH_SLOT(id)]))
		usleep(1000);
	client_close(&two);
}

/* The neighbour's MAC changes: the handle follows, under the same number. */
static void create_ah__follows_its_destination(void **state)
{
	static const uint8_t moved[6] = {2, 0, 0, 0, 0, 0x77};
	struct test_daemon *d = *state;
	struct abi_create_ah in;
	struct ah *before;
	struct client c;
	uint32_t id[100];

	client_open(d, &c);
	in = request(client_pd(&c));
	for (unsigned i = 0; i < ARRAY_SIZE(id); i++)
		assert_int_equal(create(&c, &in, &id[i]), 0);
	daemon_pause(d);
	before = atomic_load(&d->dp->ahs->slot[AH_SLOT(id[0])]);
	for (uint32_t i = 0; i < d->ctl->net->port[0].nneighs; i++)
		if (!memcmp(d->ctl->net->port[0].neighs[i].gid, gid_peer4, 16))
			memcpy(d->ctl->net->port[0].neighs[i].mac, moved, 6);
	dests_touch_port(d->ctl, 0);
	for (unsigned i = 0; i < 10; i++)
		dests_poll(d->ctl, UINT64_MAX / 2);
	assert_ptr_not_equal(before, atomic_load(&d->dp->ahs->slot[AH_SLOT(id[0])]));
	for (unsigned i = 0; i < ARRAY_SIZE(id); i++) {
		const struct ah *ah = atomic_load(&d->dp->ahs->slot[AH_SLOT(id[i])]);

		assert_int_equal(ah->id, id[i]);
		assert_memory_equal(ah->path.hdr, moved, 6);
	}
	daemon_resume(d);
	for (unsigned i = 0; i < ARRAY_SIZE(id); i++)
		assert_int_equal(destroy(&c, id[i]), 0);
	client_close(&c);
}

/* --- groups ------------------------------------------------------------------------------- */

static struct abi_create_qp_reply make_qp(struct client *c, uint32_t pd, uint32_t cq, uint32_t type)
{
	struct abi_create_qp in = client_qp_request(pd, cq);
	struct abi_create_qp_reply out;
	struct answer a;

	in.type = type;
	in.port = 1;
	assert_int_equal(client_call(c->sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), 0);
	out = *(struct abi_create_qp_reply *)a.body;
	answer_close(&a);
	return out;
}

static int to_init_at(struct client *c, uint32_t qp, uint8_t port, uint32_t qkey)
{
	struct abi_modify_qp in = {.handle = qp,
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY,
		.attr = {.qp_state = ABI_QPS_INIT, .port = port, .qkey = qkey}};
	struct answer a;

	return client_call(c->sock, ABI_MODIFY_QP, &in, sizeof(in), -1, &a);
}

static int to_init(struct client *c, uint32_t qp, uint32_t qkey)
{
	return to_init_at(c, qp, 1, qkey);
}

static int mcast(struct client *c, uint32_t type, uint32_t qp, const uint8_t mgid[16])
{
	struct abi_mcast in = {.qp = qp};
	struct answer a;

	memcpy(in.mgid, mgid, 16);
	return client_call(c->sock, type, &in, sizeof(in), -1, &a);
}

static int destroy_qp(struct client *c, uint32_t handle)
{
	struct abi_handle h = {handle};
	struct answer a;

	return client_call(c->sock, ABI_DESTROY_QP, &h, sizeof(h), -1, &a);
}

/* proves MC-01: for datagram QPs alone, and not for QP1, whose packets are to it. */
static void attach_mcast__of_other_services(void **state)
{
	static const struct {
		uint32_t type, mask;
	} row[] = {{ABI_QPT_RC, ABI_QP_PORT | ABI_QP_ACCESS_FLAGS},
		{ABI_QPT_UC, ABI_QP_PORT | ABI_QP_ACCESS_FLAGS}, {ABI_QPT_GSI, ABI_QP_QKEY}};
	struct test_daemon *d = *state;
	struct client c;
	uint32_t pd, cq;

	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct abi_create_qp_reply qp = make_qp(&c, pd, cq, row[i].type);
		struct abi_modify_qp in = {.handle = qp.handle,
			.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | row[i].mask,
			.attr = {.qp_state = ABI_QPS_INIT, .port = 1}};

		client_must(c.sock, ABI_MODIFY_QP, &in, sizeof(in), NULL, 0);
		assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, qp.handle, mgid4), -EINVAL);
		assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, qp.handle, mgid6), -EINVAL);
	}
	assert_null(mcast_find(d->dp->mcasts, mgid4, 0));
	assert_null(mcast_find(d->dp->mcasts, mgid6, 0));
	client_close(&c);
}

/* proves MC-01, MC-05, MC-06, VRB-01 */
static void attach_mcast__rules(void **state)
{
	struct test_daemon *d = *state;
	struct client c;
	uint32_t pd, cq;
	struct abi_create_qp_reply ud, other, rc;

	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	ud = make_qp(&c, pd, cq, ABI_QPT_UD);
	other = make_qp(&c, pd, cq, ABI_QPT_UD);
	rc = make_qp(&c, pd, cq, ABI_QPT_RC);
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid4), -EINVAL); /* in RESET */
	assert_int_equal(to_init(&c, ud.handle, 1), 0);
	assert_int_equal(to_init(&c, other.handle, 1), 0);
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, rc.handle, mgid4), -EINVAL);
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, gid_peer4), -EINVAL);
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle ^ 0x10000, mgid4), -EINVAL);
	assert_int_equal(mcast(&c, ABI_DETACH_MCAST, ud.handle, mgid4), -EINVAL);
	assert_null(mcast_find(d->dp->mcasts, mgid4, 0));
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid4), 0);
	assert_int_equal(
		mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid4), 0); /* once more is as once */
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, other.handle, mgid4), 0);
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid6), 0);
	assert_int_equal(mcast_find(d->dp->mcasts, mgid4, 0)->n, 2);
	assert_null(mcast_find(d->dp->mcasts, mgid4, 1));
	assert_int_equal(destroy_qp(&c, ud.handle), -EBUSY);
	assert_int_equal(mcast(&c, ABI_DETACH_MCAST, ud.handle, mgid4), 0);
	assert_int_equal(mcast(&c, ABI_DETACH_MCAST, ud.handle, mgid4), -EINVAL);
	assert_int_equal(mcast_find(d->dp->mcasts, mgid4, 0)->n, 1);
	assert_int_equal(destroy_qp(&c, ud.handle), -EBUSY); /* one is left */
	assert_int_equal(mcast(&c, ABI_DETACH_MCAST, ud.handle, mgid6), 0);
	assert_null(mcast_find(d->dp->mcasts, mgid6, 0));
	assert_int_equal(destroy_qp(&c, ud.handle), 0);
	client_close(&c); /* `other` is still attached */
	while (mcast_find(d->dp->mcasts, mgid4, 0))
		usleep(1000);
}

static void reset_qp(struct client *c, uint32_t handle)
{
	struct abi_modify_qp reset = {
		.handle = handle, .mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_RESET}};

	client_must(c->sock, ABI_MODIFY_QP, &reset, sizeof(reset), NULL, 0);
}

/* proves MC-04: a QP does not go to another port while a group of its former one delivers to it. */
static void attach_mcast__keeps_the_port(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_qp_reply ud;
	struct client c;

	client_open(d, &c);
	ud = make_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE), ABI_QPT_UD);
	assert_int_equal(to_init(&c, ud.handle, 1), 0);
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid4), 0);
	assert_int_equal(to_init_at(&c, ud.handle, 2, 1), -EBUSY);
	reset_qp(&c, ud.handle);
	assert_int_equal(to_init_at(&c, ud.handle, 2, 1), -EBUSY);
	assert_int_equal(to_init(&c, ud.handle, 1), 0);
	assert_int_equal(mcast_find(d->dp->mcasts, mgid4, 0)->n, 1);
	assert_int_equal(mcast(&c, ABI_DETACH_MCAST, ud.handle, mgid4), 0);
	assert_int_equal(to_init_at(&c, ud.handle, 2, 1), 0);
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid4), 0);
	assert_null(mcast_find(d->dp->mcasts, mgid4, 0));
	assert_int_equal(mcast_find(d->dp->mcasts, mgid4, 1)->n, 1);
	client_close(&c);
}

/* One session's attachments have an end. */
static void attach_mcast__quota(void **state)
{
	struct client c;
	uint32_t pd, cq;
	struct abi_create_qp_reply ud;
	uint8_t mgid[16];

	client_open(*state, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	ud = make_qp(&c, pd, cq, ABI_QPT_UD);
	assert_int_equal(to_init(&c, ud.handle, 1), 0);
	memcpy(mgid, mgid6, 16);
	for (unsigned i = 0; i < SESSION_MCAST_MAX; i++) {
		put_be16(mgid + 8, (uint16_t)i);
		assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid), 0);
	}
	assert_int_equal(mcast(&c, ABI_ATTACH_MCAST, ud.handle, mgid4), -EDQUOT);
	client_close(&c);
}

/* --- QP1 ---------------------------------------------------------------------------------- */

/* proves VRB-03: one a port; its number is in no slot of the table */
static void create_qp__gsi(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_qp in;
	struct abi_create_qp_reply gsi, other;
	struct client c;
	struct answer a;
	uint32_t pd, cq;

	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	gsi = make_qp(&c, pd, cq, ABI_QPT_GSI);
	assert_null(atomic_load(&d->dp->qps->slot[QPN_SLOT(gsi.qpn)]));
	assert_non_null(atomic_load(&d->dp->qps->gsi[0]));
	in = client_qp_request(pd, cq);
	in.type = ABI_QPT_GSI;
	in.port = 1;
	assert_int_equal(client_call(c.sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), -EBUSY);
	in.port = 3;
	assert_int_equal(client_call(c.sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), -EINVAL);
	in.port = 2;
	assert_int_equal(client_call(c.sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), 0);
	memcpy(&other, a.body, sizeof(other));
	answer_close(&a);
	daemon_pause(d); /* administrators find both by the number that "show qps" lists */
	assert_int_equal(find_qp(d->ctl, gsi.qpn)->qpn, gsi.qpn);
	assert_int_equal(find_qp(d->ctl, other.qpn)->qpn, other.qpn);
	assert_null(find_qp(d->ctl, 1));
	daemon_resume(d);
	assert_int_equal(destroy_qp(&c, gsi.handle), 0);
	assert_null(atomic_load(&d->dp->qps->gsi[0]));
	client_close(&c);
	while (atomic_load(&d->dp->qps->gsi[1]))
		usleep(1000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, daemon_setup, daemon_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(create_ah__workers_see_the_path),
		T(create_ah__refusals),
		T(create_ah__hop_limit_of_a_group),
		T(create_ah__of_a_group),
		T(create_ah__of_one_session),
		T(create_ah__follows_its_destination),
		T(attach_mcast__of_other_services),
		T(attach_mcast__rules),
		T(attach_mcast__keeps_the_port),
		T(attach_mcast__quota),
		T(create_qp__gsi),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
