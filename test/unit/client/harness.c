/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "bits.h"
#include "harness.h"

#define FIRST_HANDLE 7u /* anything but an index */

bool harness_sleeps, harness_rocev1;

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

static struct harness_shm shm_make(uint32_t size)
{
	struct harness_shm s = {.fd = memfd_create("harness", MFD_CLOEXEC), .size = size};

	must(s.fd >= 0 && ftruncate(s.fd, size) == 0, "memfd");
	s.base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
	must(s.base != MAP_FAILED, "mmap");
	return s;
}

static void shm_drop(struct harness_shm *s)
{
	if (s->base) {
		munmap(s->base, s->size);
		close(s->fd);
	}
	memset(s, 0, sizeof(*s));
}

void harness_reply(struct harness *h, const struct abi_msg *msg, int status, const void *body,
	size_t len, const int *fds, unsigned nfds)
{
	struct abi_msg out = {.type = msg->type, .seq = msg->seq, .status = status};
	struct iovec iov[2] = {{&out, sizeof(out)}, {(void *)body, len}};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(4 * sizeof(int))];
	} ctl = {0};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = len ? 2 : 1};

	if (nfds) {
		struct cmsghdr *cm;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	sendmsg(h->conn, &mh, MSG_NOSIGNAL);
}

/* --- requests --------------------------------------------------------------------------- */

static void hello(struct harness *h, const struct abi_msg *msg)
{
	uint32_t off = sizeof(struct abi_session), stride = sizeof(struct abi_doorbell);
	struct abi_hello_reply r = {
		.magic = ABI_MAGIC,
		.version = ABI_VERSION,
		.workers = HARNESS_WORKERS,
		.epoch = h->epoch,
		.region_size = off + HARNESS_WORKERS * stride,
		.doorbell_off = off,
		.doorbell_stride = stride,
		.device = "roci0",
		.sleeps = harness_sleeps,
		.rocev1 = harness_rocev1,
	};
	int pair[2], fds[2];

	h->session = shm_make(r.region_size);
	atomic_store(&((struct abi_session *)h->session.base)->epoch, h->epoch);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
	h->async_fd = pair[0];
	fds[0] = h->session.fd;
	fds[1] = pair[1];
	harness_reply(h, msg, 0, &r, sizeof(r), fds, 2);
	close(pair[1]);
}

/* Worker 2 has none to give. */
static void get_wake(struct harness *h, const struct abi_msg *msg, const struct abi_get_wake *in)
{
	static const char why[] = "no descriptors are left";
	int fd = eventfd(0, EFD_NONBLOCK);

	must(fd >= 0, "eventfd");
	if (in->worker == 2)
		harness_reply(h, msg, -EMFILE, why, sizeof(why), NULL, 0);
	else
		harness_reply(h, msg, 0, NULL, 0, &fd, 1);
	if (in->worker == 1)
		h->wake = fd;
	else
		close(fd);
}

static void create_channel(struct harness *h, const struct abi_msg *msg)
{
	struct abi_handle_reply r = {.handle = FIRST_HANDLE};
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
	h->channel_fd = pair[0];
	harness_reply(h, msg, 0, &r, sizeof(r), &pair[1], 1);
	close(pair[1]);
}

static void create_cq(struct harness *h, const struct abi_msg *msg, const struct abi_create_cq *in)
{
	uint32_t depth = round_pow2(in->depth), i = 0;
	uint32_t stride = sizeof(struct abi_cq_lane) + depth * sizeof(struct abi_cqe);
	struct abi_create_cq_reply r = {
		.depth = depth,
		.lanes = HARNESS_WORKERS,
		.lane_off = sizeof(struct abi_cq),
		.lane_stride = stride,
		.region_size = sizeof(struct abi_cq) + HARNESS_WORKERS * stride,
	};
	struct harness_cq *c;

	while (h->cq[i].live)
		i++;
	c = &h->cq[i];
	c->live = true;
	c->asked = *in;
	c->shm = shm_make(r.region_size);
	c->cq.arm = &((struct abi_cq *)c->shm.base)->arm;
	c->cq.handle = r.handle = FIRST_HANDLE + i;
	c->cq.channel = in->channel;
	for (unsigned l = 0; l < HARNESS_WORKERS; l++)
		cq_lane_init(&c->cq, l,
			(struct abi_cq_lane *)(c->shm.base + r.lane_off + l * stride), depth);
	harness_reply(h, msg, 0, &r, sizeof(r), &c->shm.fd, 1);
}

