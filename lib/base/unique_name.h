/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unique_name.h
 * Device names: two rocids may be configured with the same one, yet programs choose a device by its
 * name.
 */
#ifndef UNIQUE_NAME_H
#define UNIQUE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** If @p name is taken, replaces it with the first free one of roci0, roci1, ... */
static inline void unique_name(
	char *name, size_t size, bool (*taken)(const void *arg, const char *name), const void *arg)
{
	for (int number = 0; taken(arg, name); number++)
		snprintf(name, size, "roci%d", number);
}

#endif
