/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between the two ports of a ring pair and inside the daemon, by a real rocid with two
 * workers: each GID type, answers by what a datagram tells of itself, address handles that go while
 * they are in use, messages that are too long, multicast over several queue pairs and workers, QP1.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <roci.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QKEY	 0x1234567u
#define DEPTH	 128
#define SLOT	 2048
#define QPS	 4 /* of each side: more than workers */
#define BURST	 64
#define WAIT_S	 120
#define QKEY_GSI 0x80010000u

struct side {
	uint8_t port;
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_mr *mr;
	struct roci_cq *cq;
	struct roci_qp *qp[QPS];
	unsigned sent; /* completions of sends that came before a receive's */
};

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void refused(int err, int want, const char *what)
{
	if (err != want)
		errx(1, "%s: %s, not %s", what, strerror(err), strerror(want));
}

/* --- objects ---------------------------------------------------------------------------- */

static struct roci_qp *make_qp(struct side *s, enum roci_qp_type type)
{
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.qp_type = type,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.port_num = s->port,
		.cap = {DEPTH, DEPTH, 1, 1, 0}};

	return roci_create_qp(s->pd, &init);
}

static void climb(struct side *s, struct roci_qp *qp)
{
	struct roci_qp_attr attr = {
		.size = sizeof(attr), .qp_state = ROCI_QPS_INIT, .port_num = s->port, .qkey = QKEY};
	int mask = ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_QKEY;

	if (qp->qp_type == ROCI_QPT_UD)
		mask |= ROCI_QP_PORT;
	must(!roci_modify_qp(qp, &attr, mask), "QP to INIT");
	attr.qp_state = ROCI_QPS_RTR;
	must(!roci_modify_qp(qp, &attr, ROCI_QP_STATE), "QP to RTR");
	attr.qp_state = ROCI_QPS_RTS;
	must(!roci_modify_qp(qp, &attr, ROCI_QP_STATE | ROCI_QP_SQ_PSN), "QP to RTS");
}

static void open_side(struct side *s, const char *socket, uint8_t port)
{
	s->port = port;
	must((s->ctx = roci_open(socket)) != NULL, "rocid");
	must((s->pd = roci_alloc_pd(s->ctx)) != NULL, "PD");
	must((s->mr = roci_alloc_mr(s->pd, (size_t)SLOT * DEPTH, ROCI_ACCESS_LOCAL_WRITE)) != NULL,
		"memory");
	must((s->cq = roci_create_cq(s->ctx, 4 * QPS * DEPTH, NULL, NULL, 0)) != NULL, "CQ");
	for (int i = 0; i < QPS; i++) {
		must((s->qp[i] = make_qp(s, ROCI_QPT_UD)) != NULL, "QP");
		climb(s, s->qp[i]);
	}
}

static void close_side(struct side *s)
{
	for (int i = 0; i < QPS; i++)
		must(!roci_destroy_qp(s->qp[i]), "destroy the QP");
	must(!roci_destroy_cq(s->cq), "destroy the CQ");
	must(!roci_dereg_mr(s->mr), "deregister");
	must(!roci_dealloc_pd(s->pd), "free the PD");
	must(!roci_close(s->ctx), "close");
}

/* --- work ------------------------------------------------------------------------------- */

static uint8_t *slot(const struct side *s, unsigned i)
{
	return (uint8_t *)s->mr->addr + (size_t)i * SLOT;
}

static void receive(struct side *s, struct roci_qp *qp, unsigned i)
{
	struct roci_sge sge = {(uintptr_t)slot(s, i), SLOT, s->mr->lkey};
	struct roci_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	memset(slot(s, i), 0xEE, SLOT);
	must(!roci_post_recv(qp, &wr, NULL), "post a receive");
}

static int post(struct side *s, struct roci_qp *qp, struct roci_ah *ah, uint32_t qpn, unsigned i,
	uint32_t len, uint32_t qkey)
{
	struct roci_sge sge = {(uintptr_t)slot(s, i), len, s->mr->lkey};
	struct roci_send_wr wr = {.wr_id = 1000 + i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = ROCI_WR_SEND,
		.send_flags = ROCI_SEND_SIGNALED};

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	return roci_post_send(qp, &wr, NULL);
}

