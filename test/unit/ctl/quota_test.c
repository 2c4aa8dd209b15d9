/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "loop/reaper.h"
#include "session/account.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "worker.h"

#define MB (1ull << 20)

static struct sessions sessions;
static struct ctl ctl = {.sessions = &sessions};
static struct dataplane dp = {.nworkers = 1};
static char why[ABI_SENTENCE_MAX];

static int setup(void **state)
{
	memset(&sessions, 0, sizeof(sessions));
	ctl.dp = &dp;
	sessions.closer = reaper_create(&(struct reaper_config){.threads = 1, .owner_threads = 1});
	assert_non_null(sessions.closer);
	quota_init(&sessions.quota, &(struct ctl_limits){0});
	return 0;
}

static int teardown(void **state)
{
	quota_destroy(&sessions.quota);
	reaper_destroy(sessions.closer);
	assert_true(list_empty(&sessions.quota.accounts));
	return 0;
}

static void have(enum ctl_kind kind, uint64_t capacity)
{
	sessions.quota.capacity[kind] = capacity;
	sessions.quota.limits = quota_limits(&sessions.quota, &(struct ctl_limits){0});
}

static struct session *open_session(uid_t uid)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->ctl = &ctl;
	s->peer.uid = uid;
	assert_int_equal(quota_open(s, why), 0);
	return s;
}

static void close_session(struct session *s)
{
	quota_close(s);
	for (unsigned k = 0; k < CTL_KINDS; k++)
		assert_int_equal(s->used[k], 0);
	free(s);
}

static unsigned take_all(struct session *s, enum ctl_kind kind)
{
	unsigned n = 0;

	while (!quota_take_one(s, kind, why))
		n++;
	return n;
}

static void give_all(struct session *s, enum ctl_kind kind)
{
	quota_give(s, &(struct charge){kind, s->used[kind]}, 1);
}

static void limits__halves_and_what_was_asked_for(void **state)
{
	struct ctl_limits wanted = {.session[CTL_QPS] = 7, .user[CTL_KEYS] = UINT32_MAX - 1};
	struct ctl_limits l;

	have(CTL_MEMORY, 1000 * MB);
	l = quota_limits(&sessions.quota, &wanted);
	assert_int_equal(l.session[CTL_QPS], 7);
	assert_int_equal(l.user[CTL_QPS], QP_MAX / 4 * 3);
	assert_int_equal(l.user[CTL_PDS], PD_MAX / 2);
	assert_int_equal(l.user[CTL_KEYS], MR_MAX - 1); /* no more than there are */
	assert_int_equal(l.session[CTL_MEMORY], 1000);
	assert_int_equal(l.user[CTL_MEMORY], 500);
}

static void limits__each_has_a_name(void **state)
{
	struct ctl_limits l = {0};
	unsigned n = 0;

	for (; quota_limit_names[n]; n++) {
		assert_int_equal(*quota_limit(&l, n), 0); /* nobody else's */
		*quota_limit(&l, n) = 1;
	}
	assert_true(n > CTL_KINDS);
}

static void take__of_all_sessions_of_a_user(void **state)
{
	struct session *one = open_session(1), *two = open_session(1), *other = open_session(2);

	have(CTL_SRQS, 800);
	assert_int_equal(take_all(one, CTL_SRQS), 400);
	assert_non_null(strstr(why, "user 1 would exceed their limit of 400 SRQs"));
	assert_non_null(strstr(why, "rocictl set limit user_srqs"));
	assert_int_equal(quota_take_one(two, CTL_SRQS, why), -EDQUOT);
	assert_int_equal(quota_take_one(other, CTL_SRQS, why), 0);
	give_all(one, CTL_SRQS);
	assert_int_equal(quota_take_one(two, CTL_SRQS, why), 0);
	give_all(two, CTL_SRQS);
	give_all(other, CTL_SRQS);
	close_session(one);
	close_session(two);
	close_session(other);
}

static void take__the_last_quarter_is_for_small_users(void **state)
{
	struct session *s[11];

	have(CTL_SRQS, 320);
	for (unsigned i = 0; i < ARRAY_SIZE(s); i++)
		s[i] = open_session(i + 1);
	assert_int_equal(take_all(s[0], CTL_SRQS), 160);
	assert_int_equal(take_all(s[1], CTL_SRQS), 80);
	assert_non_null(strstr(why, "rocid has 320 SRQs and reserves the last quarter"));
	for (unsigned i = 2; i < 10; i++)
		assert_int_equal(take_all(s[i], CTL_SRQS), 10);
	assert_int_equal(take_all(s[10], CTL_SRQS), 0);
	assert_non_null(strstr(why, "all are in use"));
	for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
		give_all(s[i], CTL_SRQS);
		close_session(s[i]);
	}
}

static void take__sessions(void **state)
{
	struct session *s[SESSION_MAX], more = {.ctl = &ctl, .peer.uid = 7};
	unsigned n = 0;

	while (n < SESSION_MAX / 2)
		s[n++] = open_session(7);
	assert_int_equal(quota_open(&more, why), -EUSERS);
	assert_non_null(strstr(why, "--max-sessions"));
	more.peer.uid = 0; /* root is excepted */
	assert_int_equal(quota_open(&more, why), 0);
	quota_close(&more);
	while (n)
		close_session(s[--n]);
}

