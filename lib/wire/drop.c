/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include "drop.h"

static const struct {
	const char *name;
	const char *rule;
} reasons[DROP_MAX] = {[DROP_NONE] = {"none", "-"},
#define X(id, counter, item) [DROP_##id] = {counter, item},
	DROP_REASONS(X)
#undef X
};

const char *drop_name(enum drop d)
{
	return (unsigned)d < DROP_MAX ? reasons[d].name : NULL;
}

const char *drop_rule(enum drop d)
{
	return (unsigned)d < DROP_MAX ? reasons[d].rule : NULL;
}
