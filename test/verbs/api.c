/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs API where Debian's test programs do not go: wr_* and its failures, completions read in
 * place, datagrams, windows, events, what is refused and with which errno. All data go through
 * malloc()ed memory and are compared. Linked with the stock library's import file, run with ours.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "fixture.h"

#define QKEY 0x11111111

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7);
}

/* --- wr_* ------------------------------------------------------------------------------- */

static void begin(struct ibv_qp_ex *q, uint64_t wr_id)
{
	ibv_wr_start(q);
	q->wr_id = wr_id;
	q->wr_flags = IBV_SEND_SIGNALED;
}

static void set_text(struct ibv_qp_ex *q, const char *text)
{
	ibv_wr_set_inline_data(q, (void *)(uintptr_t)text, strlen(text));
}

static void finish(struct end *e, uint64_t wr_id, enum ibv_wc_opcode op)
{
	struct ibv_wc wc;

	CHECK(!ibv_wr_complete(e->ex));
	wc = poll_one(e);
	CHECK(wc.wr_id == wr_id && wc.opcode == op && wc.qp_num == e->qp->qp_num);
}

/* Writes and reads, with one SGE, a list, and inline. */
static void wr_memory(struct end e[2])
{
	struct end *a = &e[0], *b = &e[1];
	uint64_t to = (uintptr_t)b->buf;
	struct ibv_sge list[2] = {{(uintptr_t)a->buf, 100, a->mr->lkey},
		{(uintptr_t)a->buf + 100, 4000, a->mr->lkey}};

	fill(a->buf, 8192, 1);
	begin(a->ex, 1);
	ibv_wr_rdma_write(a->ex, b->mr->rkey, to);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)a->buf, 8192);
	finish(a, 1, IBV_WC_RDMA_WRITE);
	CHECK(!memcmp(a->buf, b->buf, 8192));

	fill(a->buf, 8192, 2);
	begin(a->ex, 2);
	ibv_wr_rdma_write(a->ex, b->mr->rkey, to);
	ibv_wr_set_sge_list(a->ex, 2, list);
	finish(a, 2, IBV_WC_RDMA_WRITE);
	CHECK(!memcmp(a->buf, b->buf, 4100) && memcmp(a->buf, b->buf, 8192));

	begin(a->ex, 3);
	ibv_wr_rdma_write(a->ex, b->mr->rkey, to);
	set_text(a->ex, "inline");
	finish(a, 3, IBV_WC_RDMA_WRITE);
	CHECK(!memcmp(b->buf, "inline", 6));

	fill(b->buf, 8192, 3);
	begin(a->ex, 4);
	ibv_wr_rdma_read(a->ex, b->mr->rkey, to);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)a->buf, 8192);
	finish(a, 4, IBV_WC_RDMA_READ);
	CHECK(!memcmp(a->buf, b->buf, 8192));
}

static void wr_atomics(struct end e[2])
{
	struct end *a = &e[0], *b = &e[1];
	uint64_t *word = (uint64_t *)b->buf, *old = (uint64_t *)a->buf;
	uint64_t value = 99;

	*word = 40;
	begin(a->ex, 1);
	ibv_wr_atomic_fetch_add(a->ex, b->mr->rkey, (uintptr_t)word, 2);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)old, 8);
	finish(a, 1, IBV_WC_FETCH_ADD);
	CHECK(*old == 40 && *word == 42);
	begin(a->ex, 2);
	ibv_wr_atomic_cmp_swp(a->ex, b->mr->rkey, (uintptr_t)word, 42, 7);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)old, 8);
	finish(a, 2, IBV_WC_COMP_SWAP);
	CHECK(*old == 42 && *word == 7);
	begin(a->ex, 3);
	ibv_wr_atomic_write(a->ex, b->mr->rkey, (uintptr_t)word, &value);
	finish(a, 3, IBV_WC_ATOMIC_WRITE);
	CHECK(*word == 99);
}

