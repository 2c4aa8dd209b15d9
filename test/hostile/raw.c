/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "raw.h"

#define PAGE	4096u
#define FDS_MAX 253 /* of the kernel, a message */

void raw_become(uid_t uid)
{
	if (geteuid())
		return;
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		err(1, "become user %u", uid);
	prctl(PR_SET_DUMPABLE, 1); /* its own files in /proc are its own again */
}

int raw_connect(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct timeval tv = {.tv_sec = RAW_PATIENCE_S};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -1;
	strncpy(un.sun_path, path, sizeof(un.sun_path) - 1);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (!connect(sock, (struct sockaddr *)&un, sizeof(un)))
		return sock;
	close(sock);
	return -1;
}

ssize_t raw_send(int sock, const void *bytes, size_t len, const int *fds, unsigned nfds)
{
	static char control[CMSG_SPACE(FDS_MAX * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (nfds) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	return sendmsg(sock, &mh, MSG_NOSIGNAL);
}

static void take_fds(struct msghdr *mh, int *fds, unsigned nfds)
{
	unsigned at = 0;

	for (unsigned i = 0; i < nfds; i++)
		fds[i] = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c))
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (at < nfds)
				fds[at++] = fd;
			else
				close(fd);
		}
}

bool raw_receive(int sock, struct abi_msg *msg, void *body, size_t size, int *fds, unsigned nfds)
{
	char control[CMSG_SPACE(4 * sizeof(int))] __attribute__((aligned(8)));
	uint8_t rest[ABI_MSG_MAX];
	struct iovec iov[3] = {{msg, sizeof(*msg)}, {body, size}, {rest, sizeof(rest)}};
	struct msghdr mh = {.msg_iov = iov,
		.msg_iovlen = 3,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		errx(1, "rocid does not answer within %d s", RAW_PATIENCE_S);
	if (n < (ssize_t)sizeof(*msg))
		return false;
	take_fds(&mh, fds, nfds);
	return true;
}

int raw_call(struct raw *s, uint32_t type, const void *body, size_t len, int fd, void *out,
	size_t out_len, int *fds, unsigned nfds)
{
	struct abi_msg msg = {.type = type, .seq = ++s->seq};
	uint8_t buf[2 * ABI_MSG_MAX], answer[ABI_MSG_MAX] = {0};

	for (unsigned i = 0; i < nfds; i++)
		fds[i] = -1;
	memcpy(buf, &msg, sizeof(msg));
	if (len)
		memcpy(buf + sizeof(msg), body, len);
	if (raw_send(s->sock, buf, sizeof(msg) + len, &fd, fd >= 0) < 0)
		return RAW_GONE;
	if (!raw_receive(s->sock, &msg, answer, sizeof(answer), fds, nfds))
		return RAW_GONE;
	if (msg.status) {
		memcpy(s->why, answer, sizeof(s->why) - 1);
		return msg.status;
	}
	if (out_len)
		memcpy(out, answer, out_len);
	return 0;
}

void raw_must(struct raw *s, uint32_t type, const void *body, size_t len, void *out, size_t out_len)
{
	int status = raw_call(s, type, body, len, -1, out, out_len, NULL, 0);

	if (status)
		errx(1, "message %u: %d %s", type, status, s->why);
}

static uint8_t *map(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		err(1, "mmap of %zu bytes", size);
	return p;
}

bool raw_try_open(struct raw *s, const char *path)
{
	struct abi_hello h = {.magic = ABI_MAGIC,
		.version_min = 1,
		.version_max = ABI_VERSION,
		.name = "hostile"};
	int fds[2];

	memset(s, 0, sizeof(*s));
	s->sock = raw_connect(path);
	if (s->sock < 0)
		return false;
	if (raw_call(s, ABI_HELLO, &h, sizeof(h), -1, &s->hello, sizeof(s->hello), fds, 2)) {
		close(s->sock);
		return false;
	}
	s->region = map(fds[0], s->hello.region_size);
	close(fds[0]);
	s->async = fds[1];
	return !raw_call(s, ABI_ALLOC_PD, NULL, 0, -1, &s->pd, sizeof(s->pd), NULL, 0);
}

void raw_open(struct raw *s, const char *path)
{
	if (!raw_try_open(s, path))
		errx(1, "no session: %s", s->why);
}

void raw_close(struct raw *s)
{
	munmap(s->region, s->hello.region_size);
	close(s->async);
	close(s->sock);
}

void raw_cq(struct raw *s, struct raw_cq *cq, uint32_t depth, uint32_t channel)
{
	struct abi_create_cq in = {.depth = depth, .channel = channel};
	int fd;

	memset(cq, 0, sizeof(*cq));
	if (raw_call(s, ABI_CREATE_CQ, &in, sizeof(in), -1, &cq->r, sizeof(cq->r), &fd, 1))
		errx(1, "CREATE_CQ: %s", s->why);
	cq->region = map(fd, cq->r.region_size);
	close(fd);
}

void raw_cq_unmap(struct raw_cq *cq)
{
	munmap(cq->region, cq->r.region_size);
}

int raw_memfd(size_t size, unsigned seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, seals))
		err(1, "memfd of %zu bytes", size);
	return fd;
}

