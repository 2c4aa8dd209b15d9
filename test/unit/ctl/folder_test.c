/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
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
#include <unistd.h>
#include <cmocka.h>
#include "sysfs/folder.h"

static char home[] = "/tmp/roci-folder-XXXXXX";
static char path[PATH_MAX]; /* of the folder */
static char why[ABI_SENTENCE_MAX];

static const char *in(const char *name)
{
	static char buf[PATH_MAX + 64];

	snprintf(buf, sizeof(buf), "%s/%s", path, name);
	return buf;
}

static unsigned mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(in(name), &st), 0);
	return st.st_mode & 07777;
}

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(in(name), &st);
}

static void put(const char *name)
{
	int fd = open(in(name), O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void text_is(int fd, const char *want)
{
	char text[64] = "";

	assert_true(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, want);
}

static void opens(struct folder *f)
{
	assert_int_equal(folder_open(f, path, why), 0);
}

static int set_up(void **state)
{
	(void)state;
	umask(077);
	if (!mkdtemp(home))
		return -1;
	snprintf(path, sizeof(path), "%s/sys", home);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(home);
}

/* --- the folder --------------------------------------------------------------------------- */

static void folder_open__readable_by_all_whatever_the_umask_is(void **state)
{
	struct folder f;

	(void)state;
	opens(&f);
	assert_int_equal(mode_of("."), 0755);
	assert_int_equal(folder_make(&f, "ports"), 0);
	assert_int_equal(mode_of("ports"), 0755);
	assert_int_equal(folder_write(&f, "ports/lid", "0x0\n"), 0);
	assert_int_equal(mode_of("ports/lid"), 0644);
	folder_close(&f);
	assert_false(is_there("."));
}

static void folder_open__empties_what_an_earlier_one_left(void **state)
{
	struct folder f;

	(void)state;
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(mkdir(in("old"), 0755), 0);
	put("old/file");
	opens(&f);
	assert_false(is_there("old"));
	folder_close(&f);
}

static void folder_open__refuses_what_others_may_write_to(void **state)
{
	static const mode_t modes[] = {0775, 0757};
	struct folder f;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(mkdir(path, 0755), 0);
		put("file");
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_int_equal(folder_open(&f, path, why), -EPERM);
		assert_non_null(strstr(why, "does not belong to rocid alone"));
		assert_int_equal(f.fd, -1);
		assert_true(is_there("file"));
		folder_close(&f); /* nothing */
		assert_int_equal(unlink(in("file")), 0);
		assert_int_equal(rmdir(path), 0);
	}
}

static void folder_open__follows_no_link(void **state)
{
	char victim[PATH_MAX + 8];
	struct folder f;

	(void)state;
	snprintf(victim, sizeof(victim), "%s/victim", home);
	assert_int_equal(mkdir(victim, 0755), 0);
	assert_int_equal(symlink(victim, path), 0);
	assert_true(folder_open(&f, path, why) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(victim), 0);
}

static void folder_close__leaves_what_a_link_leads_to(void **state)
{
	char victim[PATH_MAX + 8];
	struct folder f;

	(void)state;
	snprintf(victim, sizeof(victim), "%s/victim", home);
	assert_int_equal(mkdir(victim, 0755), 0);
	opens(&f);
	assert_int_equal(folder_link(&f, "device", victim), 0);
	folder_close(&f);
	assert_int_equal(rmdir(victim), 0);
}

/* --- what is in it ------------------------------------------------------------------------ */

static void folder_write__a_reader_keeps_the_old_text(void **state)
{
	struct folder f;
	int fd;

	(void)state;
	opens(&f);
	assert_int_equal(folder_write(&f, "state", "4: ACTIVE\n"), 0);
	fd = open(in("state"), O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(folder_write(&f, "state", "1\n"), 0);
	text_is(fd, "4: ACTIVE\n");
	close(fd);
	fd = open(in("state"), O_RDONLY);
	text_is(fd, "1\n");
	close(fd);
	folder_close(&f);
}

static ino_t inode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(in(name), &st), 0);
	return st.st_ino;
}