static struct roci_wc wait_net(struct side *s, struct roci_wc_net *net)
{
	time_t until = time(NULL) + WAIT_S;
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq_net(s->cq, 1, &wc, net)) == 0) {
		if (time(NULL) > until)
			errx(1, "no completion within %d s", WAIT_S);
		sched_yield();
	}
	must(n > 0, "poll");
	return wc;
}

static struct roci_wc wait_recv(struct side *s, struct roci_wc_net *net)
{
	for (;;) {
		struct roci_wc wc = wait_net(s, net);

		if (wc.status != ROCI_WC_SUCCESS || wc.opcode != ROCI_WC_SEND)
			return wc;
		s->sent++;
	}
}

static void wait_send(struct side *s)
{
	struct roci_wc_net net;
	struct roci_wc wc;

	if (s->sent) {
		s->sent--;
		return;
	}
	wc = wait_net(s, &net);
	if (wc.status != ROCI_WC_SUCCESS || wc.opcode != ROCI_WC_SEND)
		errx(1, "completion %d with status %s, not of a send", wc.opcode,
			roci_wc_status_str(wc.status));
}

static struct roci_wc must_recv(struct side *s)
{
	struct roci_wc_net net;
	struct roci_wc wc = wait_recv(s, &net);

	if (wc.status != ROCI_WC_SUCCESS)
		errx(1, "a receive: %s", roci_wc_status_str(wc.status));
	return wc;
}

static void assert_quiet(struct side *s)
{
	struct roci_wc wc;

	if (roci_poll_cq(s->cq, 1, &wc) != 0)
		errx(1, "a completion that nobody waits for");
}

static struct roci_gid_entry gid_at(struct side *s, uint32_t index)
{
	struct roci_gid_entry e = {.size = sizeof(e)};

	if (roci_query_gid(s->ctx, s->port, index, &e))
		e.size = 0;
	return e;
}

static struct roci_ah *make_ah(struct side *from, uint32_t index, const union roci_gid *to)
{
	struct roci_ah_attr attr = {.is_global = 1, .port_num = from->port};

	attr.grh.dgid = *to;
	attr.grh.sgid_index = (uint8_t)index;
	attr.grh.hop_limit = 64;
	return roci_create_ah(from->pd, &attr);
}

/* --- there and back ----------------------------------------------------------------------- */

/* The receive completion of a datagram (UD-05..10). */
static void check_arrival(struct side *to, const struct roci_gid_entry *gid,
	const struct roci_wc *wc, const struct roci_wc_net *net, uint32_t src_qp, uint32_t len)
{
	const uint8_t *area = slot(to, (unsigned)wc->wr_id);
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
	int ip4 = gid->gid_type == ROCI_GID_TYPE_ROCE_V2 && !memcmp(&gid->gid, mapped, 12);

	if (wc->status != ROCI_WC_SUCCESS || wc->byte_len != ROCI_GRH_LEN + len ||
		wc->src_qp != src_qp || !(wc->wc_flags & ROCI_WC_GRH))
		errx(1, "the completion is wrong: status %d, %u bytes, from QP %u", wc->status,
			wc->byte_len, wc->src_qp);
	if (net->type != gid->gid_type || net->is_ipv4 != ip4 || net->vlan_id)
		errx(1, "it came by type %d, IPv4 %d", net->type, net->is_ipv4);
	for (uint32_t i = 0; i < len; i++)
		if (area[ROCI_GRH_LEN + i] != (uint8_t)(i * 7 + 1))
			errx(1, "byte %u is wrong", i);
}

static void fill(struct side *s, unsigned i, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		slot(s, i)[k] = (uint8_t)(k * 7 + 1);
}