void raw_mr(struct raw *s, struct raw_mr *mr, size_t len, size_t around, uint32_t access)
{
	struct abi_reg_mr in = {.pd = s->pd, .access = access, .length = len, .fd_off = around};
	struct abi_reg_mr_reply out;

	mr->len = len;
	mr->size = (len + 2 * around + PAGE - 1) / PAGE * PAGE;
	mr->fd = raw_memfd(mr->size, F_SEAL_SHRINK);
	mr->base = map(mr->fd, mr->size);
	mr->mem = mr->base + around;
	in.iova = (uintptr_t)mr->mem;
	if (raw_call(s, ABI_REG_MR, &in, sizeof(in), mr->fd, &out, sizeof(out), NULL, 0))
		errx(1, "REG_MR: %s", s->why);
	mr->handle = out.handle;
	mr->key = out.lkey;
}

void raw_mr_free(struct raw_mr *mr)
{
	munmap(mr->base, mr->size);
	close(mr->fd);
}

struct abi_create_qp raw_qp_request(const struct raw *s, const struct raw_cq *cq, uint32_t depth)
{
	return (struct abi_create_qp){
		.pd = s->pd,
		.type = ABI_QPT_RC,
		.send_cq = cq->r.handle,
		.recv_cq = cq->r.handle,
		.srq = ABI_NO_HANDLE,
		.max_send_wr = depth,
		.max_recv_wr = depth,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.max_inline = 64,
		.xrcd = ABI_NO_HANDLE,
	};
}

void raw_qp(struct raw *s, struct raw_qp *qp, struct raw_cq *cq, const struct abi_create_qp *in)
{
	int fd;

	*qp = (struct raw_qp){.s = s, .cq = cq, .type = in->type};
	if (raw_call(s, ABI_CREATE_QP, in, sizeof(*in), -1, &qp->r, sizeof(qp->r), &fd, 1))
		errx(1, "CREATE_QP: %s", s->why);
	qp->region = map(fd, qp->r.region_size);
	close(fd);
}

void raw_qp_unmap(struct raw_qp *qp)
{
	munmap(qp->region, qp->r.region_size);
}

void raw_qp_free(struct raw_qp *qp)
{
	raw_must(qp->s, ABI_DESTROY_QP, &qp->r.handle, sizeof(qp->r.handle), NULL, 0);
	raw_qp_unmap(qp);
}

/* --- states --------------------------------------------------------------------------- */

int raw_modify(struct raw_qp *qp, struct abi_modify_qp *m, uint8_t state, uint32_t mask)
{
	m->handle = qp->r.handle;
	m->mask = ABI_QP_STATE | mask;
	m->attr.qp_state = state;
	return raw_call(qp->s, ABI_MODIFY_QP, m, sizeof(*m), -1, NULL, 0, NULL, 0);
}

