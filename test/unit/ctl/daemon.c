/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon.h"
#include "eal_test.h"
#include "patience.h"
#include "uaccess.h"

const uint8_t gid_own4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 0, 0, 1};
const uint8_t gid_own6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
const uint8_t gid_peer4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 0, 0, 2};
const uint8_t gid_peer6[16] = {0x20, 1, 0xd, 0xb8, [15] = 2};
const uint8_t gid_unknown4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 0, 0, 3};
const uint8_t mac_own[6] = {2, 0, 0, 0, 0, 1};
const uint8_t mac_peer[6] = {2, 0, 0, 0, 0, 2};

/* --- the daemon ------------------------------------------------------------------------- */

int daemon_group_setup(void **state)
{
	static struct test_daemon d;

	eal_test_start();
	d.dp = dataplane_create(TEST_WORKERS, SOCKET_ID_ANY);
	if (!d.dp)
		return -1;
	d.dp->mbufs = 256;
	d.dp->idle = IDLE_ADAPTIVE; /* they can sleep, should a test ask for it */
	for (uint32_t i = 0; i < TEST_WORKERS; i++)
		if (!worker_create(d.dp, i, SOCKET_ID_ANY))
			return -1;
	d.dp->idle = IDLE_POLL;
	*state = &d;
	return 0;
}

int daemon_group_teardown(void **state)
{
	struct test_daemon *d = *state;

	for (uint32_t i = 0; i < TEST_WORKERS; i++)
		worker_destroy(d->dp->worker[i]);
	dataplane_destroy(d->dp);
	return 0;
}

static void *run_worker(void *arg)
{
	worker_run(arg);
	return NULL;
}

void daemon_start_workers(struct test_daemon *d)
{
	d->dp->idle = IDLE_YIELD; /* they share the CPU with the test */
	for (unsigned i = 0; i < TEST_WORKERS; i++) {
		struct worker *w = d->dp->worker[i];

		assert_int_equal(pthread_create(&d->worker[i], NULL, run_worker, w), 0);
		while (!worker_running(w))
			usleep(1000);
	}
}

void daemon_stop_workers(struct test_daemon *d)
{
	for (unsigned i = 0; i < TEST_WORKERS; i++) {
		worker_stop(d->dp->worker[i]);
		pthread_join(d->worker[i], NULL);
	}
}

static void fill_port(struct ctl_port *p, unsigned i)
{
	static struct ctl_gid gids[2][2];
	static struct ctl_neigh neighs[2][2];

	memcpy(p->mac, mac_own, 6);
	p->mac[4] = (uint8_t)i;
	p->eth_mtu = i ? 9000 : 1500;
	memcpy(gids[i][0].gid, gid_own4, 16);
	memcpy(gids[i][1].gid, gid_own6, 16);
	gids[i][0].gid[14] = (uint8_t)i;
	gids[i][1].gid[14] = (uint8_t)i;
	memcpy(neighs[i][0].gid, gid_peer4, 16);
	memcpy(neighs[i][1].gid, gid_peer6, 16);
	memcpy(neighs[i][0].mac, mac_peer, 6);
	memcpy(neighs[i][1].mac, mac_peer, 6);
	p->gids = gids[i];
	p->ngids = 2;
	p->neighs = neighs[i];
	p->nneighs = 2;
}

void daemon_config(struct test_daemon *d)
{
	strcpy(d->dir, "/tmp/rocid-test-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->path, sizeof(d->path), "%s/sock", d->dir);
	memset(&d->cfg, 0, sizeof(d->cfg));
	d->cfg.dp = d->dp;
	d->cfg.socket_path = d->path;
	d->cfg.nports = 2;
	for (unsigned i = 0; i < 2; i++)
		fill_port(&d->cfg.port[i], i);
}

static void *run(void *arg)
{
	struct test_daemon *d = arg;

	assert_int_equal(ctl_run(d->ctl), 0);
	return NULL;
}

void daemon_run(struct test_daemon *d)
{
	int err = ctl_start(&d->ctl, &d->cfg, d->why);

	if (err)
		fprintf(stderr, "ctl_start: %s\n", d->why);
	assert_int_equal(err, 0);
	assert_int_equal(pthread_create(&d->thread, NULL, run, d), 0);
}

void daemon_pause(struct test_daemon *d)
{
	ctl_stop(d->ctl);
	pthread_join(d->thread, NULL);
}

void daemon_resume(struct test_daemon *d)
{
	assert_int_equal(pthread_create(&d->thread, NULL, run, d), 0);
}

void daemon_stop(struct test_daemon *d)
{
	ctl_stop(d->ctl);
	pthread_join(d->thread, NULL);
	ctl_destroy(d->ctl);
	d->ctl = NULL;
	assert_int_equal(access(d->path, F_OK), -1); /* the socket is gone */
	rmdir(d->dir);
}

int daemon_setup(void **state)
{
	daemon_config(*state);
	daemon_run(*state);
	return 0;
}

int daemon_teardown(void **state)
{
	daemon_stop(*state);
	return 0;
}

void program_fork(struct test_program *p, const struct test_daemon *d,
	void (*life)(const struct test_daemon *d))
{
	int gate[2];
	char byte;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid) {
		setenv("CMOCKA_TEST_ABORT", "1", 1); /* no teardown in a child */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(gate[1]);
		assert_int_equal(read(gate[0], &byte, 1), 1);
		life(d);
		_exit(0);
	}
	close(gate[0]);
	p->gate = gate[1];
}