/* The handle that leads back, by the 40 bytes alone or by what else is known. */
static struct roci_ah *answer_to(
	struct side *s, const struct roci_wc *wc, const struct roci_wc_net *net)
{
	const struct roci_grh_area *area = (const struct roci_grh_area *)slot(s, 0);
	struct roci_ah_attr attr;

	if (!net)
		return roci_create_ah_from_wc(s->pd, s->port, wc, area);
	must(!roci_init_ah_from_wc_net(s->ctx, s->port, wc, net, area, &attr), "way back");
	return roci_create_ah(s->pd, &attr);
}

/* proves UD-11, UD-10, VAL-14: from each GID of a to that of b of the same kind, and the answer by
 * what came */
static unsigned there_and_back(struct side *a, struct side *b)
{
	unsigned kinds = 0;

	for (uint32_t i = 0; i < 128; i++) {
		struct roci_gid_entry from = gid_at(a, i), to = gid_at(b, i);
		struct roci_qp *qa = a->qp[i % QPS], *qb = b->qp[(i + 1) % QPS];
		struct roci_ah *there, *back;
		struct roci_wc_net net;
		struct roci_wc wc;

		if (!from.size || !to.size)
			continue;
		kinds++;
		must((there = make_ah(a, i, &to.gid)) != NULL, "address handle");
		receive(b, qb, 0);
		fill(a, 1, 1000);
		must(!post(a, qa, there, qb->qp_num, 1, 1000, QKEY), "post");
		wc = wait_recv(b, &net);
		check_arrival(b, &to, &wc, &net, qa->qp_num, 1000);
		wait_send(a);
		back = answer_to(b, &wc, i % 2 ? &net : NULL);
		must(back != NULL, "address handle of the completion");
		receive(a, qa, 2);
		fill(b, 3, 13);
		must(!post(b, qb, back, wc.src_qp, 3, 13, QKEY), "post the answer");
		wc = wait_recv(a, &net);
		check_arrival(a, &from, &wc, &net, qb->qp_num, 13);
		wait_send(b);
		must(!roci_destroy_ah(there) && !roci_destroy_ah(back), "destroy the handle");
	}
	return kinds;
}

/* proves UD-16: all that was posted with a handle arrives, although it goes at once. */
static void handle_goes(struct side *a, struct side *b)
{
	struct roci_gid_entry to = gid_at(b, 0);

	for (int round = 0; round < 50; round++) {
		struct roci_ah *ah = make_ah(a, 0, &to.gid);

		must(ah != NULL, "address handle");
		for (unsigned i = 0; i < BURST; i++)
			receive(b, b->qp[0], i);
		for (unsigned i = 0; i < BURST; i++)
			must(!post(a, a->qp[0], ah, b->qp[0]->qp_num, i, 64, QKEY), "post");
		must(!roci_destroy_ah(ah), "destroy the handle");
		for (unsigned i = 0; i < BURST; i++)
			wait_send(a);
		for (unsigned i = 0; i < BURST; i++)
			must_recv(b);
	}
}

/* proves UD-15 */
static void bad_handles(struct side *a, struct side *b)
{
	struct roci_ah_attr attr = {.is_global = 1, .port_num = a->port};
	struct roci_ah *foreign =
		make_ah(b, 0, &(union roci_gid){.raw = {[10] = 0xFF, 0xFF, 192, 0, 2, 1}});

	must(foreign != NULL, "address handle");
	refused(post(a, a->qp[0], foreign, 5, 0, 1, QKEY), EINVAL, "another program's handle");
	refused(post(a, a->qp[0], NULL, 5, 0, 1, QKEY), EINVAL, "no handle");
	must(!roci_destroy_ah(foreign), "destroy the handle");
	attr.grh.dgid = gid_at(b, 0).gid;
	attr.is_global = 0;
	refused(roci_create_ah(a->pd, &attr) ? 0 : errno, EINVAL, "no GRH");
	attr.is_global = 1;
	attr.sl = 8;
	refused(roci_create_ah(a->pd, &attr) ? 0 : errno, EINVAL, "service level 8");
	attr.sl = 0;
	attr.grh.sgid_index = 99;
	refused(roci_create_ah(a->pd, &attr) ? 0 : errno, EINVAL, "no such GID");
	attr.grh.sgid_index = 0;
	attr.port_num = 9;
	refused(roci_create_ah(a->pd, &attr) ? 0 : errno, EINVAL, "no such port");
}

