/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "linkemu.h"
#include "number.h"

#define TEXT_MAX  256
#define DELAY_MAX 1000000000000000ull /* ns: 11 days, the largest that was ever accepted */

static const struct {
	const char *key;
	enum impair_kind kind;
} kinds[] = {
	{"loss", IMPAIR_LOSE},
	{"dup", IMPAIR_DUPLICATE},
	{"reorder", IMPAIR_REORDER},
	{"corrupt", IMPAIR_CORRUPT},
	{"truncate", IMPAIR_TRUNCATE},
};

static int parse_probability(double *out, const char *text)
{
	return parse_decimal(text, out) && *out <= 1 ? 0 : -EINVAL;
}

/* "400K": a number with K, M or G for powers of 1000. */
static int parse_amount(uint64_t *out, const char *text, char end_mark, const char **rest)
{
	double v;

	if (!take_amount(&text, &v) || !(v <= 1e12) || *text != end_mark)
		return -EINVAL;
	*out = (uint64_t)v;
	if (rest)
		*rest = text + 1;
	return 0;
}

static int parse_red(struct aqm_config *c, const char *text)
{
	const char *kmax, *pmax;

	if (parse_amount(&c->kmin, text, ':', &kmax) || parse_amount(&c->kmax, kmax, ':', &pmax) ||
		parse_probability(&c->pmax, pmax))
		return -EINVAL;
	return c->kmax > c->kmin ? 0 : -EINVAL;
}

static int parse_mark(bool *ingress, const char *text)
{
	*ingress = !strcmp(text, "ingress");
	return *ingress || !strcmp(text, "egress") ? 0 : -EINVAL;
}

static int parse_nth(uint32_t *out, const char *text)
{
	uint64_t v;

	if (!parse_in_base(text, 10, UINT32_MAX, &v))
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

static int parse_spread(enum linkemu_spread *out, const char *text)
{
	*out = !strcmp(text, "hash") ? LINKEMU_HASH : LINKEMU_RANDOM;
	return *out == LINKEMU_HASH || !strcmp(text, "random") ? 0 : -EINVAL;
}

/* The link's rate, and the queue in front of it.  @return as set_key() */
static int set_queue_key(
	struct linkemu_config *cfg, const char *key, const char *value, const char **wanted)
{
	*wanted = "a rate such as 1G, in bit/s";
	if (!strcmp(key, "rate"))
		return parse_amount(&cfg->rate, value, '\0', NULL) || !cfg->rate ? -EINVAL : 0;
	*wanted = "a number of bytes such as 400K";
	if (!strcmp(key, "queue"))
		return parse_amount(&cfg->aqm.limit, value, '\0', NULL);
	*wanted = "KMIN:KMAX:PMAX such as 5K:200K:0.01, KMIN below KMAX";
	if (!strcmp(key, "red"))
		return parse_red(&cfg->aqm, value);
	*wanted = "egress or ingress";
	if (!strcmp(key, "mark"))
		return parse_mark(&cfg->aqm.ingress, value);
	return -ENOENT;
}

/* Returns -ENOENT for an unknown key. *wanted describes a valid value. */
static int set_key(
	struct linkemu_config *cfg, const char *key, const char *value, const char **wanted)
{
	struct impair *i = &cfg->impair;

	*wanted = "a probability from 0 to 1";
	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++)
		if (!strcmp(key, kinds[k].key))
			return parse_probability(&i->rate[kinds[k].kind], value);
	*wanted = "a time such as 50us";
	if (!strcmp(key, "delay"))
		return parse_time(value, DELAY_MAX, &cfg->delay_ns) ? 0 : -EINVAL;
	*wanted = "hash or random";
	if (!strcmp(key, "spread"))
		return parse_spread(&cfg->spread, value);
	*wanted = "a hexadecimal number of at most 64 bits";
	if (!strcmp(key, "mask"))
		return parse_in_base(value, 16, UINT64_MAX, &i->mask) ? 0 : -EINVAL;
	*wanted = "a whole number";
	if (!strcmp(key, "seed"))
		return parse_number(value, UINT64_MAX, &i->seed) ? 0 : -EINVAL;
	if (!strcmp(key, "nth"))
		return parse_nth(&i->nth, value);
	return set_queue_key(cfg, key, value, wanted);
}

