/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unique_name.h
 * Names of devices: two rocids may have the same one, and programs choose a device by its name.
 */
#ifndef UNIQUE_NAME_H
#define UNIQUE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Replaces @p name by the first of roci0, roci1, ... that is free if it is not. */
static inline void unique_name(
	char *name, size_t size, bool (*taken)(const void *arg, const char *name), const void *arg)
{
	for (int number = 0; taken(arg, name); number++)
		snprintf(name, size, "roci%d", number);
}

#endif