int raw_state(struct raw_qp *qp, uint8_t state)
{
	struct abi_modify_qp m = {0};

	return raw_modify(qp, &m, state, 0);
}

struct abi_ah_attr raw_av(struct raw *s, uint8_t port, uint8_t peer_port)
{
	struct abi_query_gid q = {.port = peer_port};
	struct abi_ah_attr ah = {.port = port, .is_global = 1};
	struct abi_gid gid;

	raw_must(s, ABI_QUERY_GID, &q, sizeof(q), &gid, sizeof(gid));
	memcpy(ah.dgid, gid.gid, sizeof(gid.gid));
	return ah;
}

int raw_init(struct raw_qp *qp, uint8_t port, uint32_t access)
{
	struct abi_modify_qp m = {.attr = {.port = port, .access_flags = access}};

	qp->port = port;
	return raw_modify(
		qp, &m, ABI_QPS_INIT, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS);
}

int raw_rtr(struct raw_qp *qp, uint32_t qpn, struct abi_ah_attr ah)
{
	const uint32_t reliable = ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER;
	struct abi_modify_qp m = {.attr = {.path_mtu = 1024,
					  .dest_qpn = qpn,
					  .rq_psn = qpn & 0xFFFFFF, /* of the sender */
					  .max_dest_rd_atomic = 8,
					  .min_rnr_timer = 1,
					  .ah = ah}};

	return raw_modify(qp, &m, ABI_QPS_RTR,
		ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
			(qp->type == ABI_QPT_UC ? 0 : reliable));
}

int raw_rts(struct raw_qp *qp, uint8_t port, uint32_t qpn, uint8_t peer_port, uint32_t access)
{
	const uint32_t reliable =
		ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC;
	struct abi_modify_qp m = {.attr = {.sq_psn = qp->r.qpn,
					  .max_rd_atomic = 8,
					  .timeout = 16, /* 0.3 s: workers may be without a CPU */
					  .retry_cnt = 7,
					  .rnr_retry = 7}};
	int status = raw_init(qp, port, access);

	if (qp->impatient) {
		m.attr.timeout = 1;
		m.attr.retry_cnt = 0;
	}
	if (!status)
		status = raw_rtr(qp, qpn, raw_av(qp->s, port, peer_port));
	if (status)
		return status;
	return raw_modify(
		qp, &m, ABI_QPS_RTS, ABI_QP_SQ_PSN | (qp->type == ABI_QPT_UC ? 0 : reliable));
}

int raw_datagrams(struct raw_qp *qp, uint8_t port)
{
	struct abi_modify_qp m = {.attr = {.port = port, .qkey = 0x11111111}};
	int status =
		raw_modify(qp, &m, ABI_QPS_INIT, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY);

	if (!status)
		status = raw_modify(qp, &m, ABI_QPS_RTR, 0);
	return status ? status : raw_modify(qp, &m, ABI_QPS_RTS, ABI_QP_SQ_PSN);
}

void raw_connect_qps(struct raw_qp *a, struct raw_qp *b, uint32_t access)
{
	if (raw_rts(a, 1, b->r.qpn, 2, access))
		errx(1, "MODIFY_QP: %s", a->s->why);
	if (raw_rts(b, 2, a->r.qpn, 1, access))
		errx(1, "MODIFY_QP: %s", b->s->why);
}

/* --- rings ---------------------------------------------------------------------------- */

struct abi_queue *raw_sq(const struct raw_qp *qp)
{
	return (struct abi_queue *)(qp->region + qp->r.sq_queue_off);
}

struct abi_queue *raw_rq(const struct raw_qp *qp)
{
	return (struct abi_queue *)(qp->region + qp->r.rq_queue_off);
}

struct abi_wqe *raw_wqe(const struct raw_qp *qp, uint32_t i)
{
	return (struct abi_wqe *)(qp->region + qp->r.sq_ring_off +
				  (size_t)(i & (qp->r.sq_depth - 1)) * qp->r.sq_stride);
}

