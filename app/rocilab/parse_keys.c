/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include "parse_impl.h"

int wrong(struct parser *p, const char *format, ...)
{
	va_list ap;
	int n = snprintf(p->why, p->why_size, "%s:%u: ", p->name, p->line);

	va_start(ap, format);
	if (n >= 0 && (size_t)n < p->why_size)
		vsnprintf(p->why + n, p->why_size - (size_t)n, format, ap);
	va_end(ap);
	return -EINVAL;
}

static const enum unit unit_of[] = {
	[KIND_WHOLE] = UNIT_NONE,
	[KIND_BYTES] = UNIT_BYTES,
	[KIND_RATE] = UNIT_RATE,
	[KIND_TIME] = UNIT_TIME,
	[KIND_PART] = UNIT_PART,
	[KIND_RANGE] = UNIT_TIME,
};

static int set_choice(struct parser *p, const struct key *k, const char *value)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!strcmp(value, k->choice[i])) {
			*(bool *)k->to = i;
			return 0;
		}
	}
	return wrong(
		p, "%s must be %s or %s, not '%s'", k->name, k->choice[0], k->choice[1], value);
}

/* A number without a unit is bytes, bits per second, or ns, which is rarely intended. */
static const char *missing(const struct key *k, const char *value)
{
	if (value[strspn(value, ".0123456789")])
		return "";
	if (k->kind == KIND_RATE)
		return "; is a unit such as G missing?";
	if (k->kind == KIND_PART)
		return "; is the % missing?";
	return "";
}

static int set_number(struct parser *p, const struct key *k, const char *value)
{
	double v;

	if (!text_number(value, unit_of[k->kind], &v))
		return wrong(p, "'%s=%s' needs %s", k->name, value, text_what(unit_of[k->kind]));
	if (k->kind == KIND_WHOLE && v != floor(v))
		return wrong(p, "'%s=%s' needs a whole number", k->name, value);
	if (v < k->min || v > k->max) {
		char least[32], most[32];

		return wrong(p, "'%s=%s' must be from %s to %s%s", k->name, value,
			text_of(k->min, unit_of[k->kind], least, sizeof(least)),
			text_of(k->max, unit_of[k->kind], most, sizeof(most)), missing(k, value));
	}
	if (k->kind == KIND_PART)
		*(double *)k->to = v;
	else
		*(uint64_t *)k->to = (uint64_t)(v + 0.5);
	return 0;
}

static int set_range(struct parser *p, const struct key *k, const char *value)
{
	uint64_t *to = k->to;
	char first[64];
	const char *dots = strstr(value, "..");
	double from, until;

	snprintf(first, sizeof(first), "%.*s", dots ? (int)(dots - value) : 63, value);
	if (!text_number(first, UNIT_TIME, &from) ||
		!text_number(dots ? dots + 2 : first, UNIT_TIME, &until) || from < 0)
		return wrong(
			p, "%s needs a time or a range such as 0..1us, not '%s'", k->name, value);
	if (until < from)
		return wrong(p, "%s: '%s' ends before it begins", k->name, value);
	to[0] = (uint64_t)from;
	to[1] = (uint64_t)until;
	return 0;
}

int set_key(struct parser *p, const struct key *k, const char *value)
{
	if (k->kind == KIND_CHOICE)
		return set_choice(p, k, value);
	if (k->kind == KIND_RANGE)
		return set_range(p, k, value);
	return set_number(p, k, value);
}

static int unknown_key(struct parser *p, const char *statement, const char *name,
	const struct key *keys, unsigned n)
{
	struct suggestion s;

	suggest_begin(&s, name);
	for (unsigned i = 0; i < n; i++)
		suggest_try(&s, keys[i].name);
	if (s.best)
		return wrong(p, "'%s' is not a setting of %s; did you mean '%s'?", name, statement,
			s.best);
	return wrong(p, "'%s' is not a setting of %s: see 'rocilab help'", name, statement);
}

static int set_named(struct parser *p, const char *statement, const char *name, const char *value,
	const struct key *keys, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(keys[i].name, name))
			return set_key(p, &keys[i], value);
	return unknown_key(p, statement, name, keys, n);
}

/* Whether word @p i repeats the name of a setting, one of the words from @p first on. */
static bool set_before(const struct parser *p, unsigned first, unsigned i)
{
	for (unsigned k = first; k < i; k++)
		if (!strcmp(p->word[k], p->word[i]))
			return true;
	return false;
}

/* The words from @p first on, then the command line's replacements. */
int set_all(struct parser *p, unsigned first, const struct key *keys, unsigned n)
{
	const char *statement = p->word[0];

	for (unsigned i = first; i < p->words; i++) {
		char *value = strchr(p->word[i], '=');
		int err;

		if (!value)
			return wrong(p, "'%s': %s takes settings such as %s=...", p->word[i],
				statement, keys[0].name);
		*value = '\0';
		if (set_before(p, first, i))
			return wrong(p, "'%s' is set twice", p->word[i]);
		err = set_named(p, statement, p->word[i], value + 1, keys, n);
		if (err)
			return err;
	}
	for (unsigned i = 0; i < p->nsettings; i++) {
		struct setting *s = &p->settings[i];

		if (strcmp(s->statement, statement))
			continue;
		s->used = true;
		if (set_named(p, statement, s->name, s->value, keys, n))
			return -EINVAL;
	}
	return 0;
}