static void wr_messages(struct end e[2])
{
	struct end *a = &e[0], *b = &e[1];
	struct ibv_data_buf bufs[2] = {
		{(void *)(uintptr_t) "two ", 4}, {(void *)(uintptr_t) "parts", 5}};
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 3; i++)
		post_recv(b, i);
	begin(a->ex, 1);
	ibv_wr_send_imm(a->ex, 0x12345678);
	ibv_wr_set_inline_data_list(a->ex, 2, bufs);
	finish(a, 1, IBV_WC_SEND);
	wc = poll_one(b);
	CHECK(wc.wr_id == 0 && wc.byte_len == 9 && wc.imm_data == 0x12345678);
	CHECK(wc.opcode == IBV_WC_RECV && wc.wc_flags == IBV_WC_WITH_IMM);
	CHECK(!memcmp(b->buf, "two parts", 9));
	begin(a->ex, 2);
	ibv_wr_send(a->ex); /* no payload */
	finish(a, 2, IBV_WC_SEND);
	CHECK(poll_one(b).byte_len == 0);
	begin(a->ex, 3);
	ibv_wr_rdma_write_imm(a->ex, b->mr->rkey, (uintptr_t)b->buf, 5);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)a->buf, 64);
	finish(a, 3, IBV_WC_RDMA_WRITE);
	wc = poll_one(b);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == 5);
}

/* Nothing of a list is seen that was aborted or failed. */
static void wr_failures(struct end e[2])
{
	struct end *a = &e[0], *b = &e[1];
	struct ibv_sge many[17] = {0};
	struct ibv_wc wc;
	uint8_t big[4096] = {0};

	memset(b->buf, 0, 64);
	begin(a->ex, 1);
	ibv_wr_rdma_write(a->ex, b->mr->rkey, (uintptr_t)b->buf);
	set_text(a->ex, "seen");
	ibv_wr_abort(a->ex);
	begin(a->ex, 2);
	ibv_wr_rdma_write(a->ex, b->mr->rkey, (uintptr_t)b->buf);
	set_text(a->ex, "seen");
	ibv_wr_send(a->ex);
	ibv_wr_set_sge_list(a->ex, 17, many);
	CHECK(ibv_wr_complete(a->ex) == EINVAL);
	begin(a->ex, 3);
	ibv_wr_send(a->ex);
	ibv_wr_set_inline_data(a->ex, big, sizeof(big));
	CHECK(ibv_wr_complete(a->ex) == EINVAL);
	for (int i = 0; i < 100000; i++)
		CHECK(ibv_poll_cq(a->cq, 1, &wc) == 0);
	CHECK(!b->buf[0]);
	begin(a->ex, 4); /* the ring has no hole */
	ibv_wr_rdma_write(a->ex, b->mr->rkey, (uintptr_t)b->buf);
	set_text(a->ex, "now");
	finish(a, 4, IBV_WC_RDMA_WRITE);
	CHECK(!memcmp(b->buf, "now", 3));
}

/* A list that has no room is refused as a whole; three laps of the ring. */
static void wr_full(struct end e[2])
{
	struct end *a = &e[0], *b = &e[1];

	ibv_wr_start(a->ex);
	a->ex->wr_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < 100000; i++)
		ibv_wr_rdma_write(a->ex, b->mr->rkey, (uintptr_t)b->buf);
	CHECK(ibv_wr_complete(a->ex) == ENOMEM);
	for (uint64_t lap = 0; lap < 3; lap++) {
		ibv_wr_start(a->ex);
		a->ex->wr_flags = IBV_SEND_SIGNALED;
		for (uint64_t i = 0; i < 60; i++) {
			a->ex->wr_id = lap * 60 + i;
			ibv_wr_rdma_write(a->ex, b->mr->rkey, (uintptr_t)b->buf + i);
			ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)a->buf + i, 1);
		}
		CHECK(!ibv_wr_complete(a->ex));
		for (uint64_t i = 0; i < 60; i++)
			CHECK(poll_one(a).wr_id == lap * 60 + i);
		CHECK(!memcmp(a->buf, b->buf, 60));
		fill(a->buf, 60, (unsigned)lap + 9);
	}
}

static void wr_calls(void)
{
	struct end e[2];

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC, .extended = true});
	wr_memory(e);
	wr_atomics(e);
	wr_messages(e);
	wr_failures(e);
	wr_full(e);
	pair_close(e);
}

static void wr_of_uc(void)
{
	struct end e[2];

	pair_open(e, &(struct recipe){.type = IBV_QPT_UC, .extended = true});
	CHECK(!e[0].ex->wr_rdma_read);
	begin(e[0].ex, 1);
	ibv_wr_rdma_write(e[0].ex, e[1].mr->rkey, (uintptr_t)e[1].buf);
	set_text(e[0].ex, "uc");
	finish(&e[0], 1, IBV_WC_RDMA_WRITE);
	while (*(volatile uint8_t *)e[1].buf != 'u')
		;
	pair_close(e);
}

