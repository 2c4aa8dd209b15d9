/* SPDX-License-Identifier: BSD-3-Clause */
#include "parse_impl.h"

static int unknown_word(struct parser *p, const char *what, const char *word,
	const char *(*known)(const struct cc_ops *ops, unsigned i), const struct cc_ops *ops)
{
	struct suggestion s;

	suggest_begin(&s, word);
	for (unsigned i = 0; known(ops, i); i++)
		suggest_try(&s, known(ops, i));
	if (s.best)
		return wrong(p, "'%s' is not %s; did you mean '%s'?", word, what, s.best);
	return wrong(p, "'%s' is not %s: see 'rocilab help'", word, what);
}

static const char *algorithm_name(const struct cc_ops *ops, unsigned i)
{
	return cc_algorithm(i) ? cc_algorithm(i)->name : NULL;
}

static const char *profile_name(const struct cc_ops *ops, unsigned i)
{
	return i < ops->nprofiles ? ops->profiles[i] : NULL;
}

static const char *param_name(const struct cc_ops *ops, unsigned i)
{
	if (i == ops->nparams)
		return "profile";
	return i < ops->nparams ? ops->params[i].name : NULL;
}

static int set_param(struct parser *p, const char *name, const char *value)
{
	struct cc_config *cc = &p->s->cc;
	int i = cc_find_param(cc->ops, name);
	double v;

	if (i < 0)
		return unknown_word(p, "a parameter of the algorithm", name, param_name, cc->ops);
	if (!text_number(value, UNIT_NONE, &v) || !cc_config_set(cc, (unsigned)i, v)) {
		const struct cc_param *row = &cc->ops->params[i];

		return wrong(p, "'%s=%s' needs a whole number from %.0f to %.0f%s%s%s", name, value,
			row->min, row->max, *row->unit ? " (" : "", row->unit,
			*row->unit ? ")" : "");
	}
	return 0;
}

static int set_cc(struct parser *p, const char *name, const char *value)
{
	struct cc_config *cc = &p->s->cc;
	int profile;

	if (strcmp(name, "profile"))
		return set_param(p, name, value);
	profile = cc_find_profile(cc->ops, value);
	if (profile < 0)
		return unknown_word(p, "a profile of the algorithm", value, profile_name, cc->ops);
	if (cc->set)
		return wrong(p, "profile comes before the parameters that differ from it");
	cc_config_init(cc, cc->ops, (unsigned)profile, cc->line);
	return 0;
}

int on_cc(struct parser *p)
{
	struct cc_config *cc = &p->s->cc;
	const struct cc_ops *ops;

	if (p->words < 2)
		return wrong(p, "cc is followed by off or an algorithm");
	p->s->control = strcmp(p->word[1], "off") != 0;
	if (!p->s->control)
		return 0;
	ops = cc_find(p->word[1]);
	if (!ops)
		return unknown_word(p, "an algorithm", p->word[1], algorithm_name, NULL);
	cc_config_init(cc, ops, 0, (double)p->s->rate);
	for (unsigned i = 2; i < p->words; i++) {
		char *value = strchr(p->word[i], '=');

		if (!value)
			return wrong(p, "'%s': cc takes settings such as profile=...", p->word[i]);
		*value = '\0';
		if (set_cc(p, p->word[i], value + 1))
			return -EINVAL;
	}
	for (unsigned i = 0; i < p->nsettings; i++) {
		if (strcmp(p->settings[i].statement, "cc"))
			continue;
		p->settings[i].used = true;
		if (set_cc(p, p->settings[i].name, p->settings[i].value))
			return -EINVAL;
	}
	return 0;
}
