/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "daemon.h"
#include "flow.h"
#include "headers.h"
#include "net/net.h"
#include "qp.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "wqe.h"

#define INIT_MASK (ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                        \
	(ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN | \
		ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER)

static struct client c;
static struct abi_create_qp_reply qp;

static int setup_with(void **state, bool application_macs)
{
	struct test_daemon *d = *state;

	daemon_config(d);
	d->cfg.application_macs = application_macs;
	daemon_run(d);
	client_open(d, &c);
	qp = client_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, false);
}

static int setup_macs(void **state)
{
	return setup_with(state, true);
}

static int teardown(void **state)
{
	client_close(&c);
	return daemon_teardown(state);
}

static struct abi_modify_qp to_init(void)
{
	return (struct abi_modify_qp){.handle = qp.handle,
		.mask = INIT_MASK,
		.attr = {.qp_state = ABI_QPS_INIT, .port = 1}};
}

static struct abi_modify_qp to_rtr(const uint8_t dgid[16])
{
	struct abi_modify_qp m = {.handle = qp.handle,
		.mask = RTR_MASK,
		.attr = {.qp_state = ABI_QPS_RTR,
			.path_mtu = 1024,
			.dest_qpn = 0x123,
			.ah = {.port = 1, .is_global = 1, .hop_limit = 9}}};

	memcpy(m.attr.ah.dgid, dgid, 16);
	memset(m.attr.ah.dmac, 0xFF, 6);
	return m;
}

static int modify(const struct abi_modify_qp *m, struct answer *a)
{
	return client_call(c.sock, ABI_MODIFY_QP, m, sizeof(*m), -1, a);
}

static void must(struct abi_modify_qp m)
{
	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static struct abi_qp_attr query(void)
{
	struct abi_handle h = {qp.handle};
	struct abi_qp_attr attr;

	client_must(c.sock, ABI_QUERY_QP, &h, sizeof(h), &attr, sizeof(attr));
	return attr;
}

static const struct path *path(const struct test_daemon *d)
{
	return &atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)])->path;
}

static void modify_qp__neighbour_from_the_table(void **state)
{
	struct answer a;

	must(to_init());
	{
		struct abi_modify_qp m = to_rtr(gid_peer4);

		assert_int_equal(modify(&m, &a), 0);
	}
	assert_int_equal(query().qp_state, ABI_QPS_RTR);
	assert_memory_equal(query().ah.dmac, mac_peer, 6);
	assert_memory_equal(path(*state)->hdr + ETH_DST, mac_peer, 6);
	assert_memory_equal(path(*state)->hdr + ETH_SRC, mac_own, 6); /* ETH-11 */
	assert_int_equal(path(*state)->net, NET_IPV4);
	assert_false(path(*state)->local);
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TTL], 9);
}

/* proves ETH-11: the host's tables say where packets go, also to a neighbour that they know. */
static void modify_qp__given_mac_is_refused(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_peer4);
	struct answer a;

	must(to_init());
	for (unsigned i = 0; i < 6; i++) { /* one bit is enough to be a choice */
		memset(m.attr.ah.dmac, 0, 6);
		m.attr.ah.dmac[i] = 2;
		assert_int_equal(modify(&m, &a), -EPERM);
		assert_non_null(strstr((char *)a.body, "--application-macs"));
	}
	assert_int_equal(query().qp_state, ABI_QPS_INIT);
	memset(m.attr.ah.dmac, 0, 6);
	must(m);
	assert_memory_equal(path(*state)->hdr + ETH_DST, mac_peer, 6);
}

/* proves ETH-11: as the rule has it, where the administrator lets programs. */
static void modify_qp__given_mac_wins(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_unknown4);

	must(to_init());
	memcpy(m.attr.ah.dmac, "\x02\x77\x77\x77\x77\x77", 6);
	must(m);
	assert_memory_equal(path(*state)->hdr + ETH_DST, m.attr.ah.dmac, 6);
}

static void modify_qp__group_mac(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_unknown4);
	struct answer a;

	must(to_init());
	m.attr.ah.dmac[5] = 0;
	assert_int_equal(modify(&m, &a), -EINVAL);
}