/* --- completions in place ------------------------------------------------------------------- */

static void in_place(void)
{
	struct ibv_poll_cq_attr none = {0}, unknown = {.comp_mask = 1};
	struct end e[2];
	struct ibv_cq_ex *cq;
	uint64_t before = 0;

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC, .extended = true, .cq_ex = true});
	cq = (struct ibv_cq_ex *)e[1].cq;
	CHECK(ibv_start_poll(cq, &unknown) == EINVAL);
	CHECK(ibv_start_poll(cq, &none) == ENOENT);
	for (uint64_t round = 0; round < 20; round++) { /* laps of the ring */
		for (uint64_t i = 0; i < 40; i++)
			post_recv(&e[1], i);
		ibv_wr_start(e[0].ex);
		e[0].ex->wr_flags = 0;
		for (uint32_t i = 0; i < 40; i++) {
			e[0].ex->wr_flags = i == 39 ? IBV_SEND_SIGNALED : 0;
			ibv_wr_send_imm(e[0].ex, i);
			ibv_wr_set_inline_data(e[0].ex, &i, sizeof(i));
		}
		CHECK(!ibv_wr_complete(e[0].ex));
		for (uint32_t i = 0; i < 40;) {
			if (ibv_start_poll(cq, &none))
				continue;
			do {
				CHECK(cq->status == IBV_WC_SUCCESS && cq->wr_id == i);
				CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV);
				CHECK(ibv_wc_read_imm_data(cq) == i);
				CHECK(ibv_wc_read_byte_len(cq) == sizeof(i));
				CHECK(ibv_wc_read_qp_num(cq) == e[1].qp->qp_num);
				CHECK(ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM);
				CHECK(!ibv_wc_read_vendor_err(cq) && !ibv_wc_read_slid(cq));
				CHECK(ibv_wc_read_completion_ts(cq) >= before);
				before = ibv_wc_read_completion_ts(cq);
				i++;
			} while (!ibv_next_poll(cq));
			CHECK(!ibv_req_notify_cq(e[1].cq, 0)); /* while it is being read */
			ibv_end_poll(cq);
		}
		poll_one(&e[0]); /* the other way works on the same CQ */
	}
	CHECK(before > 0);
	pair_close(e);
}

/* --- datagrams ------------------------------------------------------------------------------ */

static void send_datagram(struct end *a, struct ibv_ah *ah, uint32_t qpn, bool inl)
{
	struct ibv_sge sge = {(uintptr_t)a->buf, 32, a->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 9,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (inl ? IBV_SEND_INLINE : 0),
		.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY}};
	struct ibv_send_wr wrong = wr, *bad = NULL;

	wr.next = &wrong;
	wrong.opcode = IBV_WR_RDMA_WRITE; /* UD-01: refused, and the first is sent */
	CHECK(ibv_post_send(a->qp, &wr, &bad) == EINVAL && bad == &wrong);
	CHECK(poll_one(a).wr_id == 9);
}

static void datagrams(void)
{
	struct end e[2];
	struct ibv_ah *ah, *back;
	struct ibv_ah_attr attr;
	struct ibv_wc wc;

	pair_open(e, &(struct recipe){.type = IBV_QPT_UD});
	ah = address(&e[0], &e[1]);
	for (int inl = 0; inl < 2; inl++) {
		post_recv(&e[1], 3);
		fill(e[0].buf, 32, (unsigned)inl);
		send_datagram(&e[0], ah, e[1].qp->qp_num, inl);
		wc = poll_one(&e[1]);
		CHECK(wc.byte_len == 72 && wc.src_qp == e[0].qp->qp_num &&
			wc.wc_flags & IBV_WC_GRH);
		CHECK((wc.sl & 7) == 2); /* IPv4, as ConnectX says: what UCX looks at */
		CHECK(!memcmp(e[1].buf + 40, e[0].buf, 32));
	}
	CHECK(!ibv_init_ah_from_wc(
		e[1].context, e[1].port, &wc, (struct ibv_grh *)e[1].buf, &attr));
	CHECK(attr.sl == 0 && attr.is_global && attr.port_num == e[1].port);
	back = ibv_create_ah_from_wc(e[1].pd, &wc, (struct ibv_grh *)e[1].buf, e[1].port);
	CHECK(back);
	post_recv(&e[0], 4);
	send_datagram(&e[1], back, wc.src_qp, false);
	CHECK(poll_one(&e[0]).src_qp == e[1].qp->qp_num);
	CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_ah(back));
	pair_close(e);
}

