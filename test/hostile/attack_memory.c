/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is none, shrinks, has holes, is larger than the machine, or goes in mid-flight. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"
#include "lingering.h"

#define PAGE 4096u

static int register_fd(
	struct raw *s, int fd, uint64_t off, uint64_t len, struct abi_reg_mr_reply *out)
{
	struct abi_reg_mr in = {
		.pd = s->pd, .access = DUO_ACCESS, .iova = 0x10000, .length = len, .fd_off = off};

	return raw_call(s, ABI_REG_MR, &in, sizeof(in), fd, out, sizeof(*out), NULL, 0);
}

static int read_only(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* A descriptor that is no memory is refused, and rocid does not wait for it. */
static void wrong_descriptors(struct arena *a)
{
	struct abi_reg_mr_reply out;
	int pipefd[2], sealed = raw_memfd(16 * PAGE, F_SEAL_SHRINK);
	struct raw s;

	raw_open(&s, a->socket);
	must(!pipe2(pipefd, O_CLOEXEC), "pipe");
	int fds[] = {pipefd[0], pipefd[1], open("/", O_RDONLY), open("/", O_PATH),
		open("/dev/zero", O_RDWR), open("/dev/null", O_RDWR), open("/dev/mem", O_RDWR),
		open("/proc/self/mem", O_RDWR), open("/proc/self/maps", O_RDONLY),
		open("/var/tmp", O_TMPFILE | O_RDWR, 0600), socket(AF_UNIX, SOCK_SEQPACKET, 0),
		socket(AF_INET, SOCK_DGRAM, 0), eventfd(1, 0), epoll_create1(0), read_only(sealed),
		raw_memfd(PAGE, F_SEAL_SHRINK | F_SEAL_WRITE),
		raw_memfd(PAGE, F_SEAL_SHRINK | 0x10 /* F_SEAL_FUTURE_WRITE */)};

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] < 0)
			continue; /* not on this machine */
		int status = register_fd(&s, fds[i], 0, PAGE, &out);

		if (status != -EPERM && status != -EACCES)
			errx(1, "descriptor %u: status %d", i, status);
		close(fds[i]);
	}
	must(register_fd(&s, sealed, 0, PAGE, &out) == 0, "a good memfd is refused");
	must(register_fd(&s, -1, 0, PAGE, &out) == -EINVAL, "no descriptor");
	raw_close(&s);
	close(sealed);
}

/* --- descriptors that hang when they are closed ------------------------------------------ */

/* Has a program of its own pass @p slow to rocid in some way and end, so that the last reference
 * is rocid's; a program that ends does not linger itself. */
static void pass_on(struct arena *a, int slow, void (*how)(struct arena *a, int slow))
{
	int gate[2];
	char byte;
	pid_t pid;

	must(!pipe2(gate, O_CLOEXEC), "pipe");
	pid = fork();
	must(pid >= 0, "no process");
	if (!pid) {
		close(gate[1]);
		(void)!read(gate[0], &byte, 1); /* until the caller's copy is gone */
		how(a, slow);
		_exit(0);
	}
	close(slow);
	close(gate[0]);
	close(gate[1]);
	waitpid(pid, NULL, 0);
}

static void as_memory(struct arena *a, int slow)
{
	struct abi_reg_mr_reply out;
	struct raw s;

	raw_open(&s, a->socket);
	register_fd(&s, slow, 0, PAGE, &out);
}

/* Hundreds of it, with commands that want none, and in messages that nobody reads. */
static void by_the_hundred(struct arena *a, int slow)
{
	struct abi_msg m = {.type = ABI_QUERY_DEVICE};
	int fds[253];
	struct raw s;

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = i % 2 ? slow : 2;
	for (unsigned n = 0; n < 10 * a->effort; n++) {
		struct abi_msg reply;
		uint8_t body[ABI_MSG_MAX];

		raw_open(&s, a->socket);
		for (unsigned i = 0; i < 8; i++) {
			if (raw_send(s.sock, &m, sizeof(m), fds, i * 36 + 1) < 0)
				break;
			if (n % 2 && !raw_receive(s.sock, &reply, body, sizeof(body), NULL, 0))
				break;
		}
		raw_close(&s);
	}
}

