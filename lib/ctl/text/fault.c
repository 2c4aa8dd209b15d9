/* SPDX-License-Identifier: BSD-3-Clause */
/* The text form of faults: validation, parsing, formatting, completion. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "headers.h"
#include "inject.h"
#include "number.h"
#include "opcode.h"
#include "refuse.h"
#include "seq24.h"
#include "text/fault.h"

#define KIND(k)	  (1u << ABI_FAULT_##k)
#define ALL_KINDS ((1u << ABI_FAULT_KINDS) - 1)
#define HEADERS	  (KIND(SYNDROME) | KIND(MSN) | KIND(PSN) | KIND(OPCODE) | KIND(PKEY) | KIND(QPN))
#define BLANKS	  " \t\r"

/* --- validation ------------------------------------------------------------------------- */

static int check_which(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	if (f->direction > ABI_FAULT_RX || (f->flags & ~ABI_FAULT_FLAGS))
		return refuse(why, -EINVAL,
			"direction %u or flags 0x%x are undefined: see abi_fault.h", f->direction,
			f->flags);
	if (f->packets & ~(ABI_FAULT_WHAT | ABI_FAULT_PLACE))
		return refuse(
			why, -EINVAL, "packets 0x%x are undefined: see abi_fault.h", f->packets);
	if (f->psn_first > SEQ24_MASK || f->psn_last > SEQ24_MASK)
		return refuse(why, -EINVAL, "a PSN has 24 bits: 0 to 0x%x", SEQ24_MASK);
	if (!f->nth || !f->every)
		return refuse(why, -EINVAL,
			"packets are counted from 1: nth and every must be at least 1");
	if (!f->chance || f->chance > ABI_FAULT_ALWAYS)
		return refuse(why, -EINVAL, "a probability must be above 0 and at most 1");
	return 0;
}

static int check_direction(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	if (f->kind == ABI_FAULT_RNR && f->direction != ABI_FAULT_RX)
		return refuse(why, -EINVAL, "an RNR NAK answers a received request: rnr needs rx");
	if (f->kind == ABI_FAULT_QPN && f->direction != ABI_FAULT_TX)
		return refuse(
			why, -EINVAL, "a received packet cannot be for another QP: qpn needs tx");
	return 0;
}

/* The maximum of `value`. */
static uint32_t value_max(const struct abi_fault *f)
{
	static const uint32_t most[ABI_FAULT_KINDS] = {
		[ABI_FAULT_REORDER] = INJECT_HELD - 1,
		[ABI_FAULT_RNR] = 31,
		[ABI_FAULT_ECN] = 3,
		[ABI_FAULT_SYNDROME] = 0xFF,
		[ABI_FAULT_MSN] = SEQ24_MASK,
		[ABI_FAULT_PSN] = SEQ24_MASK,
		[ABI_FAULT_OPCODE] = 0xFF,
		[ABI_FAULT_PKEY] = 0xFFFF,
		[ABI_FAULT_QPN] = SEQ24_MASK,
	};

	return most[f->kind];
}

static int check_amount(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	bool holds = f->kind == ABI_FAULT_DELAY || f->kind == ABI_FAULT_REORDER;

	if (f->value > value_max(f) || (f->kind == ABI_FAULT_REORDER && !f->value))
		return refuse(why, -EINVAL, "%s: 0x%x is out of range: use %u to 0x%x",
			inject_names[f->kind], f->value, f->kind == ABI_FAULT_REORDER,
			value_max(f));
	if (holds && (!f->time || f->time > FAULT_TIME_MAX))
		return refuse(why, -EINVAL, "%s: the delay of a packet must be from 1 ns to 10 s",
			inject_names[f->kind]);
	if (f->kind == ABI_FAULT_ICRC && !f->mask)
		return refuse(why, -EINVAL, "icrc: mask 0 changes nothing: use at least 1");
	if (f->kind != ABI_FAULT_CORRUPT)
		return 0;
	if (!f->mask || f->mask > 0xFF)
		return refuse(why, -EINVAL, "corrupt: the mask must be from 1 to 0xff");
	if (f->offset >= FRAME_MAX)
		return refuse(why, -EINVAL, "corrupt: no packet has %u bytes: use a smaller offset",
			f->offset + 1);
	return 0;
}