/* As the core: the lanes go on in a new ring, the old one stays as it is. */
static void resize_cq(struct harness *h, const struct abi_msg *msg, const struct abi_resize_cq *in)
{
	uint32_t depth = round_pow2(in->depth), waiting = 0;
	uint32_t stride = sizeof(struct abi_cq_lane) + depth * sizeof(struct abi_cqe);
	struct abi_create_cq_reply r = {
		.handle = in->handle,
		.depth = depth,
		.lanes = HARNESS_WORKERS,
		.lane_off = sizeof(struct abi_cq),
		.lane_stride = stride,
		.region_size = sizeof(struct abi_cq) + HARNESS_WORKERS * stride,
	};
	struct harness_cq *c = &h->cq[in->handle - FIRST_HANDLE];
	struct harness_shm shm;

	for (unsigned l = 0; l < HARNESS_WORKERS; l++)
		waiting += cq_lane_waiting(&c->cq.lane[l]);
	if (in->depth < waiting) {
		harness_reply(h, msg, -EINVAL, "too small", 10, NULL, 0);
		return;
	}
	shm = shm_make(r.region_size);
	atomic_fetch_add(&((struct abi_cq *)c->shm.base)->resizes, 1);
	for (unsigned l = 0; l < HARNESS_WORKERS; l++)
		cq_lane_move(&c->cq.lane[l],
			(struct abi_cq_lane *)(shm.base + r.lane_off + l * stride), depth);
	shm_drop(&c->resized);
	c->resized = shm;
	if (h->resized)
		h->resized(h);
	harness_reply(h, msg, 0, &r, sizeof(r), &shm.fd, 1);
}

static void create_qp(struct harness *h, const struct abi_msg *msg, const struct abi_create_qp *in)
{
	uint32_t i = 0, queues = 2 * sizeof(struct abi_queue);
	struct abi_create_qp_reply r = {
		.worker = 1,
		.sq_depth = round_pow2(in->max_send_wr),
		.sq_stride = abi_sq_stride(in->max_send_sge, in->max_inline),
		.rq_depth = in->max_recv_wr ? round_pow2(in->max_recv_wr) : 0,
		.rq_stride = abi_rq_stride(in->max_recv_sge),
		.max_send_sge = in->max_send_sge,
		.max_recv_sge = in->max_recv_sge,
		.max_inline = in->max_inline,
		.sq_queue_off = 0,
		.rq_queue_off = sizeof(struct abi_queue),
		.sq_ring_off = queues,
	};
	struct harness_qp *q;

	while (h->qp[i].live)
		i++;
	q = &h->qp[i];
	memset(q, 0, sizeof(*q));
	r.handle = FIRST_HANDLE + i;
	r.qpn = HARNESS_QPN + r.handle;
	r.doorbell = 4000 + 100 * i; /* words of both summaries */
	r.rq_ring_off = r.sq_ring_off + r.sq_depth * r.sq_stride;
	r.region_size = r.rq_ring_off + r.rq_depth * r.rq_stride;
	q->live = true;
	q->asked = *in;
	q->shm = shm_make(r.region_size);
	if (h->lie_ring_off)
		r.rq_ring_off = h->lie_ring_off;
	q->told = r;
	harness_reply(h, msg, 0, &r, sizeof(r), &q->shm.fd, 1);
}