static void reads(const char *name, const char *want)
{
	int fd = open(in(name), O_RDONLY);

	assert_true(fd >= 0);
	text_is(fd, want);
	close(fd);
}

/* A file of the same text is a link, which stays as it was when the other one is written ... */
static void folder_write__files_of_the_same_text(void **state)
{
	struct folder f;

	(void)state;
	opens(&f);
	assert_int_equal(folder_write(&f, "one", "0\n"), 0);
	assert_int_equal(folder_write(&f, "two", "0\n"), 0);
	assert_int_equal(folder_write(&f, "three", "1\n"), 0);
	assert_true(inode_of("one") == inode_of("two"));
	assert_true(inode_of("one") != inode_of("three"));
	assert_int_equal(mode_of("two"), 0644);
	assert_int_equal(folder_write(&f, "one", "2\n"), 0);
	reads("one", "2\n");
	reads("two", "0\n");
	assert_int_equal(folder_write(&f, "two", "2\n"), 0); /* is there already */
	reads("two", "2\n");
	folder_close(&f);
}

/* ... and is written where the other one has become another thing, or none. */
static void folder_write__the_other_file_has_gone(void **state)
{
	struct folder f;

	(void)state;
	opens(&f);
	assert_int_equal(folder_write(&f, "one", "0\n"), 0);
	folder_remove(&f, "one");
	assert_int_equal(folder_write(&f, "two", "0\n"), 0);
	reads("two", "0\n");
	assert_int_equal(folder_link(&f, "two", "/nowhere"), 0);
	assert_int_equal(folder_write(&f, "three", "0\n"), 0);
	reads("three", "0\n");
	folder_close(&f);
}

static void folder_write__says_that_it_failed(void **state)
{
	struct folder f;

	(void)state;
	opens(&f);
	assert_int_equal(folder_write(&f, "nowhere/file", "x"), -ENOENT);
	assert_int_equal(folder_make(&f, "nowhere/else"), -ENOENT);
	assert_int_equal(unlink(in(".new")), 0);
	assert_int_equal(mkdir(in(".new"), 0755), 0);
	assert_true(folder_write(&f, "file", "x") < 0);
	folder_close(&f);
}

static void folder_link__replaces_a_link(void **state)
{
	char target[64] = "";
	struct folder f;

	(void)state;
	opens(&f);
	assert_int_equal(folder_link(&f, "device", "/one"), 0);
	put(".new"); /* as a write that failed leaves it */
	assert_int_equal(folder_link(&f, "device", "/two"), 0);
	assert_int_equal(readlink(in("device"), target, sizeof(target) - 1), 4);
	assert_string_equal(target, "/two");
	folder_close(&f);
}

static void folder_remove__files_and_folders(void **state)
{
	struct folder f;

	(void)state;
	opens(&f);
	assert_int_equal(folder_make(&f, "a"), 0);
	assert_int_equal(folder_make(&f, "a/b"), 0);
	assert_int_equal(folder_write(&f, "a/b/c", "x"), 0);
	assert_int_equal(folder_write(&f, "kept", "x"), 0);
	folder_remove(&f, "a");
	folder_remove(&f, "a");
	assert_false(is_there("a"));
	assert_true(is_there("kept"));
	folder_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folder_open__readable_by_all_whatever_the_umask_is),
		cmocka_unit_test(folder_open__empties_what_an_earlier_one_left),
		cmocka_unit_test(folder_open__refuses_what_others_may_write_to),
		cmocka_unit_test(folder_open__follows_no_link),
		cmocka_unit_test(folder_close__leaves_what_a_link_leads_to),
		cmocka_unit_test(folder_write__a_reader_keeps_the_old_text),
		cmocka_unit_test(folder_write__files_of_the_same_text),
		cmocka_unit_test(folder_write__the_other_file_has_gone),
		cmocka_unit_test(folder_write__says_that_it_failed),
		cmocka_unit_test(folder_link__replaces_a_link),
		cmocka_unit_test(folder_remove__files_and_folders),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