static void datagrams_wr(void)
{
	struct ibv_poll_cq_attr none = {0};
	struct end e[2];
	struct ibv_ah *ah;
	struct ibv_cq_ex *cq;

	pair_open(e, &(struct recipe){.type = IBV_QPT_UD, .extended = true, .cq_ex = true});
	ah = address(&e[0], &e[1]);
	cq = (struct ibv_cq_ex *)e[1].cq;
	post_recv(&e[1], 3);
	begin(e[0].ex, 5);
	ibv_wr_send_imm(e[0].ex, 6);
	ibv_wr_set_ud_addr(e[0].ex, ah, e[1].qp->qp_num, QKEY);
	set_text(e[0].ex, "datagram");
	finish(&e[0], 5, IBV_WC_SEND);
	while (ibv_start_poll(cq, &none))
		;
	CHECK(cq->wr_id == 3 && ibv_wc_read_src_qp(cq) == e[0].qp->qp_num);
	CHECK((ibv_wc_read_sl(cq) & 7) == 2 && ibv_wc_read_cvlan(cq) == 0);
	ibv_end_poll(cq);
	CHECK(!memcmp(e[1].buf + 40, "datagram", 8));
	CHECK(!ibv_destroy_ah(ah));
	pair_close(e);
}

/* --- windows ------------------------------------------------------------------------------- */

static void write_by(struct end *a, uint32_t rkey, void *to, const char *text)
{
	struct ibv_sge sge = {(uintptr_t)text, (uint32_t)strlen(text), 0};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
		.wr.rdma = {.remote_addr = (uintptr_t)to, .rkey = rkey}};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(a->qp, &wr, &bad));
	poll_one(a);
	CHECK(!memcmp(to, text, strlen(text)));
}

static void windows(void)
{
	struct end e[2];
	struct ibv_mw *one, *two;
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, after,
			   *bad;
	uint32_t old;

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	one = ibv_alloc_mw(e[1].pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(e[1].pd, IBV_MW_TYPE_2);
	CHECK(one && two);
	bind.bind_info = (struct ibv_mw_bind_info){
		e[1].mr, (uintptr_t)e[1].buf, 4096, IBV_ACCESS_REMOTE_WRITE};
	old = one->rkey;
	CHECK(!ibv_bind_mw(e[1].qp, one, &bind) && one->rkey != old);
	CHECK(poll_one(&e[1]).opcode == IBV_WC_BIND_MW);
	write_by(&e[0], one->rkey, e[1].buf, "window 1");
	wr.bind_mw.mw = two;
	wr.bind_mw.rkey = ibv_inc_rkey(two->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	after = wr;
	after.opcode = IBV_WR_LOCAL_INV;
	after.invalidate_rkey = wr.bind_mw.rkey;
	CHECK(!ibv_post_send(e[1].qp, &wr, &bad));
	CHECK(poll_one(&e[1]).opcode == IBV_WC_BIND_MW);
	write_by(&e[0], wr.bind_mw.rkey, e[1].buf + 100, "window 2");
	CHECK(!ibv_post_send(e[1].qp, &after, &bad));
	CHECK(poll_one(&e[1]).opcode == IBV_WC_LOCAL_INV);
	CHECK(!ibv_dealloc_mw(one) && !ibv_dealloc_mw(two));
	pair_close(e);
}

/* --- regions ------------------------------------------------------------------------------- */

/* Keys stay; what they name changes. */
static void changed_regions(void)
{
	struct end e[2];
	struct ibv_mr *mr;
	struct ibv_pd *other;
	char *first = calloc(1, 10000), *second = calloc(1, 10000);
	uint32_t rkey;

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	other = ibv_alloc_pd(e[1].context);
	mr = ibv_reg_mr(e[1].pd, first + 1, 5000, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && other && first && second);
	rkey = mr->rkey;
	CHECK(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS));
	CHECK(mr->rkey == rkey);
	write_by(&e[0], rkey, first + 1, "access");
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, second + 3, 4000, 0));
	CHECK(mr->addr == second + 3 && mr->length == 4000);
	write_by(&e[0], mr->rkey, second + 3, "translation");
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0) && mr->pd == other);
	CHECK(ibv_dealloc_pd(other) == EBUSY && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(other));
	pair_close(e);
	free(first);
	free(second);
}

