/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc.h"
#include "parse_impl.h"
#include "scenario.h"

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

		return wrong(p, "'%s=%s' needs a %snumber from %.10g to %.10g%s%s%s", name, value,
			row->fraction ? "" : "whole ", row->min, row->max, *row->unit ? " (" : "",
			row->unit, *row->unit ? ")" : "");
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
		return wrong(p, "profile must come before the parameters that differ from it");
	cc_config_init(cc, cc->ops, (unsigned)profile, cc->line);
	return 0;
}

/* @return the value of @p name on the command line, or NULL. */
static const char *command_line(struct parser *p, const char *name)
{
	const char *value = NULL;

	for (unsigned i = 0; i < p->nsettings; i++) {
		struct setting *s = &p->settings[i];

		if (strcmp(s->statement, "cc") || strcmp(s->name, name))
			continue;
		s->used = true;
		value = s->value;
	}
	return value;
}

/* The settings of the text, without its profile if there is @p another. */
static int set_words(struct parser *p, bool another)
{
	for (unsigned i = 2; i < p->words; i++) {
		char *value = strchr(p->word[i], '=');

		if (!value)
			return wrong(p, "'%s': cc takes settings such as profile=...", p->word[i]);
		*value = '\0';
		if (another && !strcmp(p->word[i], "profile"))
			continue;
		if (set_cc(p, p->word[i], value + 1))
			return -EINVAL;
	}
	return 0;
}

/* The other settings of the command line. */
static int set_others(struct parser *p)
{
	for (unsigned i = 0; i < p->nsettings; i++) {
		struct setting *s = &p->settings[i];

		if (strcmp(s->statement, "cc") || !strcmp(s->name, "algorithm") ||
			!strcmp(s->name, "profile"))
			continue;
		s->used = true;
		if (set_param(p, s->name, s->value))
			return -EINVAL;
	}
	return 0;
}

/* --set may choose another algorithm; the settings of the text do not apply to it then. */
int on_cc(struct parser *p)
{
	const char *chosen = command_line(p, "algorithm");
	const char *profile = command_line(p, "profile");
	const struct cc_ops *ops;
	bool same;

	if (p->words < 2)
		return wrong(p, "cc needs off or an algorithm");
	same = !chosen || !strcmp(chosen, p->word[1]);
	if (same)
		chosen = p->word[1];
	p->s->control = strcmp(chosen, "off") != 0;
	if (!p->s->control)
		return same && p->words > 2 ? wrong(p, "cc off takes no settings") : 0;
	ops = cc_find(chosen);
	if (!ops)
		return unknown_word(p, "an algorithm", chosen, algorithm_name, NULL);
	cc_config_init(&p->s->cc, ops, 0, (double)p->s->rate);
	if (profile && set_cc(p, "profile", profile))
		return -EINVAL;
	if (same && set_words(p, profile != NULL))
		return -EINVAL;
	return set_others(p);
}

void cc_help(FILE *f)
{
	const struct cc_ops *ops;

	for (unsigned i = 0; (ops = cc_algorithm(i)); i++) {
		fprintf(f, "      cc %s\n          %s\n          profile=", ops->name, ops->title);
		for (unsigned k = 0; k < ops->nprofiles; k++)
			fprintf(f, "%s%s", k ? "|" : "", ops->profiles[k]);
		fputc('\n', f);
		for (unsigned k = 0; k < ops->nparams; k++) {
			const struct cc_param *row = &ops->params[k];

			fprintf(f, "          %s%s%s: %s\n", row->name, *row->unit ? ", " : "",
				row->unit, row->help);
		}
	}
}
