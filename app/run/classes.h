/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file classes.h
 * The devices in /sys/class, where ibstat, show_gids and many scripts look for them. Links lead to
 * the files that each rocid maintains next to its socket, so they show the current state even after
 * a restart of rocid. One thread.
 */
#ifndef CLASSES_H
#define CLASSES_H

#include <limits.h>
#include "namespace.h"

#define CLASSES_MAX	 64 /* as many devices as libibverbs.so.1 lists */
#define CLASSES_NAME_MAX 64

/** A serving rocid and its files. */
struct class_device {
	char name[CLASSES_NAME_MAX]; /* as libibverbs.so.1 calls it */
	char folder[PATH_MAX];	     /* with the files of the device */
};

struct class_devices {
	unsigned n;
	struct class_device at[CLASSES_MAX];
};

/**
 * Looks for the files of the rocids at @p sockets, by default (NULL or empty) at the usual one.
 * @return 0, or a negative errno and a sentence that names a socket without a device; @p found has
 * the others.
 */
int classes_find(struct class_devices *found, const char *sockets, char why[WHY_MAX]);

/**
 * Creates /sys/class/infiniband and its relatives in the mount namespace of namespace_enter(); the
 * rest of /sys/class does not change (shadow.h).
 * @return 0, or a negative errno and a sentence: /sys/class is unchanged then.
 */
int classes_make(const struct class_devices *found, char why[WHY_MAX]);

#endif