struct abi_recv_wqe *raw_recv_wqe(const struct raw_qp *qp, uint32_t i)
{
	return (struct abi_recv_wqe *)(qp->region + qp->r.rq_ring_off +
				       (size_t)(i & (qp->r.rq_depth - 1)) * qp->r.rq_stride);
}

uint32_t raw_sq_room(const struct raw_qp *qp)
{
	return qp->r.sq_depth - (qp->posted - atomic_load(&raw_sq(qp)->consumer));
}

void raw_ring(const struct raw_qp *qp)
{
	const struct abi_hello_reply *h = &qp->s->hello;

	abi_doorbell_ring((struct abi_doorbell *)(qp->s->region + h->doorbell_off +
						  qp->r.worker * h->doorbell_stride),
		qp->r.doorbell);
}

static void publish(struct raw_qp *qp, struct abi_queue *head, void *entry, uint32_t ctl,
	uint32_t index, uint32_t depth)
{
	atomic_store_explicit((_Atomic uint32_t *)entry,
		(ctl & ~ABI_WQE_PHASE) | abi_phase(index, depth), memory_order_release);
	atomic_store_explicit(&head->producer, index + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&head->need_doorbell, memory_order_relaxed))
		raw_ring(qp);
}

void raw_post(struct raw_qp *qp, const struct abi_wqe *w, const struct abi_sge *sge)
{
	struct abi_wqe *e = raw_wqe(qp, qp->posted);

	e->imm = w->imm;
	e->wr_id = w->wr_id;
	e->remote_addr = w->remote_addr;
	e->rkey = w->rkey;
	e->srqn = 0;
	if (w->ctl & ABI_WQE_INLINE)
		memcpy(e->inline_data, sge, ABI_WQE_COUNT(w->ctl));
	else if (ABI_WQE_COUNT(w->ctl))
		memcpy(e->sge, sge, ABI_WQE_COUNT(w->ctl) * sizeof(*sge));
	publish(qp, raw_sq(qp), e, w->ctl, qp->posted, qp->r.sq_depth);
	qp->posted++;
}

void raw_post_recv(struct raw_qp *qp, uint64_t wr_id, struct abi_sge sge)
{
	struct abi_recv_wqe *e = raw_recv_wqe(qp, qp->received);

	e->wr_id = wr_id;
	e->sge[0] = sge;
	publish(qp, raw_rq(qp), e, 1u << 16, qp->received, qp->r.rq_depth);
	qp->received++;
}

void raw_request(struct raw_qp *qp, unsigned opcode, uint64_t wr_id, struct abi_sge sge,
	uint64_t remote, uint32_t rkey)
{
	struct abi_wqe w = {.ctl = ABI_WQE_CTL(opcode, 1, ABI_WQE_SIGNALED),
		.wr_id = wr_id,
		.remote_addr = remote,
		.rkey = rkey};

	raw_post(qp, &w, &sge);
}

static bool poll_lane(struct raw_cq *cq, uint32_t i, struct abi_cqe *cqe)
{
	struct abi_cq_lane *lane =
		(struct abi_cq_lane *)(cq->region + cq->r.lane_off + i * cq->r.lane_stride);
	uint32_t *head = &cq->head[i];
	struct abi_cqe *e = (struct abi_cqe *)(lane + 1) + (*head & (cq->r.depth - 1));
	uint32_t mark = atomic_load_explicit((_Atomic uint32_t *)&e->mark, memory_order_acquire);

	if ((mark & 1) != abi_phase(*head, cq->r.depth))
		return false;
	*cqe = *e;
	++*head;
	atomic_store_explicit(&lane->consumer, *head, memory_order_release);
	return true;
}

bool raw_poll(struct raw_cq *cq, struct abi_cqe *cqe)
{
	for (uint32_t i = 0; i < cq->r.lanes; i++)
		if (poll_lane(cq, i, cqe))
			return true;
	return false;
}

bool raw_wait(struct raw_cq *cq, struct abi_cqe *cqe)
{
	time_t until = time(NULL) + RAW_PATIENCE_S;

	while (!raw_poll(cq, cqe)) {
		if (time(NULL) > until)
			return false;
		sched_yield();
	}
	return true;
}