/* --- events --------------------------------------------------------------------------------- */

static void completion_events(void)
{
	struct end e[2];
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq, *got;
	void *user;
	char tag;

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	ch = ibv_create_comp_channel(e[1].context);
	CHECK(ch);
	CHECK(!fcntl(ch->fd, F_SETFL, O_NONBLOCK));
	cq = ibv_create_cq(e[1].context, 16, &tag, ch, 0);
	CHECK(cq && cq->channel == ch && ch->refcnt == 1);
	CHECK(ibv_get_cq_event(ch, &got, &user) == -1 && errno == EAGAIN);
	CHECK(ibv_destroy_comp_channel(ch) == EBUSY);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!ibv_resize_cq(cq, 1000) && cq->cqe >= 1000);
	CHECK(!ibv_destroy_cq(cq) && ch->refcnt == 0);
	CHECK(!ibv_destroy_comp_channel(ch));
	pair_close(e);
}

/* The element of an event is the program's object. */
static void async_events(void)
{
	struct end e[2];
	struct ibv_async_event event;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1, .sg_list = &sge}, *bad;
	struct ibv_wc wc;
	struct pollfd p;

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	CHECK(!fcntl(e[1].context->async_fd, F_SETFL, O_NONBLOCK));
	CHECK(ibv_get_async_event(e[1].context, &event) == -1 && errno == EAGAIN);
	sge = (struct ibv_sge){(uintptr_t)e[0].buf, 8, e[0].mr->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)e[1].buf;
	wr.wr.rdma.rkey = e[1].mr->rkey ^ 0x100;
	CHECK(!ibv_post_send(e[0].qp, &wr, &bad));
	while (!ibv_poll_cq(e[0].cq, 1, &wc))
		;
	CHECK(wc.status == IBV_WC_REM_ACCESS_ERR && wc.qp_num == e[0].qp->qp_num);
	p = (struct pollfd){.fd = e[1].context->async_fd, .events = POLLIN};
	CHECK(poll(&p, 1, 60000) == 1);
	CHECK(!ibv_get_async_event(e[1].context, &event));
	CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == e[1].qp);
	ibv_ack_async_event(&event);
	pair_close(e);
}

/* --- domains -------------------------------------------------------------------------------- */

static void parent_domains(void)
{
	struct ibv_td_init_attr ta = {0};
	struct ibv_parent_domain_init_attr pa = {0};
	struct end e[2];
	struct ibv_td *td;
	struct ibv_pd *parent;
	struct ibv_mr *mr;

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	td = ibv_alloc_td(e[0].context, &ta);
	CHECK(td);
	CHECK(!ibv_alloc_parent_domain(e[0].context, &pa) && errno == EINVAL);
	pa.pd = e[0].pd;
	pa.td = td;
	parent = ibv_alloc_parent_domain(e[0].context, &pa);
	CHECK(parent);
	CHECK(ibv_dealloc_td(td) == EBUSY && ibv_dealloc_pd(e[0].pd) == EBUSY);
	mr = ibv_reg_mr(parent, e[0].buf, 100, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && mr->pd == parent && !ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(parent) && !ibv_dealloc_td(td));
	pair_close(e);
}

/* A context goes whatever was left in it, also an event that nobody acknowledged. */
static void close_with_all(void)
{
	struct end e[2];
	struct ibv_xrcd_init_attr xa = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 8, .max_sge = 1}};

	pair_open(e, &(struct recipe){.type = IBV_QPT_UD});
	CHECK(address(&e[0], &e[1]) && ibv_create_srq(e[0].pd, &sa));
	CHECK(ibv_open_xrcd(e[0].context, &xa) && ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1));
	CHECK(ibv_create_comp_channel(e[0].context));
	CHECK(ibv_dealloc_pd(e[0].pd) == EBUSY && ibv_destroy_cq(e[0].cq) == EBUSY);
	for (int i = 0; i < 2; i++) {
		CHECK(!ibv_close_device(e[i].context));
		free(e[i].buf);
	}
}