/* proves QPS-14, ETH-12: an unknown neighbour fails the verb; zero is no MAC. */
static void modify_qp__unknown_neighbour(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_unknown4);
	struct answer a;

	must(to_init());
	assert_int_equal(modify(&m, &a), -EHOSTUNREACH);
	assert_non_null(strstr((char *)a.body, "10.0.0.3"));
	memset(m.attr.ah.dmac, 0, 6);
	assert_int_equal(modify(&m, &a), -EHOSTUNREACH);
	assert_int_equal(query().qp_state, ABI_QPS_INIT);
}

static void modify_qp__own_gid_is_local(void **state)
{
	must(to_init());
	must(to_rtr(gid_own4));
	assert_true(path(*state)->local);
	assert_memory_equal(path(*state)->hdr + ETH_DST, mac_own, 6);
}

/* proves QPS-15, GID-06 */
static void modify_qp__sgid_of_another_family(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_peer6);
	struct answer a;

	must(to_init());
	assert_int_equal(modify(&m, &a), -EINVAL);
	assert_string_equal((char *)a.body, "GID 0 is IPv4; the peer's GID is IPv6: use GID 1");
	m.attr.ah.sgid_index = 200;
	assert_int_equal(modify(&m, &a), -EINVAL);
	m.attr.ah.sgid_index = 1;
	must(m);
	assert_int_equal(path(*state)->net, NET_IPV6);
}

/* proves QPS-15, VRB-04, VRB-05, ETH-06, V1-04 */
static void modify_qp__bad_address_vectors(void **state)
{
	static const uint8_t none[16], mcast6[16] = {0xFF, 2};
	static const uint8_t mcast4[16] = {[10] = 0xFF, [11] = 0xFF, 224, 0, 0, 1};
	struct abi_modify_qp bad[6];
	struct answer a;

	must(to_init());
	for (int i = 0; i < 6; i++)
		bad[i] = to_rtr(gid_peer4);
	bad[0].attr.ah.is_global = 0; /* VRB-05 */
	bad[1].attr.ah.sl = 8;	      /* ETH-06 */
	bad[2].attr.ah.port = 0;
	bad[3].attr.ah.port = 3;
	memcpy(bad[4].attr.ah.dgid, mcast4, 16);
	memcpy(bad[5].attr.ah.dgid, none, 16);
	for (int i = 0; i < 6; i++)
		assert_int_equal(modify(&bad[i], &a), -EINVAL);
	memcpy(bad[5].attr.ah.dgid, mcast6, 16);
	assert_int_equal(modify(&bad[5], &a), -EINVAL);
	must(to_rtr(gid_peer4));
}

/* doc/decisions/0020-hop-limit.md */
static void modify_qp__hop_limit_zero(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_peer4);

	must(to_init());
	m.attr.ah.hop_limit = 0;
	must(m);
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TTL], 64);
}

/* QPS-15 */
static void modify_qp__mtu_above_the_ports(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_peer4);
	struct answer a;

	must(to_init());
	m.attr.path_mtu = 4096;
	assert_int_equal(modify(&m, &a), -EINVAL);
	assert_non_null(strstr((char *)a.body, "1024"));
	assert_int_equal(query().qp_state, ABI_QPS_INIT);
}

/* QPS-01, QPS-14 */
static void modify_qp__wrong_transition(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_peer4);
	struct answer a;

	assert_int_equal(modify(&m, &a), -EINVAL); /* from RESET */
	assert_non_null(strstr((char *)a.body, "RESET"));
	assert_non_null(strstr((char *)a.body, "RTR"));
	m.handle ^= 0x10000;
	assert_int_equal(modify(&m, &a), -EINVAL);
}

static void assert_refused(struct abi_modify_qp m, const char *sentence)
{
	struct answer a;

	assert_int_equal(modify(&m, &a), -EINVAL);
	assert_string_equal((char *)a.body, sentence);
}