/* It passes by itself. */
static void take__lookups_of_a_user(void **state)
{
	struct session *one = open_session(1), *two = open_session(1), *more = open_session(1);

	assert_int_equal(take_all(one, CTL_LOOKUPS), SESSION_RESOLVE_MAX);
	assert_int_equal(take_all(two, CTL_LOOKUPS), RESOLVE_MAX / 2 - SESSION_RESOLVE_MAX);
	assert_int_equal(quota_take_one(more, CTL_LOOKUPS, why), -EBUSY);
	give_all(one, CTL_LOOKUPS);
	give_all(two, CTL_LOOKUPS);
	close_session(one);
	close_session(two);
	close_session(more);
}

static void take__all_or_nothing(void **state)
{
	const struct charge c[] = {{CTL_CHANNELS, 1}, {CTL_DESCRIPTORS, 1}};
	struct session *s = open_session(1);

	sessions.quota.limits.user[CTL_DESCRIPTORS] = (uint32_t)s->used[CTL_DESCRIPTORS];
	assert_int_equal(quota_take(s, c, ARRAY_SIZE(c), why), -EDQUOT);
	assert_int_equal(s->used[CTL_CHANNELS], 0);
	close_session(s);
}

/* A limit that an administrator raised can be reached, whatever the machine has. */
static void take__memory_beyond_the_default(void **state)
{
	struct session *s = open_session(1);
	struct charge c = {CTL_MEMORY, 3000 * MB};

	have(CTL_MEMORY, 1000 * MB);
	assert_int_equal(quota_take(s, &c, 1, why), -EDQUOT);
	assert_non_null(strstr(why, "--max-memory"));
	sessions.quota.limits.session[CTL_MEMORY] = 3000;
	assert_int_equal(quota_take(s, &c, 1, why), -EDQUOT);
	assert_non_null(strstr(why, "--max-user-memory"));
	sessions.quota.limits.user[CTL_MEMORY] = 3000;
	assert_int_equal(quota_take(s, &c, 1, why), 0);
	quota_give(s, &c, 1);
	close_session(s);
}

/* Memory that is not unmapped yet is nobody's to take. */
static void retire__counts_until_it_is_unmapped(void **state)
{
	const struct charge c[] = {{CTL_MEMORY, 400 * MB}, {CTL_MAPPINGS, 1}};
	struct session *s = open_session(1);
	struct reaped *done;

	have(CTL_MEMORY, 1000 * MB);
	assert_int_equal(quota_take(s, c, ARRAY_SIZE(c), why), 0);
	done = quota_retire(s, CTL_MEMORY, 400 * MB);
	assert_int_equal(s->used[CTL_MEMORY], 0);
	assert_int_equal(quota_take(s, c, ARRAY_SIZE(c), why), -EDQUOT); /* 800 of 750 */
	assert_int_equal(s->used[CTL_MAPPINGS], 0);
	atomic_fetch_add(&done->mappings, 1);
	atomic_fetch_add(&done->bytes, 400 * MB);
	assert_int_equal(quota_take(s, c, ARRAY_SIZE(c), why), 0);
	assert_int_equal(sessions.quota.retired[CTL_MAPPINGS], 0);
	done = quota_retire(s, CTL_MEMORY, 400 * MB);
	close_session(s);
	quota_destroy(&sessions.quota); /* the account outlives the session */
	assert_false(list_empty(&sessions.quota.accounts));
	atomic_fetch_add(&done->mappings, 1);
	atomic_fetch_add(&done->bytes, 400 * MB);
}

static void pass__to_another_user(void **state)
{
	const struct charge c = {CTL_GROUPS, 1};
	struct session *from = open_session(1), *to = open_session(2);

	assert_int_equal(quota_take(from, &c, 1, why), 0);
	quota_pass(from, to, &c, 1);
	assert_int_equal(from->account->used[CTL_GROUPS], 0);
	assert_int_equal(to->account->used[CTL_GROUPS], 1);
	assert_int_equal(sessions.quota.used[CTL_GROUPS], 1);
	quota_give(to, &c, 1);
	close_session(from);
	close_session(to);
}

static void most__root_has_its_sessions_own(void **state)
{
	struct session *user = open_session(1), *root = open_session(0);

	assert_int_equal(quota_most(user, CTL_KEYS), (MR_MAX - 1) / 8 * 4);
	assert_int_equal(quota_most(root, CTL_KEYS), SESSION_MR_MAX);
	assert_int_equal(take_all(root, CTL_KEYS), SESSION_MR_MAX);
	assert_int_equal(quota_take_one(user, CTL_KEYS, why), 0);
	give_all(root, CTL_KEYS);
	give_all(user, CTL_KEYS);
	close_session(user);
	close_session(root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(limits__halves_and_what_was_asked_for),
		TEST(limits__each_has_a_name),
		TEST(take__of_all_sessions_of_a_user),
		TEST(take__the_last_quarter_is_for_small_users),
		TEST(take__sessions),
		TEST(take__lookups_of_a_user),
		TEST(take__all_or_nothing),
		TEST(take__memory_beyond_the_default),
		TEST(retire__counts_until_it_is_unmapped),
		TEST(pass__to_another_user),
		TEST(most__root_has_its_sessions_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