/* In a socket that is passed in its turn: rocid's close of the outer one closes the inner one. */
static void in_a_socket(struct arena *a, int slow)
{
	int pair[2];

	must(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
	must(raw_send(pair[0], "x", 1, &slow, 1) == 1, "a descriptor cannot be sent");
	as_memory(a, pair[1]);
}

/* Unread, in the queue of a connection and in that of a channel. */
static void unread(struct arena *a, int slow)
{
	struct abi_msg m = {.type = ABI_QUERY_DEVICE};
	struct raw s;

	raw_open(&s, a->socket);
	raw_send(s.async, &m, sizeof(m), &slow, 1);
	for (unsigned i = 0; i < 100; i++)
		raw_send(s.sock, &m, sizeof(m), &slow, 1);
}

static void hanging_descriptors(struct arena *a)
{
	static void (*const how[])(struct arena *, int) = {
		as_memory, by_the_hundred, in_a_socket, unread};

	for (unsigned i = 0; i < ARRAY_SIZE(how); i++) {
		int other, slow = lingering(&other);
		struct raw s;

		must(slow >= 0, "no socket that lingers");
		pass_on(a, slow, how[i]);
		for (unsigned k = 0; k < 3; k++) { /* it hangs now, and rocid does not */
			raw_open(&s, a->socket);
			raw_close(&s);
			usleep(20000);
		}
		close(other);
	}
}

static void odd_ranges(struct arena *a)
{
	static const uint64_t ranges[][2] = {{0, 17 * PAGE}, {16 * PAGE, 1}, {-1ull, 1}, {1, -1ull},
		{PAGE, -4096ull}, {-4096ull, 4096}, {1ull << 63, 1}, {0, 1ull << 63},
		{-4096ull, 8192}};
	int fd = raw_memfd(16 * PAGE, F_SEAL_SHRINK);
	struct abi_reg_mr_reply out;
	struct raw s;

	raw_open(&s, a->socket);
	for (unsigned i = 0; i < ARRAY_SIZE(ranges); i++)
		must(register_fd(&s, fd, ranges[i][0], ranges[i][1], &out) == -EINVAL,
			"a range that the memfd does not have");
	must(register_fd(&s, fd, 16 * PAGE, 0, &out) == 0, "an empty range is none");
	raw_close(&s);
	close(fd);
}

/* A terabyte of nothing, and traffic at its ends. */
static void sparse(struct arena *a)
{
	const uint64_t size = 1ull << 40;
	int fd = raw_memfd(size, F_SEAL_SHRINK);
	struct abi_reg_mr_reply out;
	struct duo d;

	duo_open(&d, a);
	if (register_fd(&d.s, fd, 0, size, &out) == 0) {
		raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, 1, duo_sge(&d, 0, 8192),
			0x10000 + size - 8192, out.rkey);
		must(duo_status(&d, &d.qp[0]) == 0, "a WRITE to the end of a sparse memfd");
		raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, 1, duo_sge(&d, 0, 8192),
			0x10000 + size - 8191, out.rkey);
		must(duo_status(&d, &d.qp[0]) == ABI_WC_REM_ACCESS_ERR, "and beyond it");
	}
	duo_close(&d);
	close(fd);
}

/* Ranges that are no pages, that overlap, that have another sum, that are too many. */
static void odd_pieces(struct arena *a)
{
	struct {
		struct abi_reg_mr in;
		struct abi_piece piece[ABI_PIECES_MAX];
	} q = {0};
	int fd = raw_memfd(16 * PAGE, F_SEAL_SHRINK);
	struct abi_reg_mr_reply out;
	struct raw s;

	raw_open(&s, a->socket);
	for (unsigned n = 0; n < 500 * a->effort; n++) {
		uint32_t pieces = (uint32_t)random_next(&a->random) % (ABI_PIECES_MAX + 3);
		bool fits = true;
		uint64_t sum = 0;
		int status;

		for (uint32_t i = 0; i < pieces && i < ABI_PIECES_MAX; i++) {
			struct abi_piece *p = &q.piece[i];

			p->off = random_next(&a->random) % 17 * PAGE;
			p->length = random_next(&a->random) % 3 * PAGE;
			if (random_next(&a->random) % 30 == 0)
				p->off = random_next(&a->random);
			if (random_next(&a->random) % 30 == 0)
				p->length = random_next(&a->random);
			fits &= p->off <= 16 * PAGE && p->length <= 16 * PAGE - p->off &&
				(pieces == 1 ||
					(p->length && p->off % PAGE == 0 && p->length % PAGE == 0));
			sum += p->length;
		}
		q.in = (struct abi_reg_mr){.pd = s.pd,
			.access = DUO_ACCESS,
			.length = random_next(&a->random) % 8 ? sum : sum + 1,
			.npieces = pieces};
		status = raw_call(&s, ABI_REG_MR, &q,
			sizeof(q.in) + pieces % (ABI_PIECES_MAX + 1) * sizeof(q.piece[0]), fd, &out,
			sizeof(out), NULL, 0);
		if (!status && pieces && (!fits || q.in.length != sum || pieces > ABI_PIECES_MAX))
			errx(1, "odd pieces were accepted");
		if (!status)
			raw_must(&s, ABI_DEREG_MR, &out.handle, 4, NULL, 0);
	}
	raw_close(&s);
	close(fd);
}

