/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applications that talk to the control thread, write what they like into the rings that it gave
 * them, and have workers look at them. A record is a message, a work request, some bytes of shared
 * memory or a turn of a worker. Zeroes are what a good program would do: a message of the type that
 * the record names has what belongs there, with handles of objects that exist; two words may
 * differ.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "abi_cm.h"
#include "abi_wqe.h"
#include "bits.h"
#include "oracle.h"
#include "raw.h"
#include "records.h"
#include "station.h"
#include "target.h"
#include "uaccess.h"

#define SEATS	 3u
#define KEPT	 8u /* objects of a kind that a seat remembers */
#define MR_BYTES 16384u
#define MR_IOVA	 0x10000u

enum kind {
	NONE,
	PD,
	MR,
	CQ,
	QP,
	CHANNEL,
	SRQ,
	AH,
	XRCD,
	CM_CHANNEL,
	CM_ID,
	KINDS
};

struct object {
	uint32_t handle; /* what the reply began with; of an MR its key too, of a QP its state */
	uint32_t key, state;
	uint8_t *map;
	size_t size;
	struct raw_qp qp;
};

/* An application. */
struct seat {
	struct raw s;
	bool open;
	struct object kept[KINDS][KEPT];
	unsigned count[KINDS]; /* ever */
};

static struct seat seats[SEATS];
static int memfd = -1;

/* The kind of object that a message makes, and that its first word names. */
static const struct {
	uint8_t makes, names;
} of_type[ABI_MSG_TYPES] = {
	[ABI_ALLOC_PD] = {PD, NONE},
	[ABI_DEALLOC_PD] = {NONE, PD},
	[ABI_REG_MR] = {MR, PD},
	[ABI_REREG_MR] = {NONE, MR},
	[ABI_DEREG_MR] = {NONE, MR},
	[ABI_CREATE_CHANNEL] = {CHANNEL, NONE},
	[ABI_DESTROY_CHANNEL] = {NONE, CHANNEL},
	[ABI_CREATE_CQ] = {CQ, NONE},
	[ABI_RESIZE_CQ] = {NONE, CQ},
	[ABI_DESTROY_CQ] = {NONE, CQ},
	[ABI_CREATE_SRQ] = {SRQ, PD},
	[ABI_MODIFY_SRQ] = {NONE, SRQ},
	[ABI_QUERY_SRQ] = {NONE, SRQ},
	[ABI_DESTROY_SRQ] = {NONE, SRQ},
	[ABI_CREATE_AH] = {AH, PD},
	[ABI_DESTROY_AH] = {NONE, AH},
	[ABI_CREATE_QP] = {QP, PD},
	[ABI_MODIFY_QP] = {NONE, QP},
	[ABI_QUERY_QP] = {NONE, QP},
	[ABI_EXPLAIN_QP] = {NONE, QP},
	[ABI_LIMIT_QP] = {NONE, QP},
	[ABI_DESTROY_QP] = {NONE, QP},
	[ABI_ATTACH_MCAST] = {NONE, QP},
	[ABI_DETACH_MCAST] = {NONE, QP},
	[ABI_OPEN_XRCD] = {XRCD, NONE},
	[ABI_CLOSE_XRCD] = {NONE, XRCD},
	[ABI_CM_OPEN] = {CM_CHANNEL, NONE},
	[ABI_CM_CLOSE] = {NONE, CM_CHANNEL},
	[ABI_CM_CREATE_ID] = {CM_ID, CM_CHANNEL},
	[ABI_CM_DESTROY_ID] = {NONE, CM_ID},
	[ABI_CM_MIGRATE_ID] = {NONE, CM_ID},
	[ABI_CM_BIND] = {NONE, CM_ID},
	[ABI_CM_RESOLVE_ADDR] = {NONE, CM_ID},
	[ABI_CM_RESOLVE_ROUTE] = {NONE, CM_ID},
	[ABI_CM_QUERY] = {NONE, CM_ID},
	[ABI_CM_LISTEN] = {NONE, CM_ID},
	[ABI_CM_CONNECT] = {NONE, CM_ID},
	[ABI_CM_ACCEPT] = {NONE, CM_ID},
	[ABI_CM_REJECT] = {NONE, CM_ID},
	[ABI_CM_DISCONNECT] = {NONE, CM_ID},
	[ABI_CM_INIT_QP_ATTR] = {NONE, CM_ID},
	[ABI_CM_NOTIFY] = {NONE, CM_ID},
	[ABI_CM_SET_OPTION] = {NONE, CM_ID},
	[ABI_CM_JOIN] = {NONE, CM_ID},
	[ABI_CM_LEAVE] = {NONE, CM_ID},
	[ABI_CM_GET_EVENT] = {NONE, CM_CHANNEL},
};

