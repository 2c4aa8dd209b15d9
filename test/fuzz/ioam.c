/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The telemetry of packets, which switches write without knowing of each other and which any peer
 * may forge. The input begins with a byte of flags. Without LIKELY the rest is a frame; with it, it
 * says how to make one: a packet that gets the header, records of switches, and bits that change
 * on the way.
 */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "input.h"
#include "ioam.h"
#include "opcode.h"
#include "oracle.h"
#include "target.h"
#include "write.h"

enum {
	LIKELY = 1,
	TAGGED = 2,
	ECHO = 4,
	PADDED = 8,
};

#define PAYLOAD_MAX 256u
#define FRAME_ROOM  (2 * IOAM_LEN + PAYLOAD_MAX + 256)
#define PADDING	    7u

/* --- what holds for every frame ------------------------------------------------------------ */

/* The frame without the header is one that the parser takes or refuses like any other, and its ICRC
 * is right. */
static void check_popped(uint8_t *at, size_t len, const struct ioam *t, uint32_t qpn)
{
	struct pkt p;

	MUST(t->kind == IOAM_TRACE || t->kind == IOAM_ECHO);
	MUST(t->nodes <= IOAM_NODES);
	for (unsigned i = 0; i < t->nodes; i++)
		MUST(ioam_node(t, i).queue <= IOAM_QUEUE_MAX);
	if (frame_parse(&p, at, len))
		return;
	MUST(p.dest_qp == qpn && p.net == NET_IPV6);
	MUST(icrc_check(icrc_best(), &p));
}

/* In a block of its own: one byte too far is a report of AddressSanitizer.
 * @return whether there was a header with a right ICRC, whose records @p t has then */
static bool pop(const uint8_t *frame, size_t len, struct ioam *t)
{
	uint8_t *copy = malloc(len ? len : 1);
	uint32_t qpn = ioam_dest_qp(frame, len);
	uint8_t *at;

	MUST(copy);
	memcpy(copy, frame, len);
	memset(t, 0xEE, sizeof(*t));
	at = ioam_pop(icrc_best(), copy, len, t);
	if (at) {
		MUST(at == copy + IOAM_LEN);
		check_popped(at, len - IOAM_LEN, t, qpn);
	} else {
		MUST(!memcmp(copy, frame, len));
	}
	free(copy);
	return at != NULL;
}

/* A switch adds a record, or says that there is no room, and breaks no ICRC. */
static void check_added(const uint8_t *frame, size_t len, struct input *in)
{
	const struct ioam_node node = {.rate = (uint64_t)take(in, 1) * 25000000000,
		.time = take(in, 4),
		.sent = take(in, 4),
		.queue = take(in, 4)};
	uint8_t *copy = malloc(len ? len : 1);
	struct ioam before, after;
	bool good = pop(frame, len, &before);

	MUST(copy);
	memcpy(copy, frame, len);
	ioam_add(copy, len, &node);
	MUST(pop(copy, len, &after) == good);
	if (good && before.kind == IOAM_ECHO)
		MUST(!memcmp(copy, frame, len));
	else if (good && before.nodes && before.nodes < IOAM_NODES)
		MUST(after.nodes == before.nodes + 1 &&
			!memcmp(before.node, after.node, before.nodes * IOAM_NODE));
	free(copy);
}

/* --- frames that are likely ------------------------------------------------------------------ */

static size_t write_plain(uint8_t *frame, unsigned flags, struct input *in)
{
	static const uint8_t code[] = {OPC_RC | OP_SEND_ONLY, OPC_RC | OP_ACKNOWLEDGE,
		OPC_UC | OP_SEND_ONLY, OPC_RC | OP_READ_RESP_MIDDLE};
	const struct opcode *op = opcode_row(code[take(in, 1) % ARRAY_SIZE(code)]);
	struct gid_entry sgid = {
		.gid = {0xFD, [15] = 1}, .net = NET_IPV6, .valid = true, .mac = {2, [5] = 1}};
	struct path_spec s = {.sgid = &sgid, .dgid = {0xFD, [15] = 2}, .hop_limit = 64};
	struct pkt p = {.op = op,
		.net = NET_IPV6,
		.pkey = 0xFFFF,
		.dest_qp = take(in, 3) | 1,
		.psn = take(in, 3)};
	uint8_t payload[PAYLOAD_MAX];
	struct path path;

	if (flags & TAGGED)
		sgid.vid = 5;
	memcpy(s.dmac, (uint8_t[6]){2, [5] = 2}, 6);
	path_init(&path, &s);
	p.vid = sgid.vid;
	p.payload_len = op->payload ? (uint16_t)take(in, 1) : 0;
	memset(payload, 0x5A, sizeof(payload));
	return packet_write(frame, &path, &p, payload);
}

/* Nothing that is put in is lost, and the packet is the same afterwards. */
static void check_likely(unsigned flags, struct input *in)
{
	uint8_t room[FRAME_ROOM], plain[FRAME_ROOM];
	uint8_t *frame = room + IOAM_LEN;
	struct ioam echo = {.kind = IOAM_ECHO, .nodes = (uint8_t)(take(in, 1) % (IOAM_NODES + 1))};
	size_t len = write_plain(frame, flags, in);
	struct ioam t;

	memcpy(plain, frame, len);
	for (unsigned i = 0; i < echo.nodes * IOAM_NODE; i++)
		echo.node[i] = (uint8_t)take(in, 1);
	MUST(ioam_push(icrc_best(), frame, len, flags & ECHO ? &echo : NULL) == room);
	MUST(!pop(plain, len, &t));
	len += IOAM_LEN;
	MUST(pop(room, len, &t) && t.kind == (flags & ECHO ? IOAM_ECHO : IOAM_TRACE));
	MUST(t.nodes == (flags & ECHO ? echo.nodes : 0));
	MUST(!memcmp(t.node, echo.node, t.nodes * IOAM_NODE));
	if (flags & PADDED) {
		memset(room + len, 0x77, PADDING);
		len += PADDING;
		MUST(pop(room, len, &t));
	}
	for (unsigned i = take(in, 1) % (IOAM_NODES + 3); i; i--) {
		check_added(room, len, in);
		ioam_add(room, len, &(struct ioam_node){.rate = 25000000000, .queue = i * 1000});
	}
	flip_bits(room, len, in);
	check_added(room, len, in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned flags = take(&in, 1);
	struct ioam t;

	if (flags & LIKELY) {
		check_likely(flags, &in);
		return 0;
	}
	pop(in.at, in.left, &t);
	check_added(in.at, in.left, &(struct input){in.at, in.left});
	return 0;
}