/* When ibv_close_device() has returned, no peer can write to memory that was registered. */
static void closed_means_gone(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_sge sge = {.length = 8};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.num_sge = 1,
		.sg_list = &sge};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	struct end e[2];

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	CHECK(!ibv_modify_qp(e[0].qp, &reset, IBV_QP_STATE));
	e[0].timeout = 1; /* 4.096 us * 2, so that it fails soon */
	to_rts(&e[0], e[0].qp, e[1].qp->qp_num, &e[1]);
	sge.addr = (uintptr_t)e[0].buf;
	sge.lkey = e[0].mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)e[1].buf;
	wr.wr.rdma.rkey = e[1].mr->rkey;
	CHECK(!ibv_close_device(e[1].context));
	CHECK(!ibv_post_send(e[0].qp, &wr, &bad));
	while (!ibv_poll_cq(e[0].cq, 1, &wc))
		;
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
	CHECK(!ibv_close_device(e[0].context));
	free(e[0].buf);
	free(e[1].buf);
}

static void closed_often(void)
{
	for (int i = 0; i < 20; i++)
		closed_means_gone();
}

static void on_alarm(int sig)
{
}

/* Also if rocid is stopped, and signals interrupt the wait for it again and again. */
static void closed_beside_a_stopped_rocid(void)
{
	const struct itimerval often = {{0, 100000}, {0, 100000}}, never = {0};
	struct ucred rocid;
	socklen_t len = sizeof(rocid);
	struct end e[2];

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	CHECK(!getsockopt(e[0].context->cmd_fd, SOL_SOCKET, SO_PEERCRED, &rocid, &len));
	signal(SIGALRM, on_alarm);
	CHECK(!setitimer(ITIMER_REAL, &often, NULL) && !kill(rocid.pid, SIGSTOP));
	CHECK(!ibv_close_device(e[0].context));
	CHECK(!kill(rocid.pid, SIGCONT) && !setitimer(ITIMER_REAL, &never, NULL));
	CHECK(!ibv_close_device(e[1].context));
	free(e[0].buf);
	free(e[1].buf);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void refused_registrations(struct end *e)
{
	const int odp = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_sge sge = {(uintptr_t)e->buf, 8192, e->mr->lkey};
	struct ibv_mr *mr;

	CHECK(!ibv_reg_mr(e->pd, e->buf, 100, odp) && errno == EOPNOTSUPP);
	CHECK(!ibv_reg_mr(e->pd, e->buf, 100, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(!ibv_reg_dmabuf_mr(e->pd, 0, 100, 0, 0, 1) && errno == EOPNOTSUPP);
	mr = ibv_reg_mr(e->pd, e->buf, 100,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB);
	CHECK(mr && !ibv_dereg_mr(mr));
	CHECK(!ibv_advise_mr(e->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1));
	sge.length = BUF_SIZE + 1;
	CHECK(ibv_advise_mr(e->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == ENOENT);
}

static void refused_objects(struct end *e)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = 10, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG};
	struct ibv_qp_init_attr qp = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RAW_PACKET};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_wq_init_attr wq = {0};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_flow_attr flow = {0};

	CHECK(!ibv_create_cq_ex(e->context, &cq) && errno == EOPNOTSUPP);
	CHECK(!ibv_create_cq(e->context, 10, NULL, NULL, 1) && errno == EINVAL);
	CHECK(!ibv_create_cq(e->context, 0, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!ibv_create_qp(e->pd, &qp) && errno == EOPNOTSUPP);
	qp.qp_type = IBV_QPT_RC;
	qp.send_cq = NULL;
	CHECK(!ibv_create_qp(e->pd, &qp) && errno == EINVAL);
	CHECK(!ibv_alloc_dm(e->context, &dm) && errno == EOPNOTSUPP);
	CHECK(!ibv_create_wq(e->context, &wq) && errno == EOPNOTSUPP);
	CHECK(!ibv_create_counters(e->context, &counters) && errno == EOPNOTSUPP);
	CHECK(!ibv_create_flow(e->qp, &flow) && errno == EOPNOTSUPP);
}

/* Each clears errno, so that it cannot be that of the call before. */
static void refused_sharing(struct end *e)
{
	struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM};

	errno = 0;
	CHECK(!ibv_import_device(e->context->cmd_fd) && errno == EOPNOTSUPP);
	errno = 0;
	CHECK(!ibv_import_pd(e->context, e->pd->handle) && errno == EOPNOTSUPP);
	errno = 0;
	CHECK(!ibv_import_mr(e->pd, e->mr->handle) && errno == EOPNOTSUPP);
	errno = 0;
	CHECK(!ibv_open_qp(e->context, &open) && errno == EOPNOTSUPP);
	errno = 0;
	CHECK(!ibv_alloc_null_mr(e->pd) && errno == EOPNOTSUPP);
}

static void refused_queries(struct end *e)
{
	struct ibv_port_attr port;
	struct ibv_device_attr_ex dev;
	struct ibv_gid_entry entry, table[256];
	union ibv_gid gid;
	__be16 pkey;

	CHECK(ibv_query_port(e->context, 0, &port) == EINVAL);
	CHECK(ibv_query_port(e->context, 9, &port) == EINVAL);
	CHECK(!ibv_query_port(e->context, 1, &port) && port.link_layer == IBV_LINK_LAYER_ETHERNET);
	CHECK(port.flags & IBV_QPF_GRH_REQUIRED);
	CHECK(!ibv_query_device_ex(e->context, NULL, &dev) && dev.phys_port_cnt_ex == 2);
	CHECK(!dev.odp_caps.general_caps && dev.orig_attr.max_qp > 0);
	CHECK(ibv_query_gid(e->context, 1, 100000, &gid) == -1 && errno == EINVAL);
	CHECK(ibv_query_gid_ex(e->context, 1, 100, &entry, 0) == ENODATA);
	CHECK(!ibv_query_gid_ex(e->context, 1, 0, &entry, 0) &&
		entry.gid_type == IBV_GID_TYPE_ROCE_V2);
	CHECK(ibv_query_gid_table(e->context, table, 256, 0) == 2); /* one per port */
	CHECK(table[1].port_num == 2);
	CHECK(ibv_query_gid_table(e->context, table, 1, 0) == -EINVAL);
	CHECK(!ibv_query_pkey(e->context, 1, 0, &pkey) && pkey == 0xFFFF);
	CHECK(ibv_get_pkey_index(e->context, 1, pkey) == 0);
	CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED && !ibv_fork_init());
}