/* proves UD-02, UC-11: SQE flushes what follows, receives go on, RTS mends it. */
static void too_long(struct side *a, struct side *b)
{
	struct roci_gid_entry to = gid_at(b, 0);
	struct roci_ah *ah = make_ah(a, 0, &to.gid);
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_RTS};
	struct roci_wc_net net;
	struct roci_wc wc;

	must(ah != NULL, "address handle");
	must(!post(a, a->qp[1], ah, b->qp[1]->qp_num, 0, 1025, QKEY), "post");
	must(!post(a, a->qp[1], ah, b->qp[1]->qp_num, 0, 1, QKEY), "post");
	wc = wait_net(a, &net);
	if (wc.status != ROCI_WC_LOC_LEN_ERR)
		errx(1, "a long datagram: %s", roci_wc_status_str(wc.status));
	if (!strstr(roci_qp_error(a->qp[1]), "one packet"))
		errx(1, "why? %s", roci_qp_error(a->qp[1]));
	if (wait_net(a, &net).status != ROCI_WC_WR_FLUSH_ERR)
		errx(1, "later requests are not flushed");
	must(!roci_modify_qp(a->qp[1], &attr, ROCI_QP_STATE), "SQE to RTS");
	receive(b, b->qp[1], 0);
	must(!post(a, a->qp[1], ah, b->qp[1]->qp_num, 0, 1024, QKEY), "post");
	wait_send(a);
	must_recv(b);
	must(!roci_destroy_ah(ah), "destroy the handle");
}

/* --- multicast ------------------------------------------------------------------------------ */

static union roci_gid group_of(const char *text)
{
	union roci_gid g = {.raw = {[10] = 0xFF, [11] = 0xFF}};

	if (inet_pton(AF_INET6, text, g.raw) != 1 && inet_pton(AF_INET, text, g.raw + 12) != 1)
		errx(1, "%s is no address", text);
	return g;
}

/* @return how many of the QPs of @p s got the datagram, each once. */
static void expect_copies(struct side *s, unsigned want)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < want; i++) {
		struct roci_wc wc = must_recv(s);

		if (seen >> wc.wr_id & 1)
			errx(1, "a QP got two copies");
		seen |= 1u << wc.wr_id;
		if (wc.byte_len != ROCI_GRH_LEN + 77 ||
			slot(s, (unsigned)wc.wr_id)[ROCI_GRH_LEN] != 1)
			errx(1, "the copy is wrong");
	}
}

/* proves MC-04, MC-05, MC-06, MC-08: members on both ports and all workers, the sender too. */
static void multicast(struct side *a, struct side *b, const char *text, uint32_t index)
{
	union roci_gid group = group_of(text), other = group_of("239.9.9.9");
	struct roci_ah *ah = make_ah(a, index, &group);

	must(ah != NULL, "address handle of a group");
	for (int i = 0; i < QPS; i++)
		must(!roci_attach_mcast(a->qp[i], &group) && !roci_attach_mcast(b->qp[i], &group),
			"attach");
	must(!roci_attach_mcast(a->qp[0], &group), "attach again");
	refused(roci_detach_mcast(a->qp[0], &other), EINVAL, "detach from another group");
	refused(roci_destroy_qp(a->qp[0]), EBUSY, "destroy a member");
	fill(a, 9, 77);
	for (int round = 0; round < 20; round++) {
		for (unsigned i = 0; i < QPS; i++) {
			receive(a, a->qp[i], i);
			receive(b, b->qp[i], i);
		}
		must(!post(a, a->qp[0], ah, 0xFFFFFF, 9, 77, QKEY), "post to the group");
		expect_copies(b, QPS);
		/* the send's own completion is among them */
		for (unsigned n = 0, seen = 0; n < QPS + 1; n++) {
			struct roci_wc_net net;
			struct roci_wc wc = wait_net(a, &net);

			if (wc.status != ROCI_WC_SUCCESS)
				errx(1, "multicast: %s", roci_wc_status_str(wc.status));
			if (wc.opcode == ROCI_WC_RECV && (seen >> wc.wr_id & 1))
				errx(1, "a QP of the sender's port got two copies");
			if (wc.opcode == ROCI_WC_RECV)
				seen |= 1u << wc.wr_id;
		}
	}
	for (int i = 0; i < QPS; i++)
		must(!roci_detach_mcast(a->qp[i], &group) && !roci_detach_mcast(b->qp[i], &group),
			"detach");
	refused(roci_detach_mcast(a->qp[0], &group), EINVAL, "detach twice");
	must(!post(a, a->qp[0], ah, 0xFFFFFF, 9, 77, QKEY), "post to nobody");
	wait_send(a);
	must(!roci_destroy_ah(ah), "destroy the handle");
}

