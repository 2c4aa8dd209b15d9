/* SPDX-License-Identifier: BSD-3-Clause */
#include "refuse.h"
#include "sysfs/sysfs.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "config/parts.h"
#include "net/net.h"
#include "sysfs/tree.h"

#define PATH_TEXT 256 /* of any file of ours, relative to the folder */
#define LINE_TEXT 256

/* --- files ---------------------------------------------------------------------------------- */

static const char *place(const struct sysfs *t, const char *path, char buf[PATH_TEXT])
{
	snprintf(buf, PATH_TEXT, "infiniband/%s%s%s", t->ctl->device, *path ? "/" : "", path);
	return buf;
}

void tree_make(struct sysfs *t, const char *path)
{
	char buf[PATH_TEXT];

	t->failed |= folder_make(&t->folder, place(t, path, buf)) != 0;
}

void tree_link(struct sysfs *t, const char *path, const char *target)
{
	char buf[PATH_TEXT];

	t->failed |= folder_link(&t->folder, place(t, path, buf), target) != 0;
}

void tree_remove(struct sysfs *t, const char *path)
{
	char buf[PATH_TEXT];

	folder_remove(&t->folder, place(t, path, buf));
}

void tree_write(struct sysfs *t, const char *path, const char *format, ...)
{
	char buf[PATH_TEXT], line[LINE_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	t->failed |= folder_write(&t->folder, place(t, path, buf), line) != 0;
}

/* --- all of them ---------------------------------------------------------------------------- */

static void write_changes(struct sysfs *t, bool counters)
{
	const struct net *net = t->ctl->net;

	if (counters)
		device_write(t);
	for (uint32_t i = 0; i < net->nports; i++) {
		if (net->port[i].news || !t->made)
			port_write_tables(t, i);
		if (net->port[i].news || counters)
			port_write_state(t, i);
	}
}

static void take_news(struct sysfs *t)
{
	for (uint32_t i = 0; i < t->ctl->net->nports; i++)
		t->ctl->net->port[i].news = false;
	t->made = !t->failed;
}

static bool any_news(const struct net *net)
{
	for (uint32_t i = 0; i < net->nports; i++)
		if (net->port[i].news)
			return true;
	return false;
}

int sysfs_poll(struct ctl *ctl, uint64_t now_ms)
{
	struct sysfs *t = ctl->sysfs;
	bool due;

	if (!t)
		return -1;
	due = now_ms >= t->due_ms;
	if (due)
		t->due_ms = now_ms + SYSFS_PERIOD_MS;
	if (due || any_news(ctl->net)) {
		t->failed = false;
		write_changes(t, due || !t->made);
		take_news(t);
	}
	return (int)(t->due_ms - now_ms);
}

/* --- life ----------------------------------------------------------------------------------- */

static void make_all(struct sysfs *t)
{
	t->failed |= folder_make(&t->folder, "infiniband") != 0;
	device_make(t);
	for (uint32_t i = 0; i < t->ctl->net->nports; i++)
		port_make(t, i);
	write_changes(t, true);
}

int sysfs_open(struct ctl *ctl, const char *socket, char why[ABI_SENTENCE_MAX])
{
	struct sysfs *t = calloc(1, sizeof(*t));
	char path[PATH_MAX];
	int err;

	if (!t)
		return refuse_memory(why);
	t->ctl = ctl;
	snprintf(path, sizeof(path), "%s" ABI_SYSFS_SUFFIX, socket);
	err = folder_open(&t->folder, path, why);
	if (!err) {
		make_all(t);
		if (t->failed)
			err = refuse(why, -EIO, "%s cannot be filled: make room in its file system",
				path);
	}
	if (err) {
		folder_close(&t->folder);
		free(t);
		return err;
	}
	take_news(t);
	ctl->sysfs = t;
	return 0;
}

void sysfs_close(struct ctl *ctl)
{
	if (ctl->sysfs)
		folder_close(&ctl->sysfs->folder);
	free(ctl->sysfs);
	ctl->sysfs = NULL;
}