int fault_check(const struct abi_fault *f, char why[ABI_SENTENCE_MAX])
{
	int err;

	if (f->kind == ABI_FAULT_NONE || f->kind >= ABI_FAULT_KINDS)
		return refuse(why, -EINVAL, "fault %u is undefined: see abi_fault.h", f->kind);
	err = check_which(f, why);
	if (!err)
		err = check_direction(f, why);
	return err ? err : check_amount(f, why);
}

/* --- words without a value ---------------------------------------------------------------- */

static const struct {
	const char *name;
	uint32_t bits;
} packets[] = {
	{"request", ABI_FAULT_REQUEST},
	{"response", ABI_FAULT_RESPONSE},
	{"send", ABI_FAULT_SEND},
	{"write", ABI_FAULT_WRITE},
	{"read", ABI_FAULT_READ},
	{"atomic", ABI_FAULT_ATOMIC},
	{"flush", ABI_FAULT_FLUSH},
	{"atomic_write", ABI_FAULT_ATOMIC_WRITE},
	{"read_response", ABI_FAULT_READ_RESPONSE},
	{"atomic_response", ABI_FAULT_ATOMIC_RESPONSE},
	{"ack", ABI_FAULT_ACK},
	{"nak", ABI_FAULT_NAK},
	{"rnr_nak", ABI_FAULT_RNR_NAK},
	{"first", ABI_FAULT_FIRST},
	{"middle", ABI_FAULT_MIDDLE},
	{"last", ABI_FAULT_LAST},
	{"only", ABI_FAULT_ONLY},
};

static bool set_word(struct abi_fault *f, const char *word)
{
	if (!strcmp(word, "tx") || !strcmp(word, "rx")) {
		f->direction = *word == 'r' ? ABI_FAULT_RX : ABI_FAULT_TX;
		return true;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(packets); i++) {
		if (strcmp(word, packets[i].name))
			continue;
		f->packets |= packets[i].bits;
		return true;
	}
	return false;
}

/* --- values ------------------------------------------------------------------------------- */