/* proves MC-01 */
static void not_for_multicast(struct side *a)
{
	union roci_gid host = group_of("192.0.2.9"), group = group_of("239.1.1.1");
	struct roci_qp *fresh = make_qp(a, ROCI_QPT_UD);

	must(fresh != NULL, "QP");
	refused(roci_attach_mcast(a->qp[0], &host), EINVAL, "attach to a host");
	refused(roci_attach_mcast(fresh, &group), EINVAL, "attach in RESET");
	must(!roci_destroy_qp(fresh), "destroy the QP");
}

/* --- QP1 ------------------------------------------------------------------------------------ */

/* proves VAL-16, QPS-24: a management datagram there and back, one QP1 per port. */
static void qp1(struct side *a, struct side *b)
{
	struct roci_qp *ga = make_qp(a, ROCI_QPT_GSI), *gb = make_qp(b, ROCI_QPT_GSI);
	struct roci_gid_entry to = gid_at(b, 0);
	struct roci_ah *ah = make_ah(a, 0, &to.gid);
	struct roci_wc wc;

	must(ga && gb && ah, "QP1");
	if (ga->qp_num != 1 || gb->qp_num != 1)
		errx(1, "QP1 has another number");
	refused(make_qp(b, ROCI_QPT_GSI) ? 0 : errno, EBUSY, "a second QP1");
	climb(a, ga);
	climb(b, gb);
	receive(b, gb, 0);
	must(!post(a, ga, ah, 1, 1, 256, QKEY_GSI), "post a MAD");
	wc = must_recv(b);
	if (wc.src_qp != 1 || wc.qp_num != 1 || wc.byte_len != ROCI_GRH_LEN + 256)
		errx(1, "the MAD came from QP %u to QP %u", wc.src_qp, wc.qp_num);
	wait_send(a);
	must(!roci_destroy_qp(ga) && !roci_destroy_qp(gb) && !roci_destroy_ah(ah), "destroy");
}

int main(int argc, char *argv[])
{
	struct side a = {0}, b = {0};
	unsigned kinds;

	if (argc != 2)
		errx(2, "usage: datagrams SOCKET");
	open_side(&a, argv[1], 1);
	open_side(&b, argv[1], 2);
	kinds = there_and_back(&a, &b); /* across the link */
	there_and_back(&a, &a);		/* to ourselves */
	if (kinds != 4)
		errx(1, "%u pairs of GIDs, not IPv4 and IPv6 by RoCEv1 and RoCEv2", kinds);
	handle_goes(&a, &b);
	bad_handles(&a, &b);
	too_long(&a, &b);
	multicast(&a, &b, "239.1.2.3", 0);
	multicast(&a, &b, "ff15::42", 1);
	multicast(&a, &b, "ff15::43", 65); /* RoCEv1 */
	not_for_multicast(&a);
	qp1(&a, &b);
	assert_quiet(&a);
	assert_quiet(&b);
	close_side(&a);
	close_side(&b);
	return 0;
}
