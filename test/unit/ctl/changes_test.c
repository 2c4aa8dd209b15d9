/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "sysfs/writer.h"

static char home[] = "/tmp/roci-changes-XXXXXX";
static struct folder folder;
static struct changes changes;

static bool text_is(const char *name, const char *want)
{
	char text[64] = "";
	int fd = openat(folder.fd, name, O_RDONLY);

	if (fd < 0)
		return false;
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	return !strcmp(text, want);
}

static int set_up(void **state)
{
	char path[PATH_MAX], why[ABI_SENTENCE_MAX];

	(void)state;
	if (!mkdtemp(home))
		return -1;
	snprintf(path, sizeof(path), "%s/sys", home);
	changes_init(&changes);
	return folder_open(&folder, path, why);
}

static int tear_down(void **state)
{
	(void)state;
	folder_close(&folder);
	return rmdir(home);
}

static void changes__in_their_order(void **state)
{
	char to[64] = "";

	(void)state;
	changes_add(&changes, CHANGE_MAKE, "a", "");
	changes_add(&changes, CHANGE_WRITE, "a/state", "1\n");
	changes_add(&changes, CHANGE_WRITE, "a/state", "4\n");
	changes_add(&changes, CHANGE_WRITE, "a/gone", "1\n");
	changes_add(&changes, CHANGE_REMOVE, "a/gone", "");
	changes_add(&changes, CHANGE_LINK, "a/link", "state");
	assert_false(text_is("a/state", "4\n"));
	assert_true(changes_apply(&changes, &folder));
	assert_true(text_is("a/state", "4\n"));
	assert_int_equal(faccessat(folder.fd, "a/gone", F_OK, 0), -1);
	assert_int_equal(readlinkat(folder.fd, "a/link", to, sizeof(to) - 1), 5);
	assert_string_equal(to, "state");
}

/* Those that can be made are made, each once. */
static void changes__one_fails(void **state)
{
	(void)state;
	changes_add(&changes, CHANGE_WRITE, "nowhere/state", "1\n");
	changes_add(&changes, CHANGE_WRITE, "state", "4\n");
	assert_false(changes_apply(&changes, &folder));
	assert_true(text_is("state", "4\n"));
	folder_remove(&folder, "state");
	assert_true(changes_apply(&changes, &folder));
	assert_false(text_is("state", "4\n"));
}

/* Written again then, with all others. */
static void changes__lost(void **state)
{
	(void)state;
	changes.lost = true; /* no memory */
	assert_false(changes_apply(&changes, &folder));
	assert_true(changes_apply(&changes, &folder));
}

static bool ends(struct writer *w)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	bool failed;

	for (unsigned i = 0; i < 60000; i++) {
		if (writer_idle(w, &failed))
			return !failed;
		nanosleep(&ms, NULL);
	}
	fail();
	return false;
}

static void writer__says_what_failed(void **state)
{
	struct writer w;

	(void)state;
	assert_int_equal(writer_start(&w, &folder), 0);
	assert_true(ends(&w));
	changes_add(&changes, CHANGE_WRITE, "nowhere/state", "1\n");
	writer_give(&w, &changes);
	assert_false(ends(&w));
	changes_add(&changes, CHANGE_WRITE, "rate", "40\n");
	writer_give(&w, &changes);
	assert_true(ends(&w));
	assert_true(text_is("rate", "40\n"));
	writer_stop(&w);
}

/* A FIFO without a reader keeps whoever opens it waiting. */
static void writer__waits_alone(void **state)
{
	struct writer w;
	bool failed;
	int fd;

	(void)state;
	assert_int_equal(mkfifoat(folder.fd, ".new", 0600), 0);
	assert_int_equal(writer_start(&w, &folder), 0);
	changes_add(&changes, CHANGE_WRITE, "slow", "1\n");
	changes_add(&changes, CHANGE_WRITE, "last", "2\n");
	writer_give(&w, &changes);
	assert_false(writer_idle(&w, &failed));
	fd = openat(folder.fd, ".new", O_RDONLY);
	assert_true(fd >= 0);
	writer_stop(&w); /* when all is written */
	close(fd);
	assert_true(text_is("last", "2\n"));
}

/* Told to end before it has begun with what it was given. */
static void writer__writes_before_it_ends(void **state)
{
	struct writer w;

	(void)state;
	assert_int_equal(writer_start(&w, &folder), 0);
	changes_add(&changes, CHANGE_WRITE, "ending", "1\n");
	pthread_mutex_lock(&w.lock);
	w.given = &changes;
	w.stop = true;
	pthread_mutex_unlock(&w.lock);
	writer_stop(&w);
	assert_true(text_is("ending", "1\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes__in_their_order),
		cmocka_unit_test(changes__one_fails),
		cmocka_unit_test(changes__lost),
		cmocka_unit_test(writer__says_what_failed),
		cmocka_unit_test(writer__waits_alone),
		cmocka_unit_test(writer__writes_before_it_ends),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