static void modify_qp(struct harness *h, const struct abi_msg *msg, const struct abi_modify_qp *in)
{
	struct harness_qp *q = &h->qp[in->handle - FIRST_HANDLE];

	q->modify_mask = in->mask;
	q->modified = in->attr;
	if (in->mask & ABI_QP_STATE)
		q->attr.qp_state = in->attr.qp_state;
	if (in->mask & ABI_QP_STATE && in->attr.qp_state == ABI_QPS_RESET) {
		uint8_t wqe[1024];

		/* As the core: what is posted is thrown away, indices go on. */
		while (harness_take_send(h, in->handle - FIRST_HANDLE, wqe))
			;
		while (harness_take_recv(h, in->handle - FIRST_HANDLE, wqe))
			;
		atomic_store(&harness_sq(h, in->handle - FIRST_HANDLE)->consumer, q->sq_next);
		memset(q->cqes, 0, sizeof(q->cqes));
	}
	harness_reply(h, msg, 0, NULL, 0, NULL, 0);
}

static void reg_mr(
	struct harness *h, const struct abi_msg *msg, const struct abi_reg_mr *in, int fd)
{
	struct abi_reg_mr_reply r = {.handle = 90, .lkey = 0x1100, .rkey = 0x2200};

	if (h->reg_base)
		munmap(h->reg_base, h->reg.fd_off + h->reg.length);
	h->reg = *in;
	h->reg_base = NULL;
	if (in->fd_off >> 40) { /* of the arena: too far from its beginning */
		harness_reply(h, msg, 0, &r, sizeof(r), NULL, 0);
		return;
	}
	h->reg_base =
		mmap(NULL, in->fd_off + in->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(h->reg_base != MAP_FAILED, "mmap of an MR");
	harness_reply(h, msg, 0, &r, sizeof(r), NULL, 0);
}

static void get_arena(struct harness *h, const struct abi_msg *msg)
{
	int fd = memfd_create("harness", MFD_CLOEXEC);

	must(fd >= 0 && ftruncate(fd, (off_t)ABI_ARENA_SIZE) == 0, "memfd");
	harness_reply(h, msg, 0, NULL, 0, &fd, 1);
	close(fd);
}

static void query(struct harness *h, const struct abi_msg *msg, const uint32_t *body)
{
	struct abi_device_attr device = {.ports = 1, .max_qp = 123, .version = "harness"};
	struct abi_port_attr port = {
		.state = 4, .max_mtu = 4096, .active_mtu = 1024, .gids = 5, .bad_pkey_cntr = 9};
	/* 0 RoCEv1, 1 empty, 2 link-local, 3 IPv4, 4 IPv6 */
	static const struct abi_gid gids[5] = {
		{.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = ABI_GID_ROCEV1},
		{.type = 0},
		{.gid = {0xfe, 0x80, [15] = 1}, .type = ABI_GID_ROCEV2_IPV6},
		{.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = ABI_GID_ROCEV2_IPV4, .vid = 5},
		{.gid = {0x20, 0x01, [15] = 1}, .type = ABI_GID_ROCEV2_IPV6},
	};
	struct abi_pkey pkey = {.pkey = 0xffff};

	if (msg->type == ABI_QUERY_DEVICE)
		harness_reply(h, msg, 0, &device, sizeof(device), NULL, 0);
	else if (msg->type == ABI_QUERY_PORT)
		harness_reply(h, msg, 0, &port, sizeof(port), NULL, 0);
	else if (msg->type == ABI_QUERY_GID)
		harness_reply(h, msg, 0, &gids[body[1] % 5], sizeof(gids[0]), NULL, 0);
	else
		harness_reply(h, msg, 0, &pkey, sizeof(pkey), NULL, 0);
}

static void destroy(struct harness *h, const struct abi_msg *msg, const struct abi_handle *in)
{
	uint32_t i = in->handle - FIRST_HANDLE;

	if (msg->type == ABI_DESTROY_QP && i < HARNESS_QPS) {
		h->qp[i].live = false;
		shm_drop(&h->qp[i].shm);
	} else if (msg->type == ABI_DESTROY_CQ && i < HARNESS_CQS) {
		h->cq[i].live = false;
		shm_drop(&h->cq[i].shm);
		shm_drop(&h->cq[i].resized);
	}
	harness_reply(h, msg, 0, NULL, 0, NULL, 0);
}

static void answer(
	struct harness *h, const struct abi_msg *msg, const void *body, size_t len, int fd)
{
	struct abi_handle_reply handle = {.handle = 70};
	harness_hook *hook = atomic_load(&h->hook);

