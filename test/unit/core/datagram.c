/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_ctl.h"
#include "ah.h"
#include "cause.h"
#include "datagram.h"
#include "frame.h"
#include "icrc.h"
#include "qp.h"
#include "txd.h"
#include "txd_bth.h"

struct end a, b;
struct ah ah; /* of a, to b */
uint64_t now;
uint8_t frame[FRAME_MAX]; /* the last one that a sent */
uint16_t frame_len;
struct txd sent;

struct app_qp *make_qp_of(struct end *e, uint8_t type)
{
	struct app_qp_spec spec = {
		.type = type,
		.sq_depth = 8,
		.rq_depth = 8,
		.max_sge = 4,
		.max_inline = 64,
		.send_cq = e->cq,
		.recv_cq = e->cq,
	};

	return app_qp(&e->app, &spec);
}

void climb(struct app_qp *qp, uint32_t qkey)
{
	struct abi_qp_attr attr = app_attr(0, 0x200, 0);

	attr.qkey = qkey;
	assert_int_equal(app_to_init(qp, &attr, now), 0);
	assert_int_equal(app_to_rtr(qp, &attr, NULL, now), 0);
	assert_int_equal(app_to_rts(qp, &attr, now), 0);
}

void open_end(struct end *e, uint8_t id)
{
	e->host = aligned_alloc(CACHE_LINE, sizeof(*e->host));
	assert_non_null(e->host);
	host_init(e->host, id, icrc_best(), now);
	app_init(&e->app, e->host);
	e->cq = app_cq(&e->app, 64);
	e->qp = make_qp_of(e, ABI_QPT_UD);
	e->mr = app_mr(&e->app, 1u << 16, ABI_ACCESS_LOCAL_WRITE);
	climb(e->qp, QKEY);
}

void close_end(struct end *e)
{
	assert_true(app_guards_ok(&e->app));
	app_fini(&e->app);
	free(e->host);
}

/* The handle of a that leads to b. */
void lead(enum host_gid gid)
{
	struct path_spec spec = host_path(a.host, b.host, 0, gid);

	ah = (struct ah){.id = AH_ID, .pd = a.qp->qp->pd, .hashed = true};
	path_init(&ah.path, &spec);
	atomic_store(&a.host->ahs.slot[AH_SLOT(AH_ID)], &ah);
}

int datagram_setup(void **state)
{
	now = 1000000;
	open_end(&a, 1);
	open_end(&b, 2);
	lead(HOST_GID_IPV4);
	return 0;
}

int datagram_teardown(void **state)
{
	close_end(&a);
	close_end(&b);
	return 0;
}

/* --- steps ---------------------------------------------------------------------------- */

void post_to(uint32_t qpn, uint32_t qkey, uint32_t id, uint32_t len, uint32_t flags)
{
	struct app_send s = {
		.opcode = ABI_WR_SEND,
		.flags = flags | ABI_WQE_SIGNALED,
		.wr_id = 7,
		.remote_addr = (uint64_t)qpn << 32 | id,
		.rkey = qkey,
		.num_sge = 1,
		.sge = {app_sge(a.mr, 0, len)},
	};

	app_post_send(a.qp, &s);
}

void post(uint32_t len)
{
	post_to(b.qp->qp->qpn, QKEY, AH_ID, len, 0);
}

void receive_at(struct end *e, struct app_qp *qp, uint64_t wr_id, uint64_t off, uint32_t len)
{
	struct abi_sge sge = app_sge(e->mr, off, len);

	app_post_recv(qp, wr_id, &sge, 1);
}

/* a's turn.  @return whether it sent a packet, which is in `frame` then. */
bool send_one(void)
{
	unsigned n;

	sent.frame = frame;
	app_ring(&a.app, now);
	n = core_tx(&a.host->core, &sent, 1, now);
	if (n)
		frame_len = core_seal(&a.host->core, &sent);
	return n;
}

const uint8_t *bth(void)
{
	return txd_bth(&sent);
}

/* `frame` was changed: makes its ICRC right. */
void reseal(void)
{
	struct pkt p;
	size_t len;

	assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
	len = p.icrc_off;
	icrc_store(frame + sent.l3_off + len,
		icrc_header(icrc_by_name("table"), frame + sent.l3_off, p.net, len));
}

/* b receives `frame`.  @return its verdict. */
uint16_t deliver_by(uint8_t queue)
{
	uint16_t verdict;
	struct pkt p;

	memset(&p, 0xEE, sizeof(p));
	assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
	p.port = 0;
	p.queue = queue;
	core_rx(&b.host->core, &p, 1, now, &verdict);
	return verdict;
}

uint16_t deliver(void)
{
	return deliver_by(PKT_NO_QUEUE);
}

/* The same in VLAN @p vid. */
uint16_t deliver_tagged(uint16_t vid)
{
	uint16_t verdict;
	struct pkt p;

	assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
	p.port = 0;
	p.queue = PKT_NO_QUEUE;
	p.vid = vid;
	core_rx(&b.host->core, &p, 1, now, &verdict);
	return verdict;
}

struct abi_cqe take_cqe(struct end *e)
{
	struct abi_cqe cqe = {0};

	assert_true(app_poll(&e->app, e->cq, &cqe));
	return cqe;
}

void assert_no_cqe(struct end *e)
{
	struct abi_cqe cqe;

	assert_false(app_poll(&e->app, e->cq, &cqe));
}

/* The frame for a SEND of @p len bytes. */
void make_frame(uint32_t len)
{
	post(len);
	assert_true(send_one());
	send_one();
	assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
}

uint64_t drops(enum drop why)
{
	return b.host->core.count.drop[why];
}

uint8_t *buffer(uint64_t off)
{
	return b.mr->mem + off;
}

void assert_refused(uint8_t status, enum cause why)
{
	struct abi_cqe cqe;

	post(4); /* after it: flushed, or completed before */
	assert_false(send_one());
	send_one();
	cqe = take_cqe(&a);
	assert_int_equal(cqe.status, status);
	assert_int_equal(a.qp->qp->why.error.cause, why);
	assert_int_equal(take_cqe(&a).status, ABI_WC_WR_FLUSH_ERR);
	assert_int_equal(a.qp->qp->state, ABI_QPS_SQE);
}

void recover(void)
{
	struct abi_qp_attr attr = {.qp_state = ABI_QPS_RTS};

	assert_int_equal(app_modify(a.qp, ABI_QP_STATE, &attr, NULL, now), 0);
	post(4);
	assert_true(send_one());
	send_one();
	assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
}
