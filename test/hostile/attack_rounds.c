/* SPDX-License-Identifier: BSD-3-Clause */
/* Much work for one cause: what one datagram, one acknowledgement or one broken queue sets off in a
 * single round of the worker. Counted is the work, not the time that it takes. */
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"
#include "limits.h"

#define QKEY	  0x11223344u
#define DATAGRAMS 200u
#define BUFFER	  64u /* with the 40 bytes of the header */
#define RECEIVES  65536u
#define QUIET	  200u /* looks in a row, 10 ms apart, that find nothing */

static const uint8_t mgid[16] = {[10] = 0xFF, [11] = 0xFF, 239, 7, 7, 7};

/* One user's share of the places in a group. */
#define MEMBERS (MCAST_MEMBERS_MAX / 2)

/* A session with as many datagram queue pairs in one group as that may have. They share one queue
 * of receives, and one of completions. */
struct crowd {
	struct raw s;
	struct raw_cq cq, sent;
	struct raw_mr mr;
	struct abi_create_srq_reply srq;
	uint8_t *srq_region;
	struct raw_qp from;
	struct raw_qp member[MEMBERS];
	uint32_t ah;
};

static void make_srq(struct crowd *k)
{
	struct abi_create_srq in = {.pd = k->s.pd,
		.max_wr = RECEIVES,
		.max_sge = 1,
		.xrcd = ABI_NO_HANDLE,
		.cq = ABI_NO_HANDLE};
	int fd = -1;

	must(!raw_call(&k->s, ABI_CREATE_SRQ, &in, sizeof(in), -1, &k->srq, sizeof(k->srq), &fd, 1),
		k->s.why);
	k->srq_region = mmap(NULL, k->srq.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(k->srq_region != MAP_FAILED, "the SRQ cannot be mapped");
	close(fd);
	for (uint32_t i = 0; i < RECEIVES; i++) {
		struct abi_recv_wqe *w =
			(void *)(k->srq_region + k->srq.ring_off + (size_t)i * k->srq.stride);

		w->wr_id = i;
		w->sge[0] = (struct abi_sge){
			.addr = (uintptr_t)k->mr.mem, .length = BUFFER, .lkey = k->mr.key};
		atomic_store((_Atomic uint32_t *)&w->ctl, ABI_WQE_CTL(0, 1, 0) | ABI_WQE_PHASE);
	}
	atomic_store(&((struct abi_queue *)k->srq_region)->producer, RECEIVES);
}

static void set_state(struct raw_qp *qp, uint8_t state, uint32_t mask)
{
	struct abi_modify_qp m = {.handle = qp->r.handle,
		.mask = ABI_QP_STATE | mask,
		.attr = {.qp_state = state, .port = 1, .qkey = QKEY}};

	raw_must(qp->s, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static void make_member(struct crowd *k, struct raw_qp *qp, const struct abi_create_qp *in)
{
	raw_qp(&k->s, qp, in->srq == ABI_NO_HANDLE ? &k->sent : &k->cq, in);
	set_state(qp, ABI_QPS_INIT, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY);
	set_state(qp, ABI_QPS_RTR, 0);
	set_state(qp, ABI_QPS_RTS, ABI_QP_SQ_PSN);
}

static void crowd_open(struct crowd *k, const struct arena *a)
{
	struct abi_create_ah ah = {.attr = {.port = 1,
					   .is_global = 1,
					   .hop_limit = 1,
					   .dmac = {255, 255, 255, 255, 255, 255}}};
	struct abi_mcast join = {0};
	struct abi_create_qp in;

	raw_open(&k->s, a->socket);
	raw_cq(&k->s, &k->cq, 2 * RECEIVES, ABI_NO_HANDLE);
	raw_cq(&k->s, &k->sent, 2 * DATAGRAMS, ABI_NO_HANDLE);
	raw_mr(&k->s, &k->mr, 4096, 0, ABI_ACCESS_LOCAL_WRITE);
	make_srq(k);
	in = raw_qp_request(&k->s, &k->sent, 1);
	in.type = ABI_QPT_UD;
	in.max_send_wr = 256;
	make_member(k, &k->from, &in);
	in.send_cq = in.recv_cq = k->cq.r.handle;
	in.srq = k->srq.handle;
	in.max_send_wr = 1;
	in.max_recv_wr = 0;
	memcpy(join.mgid, mgid, 16);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		make_member(k, &k->member[i], &in);
		join.qp = k->member[i].r.handle;
		raw_must(&k->s, ABI_ATTACH_MCAST, &join, sizeof(join), NULL, 0);
	}
	ah.pd = k->s.pd;
	memcpy(ah.attr.dgid, mgid, 16);
	raw_must(&k->s, ABI_CREATE_AH, &ah, sizeof(ah), &k->ah, sizeof(k->ah));
}

static void crowd_close(struct crowd *k)
{
	raw_qp_unmap(&k->from);
	for (uint32_t i = 0; i < MEMBERS; i++)
		raw_qp_unmap(&k->member[i]);
	munmap(k->srq_region, k->srq.region_size);
	raw_mr_free(&k->mr);
	raw_close(&k->s);
}

/* The first that are ever posted, all in the ring before the worker is asked to look. */
static void send_to_group(struct crowd *k)
{
	for (unsigned i = 0; i < DATAGRAMS; i++) {
		struct abi_wqe *w = raw_wqe(&k->from, i);

		w->wr_id = i;
		w->ud.ah = k->ah;
		w->ud.remote_qpn = 0xFFFFFF;
		w->ud.remote_qkey = QKEY;
		w->sge[0] = (struct abi_sge){
			.addr = (uintptr_t)k->mr.mem, .length = 16, .lkey = k->mr.key};
		atomic_store((_Atomic uint32_t *)&w->ctl,
			ABI_WQE_CTL(ABI_WR_SEND, 1, ABI_WQE_SIGNALED) | ABI_WQE_PHASE);
	}
	raw_ring(&k->from);
}

/* @return completions of receives until none comes any more. */
static unsigned copies(struct crowd *k)
{
	unsigned quiet = 0;
	unsigned n = 0;

	while (quiet++ < QUIET) {
		struct abi_cqe cqe;

		for (; raw_poll(&k->cq, &cqe); quiet = 0)
			n += cqe.status == ABI_WC_SUCCESS;
		usleep(10000);
	}
	return n;
}

/* Each datagram asks for MEMBERS receives; what one session gets of that is bounded. */
static void group_of_many(struct arena *a)
{
	static struct crowd k;
	struct abi_cqe cqe;
	unsigned got;

	for (unsigned i = 0; i < a->effort; i++) {
		crowd_open(&k, a);
		send_to_group(&k);
		for (unsigned n = 0; n < DATAGRAMS; n++)
			must(raw_wait(&k.sent, &cqe) && !cqe.status, "a datagram was not sent");
		got = copies(&k);
		must(got >= MEMBERS, "not all members got the first datagram");
		must(got <= DATAGRAMS * MEMBERS / 2,
			"the worker delivered all copies of a flood at once");
		crowd_close(&k);
	}
}

/* @return events of @p type that came, until all @p most have or none comes any more. */
static unsigned count_events(struct raw *s, uint32_t type, unsigned most)
{
	struct pollfd p = {.fd = s->async, .events = POLLIN};
	struct abi_event ev;
	unsigned n = 0;

	while (n < most && poll(&p, 1, 1000 * RAW_PATIENCE_S) == 1) {
		if (recv(s->async, &ev, sizeof(ev), 0) != sizeof(ev))
			break;
		n += ev.type == type;
	}
	return n;
}

/* The queue of receives breaks, and with the next datagram all queue pairs fail: each raises an
 * event. */
static void all_fail_together(struct arena *a)
{
	static struct crowd k;

	for (unsigned i = 0; i < a->effort; i++) {
		struct abi_queue *head;

		crowd_open(&k, a);
		head = (struct abi_queue *)k.srq_region;
		atomic_store(&head->producer, atomic_load(&head->consumer) + 3 * RECEIVES);
		send_to_group(&k);
		must(count_events(&k.s, ABI_EVENT_QP_FATAL, MEMBERS) == MEMBERS,
			"QP_FATAL did not come of each queue pair that failed");
		crowd_close(&k);
	}
}

/* Binds after a SEND that nobody acknowledges: if all of them were executed, its acknowledgement
 * would complete all in one step. Whether they were, the region tells, which cannot go while the
 * last one has it. */
static void locals_ahead(struct arena *a)
{
	struct abi_alloc_mw alloc = {.type = 2};
	struct abi_alloc_mw_reply mw;
	struct abi_create_qp in;
	struct abi_qp_attr attr;
	struct raw_qp qp, deaf;
	struct raw_mr mr;
	struct duo d;

	duo_open(&d, a);
	raw_mr(&d.s, &mr, 4096, 0, DUO_ACCESS | ABI_ACCESS_MW_BIND);
	alloc.pd = d.s.pd;
	raw_must(&d.s, ABI_ALLOC_MW, &alloc, sizeof(alloc), &mw, sizeof(mw));
	in = raw_qp_request(&d.s, &d.cq, 1024);
	raw_qp(&d.s, &qp, &d.cq, &in);
	raw_qp(&d.s, &deaf, &d.cq, &in); /* stays in RESET, and answers nothing */
	must(!raw_rts(&qp, 1, deaf.r.qpn, 2, DUO_ACCESS), qp.s->why);
	raw_request(&qp, ABI_WR_SEND, 1, duo_sge(&d, 0, 8), 0, 0);
	for (uint32_t i = 0, key = mw.rkey; i < 1001; i++) {
		struct abi_wqe w = {.ctl = ABI_WQE_CTL(ABI_WR_LOCAL_INV, 0, 0), .inv_rkey = key};

		if (i % 2 == 0) {
			key = (key & ~0xFFu) | ((key + 1) & 0xFF);
			w.ctl = ABI_WQE_CTL(ABI_WR_BIND_MW, 0, 0);
			raw_wqe(&qp, qp.posted)->bind.mw = mw.rkey;
			raw_wqe(&qp, qp.posted)->bind.mr_lkey = mr.key;
			raw_wqe(&qp, qp.posted)->bind.new_rkey = key;
			raw_wqe(&qp, qp.posted)->bind.access = ABI_ACCESS_REMOTE_READ;
			raw_wqe(&qp, qp.posted)->bind.addr = (uintptr_t)mr.mem;
			raw_wqe(&qp, qp.posted)->bind.length = mr.len;
		}
		raw_post(&qp, &w, w.sge);
	}
	for (unsigned i = 0; i < 300; i++) /* a round each */
		raw_must(&d.s, ABI_QUERY_QP, &qp.r.handle, 4, &attr, sizeof(attr));
	must(!raw_call(&d.s, ABI_DEREG_MR, &mr.handle, 4, -1, NULL, 0, NULL, 0),
		"a thousand binds are executed and wait for one acknowledgement");
	raw_qp_unmap(&qp);
	raw_qp_unmap(&deaf);
	raw_mr_free(&mr);
	duo_close(&d);
}

const struct attack attacks_rounds[] = {
	{"datagrams to a group of many queue pairs", group_of_many},
	{"queue pairs that fail together", all_fail_together},
	{"binds that wait for one acknowledgement", locals_ahead},
	{NULL, NULL},
};
