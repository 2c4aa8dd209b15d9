/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trials, answers and super-frames of the kernel (drivers/gso), which any peer may forge. The input
 * begins with a byte of flags: the rest is a frame, or says how to make one, a trial or a
 * super-frame, and what bits of it change on the way.
 */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "frame.h"
#include "gso/run.h"
#include "gso/trial.h"
#include "headers.h"
#include "input.h"
#include "oracle.h"
#include "path.h"
#include "path_write.h"
#include "target.h"

enum {
	TRIAL = 1,
	RUN = 2,
	IP6 = 4,
};

#define PAYLOAD_MAX 4096u

/* --- what holds for every frame ------------------------------------------------------------ */

/* It goes back to where the trial came from, is one, and gets no answer itself. */
static void check_answer(const uint8_t *trial, uint32_t len, uint64_t cookie)
{
	uint8_t room[GSO_TRIAL_MAX];
	uint32_t answer_len = gso_trial_answer(room, trial);
	uint8_t *answer = copy_of(room, answer_len, 0, 0);
	bool ip4 = get_be16(answer + ETH_TYPE) == ETHERTYPE_IPV4;
	size_t src = ETH_HLEN + (ip4 ? IP4_SRC : IP6_SRC),
	       dst = ETH_HLEN + (ip4 ? IP4_DST : IP6_DST);
	uint64_t again = ~cookie;

	MUST(answer_len == len);
	MUST(gso_trial_read(answer, answer_len, &again) == GSO_TRIAL_ANSWER && again == cookie);
	MUST(!memcmp(answer + ETH_DST, trial + ETH_SRC, 6));
	MUST(!memcmp(answer + ETH_SRC, trial + ETH_DST, 6));
	MUST(!memcmp(answer + dst, trial + src, dst - src));
	MUST(!memcmp(answer + src, trial + dst, dst - src));
	free(answer);
}

/* A frame that is taken for a trial is no packet of a QP, and is as long as those that the worker
 * looks at. */
static enum gso_trial_kind read_one(const uint8_t *frame, size_t len, uint64_t *cookie)
{
	uint8_t *copy = copy_of(frame, len, 0, 0);
	enum gso_trial_kind kind = gso_trial_read(copy, (uint32_t)len, cookie);
	struct pkt p;

	if (kind != GSO_TRIAL_NOT) {
		MUST(gso_trial_long((uint32_t)len));
		MUST(frame_parse(&p, copy, len) != DROP_NONE);
	}
	if (kind == GSO_TRIAL)
		check_answer(copy, (uint32_t)len, *cookie);
	free(copy);
	return kind;
}

/* A frame whose headers say what it is, and which has its part of the payload. */
static void check_part(const uint8_t *part, uint32_t len, const uint8_t *payload, uint32_t head)
{
	MUST(gso_head(part, len) == head);
	MUST(!memcmp(part + head, payload, len - head));
	MUST(!get_be16(part + head - UDP_HLEN + UDP_CSUM));
}

/* The super-frame of the parts is the one that was cut, but for checksums. */
static void check_joined(const struct gso_run *run, const uint8_t *frame, uint32_t len)
{
	const uint32_t csum = run->head - UDP_HLEN + UDP_CSUM;
	uint8_t head[GSO_HEAD_MAX];

	MUST(run->bytes == len);
	gso_write_head(run, head);
	MUST(gso_head(head, len) == run->head);
	if (get_be16(head + ETH_TYPE) == ETHERTYPE_IPV4) /* 0xFFFF is right where 0 is */
		memcpy(head + ETH_HLEN + IP4_CSUM, frame + ETH_HLEN + IP4_CSUM, 2);
	MUST(!memcmp(head, frame, csum) && csum + 2 == run->head);
}

/* Frames like our own can be joined again. */
static bool can_join(const struct gso_split *s, uint32_t len)
{
	uint32_t last = (s->left - 1) % s->size + 1;

	return gso_split_count(s) <= GSO_RUN_MAX && len <= GSO_RUN_BYTES &&
	       last >= BTH_HLEN + ICRC_LEN;
}

