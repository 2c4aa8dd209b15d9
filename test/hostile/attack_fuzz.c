/* SPDX-License-Identifier: BSD-3-Clause */
/* All of it mixed, at random: commands that are nearly right, memory that changes, descriptors. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"

#define MAPS 16u

/* Bytes that a request of any type may have; handles are mostly ones that exist. */
struct fuzz {
	struct arena *a;
	struct duo d;
	uint32_t handle[64];
	uint8_t *map[MAPS];
	size_t size[MAPS];
	unsigned maps;
};

static uint32_t word(struct fuzz *f)
{
	static const uint32_t edge[] = {0, 1, 2, 3, 4, 16, 64, 255, 256, 1024, 4096, 65535, 65536,
		1u << 20, 1u << 31, UINT32_MAX, ABI_NO_HANDLE};
	struct random *r = &f->a->random;

	switch (random_below(r, 4)) {
	case 0:
		return edge[random_below(r, ARRAY_SIZE(edge))];
	case 1:
		return (uint32_t)random_next(r);
	default:
		return f->handle[random_below(r, ARRAY_SIZE(f->handle))];
	}
}

/* Requests that are right but for a field or two. */
static size_t make_body(struct fuzz *f, uint32_t type, uint32_t body[64])
{
	struct random *r = &f->a->random;
	struct abi_create_qp q = raw_qp_request(&f->d.s, &f->d.cq, 64);
	struct abi_reg_mr mr = {.pd = f->d.s.pd, .access = DUO_ACCESS, .length = 8192};
	struct abi_modify_qp m = {.handle = f->d.qp[random_next(r) & 1].r.handle,
		.mask = (uint32_t)random_next(r) & 0x1FFFFF};
	size_t len = 4 * random_below(r, 32);

	for (unsigned i = 0; i < 64; i++)
		body[i] = word(f);
	if (random_next(r) & 1)
		return len;
	if (type == ABI_CREATE_QP)
		memcpy(body, &q, len = sizeof(q));
	if (type == ABI_REG_MR)
		memcpy(body, &mr, len = sizeof(mr));
	if (type == ABI_MODIFY_QP) {
		random_fill(r, (uint8_t *)&m.attr, sizeof(m.attr));
		m.attr.qp_state &= 7;
		m.attr.port = 1 + (m.attr.port & 1);
		memcpy(body, &m, len = sizeof(m));
	}
	if (len && random_next(r) & 1)
		body[random_below(r, len / 4)] = word(f);
	return len;
}

/* Values of a reply are used by later requests. */
static void keep(struct fuzz *f, const uint32_t *reply, const int fds[2])
{
	struct random *r = &f->a->random;

	f->handle[random_below(r, ARRAY_SIZE(f->handle))] = reply[0];
	for (int i = 0; i < 2; i++) {
		off_t size = fds[i] < 0 ? 0 : lseek(fds[i], 0, SEEK_END);
		unsigned at = f->maps % MAPS;
		void *p;

		if (size > 0 && size < 1 << 24) {
			p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
			if (p != MAP_FAILED) {
				if (f->maps >= MAPS)
					munmap(f->map[at], f->size[at]);
				f->map[at] = p;
				f->size[at] = (size_t)size;
				f->maps++;
			}
		}
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static void scribble(struct fuzz *f)
{
	struct random *r = &f->a->random;
	unsigned n = f->maps < MAPS ? f->maps : MAPS;

	for (unsigned i = 0; n && i < 200; i++) {
		unsigned at = (unsigned)random_below(r, n);
		size_t where = random_below(r, f->size[at] / 8);

		((volatile uint64_t *)f->map[at])[where] =
			random_next(r) & 1 ? random_next(r) : word(f);
	}
}

static bool one(struct fuzz *f)
{
	struct random *r = &f->a->random;
	uint32_t type = (uint32_t)random_below(r, ABI_MSG_TYPES + 2);
	uint32_t body[64], reply[32];
	bool with_fd = type == ABI_REG_MR || random_below(r, 20) == 0;
	size_t len = make_body(f, type, body);
	int fds[2], status;

	status = raw_call(
		&f->d.s, type, body, len, with_fd ? f->d.mr.fd : -1, reply, sizeof(reply), fds, 2);
	if (status == RAW_GONE)
		return false;
	if (status) {
		memset(reply, 0, sizeof(reply));
		fds[0] = fds[1] = -1;
	}
	keep(f, reply, fds);
	scribble(f);
	for (int i = 0; i < 2; i++)
		raw_ring(&f->d.qp[i]);
	return true;
}

static void fuzz(struct arena *a)
{
	for (unsigned n = 0; n < 20 * a->effort; n++) {
		struct fuzz *f = &(struct fuzz){.a = a};
		unsigned i = 0;

		duo_open(&f->d, a);
		f->map[f->maps] = f->d.qp[0].region;
		f->size[f->maps++] = f->d.qp[0].r.region_size;
		f->map[f->maps] = f->d.qp[1].region;
		f->size[f->maps++] = f->d.qp[1].r.region_size;
		f->map[f->maps] = f->d.cq.region;
		f->size[f->maps++] = f->d.cq.r.region_size;
		f->handle[0] = f->d.s.pd;
		f->handle[1] = f->d.cq.r.handle;
		f->handle[2] = f->d.qp[0].r.handle;
		f->handle[3] = f->d.qp[1].r.handle;
		f->handle[4] = f->d.mr.handle;
		while (i++ < 400 && one(f))
			;
		close(f->d.s.sock);
		close(f->d.s.async);
		munmap(f->d.s.region, f->d.s.hello.region_size);
		for (i = 0; i < f->maps && i < MAPS; i++)
			munmap(f->map[i], f->size[i]);
		raw_mr_free(&f->d.mr);
	}
}

const struct attack attacks_fuzz[] = {
	{"everything at random", fuzz},
	{NULL, NULL},
};