/* --- objects -------------------------------------------------------------------------- */

static struct object *object(struct seat *t, enum kind k, unsigned pick)
{
	unsigned n = t->count[k] < KEPT ? t->count[k] : KEPT;

	return &t->kept[k][n ? pick % n : 0];
}

static uint32_t handle(struct seat *t, enum kind k, unsigned pick)
{
	return t->count[k] ? object(t, k, pick)->handle : ABI_NO_HANDLE;
}

static void forget(struct object *o)
{
	if (o->map)
		munmap(o->map, o->size);
	memset(o, 0, sizeof(*o));
}

static void keep(struct seat *t, enum kind k, const uint32_t *reply, const int *fds)
{
	struct object *o = &t->kept[k][t->count[k]++ % KEPT];
	struct stat st;

	forget(o);
	o->handle = reply[0];
	o->key = reply[1];
	if (fds[0] < 0 || fstat(fds[0], &st) || !S_ISREG(st.st_mode))
		return;
	o->size = (size_t)st.st_size;
	o->map = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	MUST(o->map != MAP_FAILED);
	o->qp = (struct raw_qp){.s = &t->s, .region = o->map};
	if (k == QP)
		memcpy(&o->qp.r, reply, sizeof(o->qp.r));
}

/* The id that an event made. */
static void keep_request(struct seat *t, const struct abi_cm_event *e)
{
	const uint32_t reply[2] = {e->id};
	const int none = -1;

	if (e->event == ABI_CM_CONNECT_REQUEST)
		keep(t, CM_ID, reply, &none);
}

/* --- messages ------------------------------------------------------------------------- */

static void fill_av(struct abi_ah_attr *ah)
{
	memcpy(ah->dgid, gid_own4, sizeof(ah->dgid));
	memset(ah->dmac, 0xFF, sizeof(ah->dmac));
	ah->port = 1;
	ah->is_global = 1;
	ah->hop_limit = 64;
}

/* The next state's attributes; connected with itself, or with a neighbour on the bench. */
static size_t fill_modify(struct seat *t, const struct record *r, struct abi_modify_qp *m)
{
	static const uint32_t mask[] = {
		[ABI_QPS_INIT] = ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS,
		[ABI_QPS_RTR] = ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
				ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER,
		[ABI_QPS_RTS] = ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY |
				ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC,
		[ABI_QPS_SQD] = ABI_QP_EN_SQD_ASYNC_NOTIFY,
		[ABI_QPS_ERR] = 0,
	};
	struct object *o = object(t, QP, r->b[2]);
	struct object *peer = object(t, QP, r->b[2] >> 4);
	struct abi_qp_attr *a = &m->attr;

	a->qp_state = (uint8_t)(o->state < ABI_QPS_RTS ? o->state + 1 : o->state);
	a->qp_state = (uint8_t)((a->qp_state + r->b[3]) % (ABI_QPS_ERR + 1));
	m->mask = ABI_QP_STATE | (a->qp_state < ARRAY_SIZE(mask) ? mask[a->qp_state] : 0);
	a->access_flags = 0xF;
	a->path_mtu = 1024;
	a->dest_qpn = peer->qp.r.qpn;
	a->port = 1;
	a->timeout = 1;
	a->retry_cnt = a->rnr_retry = 7;
	a->min_rnr_timer = 1;
	a->max_rd_atomic = a->max_dest_rd_atomic = 4;
	fill_av(&a->ah);
	return sizeof(*m);
}