static bool set_number(uint32_t *out, const char *value, uint64_t most)
{
	uint64_t n;

	if (!parse_number(value, most, &n))
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool set_psns(struct abi_fault *f, const char *value)
{
	char first[16];
	const char *dash = strchr(value, '-');
	size_t len = dash ? (size_t)(dash - value) : strlen(value);

	if (len >= sizeof(first))
		return false;
	memcpy(first, value, len);
	first[len] = '\0';
	f->flags |= ABI_FAULT_PSNS;
	return set_number(&f->psn_first, first, SEQ24_MASK) &&
	       set_number(&f->psn_last, dash ? dash + 1 : first, SEQ24_MASK);
}

static bool set_nth(struct abi_fault *f, const char *value)
{
	return set_number(&f->nth, value, UINT32_MAX) && f->nth;
}

static bool set_every(struct abi_fault *f, const char *value)
{
	return set_number(&f->every, value, UINT32_MAX) && f->every;
}

static bool set_count(struct abi_fault *f, const char *value)
{
	f->count = 0;
	return !strcmp(value, "all") || (set_number(&f->count, value, UINT32_MAX) && f->count);
}

static bool set_chance(struct abi_fault *f, const char *value)
{
	double p;

	if (!parse_decimal(value, &p) || !(p >= 1.0 / ABI_FAULT_ALWAYS && p <= 1))
		return false;
	f->chance = (uint32_t)(p * ABI_FAULT_ALWAYS + 0.5);
	return true;
}

static bool set_seed(struct abi_fault *f, const char *value)
{
	return parse_number(value, UINT64_MAX, &f->seed);
}

static bool set_time(struct abi_fault *f, const char *value)
{
	return parse_time(value, FAULT_TIME_MAX, &f->time) && f->time;
}

static bool set_packets(struct abi_fault *f, const char *value)
{
	return set_number(&f->value, value, INJECT_HELD - 1) && f->value;
}

static bool set_timer(struct abi_fault *f, const char *value)
{
	f->flags &= (uint16_t)~ABI_FAULT_QP_TIMER;
	return set_number(&f->value, value, 31);
}

static bool set_mask(struct abi_fault *f, const char *value)
{
	return set_number(&f->mask, value, UINT32_MAX) && f->mask;
}

static bool set_at(struct abi_fault *f, const char *value)
{
	static const char payload[] = "payload";
	size_t len = strlen(payload);

	if (strncmp(value, payload, len)) {
		f->flags &= (uint16_t)~ABI_FAULT_IN_PAYLOAD;
		return set_number(&f->offset, value, FRAME_MAX - 1);
	}
	f->flags |= ABI_FAULT_IN_PAYLOAD;
	f->offset = 0;
	return !value[len] ||
	       (value[len] == '+' && set_number(&f->offset, value + len + 1, FRAME_MAX - 1));
}

static const char *const codepoints[] = {"not-ect", "ect1", "ect0", "ce"};
static const struct {
	const char *name;
	uint8_t syndrome;
} syndromes[] = {
	{"psn_sequence", NAK_PSN_SEQUENCE},
	{"invalid_request", NAK_INVALID_REQ},
	{"remote_access", NAK_REMOTE_ACCESS},
	{"remote_operation", NAK_REMOTE_OP},
	{"invalid_rd_request", NAK_INVALID_RD_REQ},
};

/* Codepoints, NAKs and opcodes may be given by name or number. */
static bool set_name(struct abi_fault *f, const char *value)
{
	for (unsigned i = 0; f->kind == ABI_FAULT_ECN && i < ARRAY_SIZE(codepoints); i++) {
		f->value = i;
		if (!strcmp(value, codepoints[i]))
			return true;
	}
	for (unsigned i = 0; f->kind == ABI_FAULT_SYNDROME && i < ARRAY_SIZE(syndromes); i++) {
		f->value = syndromes[i].syndrome;
		if (!strcmp(value, syndromes[i].name))
			return true;
	}
	for (unsigned i = 0; f->kind == ABI_FAULT_OPCODE && i < 256; i++) {
		f->value = i;
		if (opcode_table[i].name && !strcasecmp(value, opcode_table[i].name))
			return true;
	}
	return false;
}

static bool set_to(struct abi_fault *f, const char *value)
{
	f->flags &= (uint16_t)~ABI_FAULT_ADD;
	return set_name(f, value) || set_number(&f->value, value, UINT32_MAX);
}

static bool set_add(struct abi_fault *f, const char *value)
{
	bool less = *value == '-';

	f->flags |= ABI_FAULT_ADD;
	if (!set_number(&f->value, value + less, SEQ24_MASK))
		return false;
	f->value = (less ? -f->value : f->value) & SEQ24_MASK;
	return true;
}

/* If you add a key, add it to doc/inject.md and rocictl(1), too. */
static const struct {
	const char *key;
	const char *help; /* describes its value */
	uint32_t kinds;	  /* of faults that accept it */
	bool (*set)(struct abi_fault *f, const char *value);
} keys[] = {
	{"psn=", "a PSN, or a range FIRST-LAST", ALL_KINDS, set_psns},
	{"nth=", "the number of the first packet, from 1", ALL_KINDS, set_nth},
	{"every=", "then every Nth packet", ALL_KINDS, set_every},
	{"count=", "the maximum number of times, or all", ALL_KINDS, set_count},
	{"probability=", "above 0, at most 1", ALL_KINDS, set_chance},
	{"seed=", "a number, the seed for probability=", ALL_KINDS, set_seed},
	{"time=", "1ns to 10s", KIND(DELAY) | KIND(REORDER), set_time},
	{"packets=", "the number of packets that overtake it, 1 to 127", KIND(REORDER),
		set_packets},
	{"timer=", "a timer code, 0 to 31", KIND(RNR), set_timer},
	{"mask=", "the bits to flip, of the ICRC or of a byte", KIND(ICRC) | KIND(CORRUPT),
		set_mask},
	{"at=", "an offset from the BTH in bytes, or payload, or payload+N", KIND(CORRUPT), set_at},
	{"to=", "the new value: a number, a codepoint, a NAK, an opcode", KIND(ECN) | HEADERS,
		set_to},
	{"add=", "the number to add; may be negative", KIND(PSN) | KIND(MSN), set_add},
};

bool fault_word_next(unsigned kind, unsigned *at, struct fault_word *word)
{
	const unsigned first = 2, keys_at = first + (unsigned)ARRAY_SIZE(packets);
	unsigned i = (*at)++;

	if (i < first) {
		*word = (struct fault_word){i ? "rx" : "tx", "the direction"};
		return true;
	}
	if (i < keys_at) {
		*word = (struct fault_word){packets[i - first].name, "which packets"};
		return true;
	}
	for (i -= keys_at; i < ARRAY_SIZE(keys); i++, ++*at) {
		if (!(keys[i].kinds >> kind & 1))
			continue;
		*word = (struct fault_word){keys[i].key, keys[i].help};
		return true;
	}
	return false;
}

/* --- parsing ------------------------------------------------------------------------------ */

static int read_word(
	struct abi_fault *f, const char *word, bool *amount, char why[ABI_SENTENCE_MAX])
{
	const char *name = inject_names[f->kind];

	if (set_word(f, word))
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t len = strlen(keys[i].key);

		if (strncmp(word, keys[i].key, len))
			continue;
		if (!(keys[i].kinds >> f->kind & 1))
			return refuse(why, -EINVAL, "%s does not accept \"%s\": see rocictl(1)",
				name, keys[i].key);
		*amount |= keys[i].set == set_to || keys[i].set == set_add;
		if (keys[i].set(f, word + len))
			return 0;
		return refuse(
			why, -EINVAL, "\"%.32s\": %s needs %s", word, keys[i].key, keys[i].help);
	}
	return refuse(why, -EINVAL,
		"%s does not accept \"%.32s\": see rocictl(1), or press TAB at rocictl's prompt",
		name, word);
}