/* Cuts the super-frame into frames of at most @p room bytes. */
static void check_parts(struct gso_split *s, const uint8_t *frame, uint32_t len, uint32_t room)
{
	uint8_t *first = malloc(room);
	uint8_t *part = malloc(room);
	uint32_t count = gso_split_count(s), at = s->head;
	bool joined = true, can = can_join(s, len);
	struct gso_run run;

	MUST(first && part && count && count <= GSO_SEGMENTS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *out = i ? part : first;
		uint32_t n;

		MUST(gso_split_count(s) == count - i);
		n = gso_split_next(s, out);
		MUST(n <= room && n - s->head <= len - at);
		check_part(out, n, frame + at, s->head);
		at += n - s->head;
		joined = joined && (i ? gso_add(&run, out, n) : gso_begin(&run, out, n));
	}
	MUST(at == len && !s->left && joined == can);
	if (joined)
		check_joined(&run, frame, len);
	free(first);
	free(part);
}

static void check_split(const uint8_t *frame, size_t len, struct input *in)
{
	uint8_t *copy = copy_of(frame, len, 0, 0);
	uint16_t size = (uint16_t)take(in, 2);
	uint32_t room = take(in, 2);
	struct gso_split s;

	if (gso_split_begin(&s, copy, (uint32_t)len, size, room))
		check_parts(&s, copy, (uint32_t)len, room);
	free(copy);
}

/* --- frames that are likely ------------------------------------------------------------------ */

/* The headers of a frame with @p rest bytes after them. @return its bytes. */
static uint32_t write_frame(uint8_t *frame, unsigned flags, uint16_t rest, struct input *in)
{
	struct gid_entry sgid = {.net = flags & IP6 ? NET_IPV6 : NET_IPV4,
		.valid = true,
		.mac = {2, [5] = 1},
		.gid = {[10] = 0xFF, 0xFF, 10, 9, 8, 1}};
	struct path_spec s = {.sgid = &sgid,
		.dmac = {2, [5] = 2},
		.dgid = {[10] = 0xFF, 0xFF, 10, 9, 8, 2},
		.hop_limit = 64};
	struct path path;
	uint8_t *bth;

	s.traffic_class = (uint8_t)take(in, 1);
	s.sport = (uint16_t)take(in, 2);
	path_init(&path, &s);
	bth = path_write(&path, frame, rest, (uint16_t)take(in, 2));
	for (uint16_t i = 0; i < rest; i++)
		bth[i] = (uint8_t)(i / 16 + i);
	return (uint32_t)(bth - frame) + rest;
}

/* A part of a trial, or its answer, is read as what it is. */
static void check_trial(unsigned flags, struct input *in)
{
	static const enum gso_trial_kind kinds[] = {GSO_TRIAL_BEGIN, GSO_TRIAL, GSO_TRIAL_ANSWER};
	uint8_t like[PAYLOAD_MAX], whole[GSO_TRIAL_MAX], part[GSO_TRIAL_MAX], answer[GSO_TRIAL_MAX];
	unsigned which = take(in, 1) % ARRAY_SIZE(kinds);
	uint64_t sent = (uint64_t)take(in, 4) << 32 | take(in, 4), cookie = ~sent;
	uint8_t *at = which == 2 ? answer : part;
	struct gso_split s;
	uint16_t head;
	uint32_t len;

	write_frame(like, flags, BTH_HLEN + ICRC_LEN, in);
	len = gso_trial_write(whole, like, sent, &head);
	MUST(len <= GSO_TRIAL_MAX && gso_trial_long(len));
	MUST(gso_split_begin(&s, whole, len, GSO_TRIAL_PART, sizeof(part)));
	len = gso_split_next(&s, part);
	if (which)
		len = gso_split_next(&s, part);
	if (which == 2)
		len = gso_trial_answer(answer, part);
	if (!flip_bits(at, len, in))
		MUST(read_one(at, len, &cookie) == kinds[which] && cookie == sent);
	else
		read_one(at, len, &cookie);
}

static void check_run(unsigned flags, struct input *in)
{
	uint8_t frame[GSO_HEAD_MAX + PAYLOAD_MAX];
	struct input how = *in;
	uint32_t len;

	take(in, 4); /* what check_split() takes of it */
	len = write_frame(frame, flags, (uint16_t)(take(in, 2) % PAYLOAD_MAX), in);
	flip_bits(frame, len, in);
	check_split(frame, len, &how);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned flags = take(&in, 1);
	uint64_t cookie;

	if (flags & TRIAL) {
		check_trial(flags, &in);
	} else if (flags & RUN) {
		check_run(flags, &in);
	} else {
		read_one(in.at, in.left, &cookie);
		check_split(in.at, in.left, &(struct input){in.at, in.left});
	}
	return 0;
}