static size_t fill_qp(struct seat *t, unsigned pick, struct abi_create_qp *q)
{
	*q = (struct abi_create_qp){.pd = handle(t, PD, pick),
		.type = ABI_QPT_RC,
		.send_cq = handle(t, CQ, pick),
		.recv_cq = handle(t, CQ, pick >> 4),
		.srq = ABI_NO_HANDLE,
		.max_send_wr = 8,
		.max_recv_wr = 8,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.max_inline = 32,
		.xrcd = ABI_NO_HANDLE};
	return sizeof(*q);
}

/* A region, or its halves the other way round. */
static size_t fill_mr(uint32_t pd, unsigned pick, uint8_t *body)
{
	const struct abi_piece halves[2] = {{MR_BYTES / 2, MR_BYTES / 2}, {0, MR_BYTES / 2}};
	struct abi_reg_mr in = {.pd = pd,
		.access = 0xF,
		.iova = MR_IOVA,
		.length = MR_BYTES,
		.npieces = pick & 8 ? 2 : 0};

	memcpy(body, &in, sizeof(in));
	memcpy(body + sizeof(in), halves, sizeof(halves));
	return sizeof(in) + (pick & 8 ? sizeof(halves) : 0);
}

/* Of RDMA CM; the object that it names is there. All ids use one service. @return its length. */
static size_t fill_cm(struct seat *t, uint32_t type, unsigned pick, uint8_t *body)
{
	const struct abi_cm_param param = {.qpn = object(t, QP, pick >> 4)->qp.r.qpn};
	struct abi_cm_addr addr = {.family = 4, .port = 7000, .ip = {[10] = 0xFF, [11] = 0xFF}};
	struct abi_cm_create_id *id = (struct abi_cm_create_id *)body;

	switch (type) {
	case ABI_CM_CREATE_ID:
		id->ps = pick & 0x80 ? ABI_CM_PS_UDP : ABI_CM_PS_TCP;
		id->qp_type = pick & 0x80 ? ABI_QPT_UD : ABI_QPT_RC;
		return sizeof(*id);
	case ABI_CM_MIGRATE_ID:
		((struct abi_cm_migrate *)body)->channel = handle(t, CM_CHANNEL, pick >> 4);
		return sizeof(struct abi_cm_migrate);
	case ABI_CM_BIND:
		((struct abi_cm_bind *)body)->addr = addr;
		return sizeof(struct abi_cm_bind);
	case ABI_CM_RESOLVE_ADDR:
		memcpy(addr.ip, pick & 0x80 ? gid_peer4 : gid_own4, sizeof(addr.ip));
		((struct abi_cm_resolve_addr *)body)->dst = addr;
		return sizeof(struct abi_cm_resolve_addr);
	case ABI_CM_CONNECT:
		((struct abi_cm_connect *)body)->param = param;
		return sizeof(struct abi_cm_connect);
	case ABI_CM_ACCEPT:
		((struct abi_cm_accept *)body)->param = param;
		return sizeof(struct abi_cm_accept);
	case ABI_CM_REJECT:
		return sizeof(struct abi_cm_reject);
	case ABI_CM_INIT_QP_ATTR:
		((struct abi_cm_init_qp_attr *)body)->state = ABI_QPS_INIT + (pick >> 6);
		return sizeof(struct abi_cm_init_qp_attr);
	case ABI_CM_NOTIFY:
		((struct abi_cm_notify *)body)->event = ABI_EVENT_COMM_EST;
		return sizeof(struct abi_cm_notify);
	case ABI_CM_SET_OPTION:
		((struct abi_cm_set_option *)body)->option = ABI_CM_OPT_TOS + (pick >> 6);
		((struct abi_cm_set_option *)body)->value = pick >> 4 & 3;
		return sizeof(struct abi_cm_set_option);
	case ABI_CM_JOIN:
		addr.ip[12] = 239;
		((struct abi_cm_join *)body)->addr = addr;
		return sizeof(struct abi_cm_join);
	default: /* a handle, and a time or a backlog */
		return 2 * sizeof(uint32_t);
	}
}

