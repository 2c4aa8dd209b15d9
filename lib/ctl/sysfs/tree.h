/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sysfs/tree.h
 * The contents of the device's folder, and the present text of its files. Control thread; only the
 * writer's thread touches the files themselves.
 */
#ifndef SYSFS_TREE_H
#define SYSFS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include "config/config.h"
#include "core_counters.h"
#include "path.h"
#include "show/counters.h"
#include "sysfs/writer.h"

#define HW_COUNTERS (1 + sizeof(struct core_counters) / sizeof(uint64_t))

/** A port as its files show it. */
struct port_files {
	bool up;
	uint32_t speed_mbps;
	struct gid_table gids;
	uint16_t pkey[PKEY_MAX];
	struct named_count count[PORT_COUNTERS];
};

struct sysfs {
	struct ctl *ctl;
	struct folder folder;
	struct writer writer;
	struct changes changes; /* to be made; the writer's while it is not idle */
	bool made;		/* all files exist; until then, each is written even if unchanged */
	uint64_t due_ms;
	uint64_t guid;
	uint64_t count[HW_COUNTERS];
	struct port_files port[PORT_MAX];
};

/* Paths are relative to the device's folder, infiniband/NAME. */

void tree_make(struct sysfs *t, const char *path);
void tree_link(struct sysfs *t, const char *path, const char *target);
void tree_remove(struct sysfs *t, const char *path);
void tree_write(struct sysfs *t, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Creates the folders, and the files that never change. */
void device_make(struct sysfs *t);

/** Writes the device's files that have changed, including counters. */
void device_write(struct sysfs *t);

/** Creates the folders of port @p i, and its files that never change. */
void port_make(struct sysfs *t, uint32_t i);

/** Writes the files of port @p i that have changed: GIDs and P_Keys ... */
void port_write_tables(struct sysfs *t, uint32_t i);

/** ... state of the link, and counters. */
void port_write_state(struct sysfs *t, uint32_t i);

#endif