static void refused_attributes(struct end *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .path_mig_state = IBV_MIG_REARM};
	struct ibv_qp_init_attr init;
	struct ibv_ah_attr local = {.port_num = 1, .dlid = 1};

	CHECK(ibv_modify_qp(e->qp, &a, IBV_QP_ALT_PATH) == EINVAL);
	CHECK(ibv_modify_qp(e->qp, &a, IBV_QP_PATH_MIG_STATE) == EINVAL);
	CHECK(ibv_modify_qp(e->qp, &a, IBV_QP_CAP) == EINVAL);
	CHECK(!ibv_create_ah(e->pd, &local) && errno == EINVAL); /* is_global 0 */
	CHECK(!ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init) && a.qp_state == IBV_QPS_RTS);
	CHECK(init.qp_context == e && init.send_cq == e->cq && init.qp_type == IBV_QPT_RC);
	CHECK(a.dest_qp_num && a.path_mtu == IBV_MTU_1024 && a.timeout == 20);
}

static void refusals(void)
{
	struct end e[2];

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC});
	refused_registrations(&e[0]);
	refused_objects(&e[0]);
	refused_sharing(&e[0]);
	refused_queries(&e[0]);
	refused_attributes(&e[0]);
	pair_close(e);
}

/* --- rates ------------------------------------------------------------------------------- */

#define RATE_KBPS  20000u
#define RATE_BYTES (8u * BUF_SIZE)