/* Pieces of a huge file, whose sum has more than 64 bits: what is mapped would lie over rocid's own
 * memory. */
static void endless_pieces(struct arena *a)
{
	struct {
		struct abi_reg_mr in;
		struct abi_piece piece[7];
	} q = {0};
	int fd = raw_memfd(ABI_ARENA_SIZE, F_SEAL_SHRINK);
	struct abi_reg_mr_reply out;
	struct raw s;

	raw_open(&s, a->socket);
	for (unsigned n = 0; n < 500 * a->effort; n++) {
		unsigned pieces = 5 + (unsigned)random_next(&a->random) % 3;
		uint64_t sum = 0;
		bool beyond = false;

		for (unsigned i = 0; i < pieces - 1; i++) {
			unsigned shift = 0;

			if (random_next(&a->random) % 3 == 0)
				shift = (unsigned)random_next(&a->random) % 51;
			q.piece[i] = (struct abi_piece){.length = ABI_ARENA_SIZE >> shift};
			sum += q.piece[i].length;
			beyond |= sum < q.piece[i].length;
		}
		/* The last, if it can, makes the sum 2^64 and some pages. */
		q.in = (struct abi_reg_mr){.pd = s.pd, .access = DUO_ACCESS, .npieces = pieces};
		q.in.length = (1 + random_next(&a->random) % 16) * PAGE;
		q.piece[pieces - 1] = (struct abi_piece){.length = q.in.length - sum};
		if (!beyond && sum <= q.in.length)
			continue;
		if (!raw_call(&s, ABI_REG_MR, &q, sizeof(q.in) + pieces * sizeof(q.piece[0]), fd,
			    &out, sizeof(out), NULL, 0))
			errx(1, "pieces without an end were accepted");
	}
	raw_close(&s);
	close(fd);
}

static void limit(struct raw *s, const struct raw_qp *qp, uint32_t kbits)
{
	struct abi_limit_qp in = {.handle = qp->r.handle, .rate = kbits};

	raw_must(s, ABI_LIMIT_QP, &in, sizeof(in), NULL, 0);
}

static void shorten(struct raw *s, const struct raw_mr *mr, size_t len)
{
	struct abi_rereg_mr in = {.handle = mr->handle,
		.reg = {.pd = s->pd,
			.access = DUO_ACCESS,
			.iova = (uintptr_t)mr->mem,
			.length = len}};

	must(!raw_call(s, ABI_REREG_MR, &in, sizeof(in), mr->fd, NULL, 0, NULL, 0), "REREG_MR");
}

/* Between two QPs of a port: while a request waits at its fence for a slow READ, its second SGE
 * becomes too long. It does not go directly, then. The packets that it becomes have all of its
 * first SGE, until they fail. */
static void shorter_region(struct arena *a)
{
	struct raw s;
	struct raw_cq cq;
	struct raw_mr mr, ends;
	struct raw_qp qp[2];
	struct abi_create_qp in;
	struct abi_wqe w = {
		.ctl = ABI_WQE_CTL(ABI_WR_RDMA_WRITE, 2, ABI_WQE_SIGNALED | ABI_WQE_FENCE)};
	struct abi_cqe e = {0};

	raw_open(&s, a->socket);
	raw_cq(&s, &cq, 64, ABI_NO_HANDLE);
	raw_mr(&s, &mr, 64 * PAGE, 0, DUO_ACCESS);
	raw_mr(&s, &ends, 16 * PAGE, 0, DUO_ACCESS);
	in = raw_qp_request(&s, &cq, 16);
	for (unsigned i = 0; i < 2; i++)
		raw_qp(&s, &qp[i], &cq, &in);
	for (unsigned i = 0; i < 2; i++)
		must(!raw_rts(&qp[i], 1, qp[!i].r.qpn, 1, DUO_ACCESS), "RTS");
	memset(mr.mem, 'A', PAGE);
	memset(ends.mem, 'M', ends.len);
	limit(&s, &qp[1], 1000);
	raw_request(&qp[0], ABI_WR_RDMA_READ, 0,
		(struct abi_sge){(uintptr_t)mr.mem + PAGE, 2 * PAGE, mr.key},
		(uintptr_t)mr.mem + 4 * PAGE, mr.key);
	raw_request(&qp[0], ABI_WR_RDMA_WRITE, 1, (struct abi_sge){(uintptr_t)mr.mem, 8, mr.key},
		(uintptr_t)mr.mem + 8 * PAGE, mr.key);
	w.wr_id = 2;
	w.remote_addr = (uintptr_t)mr.mem + 16 * PAGE;
	w.rkey = mr.key;
	raw_post(&qp[0], &w,
		(struct abi_sge[]){{(uintptr_t)mr.mem, 256, mr.key},
			{(uintptr_t)ends.mem, (uint32_t)ends.len, ends.key}});
	usleep(20000); /* or more: the READ takes 65 ms */
	shorten(&s, &ends, ends.len - PAGE);
	while (e.wr_id != 2)
		must(raw_wait(&cq, &e), "a completion");
	must(e.status == ABI_WC_LOC_PROT_ERR, "an error of the region");
	must(mr.mem[16 * PAGE] == 'A' && mr.mem[16 * PAGE + 255] == 'A',
		"the first bytes of the request");
	raw_close(&s);
}