	h->calls[msg->type]++;
	if (hook && hook(h, msg, body, len))
		return;
	switch (msg->type) {
	case ABI_HELLO:
		hello(h, msg);
		break;
	case ABI_QUERY_DEVICE:
	case ABI_QUERY_PORT:
	case ABI_QUERY_GID:
	case ABI_QUERY_PKEY:
		query(h, msg, body);
		break;
	case ABI_ALLOC_PD:
		harness_reply(h, msg, 0, &handle, sizeof(handle), NULL, 0);
		break;
	case ABI_REG_MR:
		reg_mr(h, msg, body, fd);
		break;
	case ABI_REREG_MR:
		reg_mr(h, msg, &((const struct abi_rereg_mr *)body)->reg, fd);
		break;
	case ABI_GET_ARENA:
		get_arena(h, msg);
		break;
	case ABI_GET_USERFAULTFD:
		harness_reply(h, msg, -EOPNOTSUPP, "no", 3, NULL, 0);
		break;
	case ABI_GET_WAKE:
		get_wake(h, msg, body);
		break;
	case ABI_CREATE_CHANNEL:
		create_channel(h, msg);
		break;
	case ABI_CREATE_CQ:
		create_cq(h, msg, body);
		break;
	case ABI_RESIZE_CQ:
		resize_cq(h, msg, body);
		break;
	case ABI_CREATE_QP:
		create_qp(h, msg, body);
		break;
	case ABI_MODIFY_QP:
		modify_qp(h, msg, body);
		break;
	case ABI_QUERY_QP:
		harness_reply(h, msg, 0, &h->qp[*(uint32_t *)body - FIRST_HANDLE].attr,
			sizeof(struct abi_qp_attr), NULL, 0);
		break;
	default:
		destroy(h, msg, body);
	}
}

/* One request.  Returns false when the client has gone or the harness is to end. */
static bool serve(struct harness *h)
{
	struct {
		struct abi_msg msg;
		uint8_t body[ABI_MSG_MAX] __attribute__((aligned(8)));
	} p;
	struct iovec iov = {&p, sizeof(p)};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} ctl;
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = ctl.buf,
		.msg_controllen = sizeof(ctl.buf)};
	struct cmsghdr *cm;
	int fd = -1;
	ssize_t n = recvmsg(h->conn, &mh, MSG_CMSG_CLOEXEC);

	if (n < (ssize_t)sizeof(p.msg))
		return false;
	cm = CMSG_FIRSTHDR(&mh);
	if (cm)
		memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	answer(h, &p.msg, p.body, (size_t)n - sizeof(p.msg), fd);
	if (fd >= 0)
		close(fd);
	return true;
}

static void *run(void *arg)
{
	struct harness *h = arg;

	h->conn = accept(h->listener, NULL, NULL);
	if (h->conn >= 0 && h->full) {
		struct abi_msg msg = {.type = ABI_HELLO};

		harness_reply(h, &msg, -EUSERS, "full: come back", 16, NULL, 0);
		shutdown(h->conn, SHUT_RDWR);
		close(h->conn);
		h->conn = -1;
	}
	while (h->conn >= 0 && serve(h))
		;
	return NULL;
}

/* --- life --------------------------------------------------------------------------------- */

