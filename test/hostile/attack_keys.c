/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and addresses of others, guessed or known. */
#include <err.h>
#include <string.h>
#include "attack.h"
#include "bits.h"

#define HALF (DUO_MEMORY / 2)

/* The bytes that an attack tried to read must not be in its memory. */
static void no_secret(const struct duo *d, const struct arena *a)
{
	must(!memmem(d->mr.base, d->mr.size, a->victim->secret, SECRET_LEN),
		"the victim's secret is in the attacker's memory");
}

static void expect(struct duo *d, const char *what, uint8_t status)
{
	int got = duo_status(d, &d->qp[0]);

	if (got != status)
		errx(1, "%s: status %d, not %u", what, got, status);
	duo_reset(d);
}

/* The victims' own keys and addresses, as local memory. */
static void foreign_lkeys(struct arena *a)
{
	const struct victim *v = a->victim;
	struct duo d;

	duo_open(&d, a);
	for (unsigned i = 0; i < 2; i++) {
		struct abi_sge sge = {v->addr[i], (uint32_t)v->len, v->key[i]};

		raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, i, sge, (uintptr_t)d.mr.mem, d.mr.key);
		expect(&d, "a WRITE out of a victim's memory", ABI_WC_LOC_PROT_ERR);
		raw_request(&d.qp[0], ABI_WR_RDMA_READ, i, sge, (uintptr_t)d.mr.mem, d.mr.key);
		expect(&d, "a READ into a victim's memory", ABI_WC_LOC_PROT_ERR);
		raw_post_recv(&d.qp[1], i, sge);
		raw_request(&d.qp[0], ABI_WR_SEND, i, duo_sge(&d, 0, 64), 0, 0);
		expect(&d, "a receive into a victim's memory", ABI_WC_REM_OP_ERR);
	}
	no_secret(&d, a);
	duo_close(&d);
}

static void foreign_rkeys(struct arena *a)
{
	const struct victim *v = a->victim;
	struct duo d;

	duo_open(&d, a);
	for (unsigned i = 0; i < 2; i++) {
		raw_request(&d.qp[0], ABI_WR_RDMA_READ, i, duo_sge(&d, 0, (uint32_t)v->len),
			v->addr[i], v->key[i]);
		expect(&d, "a READ of a victim's memory", ABI_WC_REM_ACCESS_ERR);
		raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, i, duo_sge(&d, 0, (uint32_t)v->len),
			v->addr[i], v->key[i]);
		expect(&d, "a WRITE to a victim's memory", ABI_WC_REM_ACCESS_ERR);
	}
	no_secret(&d, a);
	duo_close(&d);
}

/* Keys at random and near known ones, both sides. */
static void guessed_keys(struct arena *a)
{
	const struct victim *v = a->victim;
	struct duo d;

	duo_open(&d, a);
	for (unsigned i = 0; i < 150 * a->effort; i++) {
		uint32_t key = (uint32_t)random_next(&a->random);

		if (i & 1)
			key = (v->key[0] & ~0xFFu) | (key & 0xFF);
		if (key == d.mr.key)
			continue;
		raw_request(&d.qp[0], ABI_WR_RDMA_READ, i, duo_sge(&d, 0, 64), v->addr[0], key);
		expect(&d, "a READ with a guessed key", ABI_WC_REM_ACCESS_ERR);
		raw_request(&d.qp[0], ABI_WR_SEND, i, (struct abi_sge){v->addr[0], 64, key}, 0, 0);
		expect(&d, "a SEND with a guessed key", ABI_WC_LOC_PROT_ERR);
	}
	no_secret(&d, a);
	duo_close(&d);
}