void program_go(struct test_program *p)
{
	assert_int_equal(write(p->gate, "x", 1), 1);
	close(p->gate);
}

/* --- the protocol ------------------------------------------------------------------------ */

int client_connect(const struct test_daemon *d)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct timeval tv = {.tv_sec = PATIENCE_S};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(un.sun_path, d->path);
	assert_true(sock >= 0);
	assert_int_equal(setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&un, sizeof(un)), 0);
	return sock;
}

void client_send(int sock, const void *bytes, size_t len, const int fds[], unsigned nfds)
{
	char control[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = {0};
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
	assert_int_equal(sendmsg(sock, &mh, MSG_NOSIGNAL), (ssize_t)len);
}

bool client_receive(int sock, struct answer *a)
{
	char control[CMSG_SPACE(ANSWER_FDS * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov[2] = {{&a->msg, sizeof(a->msg)}, {a->body, sizeof(a->body)}};
	struct msghdr mh = {.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n;

	memset(a, 0, sizeof(*a));
	n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return false;
	assert_true(n >= (ssize_t)sizeof(a->msg)); /* no answer within PATIENCE_S otherwise */
	a->len = (size_t)n - sizeof(a->msg);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c)) {
		a->nfds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(a->fd, CMSG_DATA(c), a->nfds * sizeof(int));
	}
	return true;
}

void answer_close(struct answer *a)
{
	while (a->nfds)
		close(a->fd[--a->nfds]);
}

int client_call(int sock, uint32_t type, const void *body, size_t len, int fd, struct answer *a)
{
	static uint32_t seq;
	uint8_t buf[2 * ABI_MSG_MAX];
	struct abi_msg msg = {.type = type, .seq = ++seq};

	memcpy(buf, &msg, sizeof(msg));
	if (len)
		memcpy(buf + sizeof(msg), body, len);
	client_send(sock, buf, sizeof(msg) + len, &fd, fd >= 0);
	assert_true(client_receive(sock, a));
	assert_int_equal(a->msg.type, type);
	assert_int_equal(a->msg.seq, seq);
	if (a->msg.status) { /* a failure comes with a sentence, and nothing else */
		assert_true(a->msg.status < 0);
		assert_int_equal(a->nfds, 0);
		assert_in_range(a->len, 10, ABI_SENTENCE_MAX);
		assert_int_equal(a->body[a->len - 1], 0);
	}
	return a->msg.status;
}

void client_must(int sock, uint32_t type, const void *body, size_t len, void *out, size_t out_len)
{
	struct answer a;
	int status = client_call(sock, type, body, len, -1, &a);

	if (status)
		fprintf(stderr, "%u: %s\n", type, (char *)a.body);
	assert_int_equal(status, 0);
	assert_int_equal(a.len, out_len);
	if (out_len)
		memcpy(out, a.body, out_len);
	answer_close(&a);
}

void client_open(const struct test_daemon *d, struct client *c)
{
	struct abi_hello h = {.magic = ABI_MAGIC,
		.version_min = ABI_VERSION_MIN,
		.version_max = ABI_VERSION,
		.name = "test"};
	struct answer a;

	c->sock = client_connect(d);
	assert_int_equal(client_call(c->sock, ABI_HELLO, &h, sizeof(h), -1, &a), 0);
	assert_int_equal(a.len, sizeof(c->hello));
	assert_int_equal(a.nfds, 2);
	memcpy(&c->hello, a.body, sizeof(c->hello));
	c->region =
		mmap(NULL, c->hello.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], 0);
	assert_true(c->region != MAP_FAILED);
	close(a.fd[0]);
	c->async = a.fd[1];
}

void client_close(struct client *c)
{
	munmap(c->region, c->hello.region_size);
	close(c->sock);
	close(c->async);
}

/* --- objects ------------------------------------------------------------------------------ */

uint32_t client_pd(struct client *c)
{
	struct abi_handle_reply out;

	client_must(c->sock, ABI_ALLOC_PD, NULL, 0, &out, sizeof(out));
	return out.handle;
}

uint32_t client_cq(struct client *c, uint32_t channel)
{
	struct abi_create_cq in = {.depth = 16, .channel = channel};
	struct abi_create_cq_reply out;

	client_must(c->sock, ABI_CREATE_CQ, &in, sizeof(in), &out, sizeof(out));
	return out.handle;
}

struct abi_create_qp client_qp_request(uint32_t pd, uint32_t cq)
{
	return (struct abi_create_qp){
		.pd = pd,
		.type = ABI_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = ABI_NO_HANDLE,
		.max_send_wr = 10,
		.max_recv_wr = 5,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.xrcd = ABI_NO_HANDLE,
	};
}

struct abi_create_qp_reply client_qp(struct client *c, uint32_t pd, uint32_t cq)
{
	struct abi_create_qp in = client_qp_request(pd, cq);
	struct abi_create_qp_reply out;

	client_must(c->sock, ABI_CREATE_QP, &in, sizeof(in), &out, sizeof(out));
	return out;
}

int client_memfd(size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

struct abi_reg_mr_reply client_mr(struct client *c, uint32_t pd, int fd, uint64_t length)
{
	struct abi_reg_mr in = {
		.pd = pd, .access = ABI_ACCESS_LOCAL_WRITE, .iova = 0x10000, .length = length};
	struct abi_reg_mr_reply out;
	struct answer a;

	assert_int_equal(client_call(c->sock, ABI_REG_MR, &in, sizeof(in), fd, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	return out;
}
