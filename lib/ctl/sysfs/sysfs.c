/* SPDX-License-Identifier: BSD-3-Clause */
#include "refuse.h"
#include "sysfs/sysfs.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config/ctl_parts.h"
#include "net/net.h"
#include "sysfs/tree.h"

#define PATH_TEXT  256 /* of any file of ours, relative to the folder */
#define LINE_TEXT  256
#define WRITING_MS 20 /* until the next look at a writer that is not done */

/* --- files ---------------------------------------------------------------------------------- */

static const char *place(const struct sysfs *t, const char *path, char buf[PATH_TEXT])
{
	snprintf(buf, PATH_TEXT, "infiniband/%s%s%s", t->ctl->device, *path ? "/" : "", path);
	return buf;
}

void tree_make(struct sysfs *t, const char *path)
{
	char buf[PATH_TEXT];

	changes_add(&t->changes, CHANGE_MAKE, place(t, path, buf), "");
}

void tree_link(struct sysfs *t, const char *path, const char *target)
{
	char buf[PATH_TEXT];

	changes_add(&t->changes, CHANGE_LINK, place(t, path, buf), target);
}

void tree_remove(struct sysfs *t, const char *path)
{
	char buf[PATH_TEXT];

	changes_add(&t->changes, CHANGE_REMOVE, place(t, path, buf), "");
}

void tree_write(struct sysfs *t, const char *path, const char *format, ...)
{
	char buf[PATH_TEXT], line[LINE_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	changes_add(&t->changes, CHANGE_WRITE, place(t, path, buf), line);
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
	bool due, failed;

	if (!t)
		return -1;
	if (!writer_idle(&t->writer, &failed))
		return WRITING_MS;
	t->made = !failed;
	due = now_ms >= t->due_ms;
	if (due)
		t->due_ms = now_ms + SYSFS_PERIOD_MS;
	if (due || any_news(ctl->net)) {
		write_changes(t, due || !t->made);
		take_news(t);
		writer_give(&t->writer, &t->changes);
	}
	return (int)(t->due_ms - now_ms);
}

/* --- life ----------------------------------------------------------------------------------- */

/* Here rocid serves nobody yet and may wait for the file system. */
static int fill(struct sysfs *t, char why[ABI_SENTENCE_MAX])
{
	changes_add(&t->changes, CHANGE_MAKE, "infiniband", "");
	device_make(t);
	for (uint32_t i = 0; i < t->ctl->net->nports; i++)
		port_make(t, i);
	write_changes(t, true);
	take_news(t);
	if (!changes_apply(&t->changes, &t->folder))
		return refuse(why, -EIO, "%s cannot be filled: make room in its file system",
			t->folder.path);
	return 0;
}

static int start_writer(struct sysfs *t, char why[ABI_SENTENCE_MAX])
{
	int err = writer_start(&t->writer, &t->folder);

	return err ? refuse(why, err,
			     "the thread that writes the device's files cannot be started: %s",
			     strerror(-err))
		   : 0;
}

int sysfs_open(struct ctl *ctl, const char *socket, char why[ABI_SENTENCE_MAX])
{
	struct sysfs *t = calloc(1, sizeof(*t));
	char path[PATH_MAX];
	int err;

	if (!t)
		return refuse_memory(why);
	t->ctl = ctl;
	changes_init(&t->changes);
	snprintf(path, sizeof(path), "%s" ABI_SYSFS_SUFFIX, socket);
	err = folder_open(&t->folder, path, why);
	if (!err)
		err = fill(t, why);
	if (!err)
		err = start_writer(t, why);
	if (err) {
		folder_close(&t->folder);
		free(t);
		return err;
	}
	ctl->sysfs = t;
	return 0;
}

void sysfs_close(struct ctl *ctl)
{
	struct sysfs *t = ctl->sysfs;

	if (!t)
		return;
	writer_stop(&t->writer);
	folder_close(&t->folder);
	free(t);
	ctl->sysfs = NULL;
}
