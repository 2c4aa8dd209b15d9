/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of the demo's two programs. Role a gives the orders: it executes WRITE, READ and SEND, and
 * both compute a digest of their own memory. Role b obeys. The results are printed as lines of
 * JSON, for app/demo/demo.
 */
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "endpoint.h"
#include "json_line.h"
#include "measure.h"
#include "number.h"
#include "oob.h"
#include "row.h"
#include "talk.h"

/* Data begins at an odd address: nothing may depend on alignment. */
#define OFFSET 13u

/* FNV-1a, 64 bits. */
static uint64_t digest(const uint8_t *p, size_t len)
{
	uint64_t h = 0xCBF29CE484222325ull;

	while (len--)
		h = (h ^ *p++) * 0x100000001B3ull;
	return h;
}

/* xorshift64: bytes that differ from place to place and from seed to seed. */
static void fill(uint8_t *p, size_t len, uint64_t seed)
{
	uint64_t x = seed * 0x9E3779B97F4A7C15ull | 1;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)((x * 0x2545F4914F6CDD1Dull) >> 56);
	}
}

/* --- role b ---------------------------------------------------------------------------- */

/* A hidden switch to show that a wrong byte is detected: one byte, once. */
static void corrupt_once(uint8_t *memory, uint32_t len)
{
	static bool done;
	const char *wanted = getenv("ROCI_DEMO_CORRUPT");

	if (done || !wanted || strcmp(wanted, "1") != 0 || len < 4096)
		return;
	memory[len / 2] ^= 0x10;
	done = true;
}

static void answer(int fd, uint64_t value)
{
	oob_send(fd, &value, sizeof(value));
}

static void receive(struct endpoint *e, int fd, const struct order *o)
{
	struct roci_wc wc;

	endpoint_receive(e, o->off, o->len);
	answer(fd, 0);
	endpoint_wait(e, &wc, 1);
	if (wc.byte_len != o->len)
		errx(1, "a SEND of %u bytes arrived as %u bytes", o->len, wc.byte_len);
	answer(fd, digest(e->memory + o->off, o->len));
}

static void obey(struct endpoint *e, int fd, const struct order *o)
{
	uint8_t *memory = e->memory + o->off;

	if (o->off > MEMORY_SIZE || o->len > MEMORY_SIZE - o->off)
		errx(1, "an order refers to memory that does not exist");
	switch (o->type) {
	case ORDER_FILL:
		fill(memory, o->len, o->seed);
		answer(fd, digest(memory, o->len));
		break;
	case ORDER_CLEAR:
		memset(memory, 0, o->len);
		answer(fd, 0);
		break;
	case ORDER_DIGEST:
		corrupt_once(memory, o->len);
		answer(fd, digest(memory, o->len));
		break;
	case ORDER_RECEIVE:
		receive(e, fd, o);
		break;
	case ORDER_ECHO:
		measure_echo(e, fd, o->len);
		break;
	default:
		errx(1, "unknown order");
	}
}

static void role_b(struct endpoint *e, int fd)
{
	struct order o;

	for (;;) {
		oob_receive(fd, &o, sizeof(o));
		if (o.type == ORDER_END)
			return;
		obey(e, fd, &o);
	}
}

/* --- role a ---------------------------------------------------------------------------- */

static uint64_t wait_answer(int fd)
{
	uint64_t value;

	oob_receive(fd, &value, sizeof(value));
	return value;
}

static uint64_t order(int fd, enum order_type type, uint32_t len, uint64_t seed)
{
	struct order o = {.type = type, .len = len, .off = OFFSET, .seed = seed};

	oob_send(fd, &o, sizeof(o));
	return wait_answer(fd);
}

static void complete(struct endpoint *e)
{
	struct roci_wc wc;

	endpoint_wait(e, &wc, 1);
}