/* Files that nobody needs, ranges at the end of the largest file, and keys of none. */
static void arenas(struct arena *a)
{
	struct abi_reg_mr_reply out;
	struct raw s;
	int fd = -1;

	raw_open(&s, a->socket);
	for (unsigned n = 0; n < 200 * a->effort; n++) {
		struct abi_rereg_mr again = {.handle = (uint32_t)random_next(&a->random),
			.reg = {.pd = s.pd, .access = DUO_ACCESS, .length = PAGE}};
		int device = -1;

		if (fd >= 0)
			close(fd);
		must(raw_call(&s, ABI_GET_ARENA, NULL, 0, -1, NULL, 0, &fd, 1) == 0, "no arena");
		must(ftruncate(fd, 0) < 0, "an arena can shrink");
		if (raw_call(&s, ABI_GET_USERFAULTFD, NULL, 0, -1, NULL, 0, &device, 1) == 0)
			close(device);
		must(register_fd(&s, fd, ABI_ARENA_SIZE - PAGE, PAGE, &out) == 0, "the last page");
		must(register_fd(&s, fd, ABI_ARENA_SIZE - PAGE, PAGE + 1, &out) < 0, "beyond it");
		must(raw_call(&s, ABI_REREG_MR, &again, sizeof(again), fd, NULL, 0, NULL, 0) < 0,
			"a region that there is not");
		again.handle = out.handle;
		again.reg.fd_off = random_next(&a->random);
		raw_call(&s, ABI_REREG_MR, &again, sizeof(again), fd, NULL, 0, NULL, 0);
		raw_must(&s, ABI_DEREG_MR, &out.handle, 4, NULL, 0);
	}
	close(fd);
	raw_close(&s);
}

/* --- under traffic -------------------------------------------------------------------- */

struct driller {
	pthread_t thread;
	atomic_bool stop;
	const struct duo *d;
	int fd;
};

/* Holes everywhere, truncation that the seal forbids, growth that it allows. */
static void *drill(void *arg)
{
	struct driller *w = arg;
	const struct raw_mr *mr = &w->d->mr;

	for (size_t i = 0; !atomic_load_explicit(&w->stop, memory_order_relaxed); i += PAGE) {
		off_t at = (off_t)(i % mr->size);

		fallocate(mr->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 3 * PAGE);
		madvise(mr->base + at, PAGE, MADV_REMOVE);
		if (!ftruncate(mr->fd, at) && at < (off_t)mr->size)
			errx(1, "a sealed memfd was truncated");
	}
	return NULL;
}

/* A file that is truncated under a worker, and grows again. */
static void *shrink(void *arg)
{
	struct driller *w = arg;

	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		(void)!ftruncate(w->fd, 0);
		(void)!ftruncate(w->fd, 64 * PAGE);
	}
	return NULL;
}