static void set_defaults(struct abi_fault *f, unsigned kind)
{
	*f = (struct abi_fault){
		.kind = (uint8_t)kind,
		.direction = kind == ABI_FAULT_RNR ? ABI_FAULT_RX : ABI_FAULT_TX,
		.nth = 1,
		.every = 1,
		.count = 1,
		.chance = ABI_FAULT_ALWAYS,
		.mask = kind == ABI_FAULT_ICRC || kind == ABI_FAULT_CORRUPT,
	};
	if (kind == ABI_FAULT_CORRUPT)
		f->flags = ABI_FAULT_IN_PAYLOAD;
	if (kind == ABI_FAULT_RNR)
		f->flags = ABI_FAULT_QP_TIMER;
	if (kind == ABI_FAULT_REORDER) {
		f->value = 1;
		f->time = 10000000;
	}
}

int fault_parse(struct abi_fault *f, unsigned kind, const char *line, char why[ABI_SENTENCE_MAX])
{
	bool amount = false;
	char words[512];
	char *save = NULL;
	int err = 0;

	set_defaults(f, kind);
	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok_r(words, BLANKS, &save); w && !err; w = strtok_r(NULL, BLANKS, &save))
		err = read_word(f, w, &amount, why);
	if (err)
		return err;
	if ((KIND(ECN) | HEADERS) >> kind & 1 && !amount)
		return refuse(why, -EINVAL, "%s needs to=VALUE, the new value in the packet",
			inject_names[kind]);
	if (kind == ABI_FAULT_DELAY && !f->time)
		return refuse(why, -EINVAL, "delay needs time=TIME, as in time=50us");
	return fault_check(f, why);
}

