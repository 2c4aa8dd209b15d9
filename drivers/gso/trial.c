/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "gso/trial.h"
#include "icrc.h"
#include "path_write.h"

#define OPCODE_TRIAL  0xFEu
#define OPCODE_ANSWER 0xFFu
#define NAME	      "rocigso2"
#define PSN_AT	      (BTH_HLEN - 1u) /* its last byte */
#define NAME_AT	      BTH_HLEN
#define COOKIE_AT     (NAME_AT + 8u)
#define ICRC_AT	      (GSO_TRIAL_PART - ICRC_LEN)
#define TTL	      64
#define SPORT_MIN     0xC000u /* UDP-10 */
#define SPORT_MASK    0x3FFFu

static bool is_ip4(const uint8_t *frame)
{
	return get_be16(frame + ETH_TYPE) == ETHERTYPE_IPV4;
}

static uint32_t head_of(const uint8_t *frame)
{
	return ETH_HLEN + (is_ip4(frame) ? IP4_HLEN : IP6_HLEN) + UDP_HLEN;
}

static uint32_t icrc_state(const uint8_t *frame)
{
	return icrc_header(icrc_best(), frame + ETH_HLEN, is_ip4(frame) ? NET_IPV4 : NET_IPV6,
		head_of(frame) - ETH_HLEN + ICRC_AT);
}

/* Turns the headers of @p out, copied from another frame, into those of a single frame. The source
 * port depends on the cookie, so each trial has another one: if an offload merges one trial with a
 * QP's packets, it will hardly merge the next. */
static void mend_head(uint8_t *out, uint64_t cookie, uint16_t id)
{
	uint32_t head = head_of(out);
	uint8_t *ip = out + ETH_HLEN;
	uint8_t *udp = out + head - UDP_HLEN;
	uint32_t sum = 0;

	put_be16(udp + UDP_SPORT, (uint16_t)(SPORT_MIN | (cookie & SPORT_MASK)));
	put_be16(udp + UDP_LEN, UDP_HLEN + GSO_TRIAL_PART);
	put_be16(udp + UDP_CSUM, 0);
	if (!is_ip4(out)) {
		put_be16(ip + IP6_PLEN, UDP_HLEN + GSO_TRIAL_PART);
		return;
	}
	put_be16(ip + IP4_TOTLEN, (uint16_t)(head - ETH_HLEN + GSO_TRIAL_PART));
	put_be16(ip + IP4_ID, id);
	put_be16(ip + IP4_CSUM, 0);
	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	put_be16(ip + IP4_CSUM, (uint16_t)~path_csum_fold(sum));
}

/* Writes a part after the headers, which are complete. @return the bytes of the frame. */
static uint32_t write_part(uint8_t *out, uint8_t opcode, uint8_t psn, uint64_t cookie)
{
	uint32_t head = head_of(out);
	uint8_t *bth = out + head;

	memset(bth, 0, GSO_TRIAL_PART);
	bth[BTH_OPCODE] = opcode;
	put_be16(bth + BTH_PKEY, 0xFFFF);
	bth[PSN_AT] = psn;
	memcpy(bth + NAME_AT, NAME, 8);
	memcpy(bth + COOKIE_AT, &cookie, 8);
	icrc_store(bth + ICRC_AT, icrc_state(out));
	return head + GSO_TRIAL_PART;
}

uint32_t gso_trial_write(
	uint8_t out[GSO_TRIAL_MAX], const uint8_t *like, uint64_t cookie, uint16_t *head)
{
	uint8_t part[2][GSO_HEAD_MAX + GSO_TRIAL_PART];
	struct gso_run run;
	uint32_t len = 0;

	for (uint8_t i = 0; i < 2; i++) {
		memcpy(part[i], like, head_of(like));
		mend_head(part[i], cookie, i);
		len = write_part(part[i], OPCODE_TRIAL, i, cookie);
	}
	gso_begin(&run, part[0], len);
	gso_add(&run, part[1], len);
	gso_write_head(&run, out);
	for (unsigned i = 0; i < 2; i++)
		memcpy(out + run.head + i * GSO_TRIAL_PART, part[i] + run.head, GSO_TRIAL_PART);
	*head = run.head;
	return run.bytes;
}

static void swap(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[16];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

uint32_t gso_trial_answer(uint8_t out[GSO_TRIAL_MAX], const uint8_t *trial)
{
	uint32_t head = head_of(trial);
	uint8_t *ip = out + ETH_HLEN;
	uint64_t cookie;

	memcpy(out, trial, head);
	memcpy(&cookie, trial + head + COOKIE_AT, sizeof(cookie));
	swap(out + ETH_DST, out + ETH_SRC, 6);
	if (is_ip4(out)) {
		swap(ip + IP4_SRC, ip + IP4_DST, 4);
		ip[IP4_TTL] = TTL;
	} else {
		swap(ip + IP6_SRC, ip + IP6_DST, 16);
		ip[IP6_HLIM] = TTL;
	}
	mend_head(out, cookie, 0);
	return write_part(out, OPCODE_ANSWER, 0, cookie);
}

enum gso_trial_kind gso_trial_read(const uint8_t *frame, uint32_t len, uint64_t *cookie)
{
	uint32_t head = gso_head(frame, len);
	const uint8_t *bth = frame + head;
	uint8_t icrc[ICRC_LEN];

	if (!head || len != head + GSO_TRIAL_PART)
		return GSO_TRIAL_NOT;
	if ((bth[BTH_OPCODE] != OPCODE_TRIAL && bth[BTH_OPCODE] != OPCODE_ANSWER) ||
		memcmp(bth + NAME_AT, NAME, 8))
		return GSO_TRIAL_NOT;
	icrc_store(icrc, icrc_state(frame));
	if (memcmp(icrc, bth + ICRC_AT, ICRC_LEN))
		return GSO_TRIAL_NOT;
	memcpy(cookie, bth + COOKIE_AT, sizeof(*cookie));
	if (bth[BTH_OPCODE] == OPCODE_ANSWER)
		return GSO_TRIAL_ANSWER;
	return bth[PSN_AT] == 1 ? GSO_TRIAL : GSO_TRIAL_BEGIN;
}