/* The message that a good program would send. @return its length. */
static size_t fill(struct seat *t, uint32_t type, const struct record *r, uint8_t *body)
{
	struct abi_hello hello = {.magic = ABI_MAGIC, .version_min = 1, .version_max = ABI_VERSION};
	uint32_t word[8] = {1, 0};
	unsigned pick = r->b[2];
	struct abi_create_ah ah = {.pd = handle(t, PD, pick)};

	if (type < ABI_MSG_TYPES && of_type[type].names)
		word[0] = handle(t, of_type[type].names, pick);
	if (type >= ABI_CM_OPEN && type <= ABI_CM_GET_EVENT) {
		memcpy(body, word, sizeof(word[0]));
		return fill_cm(t, type, pick, body);
	}
	switch (type) {
	case ABI_HELLO:
		memcpy(body, &hello, sizeof(hello));
		return sizeof(hello);
	case ABI_REG_MR:
		return fill_mr(word[0], pick, body);
	case ABI_REREG_MR:
		memcpy(body, word, offsetof(struct abi_rereg_mr, reg));
		return offsetof(struct abi_rereg_mr, reg) +
		       fill_mr(handle(t, PD, pick >> 4), pick,
			       body + offsetof(struct abi_rereg_mr, reg));
	case ABI_CREATE_CQ:
		word[0] = 8;
		word[1] = pick & 1 ? handle(t, CHANNEL, pick >> 1) : ABI_NO_HANDLE;
		break;
	case ABI_RESIZE_CQ:
		word[1] = 8u << (pick >> 6);
		break;
	case ABI_CREATE_SRQ:
		word[1] = 8;
		word[2] = 2;
		word[4] = pick & 1 ? handle(t, XRCD, pick >> 1) : ABI_NO_HANDLE;
		word[5] = pick & 1 ? handle(t, CQ, pick >> 4) : ABI_NO_HANDLE;
		break;
	case ABI_MODIFY_SRQ:
		word[1] = 1u + (pick >> 6);
		word[2] = word[3] = 8;
		break;
	case ABI_CREATE_AH:
		fill_av(&ah.attr);
		memcpy(body, &ah, sizeof(ah));
		return sizeof(ah);
	case ABI_CREATE_QP:
		return fill_qp(t, pick, (struct abi_create_qp *)body);
	case ABI_MODIFY_QP:
		((struct abi_modify_qp *)body)->handle = word[0];
		return fill_modify(t, r, (struct abi_modify_qp *)body);
	case ABI_REPORT:
		word[0] = object(t, QP, pick)->qp.r.qpn;
		word[1] = pick | 'a';
		memcpy(body, word, sizeof(word));
		return sizeof(struct abi_report);
	case ABI_ATTACH_MCAST:
	case ABI_DETACH_MCAST:
		word[1] = 0x02FF; /* FF02:: */
		word[4] = pick << 24;
		break;
	}
	memcpy(body, word, sizeof(word));
	return sizeof(word);
}

/* Two words of their own, and the length. */
static size_t spoil(const struct record *r, uint8_t *body, size_t len)
{
	int room = ABI_MSG_MAX - (int)len;
	int delta = (int8_t)r->b[4];

	for (unsigned i = 0; i < 2; i++) {
		unsigned at = r->b[5 + 5 * i];

		if (at)
			memcpy(body + (4 * (at - 1u)) % ABI_MSG_MAX, &r->b[6 + 5 * i], 4);
	}
	if (delta < 0)
		return len > (size_t)-delta ? len + (size_t)delta : 0;
	return len + (size_t)(delta < room ? delta : room);
}