/* --- formatting --------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void add(
	char text[FAULT_TEXT_MAX], const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + len, FAULT_TEXT_MAX - len, fmt, ap);
	va_end(ap);
}

static void add_time(char text[FAULT_TEXT_MAX], uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
	unsigned i = 0;

	while (ns % units[i].ns)
		i++;
	add(text, " time=%llu%s", (unsigned long long)(ns / units[i].ns), units[i].name);
}

static void add_value(char text[FAULT_TEXT_MAX], const struct abi_fault *f)
{
	if (f->kind == ABI_FAULT_ECN)
		add(text, " to=%s", codepoints[f->value & 3]);
	else if (f->kind == ABI_FAULT_OPCODE && opcode_table[f->value & 0xFF].name)
		add(text, " to=%s", opcode_table[f->value & 0xFF].name);
	else if (f->flags & ABI_FAULT_ADD)
		add(text, " add=%d", (int32_t)(f->value << 8) >> 8);
	else if (f->kind == ABI_FAULT_SYNDROME || f->kind == ABI_FAULT_PKEY ||
		 f->kind == ABI_FAULT_OPCODE)
		add(text, " to=0x%x", f->value);
	else
		add(text, " to=%u", f->value);
}

char *fault_what(const struct abi_fault *f, char text[FAULT_TEXT_MAX])
{
	snprintf(text, FAULT_TEXT_MAX, "%s", inject_names[f->kind]);
	if (f->kind == ABI_FAULT_REORDER)
		add(text, " packets=%u", f->value);
	if (f->kind == ABI_FAULT_DELAY || f->kind == ABI_FAULT_REORDER)
		add_time(text, f->time);
	if (f->kind == ABI_FAULT_RNR && !(f->flags & ABI_FAULT_QP_TIMER))
		add(text, " timer=%u", f->value);
	if (f->kind == ABI_FAULT_CORRUPT)
		add(text, " at=%s%u", f->flags & ABI_FAULT_IN_PAYLOAD ? "payload+" : "", f->offset);
	if (f->kind == ABI_FAULT_ICRC || f->kind == ABI_FAULT_CORRUPT)
		add(text, " mask=0x%x", f->mask);
	if ((KIND(ECN) | HEADERS) >> f->kind & 1)
		add_value(text, f);
	return text;
}

/* Prefers "request" to the list of all requests. */
static void add_packets(char text[FAULT_TEXT_MAX], uint32_t bits)
{
	for (unsigned i = 0; i < ARRAY_SIZE(packets); i++) {
		if ((bits & packets[i].bits) != packets[i].bits)
			continue;
		add(text, " %s", packets[i].name);
		bits &= ~packets[i].bits;
	}
}

char *fault_where(const struct abi_fault *f, char text[FAULT_TEXT_MAX])
{
	snprintf(text, FAULT_TEXT_MAX, "%s", f->direction == ABI_FAULT_RX ? "rx" : "tx");
	add_packets(text, f->packets);
	if (f->flags & ABI_FAULT_PSNS)
		add(text, " psn=%u", f->psn_first);
	if ((f->flags & ABI_FAULT_PSNS) && f->psn_last != f->psn_first)
		add(text, "-%u", f->psn_last);
	if (f->nth != 1)
		add(text, " nth=%u", f->nth);
	if (f->every != 1)
		add(text, " every=%u", f->every);
	if (f->count)
		add(text, " count=%u", f->count);
	else
		add(text, " count=all");
	if (f->chance != ABI_FAULT_ALWAYS)
		add(text, " probability=%g seed=%llu", (double)f->chance / ABI_FAULT_ALWAYS,
			(unsigned long long)f->seed);
	return text;
}