static void report(const char *operation, uint32_t len, uint64_t a, uint64_t b)
{
	char digest_a[17], digest_b[17];
	struct row r;

	snprintf(digest_a, sizeof(digest_a), "%016" PRIx64, a);
	snprintf(digest_b, sizeof(digest_b), "%016" PRIx64, b);
	row_begin(&r);
	put_text(&r, "check", operation);
	put_int(&r, "bytes", len);
	put_text(&r, "digest_a", digest_a);
	put_text(&r, "digest_b", digest_b);
	put_bool(&r, "ok", a == b);
	json_line(row_end(&r));
}

static void check_write(struct endpoint *e, int fd, uint32_t len, uint64_t seed)
{
	uint8_t *memory = e->memory + OFFSET;

	order(fd, ORDER_CLEAR, len, 0);
	fill(memory, len, seed);
	endpoint_post(e, ROCI_WR_RDMA_WRITE, OFFSET, len);
	complete(e);
	report("WRITE", len, digest(memory, len), order(fd, ORDER_DIGEST, len, 0));
}

static void check_read(struct endpoint *e, int fd, uint32_t len, uint64_t seed)
{
	uint8_t *memory = e->memory + OFFSET;
	uint64_t theirs = order(fd, ORDER_FILL, len, seed);

	memset(memory, 0, len);
	endpoint_post(e, ROCI_WR_RDMA_READ, OFFSET, len);
	complete(e);
	report("READ", len, digest(memory, len), theirs);
}

static void check_send(struct endpoint *e, int fd, uint32_t len, uint64_t seed)
{
	uint8_t *memory = e->memory + OFFSET;

	order(fd, ORDER_CLEAR, len, 0);
	fill(memory, len, seed);
	order(fd, ORDER_RECEIVE, len, 0);
	endpoint_post(e, ROCI_WR_SEND, OFFSET, len);
	complete(e);
	report("SEND", len, digest(memory, len), wait_answer(fd));
}

static void measure(struct endpoint *e, int fd, uint32_t len)
{
	measure_bandwidth(e, ROCI_WR_RDMA_WRITE, "write", len);
	measure_bandwidth(e, ROCI_WR_RDMA_READ, "read", len);
	order(fd, ORDER_ECHO, len, 0);
	measure_latency(e, len);
	wait_answer(fd);
}

static void role_a(struct endpoint *e, int fd)
{
	/* Around the path MTU (4096), one byte less and more than whole packets. */
	static const uint32_t checked[] = {1, 1000, 4096, 65537, 1 << 20};
	static const uint32_t measured[] = {64, 1024, 4096, 65536, 1 << 20};
	struct order end = {.type = ORDER_END};
	uint64_t seed = 1;

	for (unsigned i = 0; i < sizeof(checked) / sizeof(checked[0]); i++) {
		check_write(e, fd, checked[i], seed++);
		check_read(e, fd, checked[i], seed++);
		check_send(e, fd, checked[i], seed++);
	}
	for (unsigned i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
		measure(e, fd, measured[i]);
	oob_send(fd, &end, sizeof(end));
}

int main(int argc, char *argv[])
{
	struct endpoint e = {0};
	uint64_t timeout;
	bool a;
	int fd;

	if (argc != 5 || (strcmp(argv[1], "a") && strcmp(argv[1], "b")) ||
		!parse_number(argv[4], 31, &timeout)) {
		fprintf(stderr, "usage: demo_peer a|b ROCID_SOCKET LOCAL_SOCKET TIMEOUT_CODE\n");
		return 2;
	}
	a = !strcmp(argv[1], "a");
	endpoint_open(&e, argv[2]);
	fd = a ? talk_connect(argv[3]) : talk_listen(argv[3]);
	oob_send(fd, &e.own, sizeof(e.own));
	oob_receive(fd, &e.peer, sizeof(e.peer));
	endpoint_connect(&e, (uint8_t)timeout);
	/* Nobody sends before both are connected. */
	oob_send(fd, "", 1);
	oob_receive(fd, &(char){0}, 1);
	if (a)
		role_a(&e, fd);
	else
		role_b(&e, fd);
	endpoint_close(&e);
	return 0;
}