/* Takes the reply, if there is one: a MODIFY_QP waits for its neighbour. */
static bool receive(struct seat *t, uint32_t type)
{
	struct pollfd p = {.fd = t->s.sock, .events = POLLIN};
	uint32_t body[ABI_MSG_MAX / 4] __attribute__((aligned(8))) = {0};
	struct abi_msg msg;
	int fds[2];

	if (poll(&p, 1, 0) != 1)
		return true;
	if (!raw_receive(t->s.sock, &msg, body, sizeof(body), fds, 2))
		return false;
	trace("  %d %s\n", msg.status, msg.status ? (char *)body : "");
	MUST(msg.status <= 0);
	if (msg.status) { /* a sentence, and nothing else */
		MUST(fds[0] < 0 && memchr(body, 0, ABI_SENTENCE_MAX) && body[0]);
		return true;
	}
	if (msg.type == ABI_HELLO) {
		MUST(fds[0] >= 0 && fds[1] >= 0);
		memcpy(&t->s.hello, body, sizeof(t->s.hello));
		t->s.region = mmap(NULL, t->s.hello.region_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			fds[0], 0);
		MUST(t->s.region != MAP_FAILED);
	} else if (type == ABI_CM_GET_EVENT) {
		keep_request(t, (struct abi_cm_event *)body);
	} else if (type < ABI_MSG_TYPES && of_type[type].makes) {
		keep(t, of_type[type].makes, body, fds);
	}
	for (unsigned i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return true;
}

static void close_seat(struct seat *t)
{
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < KEPT; i++)
			forget(&t->kept[k][i]);
	if (t->s.region)
		munmap(t->s.region, t->s.hello.region_size);
	close(t->s.sock);
	memset(t, 0, sizeof(*t));
}

static void send_message(struct seat *t, uint32_t type, const struct record *r, const uint8_t *body,
	size_t len, unsigned nfds)
{
	uint8_t buf[sizeof(struct abi_msg) + ABI_MSG_MAX];
	struct abi_msg msg = {.type = type, .seq = ++t->s.seq};
	int fds[3] = {memfd, t->s.sock, memfd};

	memcpy(buf, &msg, sizeof(msg));
	memcpy(buf + sizeof(msg), body, len);
	raw_send(t->s.sock, buf, sizeof(msg) + len, r->b[3] & 0x80 ? &fds[1] : fds, nfds);
	station_turn();
	if (!receive(t, type))
		close_seat(t);
}

static void sit_down(struct seat *t)
{
	static const struct record zero;
	uint8_t body[ABI_MSG_MAX] = {0};

	t->s.sock = raw_connect(station_path());
	MUST(t->s.sock >= 0);
	t->open = true;
	send_message(t, ABI_HELLO, &zero, body, fill(t, ABI_HELLO, &zero, body), 0);
	MUST(t->s.region);
}

static void message(struct seat *t, const struct record *r)
{
	uint32_t type = ABI_HELLO + 1 + r->b[1] % ABI_MSG_TYPES;
	uint8_t body[2 * ABI_MSG_MAX] __attribute__((aligned(8))) = {0};
	size_t len = spoil(r, body, fill(t, type, r, body));
	unsigned nfds = (r->b[3] >> 5 & 3) ^ (type == ABI_REG_MR || type == ABI_REREG_MR);
	uint32_t first;

	memcpy(&first, body, sizeof(first));
	trace("%u: message %u, %zu bytes %x..., %u descriptors", (unsigned)(t - seats), type, len,
		first, nfds);
	if (type == ABI_MODIFY_QP && t->count[QP])
		object(t, QP, r->b[2])->state = ((struct abi_modify_qp *)body)->attr.qp_state;
	send_message(t, type, r, body, len, nfds < 2 ? nfds : 2);
}

/* --- rings ---------------------------------------------------------------------------- */