int linkemu_parse(struct linkemu_config *cfg, const char *text, char *why, unsigned why_size)
{
	char copy[TEXT_MAX];
	char *save = NULL;

	memset(cfg, 0, sizeof(*cfg));
	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, why_size, "more than %d characters", TEXT_MAX - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	for (char *key = strtok_r(copy, ",", &save); key; key = strtok_r(NULL, ",", &save)) {
		char *value = strchr(key, '=');
		const char *wanted;
		int err;

		if (value)
			*value++ = '\0';
		err = set_key(cfg, key, value ? value : "", &wanted);
		if (err == -ENOENT)
			snprintf(why, why_size,
				"'%s' is not one of loss, dup, reorder, corrupt, truncate, nth, "
				"mask, delay, rate, queue, red, mark, seed, spread",
				key);
		else if (err)
			snprintf(why, why_size, "'%s' needs %s", key, wanted);
		if (err)
			return -EINVAL;
	}
	if (!cfg->rate && (cfg->aqm.limit || cfg->aqm.kmax || cfg->aqm.ingress)) {
		snprintf(why, why_size,
			"queue, red and mark need a rate, such as rate=1G: "
			"a link without a rate never queues");
		return -EINVAL;
	}
	return 0;
}

bool linkemu_fits(const struct linkemu_config *cfg, uint16_t queues, char *why, unsigned why_size)
{
	if (!cfg->rate || queues == 1)
		return true;
	snprintf(why, why_size,
		"an emulated link with a rate is one queue, but the port has %u receive queues: "
		"create it with one, or use --workers 1",
		queues);
	return false;
}

__attribute__((format(printf, 4, 5))) static void add(
	char *text, unsigned size, unsigned *len, const char *format, ...)
{
	va_list ap;

	if (*len >= size)
		return;
	if (*len)
		*len += (unsigned)snprintf(text + *len, size - *len, ",");
	if (*len >= size)
		return;
	va_start(ap, format);
	*len += (unsigned)vsnprintf(text + *len, size - *len, format, ap);
	va_end(ap);
}

char *linkemu_text(const struct linkemu_config *cfg, char *text, unsigned size)
{
	static const char *const spread[] = {[LINKEMU_HASH] = "hash", [LINKEMU_RANDOM] = "random"};
	const struct impair *i = &cfg->impair;
	unsigned len = 0;

	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++)
		if (i->rate[kinds[k].kind] > 0)
			add(text, size, &len, "%s=%g", kinds[k].key, i->rate[kinds[k].kind]);
	if (i->nth)
		add(text, size, &len, "nth=%" PRIu32, i->nth);
	if (i->mask)
		add(text, size, &len, "mask=%" PRIx64, i->mask);
	if (cfg->delay_ns)
		add(text, size, &len, "delay=%" PRIu64 "ns", cfg->delay_ns);
	if (cfg->rate)
		add(text, size, &len, "rate=%" PRIu64, cfg->rate);
	if (cfg->aqm.limit)
		add(text, size, &len, "queue=%" PRIu64, cfg->aqm.limit);
	if (cfg->aqm.kmax)
		add(text, size, &len, "red=%" PRIu64 ":%" PRIu64 ":%g", cfg->aqm.kmin,
			cfg->aqm.kmax, cfg->aqm.pmax);
	if (cfg->aqm.ingress)
		add(text, size, &len, "mark=ingress");
	if (i->seed)
		add(text, size, &len, "seed=%" PRIu64, i->seed);
	if (cfg->spread)
		add(text, size, &len, "spread=%s", spread[cfg->spread]);
	if (!len)
		snprintf(text, size, "none");
	return text;
}