struct harness *harness_start(void)
{
	struct harness *h = aligned_alloc(64, (sizeof(*h) + 63) / 64 * 64);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	must(h, "memory");
	memset(h, 0, sizeof(*h));
	h->epoch = 0x1234567890ull;
	h->async_fd = h->channel_fd = -1;
	h->conn = -1;
	strcpy(h->dir, "/tmp/roci-test-XXXXXX");
	must(mkdtemp(h->dir), "mkdtemp");
	snprintf(h->path, sizeof(h->path), "%s/sock", h->dir);
	strcpy(sa.sun_path, h->path);
	h->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(bind(h->listener, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
			listen(h->listener, 1) == 0,
		"listen");
	must(pthread_create(&h->thread, NULL, run, h) == 0, "thread");
	return h;
}

void harness_die(struct harness *h)
{
	shutdown(h->listener, SHUT_RDWR);
	if (h->conn >= 0)
		shutdown(h->conn, SHUT_RDWR);
	pthread_join(h->thread, NULL);
	close(h->listener);
	if (h->conn >= 0)
		close(h->conn);
	if (h->async_fd >= 0)
		close(h->async_fd);
	if (h->channel_fd >= 0)
		close(h->channel_fd);
	h->listener = h->async_fd = h->channel_fd = -1;
	h->conn = -1;
}

void harness_end(struct harness *h)
{
	atomic_store(&((struct abi_session *)h->session.base)->epoch, 0);
	harness_die(h);
}

void harness_stop(struct harness *h)
{
	if (h->listener >= 0)
		harness_die(h);
	unlink(h->path);
	rmdir(h->dir);
	shm_drop(&h->session);
	if (h->reg_base)
		munmap(h->reg_base, h->reg.fd_off + h->reg.length);
	for (unsigned i = 0; i < HARNESS_QPS; i++)
		shm_drop(&h->qp[i].shm);
	for (unsigned i = 0; i < HARNESS_CQS; i++) {
		shm_drop(&h->cq[i].shm);
		shm_drop(&h->cq[i].resized);
	}
	free(h);
}

/* --- rings -------------------------------------------------------------------------------- */

struct abi_queue *harness_sq(struct harness *h, unsigned i)
{
	return (struct abi_queue *)(h->qp[i].shm.base + h->qp[i].told.sq_queue_off);
}

struct abi_queue *harness_rq(struct harness *h, unsigned i)
{
	return (struct abi_queue *)(h->qp[i].shm.base + h->qp[i].told.rq_queue_off);
}

static bool take(uint8_t *ring, uint32_t depth, uint32_t stride, uint32_t *next, void *wqe)
{
	uint8_t *at;
	uint32_t ctl;

	if (!depth)
		return false;
	at = ring + (size_t)(*next & (depth - 1)) * stride;
	ctl = atomic_load_explicit((_Atomic uint32_t *)at, memory_order_acquire);
	if ((ctl & ABI_WQE_PHASE) != abi_phase(*next, depth))
		return false;
	memcpy(wqe, at, stride);
	(*next)++;
	return true;
}

bool harness_take_send(struct harness *h, unsigned i, void *wqe)
{
	struct harness_qp *q = &h->qp[i];

	return take(q->shm.base + q->told.sq_ring_off, q->told.sq_depth, q->told.sq_stride,
		&q->sq_next, wqe);
}

bool harness_take_recv(struct harness *h, unsigned i, void *wqe)
{
	struct harness_qp *q = &h->qp[i];

	return take(q->shm.base + q->told.rq_ring_off, q->told.rq_depth, q->told.rq_stride,
		&q->rq_next, wqe);
}

bool harness_bell(struct harness *h, unsigned i)
{
	struct abi_create_qp_reply *r = &h->qp[i].told;
	struct abi_doorbell *db =
		(struct abi_doorbell *)(h->session.base + sizeof(struct abi_session) +
					r->worker * sizeof(struct abi_doorbell));
	uint32_t slot = r->doorbell;
	uint64_t bits = 0;

	/* As a worker: the word only if the summary says so. */
	if (atomic_exchange(&db->summary[slot / 4096], 0) >> (slot / 64 % 64) & 1)
		bits = atomic_exchange(&db->bits[slot / 64], 0);
	must((bits & ~(1ull << (slot % 64))) == 0, "the bell of another QP");
	return bits;
}

static bool push(struct harness *h, unsigned cq, unsigned lane, unsigned qp, struct abi_cqe *cqe)
{
	struct harness_cq *c = &h->cq[cq];
	uint32_t *number = &h->qp[qp].cqes[cqe->opcode & ABI_WC_RECV ? 1 : 0];

	cqe->qpn = h->qp[qp].told.qpn;
	if (!cq_push(&c->cq.lane[lane], cqe, *number))
		return false;
	++*number;
	atomic_thread_fence(memory_order_seq_cst);
	if (cq_notify_wanted(&c->cq.lane[lane]))
		harness_event(h->channel_fd, ABI_EVENT_COMPLETION, c->cq.handle);
	return true;
}

bool harness_complete(struct harness *h, unsigned cq, unsigned lane, unsigned qp, uint64_t wr_id,
	uint8_t opcode, uint8_t status)
{
	struct abi_cqe cqe = {
		.wr_id = wr_id,
		.opcode = opcode,
		.status = status,
		.byte_len = (uint32_t)wr_id + 1,
	};

	return push(h, cq, lane, qp, &cqe);
}

bool harness_fail(struct harness *h, unsigned cq, unsigned lane, unsigned qp, uint32_t index,
	uint64_t wr_id, uint8_t status)
{
	struct abi_cqe cqe = {
		.wr_id = wr_id,
		.imm = index,
		.opcode = ABI_WC_SEND,
		.status = status,
	};

	return push(h, cq, lane, qp, &cqe);
}

void harness_event(int fd, uint32_t type, uint32_t handle)
{
	struct abi_event ev = {.type = type, .handle = handle};

	must(send(fd, &ev, sizeof(ev), MSG_NOSIGNAL) == sizeof(ev), "event");
}

/* --- the rig ------------------------------------------------------------------------------ */

int rig_modify(struct roci_qp *qp, enum roci_qp_state state)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = state};

	return roci_modify_qp(qp, &attr, ROCI_QP_STATE);
}

