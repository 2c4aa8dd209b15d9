/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "net/priority.h"
#include "number.h"

#define PCP_MAX 7u

static bool take_word(const char **at, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*at, word, len))
		return false;
	*at += len;
	return true;
}

/* "FIRST[-LAST]=PCP" */
static bool take_range(const char **at, uint8_t map[], unsigned count)
{
	uint64_t first, last, pcp;

	if (!take_number(at, 10, count - 1, &first))
		return false;
	last = first;
	if (take_word(at, "-") && (!take_number(at, 10, count - 1, &last) || last < first))
		return false;
	if (!take_word(at, "=") || !take_number(at, 10, PCP_MAX, &pcp))
		return false;
	memset(map + first, (int)pcp, last - first + 1);
	return true;
}

static bool take_item(const char **at, struct priority_map *m)
{
	if (take_word(at, "sl"))
		return take_range(at, m->of_sl, SL_COUNT);
	if (take_word(at, "dscp"))
		return take_range(at, m->of_dscp, DSCP_COUNT);
	if (take_word(at, "tag=yes"))
		m->tag = true;
	else if (take_word(at, "tag=no"))
		m->tag = false;
	else
		return false;
	return true;
}

int priority_parse(struct priority_map *m, const char *text, char *why, size_t why_size)
{
	const char *at = text;

	priority_init(m);
	if (!strcmp(text, "default"))
		return 0;
	do {
		const char *item = at;

		if (!take_item(&at, m) || (*at && *at != ',')) {
			snprintf(why, why_size,
				"\"%.*s\" is not slA[-B]=P, dscpA[-B]=P, tag=yes or "
				"tag=no, with A and B at most 7 (sl) or 63 (dscp), and P at most 7",
				(int)strcspn(item, ","), item);
			return -EINVAL;
		}
	} while (*at++ == ',');
	return 0;
}

/* Appends an item for each run of equal values that differ from the default. */
static size_t add_runs(char *text, size_t len, const char *name, const uint8_t map[],
	const uint8_t usual[], unsigned count)
{
	unsigned last;

	for (unsigned i = 0; i < count; i = last + 1) {
		last = i;
		if (map[i] == usual[i])
			continue;
		while (last + 1 < count && map[last + 1] == map[i] &&
			map[last + 1] != usual[last + 1])
			last++;
		len += (size_t)snprintf(
			text + len, PRIORITY_TEXT - len, "%s%s%u", len ? "," : "", name, i);
		if (last > i)
			len += (size_t)snprintf(text + len, PRIORITY_TEXT - len, "-%u", last);
		len += (size_t)snprintf(text + len, PRIORITY_TEXT - len, "=%u", map[i]);
	}
	return len;
}

const char *priority_text(const struct priority_map *m, char text[PRIORITY_TEXT])
{
	struct priority_map usual;
	size_t len;

	priority_init(&usual);
	len = add_runs(text, 0, "sl", m->of_sl, usual.of_sl, SL_COUNT);
	len = add_runs(text, len, "dscp", m->of_dscp, usual.of_dscp, DSCP_COUNT);
	if (m->tag)
		len += (size_t)snprintf(
			text + len, PRIORITY_TEXT - len, "%stag=yes", len ? "," : "");
	if (!len)
		snprintf(text, PRIORITY_TEXT, "default");
	return text;
}