static double now_s(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds for RATE_BYTES. */
static double write_all(struct end e[2])
{
	double start = now_s();

	for (uint64_t i = 0; i < RATE_BYTES / BUF_SIZE; i++) {
		begin(e[0].ex, i);
		ibv_wr_rdma_write(e[0].ex, e[1].mr->rkey, (uintptr_t)e[1].buf);
		ibv_wr_set_sge(e[0].ex, e[0].mr->lkey, (uintptr_t)e[0].buf, BUF_SIZE);
		finish(&e[0], i, IBV_WC_RDMA_WRITE);
	}
	return now_s() - start;
}

static void refused_rates(struct ibv_qp *qp, const struct ibv_packet_pacing_caps *caps)
{
	struct ibv_qp_rate_limit_attr low = {.rate_limit = caps->qp_rate_limit_min - 1};
	struct ibv_qp_rate_limit_attr high = {.rate_limit = caps->qp_rate_limit_max + 1};
	struct ibv_qp_rate_limit_attr burst = {.max_burst_sz = 4096};
	struct ibv_qp_rate_limit_attr size = {.typical_pkt_sz = 64};
	struct ibv_qp_rate_limit_attr more = {.rate_limit = RATE_KBPS, .comp_mask = 1};
	struct ibv_qp_attr a = {.rate_limit = RATE_KBPS};

	CHECK(ibv_modify_qp_rate_limit(qp, &low) == EINVAL);
	CHECK(ibv_modify_qp_rate_limit(qp, &high) == EINVAL);
	CHECK(ibv_modify_qp_rate_limit(qp, &burst) == EINVAL);
	CHECK(ibv_modify_qp_rate_limit(qp, &size) == EINVAL);
	CHECK(ibv_modify_qp_rate_limit(qp, &more) == EINVAL);
	CHECK(ibv_modify_qp(qp, &a, IBV_QP_RATE_LIMIT) == EOPNOTSUPP);
}

/* It is never faster than the limit, less one burst; how much slower is up to the machine. */
static void rates(void)
{
	struct ibv_qp_rate_limit_attr limit = {RATE_KBPS, 4096, 1024, 0}, none = {0};
	struct ibv_device_attr_ex dev;
	struct end e[2];
	double least = (RATE_BYTES - 4096.0) * 8 / (RATE_KBPS * 1e3);

	pair_open(e, &(struct recipe){.type = IBV_QPT_RC, .extended = true});
	CHECK(!ibv_query_device_ex(e->context, NULL, &dev));
	CHECK(dev.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_RC);
	CHECK(dev.packet_pacing_caps.qp_rate_limit_min <= RATE_KBPS &&
		dev.packet_pacing_caps.qp_rate_limit_max >= 100000000);
	refused_rates(e->qp, &dev.packet_pacing_caps);
	CHECK(!ibv_modify_qp_rate_limit(e->qp, &limit));
	CHECK(write_all(e) >= least);
	CHECK(!ibv_modify_qp_rate_limit(e->qp, &none));
	for (int i = 0; write_all(e) >= least; i++) /* unless the machine stood still */
		CHECK(i < 20);
	pair_close(e);
}

/* --- threads ---------------------------------------------------------------------------------- */

#define THREADS 4
#define WRITES	2000

static struct end shared[2];
static uint32_t polled;

/* Each posts by its own way, and polls what comes, until all has come. */
static void *post_and_poll(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < WRITES; i++) {
		struct ibv_wc wc[8];
		int err;

		do {
			int n = ibv_poll_cq(shared[0].cq, 8, wc);

			CHECK(n >= 0);
			for (int k = 0; k < n; k++)
				CHECK(wc[k].status == IBV_WC_SUCCESS);
			__atomic_fetch_add(&polled, (uint32_t)n, __ATOMIC_RELAXED);
			begin(shared[0].ex, (uint64_t)me);
			ibv_wr_atomic_fetch_add(
				shared[0].ex, shared[1].mr->rkey, (uintptr_t)shared[1].buf, 1);
			ibv_wr_set_sge(shared[0].ex, shared[0].mr->lkey,
				(uintptr_t)shared[0].buf + 8u * (unsigned)me, 8);
			err = ibv_wr_complete(shared[0].ex);
			CHECK(!err || err == ENOMEM);
		} while (err);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];

	pair_open(shared, &(struct recipe){.type = IBV_QPT_RC, .extended = true});
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, post_and_poll, (void *)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	for (; polled < THREADS * WRITES; polled++)
		poll_one(&shared[0]);
	CHECK(*(uint64_t *)shared[1].buf == THREADS * WRITES);
	pair_close(shared);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool unreliable; /* needs a link that loses nothing */
	} tests[] = {
		{"wr_* calls on RC", wr_calls, false},
		{"wr_* calls on UC", wr_of_uc, true},
		{"completions in place", in_place, false},
		{"datagrams", datagrams, true},
		{"datagrams by wr_* calls", datagrams_wr, true},
		{"memory windows", windows, false},
		{"changed regions", changed_regions, false},
		{"completion events, resize", completion_events, false},
		{"async events", async_events, false},
		{"thread and parent domains", parent_domains, false},
		{"close with objects left", close_with_all, false},
		{"no access after a close", closed_often, false},
		{"close beside a stopped rocid", closed_beside_a_stopped_rocid, false},
		{"refusals", refusals, false},
		{"rate limits", rates, false},
		{"threads", threads, false},
	};
	bool lossy = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--reliable"))
			lossy = true;
		else /* from with_rocid */
			setenv("ROCI_SOCKET", argv[i], 1);
	}
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (lossy && tests[i].unreliable)
			continue;
		tests[i].run();
		printf("ok   %s\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