/* QPS-12, QPS-13, QPS-15: what is wrong has a name. */
static void modify_qp__names_what_is_wrong(void **state)
{
	struct abi_modify_qp m = to_init();

	m.mask |= ABI_QP_QKEY | 1u << 25;
	assert_refused(m, "RESET -> INIT of a QP of type RC does not take ROCI_QP_QKEY, bit 25: "
			  "leave it out of the mask");
	must(to_init());
	m = to_rtr(gid_peer4);
	m.mask &= ~(ABI_QP_DEST_QPN | ABI_QP_MIN_RNR_TIMER);
	assert_refused(m, "RTR needs ROCI_QP_MIN_RNR_TIMER, ROCI_QP_DEST_QPN: set the value "
			  "and its bit in the mask");
	m = to_rtr(gid_peer4);
	m.attr.min_rnr_timer = 32;
	assert_refused(m, "the value of ROCI_QP_MIN_RNR_TIMER is out of range: "
			  "see roci_query_device() for the limits, and ibv_modify_qp(3) for the "
			  "rest");
	must(to_rtr(gid_peer4));
	m = (struct abi_modify_qp){.handle = qp.handle,
		.mask = ABI_QP_STATE | ABI_QP_CUR_STATE | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT |
			ABI_QP_RNR_RETRY | ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC,
		.attr = {.qp_state = ABI_QPS_RTS, .cur_qp_state = ABI_QPS_INIT}};
	assert_refused(m, "the QP is in RTR, not in INIT as cur_qp_state says");
	m = (struct abi_modify_qp){
		.handle = qp.handle, .mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_ERR}};
	must(m);
	assert_refused(to_init(), "a QP in ERR can only go to RESET: see why it failed "
				  "(roci_qp_error()), then set it up again");
}

/* RESET to SQD, connected to gid_peer4. */
static void go_to_sqd(void)
{
	struct abi_modify_qp m = {.handle = qp.handle,
		.mask = ABI_QP_STATE | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY |
			ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC,
		.attr = {.qp_state = ABI_QPS_RTS}};

	must(to_init());
	must(to_rtr(gid_peer4));
	must(m);
	m.mask = ABI_QP_STATE;
	m.attr.qp_state = ABI_QPS_SQD;
	must(m);
}

/* QPS-10: another address vector, or the same once more, of which the QP was the only user. */
static void modify_qp__sqd_takes_address_vectors(void **state)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 0, 0x44};
	struct abi_modify_qp m = to_rtr(gid_peer4);

	go_to_sqd();
	m.mask = ABI_QP_AV;
	for (int i = 0; i < 4; i++) {
		must(m);
		assert_memory_equal(path(*state)->hdr + ETH_DST, mac_peer, 6);
	}
	memcpy(m.attr.ah.dmac, other, 6);
	must(m);
	must(m);
	assert_memory_equal(path(*state)->hdr + ETH_DST, other, 6);
}

/* QPS-19, QPS-21: the sentence says what is still under way, and what to do about it. */
static void modify_qp__sqd_still_drains(void **state)
{
	struct test_daemon *d = *state;
	struct abi_modify_qp m = {.handle = qp.handle};
	struct qp *q = atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)]);
	struct answer a;

	go_to_sqd();
	/* No worker runs: as if a message were outstanding. */
	q->req.fetched++;
	qp_wqe(q, q->comp.head)->first_psn = q->req.psn_new - 1;
	m.mask = ABI_QP_TIMEOUT;
	m.attr.timeout = 9;
	assert_int_equal(modify(&m, &a), -EINVAL);
	assert_non_null(strstr((char *)a.body, "SQ_DRAINED"));
	assert_int_equal(query().sq_draining, 1);
	assert_int_equal(query().timeout, 0);
	q->req.fetched--;
	must(m);
	assert_int_equal(query().timeout, 9);
}

/* proves QPS-15, BTH-11: a QP that was given port 1 does not send by port 2; the error says so. */
static void modify_qp__address_vector_of_another_port(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_peer4);
	struct test_daemon *d = *state;

	must(to_init());
	m.attr.ah.port = 2;
	assert_refused(m, "the address vector uses port 2, but the QP has port 1: give both the "
			  "same port number");
	assert_int_equal(query().qp_state, ABI_QPS_INIT);
	assert_int_equal(d->ctl->net->port[1].gids.users[0], 0);
	must(to_rtr(gid_peer4));
}

/* proves QPS-10, QPS-15: in SQD an address vector alone takes the QP to another port, unless that
 * one cannot send its packets or lacks its P_Key. */