/* A work request that is right but for two words. */
static void post(struct seat *t, const struct record *r)
{
	struct object *o = object(t, QP, r->b[2]);
	uint32_t key = object(t, MR, r->b[2] >> 4)->key;
	struct abi_sge sge = {.addr = MR_IOVA, .length = r->b[3] * 16u, .lkey = key};
	struct abi_wqe w = {.ctl = ABI_WQE_CTL(r->b[1] & 15, 1, ABI_WQE_SIGNALED),
		.remote_addr = MR_IOVA + 8192,
		.rkey = key};
	uint8_t *entry;

	if (!o->map)
		return;
	trace("%u: post %u to QP %x\n", (unsigned)(t - seats), r->b[1], o->qp.r.qpn);
	if (r->b[1] & 0x10) {
		entry = (uint8_t *)raw_recv_wqe(&o->qp, o->qp.received);
		raw_post_recv(&o->qp, 1, sge);
	} else {
		entry = (uint8_t *)raw_wqe(&o->qp, o->qp.posted);
		raw_post(&o->qp, &w, &sge);
	}
	for (unsigned i = 0; i < 2; i++)
		if (r->b[5 + 5 * i])
			memcpy(entry + 4 * (r->b[5 + 5 * i] & 15), &r->b[6 + 5 * i], 4);
	raw_ring(&o->qp);
}

/* Any word of any ring, or of the session's region. */
static void scribble(struct seat *t, const struct record *r)
{
	static const enum kind kind[] = {QP, CQ, SRQ, QP};
	struct object *o = object(t, kind[r->b[1] & 3], r->b[2]);
	uint8_t *map = r->b[1] & 4 ? t->s.region : o->map;
	size_t size = r->b[1] & 4 ? t->s.hello.region_size : o->size;
	size_t at = record_u16(r, 3) * 4u;

	if (!map || at + 4 > size)
		return;
	trace("%u: scribble at %zu of %zu\n", (unsigned)(t - seats), at, size);
	memcpy(map + at, &r->b[6], 4);
	memcpy(map + (at + 4 * r->b[5]) % (size - 4), &r->b[10], 4);
}

/* --- what happens ----------------------------------------------------------------------- */

/* Bytes that are no message: the record itself, cut short. */
static void send_raw(struct seat *t, const struct record *r)
{
	int fds[] = {memfd, t->s.sock, memfd};

	trace("%u: %u bytes\n", (unsigned)(t - seats), r->b[2] & 15);
	raw_send(t->s.sock, r, r->b[2] & 15, fds, r->b[3] & 3);
	station_turn();
	if (!receive(t, ABI_MSG_TYPES))
		close_seat(t);
}

static void act(const struct record *r)
{
	struct seat *t = &seats[r->b[0] % SEATS];

	if (!t->open)
		sit_down(t);
	switch (r->act & 15) {
	case 8:
	case 9:
		post(t, r);
		break;
	case 10:
		scribble(t, r);
		break;
	case 11:
	case 12:
		trace("worker %u\n", r->b[1] & 1);
		station_work(r->b[1] & 1, 1 + r->b[2] % 16);
		station_turn();
		break;
	case 13:
		send_raw(t, r);
		break;
	case 14:
		trace("%u: ends\n", (unsigned)(t - seats));
		close_seat(t);
		station_turn();
		break;
	default:
		message(t, r);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct records in = {data, size, 0};
	struct record r;

	if (memfd < 0) {
		memfd = raw_memfd(MR_BYTES, F_SEAL_SHRINK);
		station_start();
	}
	while (records_take(&in, &r))
		act(&r);
	for (unsigned i = 0; i < SEATS; i++)
		if (seats[i].open)
			close_seat(&seats[i]);
	station_turn();
	for (unsigned i = 0; i < TEST_WORKERS; i++)
		station_work(i, 4); /* packets of QPs that are gone */
	station_must_be_empty();
	return 0;
}