/* Another domain of the same program is foreign too. */
static void other_domain(struct arena *a)
{
	struct raw_mr mr;
	struct duo d;
	uint32_t pd;

	duo_open(&d, a);
	pd = d.s.pd;
	raw_must(&d.s, ABI_ALLOC_PD, NULL, 0, &d.s.pd, sizeof(d.s.pd));
	raw_mr(&d.s, &mr, 4096, 0, DUO_ACCESS);
	d.s.pd = pd;
	raw_request(&d.qp[0], ABI_WR_RDMA_READ, 1, duo_sge(&d, 0, 64), (uintptr_t)mr.mem, mr.key);
	expect(&d, "a READ across domains", ABI_WC_REM_ACCESS_ERR);
	raw_request(
		&d.qp[0], ABI_WR_SEND, 2, (struct abi_sge){(uintptr_t)mr.mem, 64, mr.key}, 0, 0);
	expect(&d, "a SEND across domains", ABI_WC_LOC_PROT_ERR);
	raw_mr_free(&mr);
	duo_close(&d);
}

struct range {
	const char *what;
	uint64_t off; /* from the region's start */
	uint32_t len;
};

/* Ranges that wrap, touch or cross the region's ends, by READ and by WRITE. */
static void ranges(struct arena *a)
{
	static const struct range bad[] = {
		{"one byte before", -1ull, 1},
		{"across the start", -4ull, 8},
		{"the byte after", DUO_MEMORY, 1},
		{"across the end", DUO_MEMORY - 4, 8},
		{"all and one more", 0, DUO_MEMORY + 1},
		{"far away", 1ull << 63, 64},
		{"half of the space away", (1ull << 63) - 1, 64},
		{"nearly round", -(uint64_t)DUO_MEMORY, 64},
	};
	uint8_t canary[DUO_AROUND];
	struct duo d;

	duo_open(&d, a);
	memset(canary, 0xE1, sizeof(canary));
	memcpy(d.mr.base, canary, sizeof(canary));
	memcpy(d.mr.mem + DUO_MEMORY, canary, sizeof(canary));
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(bad); i++) {
		const struct range *r = &bad[i / 2];
		uint32_t local = r->len < HALF ? r->len : HALF;

		raw_request(&d.qp[0], i & 1 ? ABI_WR_RDMA_WRITE : ABI_WR_RDMA_READ, i,
			duo_sge(&d, 0, local), (uintptr_t)d.mr.mem + r->off, d.mr.key);
		if (local == r->len) /* else the request is a legal, shorter one */
			expect(&d, r->what, ABI_WC_REM_ACCESS_ERR);
		else
			duo_reset(&d);
	}
	/* an address that wraps at 2^64, with the right key */
	raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, 1, duo_sge(&d, 0, 4096), -8ull, d.mr.key);
	expect(&d, "a WRITE over the end of the address space", ABI_WC_REM_ACCESS_ERR);
	must(!memcmp(d.mr.base, canary, sizeof(canary)) &&
			!memcmp(d.mr.mem + DUO_MEMORY, canary, sizeof(canary)),
		"bytes beside the region were written");
	duo_close(&d);
}

/* Rights that a region or a QP does not give. */
static void rights(struct arena *a)
{
	struct raw_mr ro;
	struct duo d;

	duo_open(&d, a);
	raw_mr(&d.s, &ro, 4096, 0, ABI_ACCESS_REMOTE_READ);
	memset(ro.base, 0x11, 4096);
	raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, 1, duo_sge(&d, 0, 64), (uintptr_t)ro.mem, ro.key);
	expect(&d, "a WRITE to read-only memory", ABI_WC_REM_ACCESS_ERR);
	raw_post_recv(&d.qp[1], 1, (struct abi_sge){(uintptr_t)ro.mem, 4096, ro.key});
	raw_request(&d.qp[0], ABI_WR_SEND, 2, duo_sge(&d, 0, 64), 0, 0);
	expect(&d, "a receive into read-only memory", ABI_WC_REM_OP_ERR);
	for (size_t i = 0; i < 4096; i++)
		must(ro.base[i] == 0x11, "read-only memory was written");
	raw_mr_free(&ro);
	duo_close(&d);
}

const struct attack attacks_keys[] = {
	{"local keys of others", foreign_lkeys},
	{"remote keys of others", foreign_rkeys},
	{"guessed keys", guessed_keys},
	{"keys of another domain", other_domain},
	{"ranges that wrap and cross", ranges},
	{"rights that were not given", rights},
	{NULL, NULL},
};