static void modify_qp__sqd_to_another_port(void **state)
{
	struct abi_modify_qp m = to_rtr(gid_peer4);
	struct test_daemon *d = *state;

	go_to_sqd();
	m.mask = ABI_QP_PORT;
	m.attr.port = 2;
	assert_refused(m, "the QP's address vector uses port 1: set an address vector of port 2 "
			  "together with the port (ROCI_QP_AV)");
	m.mask = ABI_QP_AV;
	m.attr.ah.port = 2;
	memcpy(m.attr.ah.dgid, gid_own4, 16); /* found at port 1 */
	atomic_store(&d->ctl->net->port[1].shared->active_mtu, 512);
	assert_refused(m, "the QP's path MTU of 1024 is above the 512 that port 2 supports: raise "
			  "the MTU of its network device to 1120, or set up the QP again on that "
			  "port");
	atomic_store(&d->ctl->net->port[1].shared->active_mtu, 1024);
	atomic_store(&d->ctl->net->port[1].shared->pkey[0], 0);
	assert_refused(m, "entry 0 of port 2's P_Key table is empty, or beyond its end: `rocictl "
			  "show pkeys` lists the entries, and 0 is usual");
	assert_int_equal(query().port, 1);
	assert_int_equal(path(d)->port, 0);
	atomic_store(&d->ctl->net->port[1].shared->pkey[0], 0xFFFF);
	must(m);
	assert_int_equal(query().port, 2);
	assert_int_equal(path(d)->port, 1);
}

static uint32_t holds(const struct test_daemon *d)
{
	return d->ctl->net->port[0].gids.users[0]; /* the control thread sleeps between commands */
}

/* proves GID-03: a QP holds its entry until it is reset or destroyed. */
static void modify_qp__holds_its_gid(void **state)
{
	struct abi_modify_qp reset = {
		.handle = qp.handle, .mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_RESET}};
	struct abi_modify_qp bad = to_rtr(gid_peer4);
	struct abi_handle h = {qp.handle};
	struct answer a;

	must(to_init());
	bad.attr.path_mtu = 77;
	assert_int_equal(modify(&bad, &a), -EINVAL);
	assert_int_equal(holds(*state), 0);
	must(to_rtr(gid_peer4));
	assert_int_equal(holds(*state), 1);
	must(reset);
	assert_int_equal(holds(*state), 0);
	must(to_init());
	must(to_rtr(gid_peer4));
	client_must(c.sock, ABI_DESTROY_QP, &h, sizeof(h), NULL, 0);
	assert_int_equal(holds(*state), 0);
}

static const struct qp_flow *flow_to(const struct test_daemon *d, const uint8_t dgid[16])
{
	struct flow_key k = {.dest_qpn = 0x123};

	memcpy(k.dgid, dgid, sizeof(k.dgid));
	memcpy(k.sgid, gid_own6, sizeof(k.sgid));
	return flow_find(d->dp->flows, &k);
}

/* proves FCN-08: a QP over IPv6 is found by both addresses and its peer as long as it has one */
static void modify_qp__is_found_by_its_flow(void **state)
{
	struct abi_modify_qp reset = {
		.handle = qp.handle, .mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_RESET}};
	struct abi_modify_qp m = to_rtr(gid_peer6);
	struct abi_handle h = {qp.handle};

	m.attr.ah.sgid_index = 1;
	must(to_init());
	assert_null(flow_to(*state, gid_peer6));
	for (unsigned i = 0; i < 3; i++) {
		const struct qp_flow *f;

		must(m);
		f = flow_to(*state, gid_peer6);
		assert_non_null(f);
		assert_null(flow_more(f));
		assert_int_equal(f->qp->qpn, qp.qpn);
		must(reset);
		assert_null(flow_to(*state, gid_peer6));
		must(to_init());
	}
	must(to_rtr(gid_peer4)); /* FCN-02 */
	assert_null(flow_to(*state, gid_peer4));
	must(reset);
	must(to_init());
	must(m);
	client_must(c.sock, ABI_DESTROY_QP, &h, sizeof(h), NULL, 0);
	assert_null(flow_to(*state, gid_peer6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(modify_qp__is_found_by_its_flow, setup, teardown),
		cmocka_unit_test_setup_teardown(
			modify_qp__neighbour_from_the_table, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__given_mac_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__given_mac_wins, setup_macs, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__group_mac, setup_macs, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__unknown_neighbour, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__own_gid_is_local, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__sgid_of_another_family, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__bad_address_vectors, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__hop_limit_zero, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__mtu_above_the_ports, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__wrong_transition, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__names_what_is_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(
			modify_qp__sqd_takes_address_vectors, setup_macs, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__sqd_still_drains, setup, teardown),
		cmocka_unit_test_setup_teardown(
			modify_qp__address_vector_of_another_port, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__sqd_to_another_port, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_qp__holds_its_gid, setup, teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_modify", tests, daemon_group_setup, daemon_group_teardown);
}