static void shrinking(struct arena *a)
{
	for (unsigned n = 0; n < 20 * a->effort; n++) {
		struct driller w = {.fd = memfd_create("hostile", MFD_CLOEXEC)};
		struct abi_reg_mr_reply out;
		struct duo d;

		duo_open(&d, a);
		must(w.fd >= 0 && !ftruncate(w.fd, 64 * PAGE), "memfd");
		must(register_fd(&d.s, w.fd, 0, 64 * PAGE, &out) == 0, "an unsealed memfd");
		must(!pthread_create(&w.thread, NULL, shrink, &w), "no thread");
		for (unsigned i = 0; i < 200; i++) {
			raw_request(&d.qp[0], i & 1 ? ABI_WR_RDMA_WRITE : ABI_WR_RDMA_READ, i,
				duo_sge(&d, 0, 8192), 0x10000 + i * 997 % (60 * PAGE), out.rkey);
			if (duo_status(&d, &d.qp[0]))
				break; /* the page was gone */
		}
		atomic_store(&w.stop, true);
		pthread_join(w.thread, NULL);
		duo_close(&d);
		close(w.fd);
	}
}

static void holes(struct arena *a)
{
	static const unsigned op[] = {ABI_WR_RDMA_WRITE, ABI_WR_RDMA_READ, ABI_WR_SEND};
	struct driller w = {0};
	struct duo d;

	duo_open(&d, a);
	w.d = &d;
	must(!pthread_create(&w.thread, NULL, drill, &w), "no thread");
	for (unsigned i = 0; i < 2000 * a->effort; i++) {
		raw_post_recv(&d.qp[1], i, duo_sge(&d, 32768, 8192));
		raw_request(&d.qp[0], op[i % 3], i, duo_sge(&d, 0, 8000),
			(uintptr_t)d.mr.mem + 32768, d.mr.key);
		if (op[i % 3] != ABI_WR_SEND) { /* takes no receive */
			raw_request(&d.qp[0], ABI_WR_SEND, i, duo_sge(&d, 0, 80), 0, 0);
			must(duo_status(&d, &d.qp[0]) == 0, "memory with holes is memory");
		}
		must(duo_status(&d, &d.qp[0]) == 0, "memory with holes is memory");
	}
	atomic_store(&w.stop, true);
	pthread_join(w.thread, NULL);
	duo_close(&d);
}

/* Punched rings: they read as zeroes, which is nothing posted. */
static void punched_rings(struct arena *a)
{
	struct duo d;

	duo_open(&d, a);
	for (unsigned i = 0; i < 300 * a->effort; i++) {
		for (unsigned k = 0; k < 8; k++)
			raw_request(&d.qp[k & 1], ABI_WR_RDMA_WRITE, k, duo_sge(&d, 0, 3000),
				(uintptr_t)d.mr.mem, d.mr.key);
		madvise(d.qp[i & 1].region, d.qp[0].r.region_size & ~(PAGE - 1), MADV_REMOVE);
		madvise(d.cq.region, d.cq.r.region_size & ~(PAGE - 1), MADV_REMOVE);
		madvise(d.s.region, d.s.hello.region_size & ~(PAGE - 1), MADV_REMOVE);
		raw_ring(&d.qp[0]);
	}
	duo_close(&d);
}

/* Regions, queues and whole QPs go while their packets are under way. */
static void storm(struct arena *a)
{
	for (unsigned i = 0; i < 60 * a->effort; i++) {
		struct duo d;

		duo_open(&d, a);
		for (unsigned k = 0; k < 30; k++) {
			raw_post_recv(&d.qp[1], k, duo_sge(&d, 32768, 20000));
			raw_request(&d.qp[0], k % 5, k, duo_sge(&d, 0, 20000),
				(uintptr_t)d.mr.mem + 32768, d.mr.key);
			raw_request(&d.qp[1], ABI_WR_RDMA_READ, k, duo_sge(&d, 0, 20000),
				(uintptr_t)d.mr.mem + 32768, d.mr.key);
		}
		if (random_next(&a->random) & 1)
			raw_must(&d.s, ABI_DEREG_MR, &d.mr.handle, 4, NULL, 0);
		for (int k = 0; k < 2; k++)
			if (random_next(&a->random) & 1)
				raw_must(&d.s, ABI_DESTROY_QP, &d.qp[k].r.handle, 4, NULL, 0);
		duo_close(&d);
	}
}

const struct attack attacks_memory[] = {
	{"descriptors that are no memory", wrong_descriptors},
	{"descriptors that hang", hanging_descriptors},
	{"ranges that a memfd does not have", odd_ranges},
	{"pieces that do not fit", odd_pieces},
	{"pieces without an end", endless_pieces},
	{"a region that gets shorter under a request", shorter_region},
	{"arenas", arenas},
	{"a file that shrinks under traffic", shrinking},
	{"a sparse terabyte", sparse},
	{"holes under traffic", holes},
	{"holes in the rings", punched_rings},
	{"regions and QPs that go in mid-flight", storm},
	{NULL, NULL},
};