struct roci_qp *rig_qp_of(struct rig *r, enum roci_qp_type type, uint32_t depth, int sq_sig_all)
{
	struct roci_qp_init_attr init = {
		.size = sizeof(init),
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {depth, depth, 2, 2, 64},
		.qp_type = type,
		.sq_sig_all = sq_sig_all,
	};
	struct roci_qp *qp = roci_create_qp(r->pd, &init);

	assert_non_null(qp);
	return qp;
}

struct roci_qp *rig_qp(struct rig *r, uint32_t depth, int sq_sig_all)
{
	return rig_qp_of(r, ROCI_QPT_RC, depth, sq_sig_all);
}

void rig_make(struct rig *r, uint32_t depth)
{
	memset(r, 0, sizeof(*r));
	r->h = harness_start();
	r->ctx = roci_open(r->h->path);
	assert_non_null(r->ctx);
	r->pd = roci_alloc_pd(r->ctx);
	assert_non_null(r->pd);
	r->cq = roci_create_cq(r->ctx, 16, NULL, NULL, 0);
	assert_non_null(r->cq);
	r->mr = roci_alloc_mr(r->pd, 8192, ROCI_ACCESS_LOCAL_WRITE);
	assert_non_null(r->mr);
	r->qp = rig_qp(r, depth, 0);
	for (int s = ROCI_QPS_INIT; s <= ROCI_QPS_RTS; s++)
		assert_int_equal(rig_modify(r->qp, (enum roci_qp_state)s), 0);
}

void rig_drop(struct rig *r)
{
	if (r->qp)
		assert_int_equal(roci_destroy_qp(r->qp), 0);
	assert_int_equal(roci_dereg_mr(r->mr), 0);
	if (r->cq)
		assert_int_equal(roci_destroy_cq(r->cq), 0);
	assert_int_equal(roci_dealloc_pd(r->pd), 0);
	assert_int_equal(roci_close(r->ctx), 0);
	harness_stop(r->h);
}
