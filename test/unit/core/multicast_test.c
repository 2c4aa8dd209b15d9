/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to groups of many QPs: whose turn it is. A copy is seen by its loss: the members have
 * no receives, or another Q_Key. */
#include "abi_ctl.h"
#include "datagram.h"
#include "mcast.h"
#include "qp.h"

#define MEMBERS MCAST_MEMBERS_MAX
#define ONE	1u /* two sessions */
#define OTHER	2u

static struct mcast_group *group;
static struct mcast_table mcasts;
static uint32_t serial;
static unsigned places[GROUP_HELD]; /* that hold a frame: how many */

static int setup(void **state)
{
	static const uint8_t mgid[16] = {[10] = 0xFF, [11] = 0xFF, 239, 129, 2, 3};
	struct path_spec spec;

	datagram_setup(state);
	spec = host_path(a.host, b.host, 0, HOST_GID_IPV4);
	memcpy(spec.dgid, mgid, 16);
	mcast_mac(spec.dmac, mgid);
	path_init(&ah.path, &spec);
	group = calloc(1, sizeof(*group) + (MEMBERS + 1) * sizeof(group->member[0]));
	assert_non_null(group);
	memcpy(group->mgid, mgid, 16);
	memset(&mcasts, 0, sizeof(mcasts));
	memset(places, 0, sizeof(places));
	mcast_replace(&mcasts, NULL, group);
	b.host->core.cfg.mcasts = &mcasts;
	serial = UINT32_MAX - 100; /* it wraps */
	post(16);
	assert_true(send_one());
	return 0;
}

static int teardown(void **state)
{
	free(group);
	return datagram_teardown(state);
}

/* @p n more QPs, which drop what they get because of @p qkey, or for want of a receive. */
static void join(unsigned n, uint32_t session, uint32_t qkey)
{
	while (n--) {
		struct app_qp *qp = make_qp_of(&b, ABI_QPT_UD);

		climb(qp, qkey);
		group->member[group->n++] =
			(struct mcast_member){.qp = qp->qp, .session = session, .serial = serial++};
	}
}

static uint64_t copies(void)
{
	return drops(DROP_NO_RECV_WQE);
}

static uint64_t copies_to_other(void)
{
	return drops(DROP_QKEY);
}

/* b receives the datagram.  @return whether it holds it. */
static bool arrive(void)
{
	uint16_t verdict = deliver();

	if (!(verdict & VERDICT_HELD)) {
		assert_int_equal(verdict, DROP_NONE);
		return false;
	}
	assert_in_range(verdict_place(verdict), 0, GROUP_HELD - 1);
	assert_int_equal(places[verdict_place(verdict)]++, 0);
	return true;
}

/* A round of b.  @return places that became free. */
static uint32_t next_round(void)
{
	uint8_t done[GROUP_COPIES];
	uint32_t n = core_groups(&b.host->core, done, now);

	assert_in_range(n, 0, GROUP_COPIES);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(places[done[i]]--, 1);
	return n;
}

/* Until nothing waits.  @return places that became free. */
static uint32_t rest(void)
{
	uint32_t freed = 0;

	for (unsigned i = 0; core_groups_wait(&b.host->core); i++) {
		assert_in_range(i, 0, 10000);
		freed += next_round();
	}
	for (unsigned i = 0; i < GROUP_HELD; i++)
		assert_int_equal(places[i], 0);
	return freed;
}

/* proves MC-04: all members get their copy, and no round delivers more than GROUP_COPIES. */
static void multicast_rx__in_turns(void **state)
{
	uint64_t before;

	join(MEMBERS, ONE, QKEY);
	assert_true(arrive());
	assert_int_equal(copies(), GROUP_COPIES + 1); /* one is the datagram's own */
	for (unsigned i = 1; core_groups_wait(&b.host->core); i++) {
		before = copies();
		next_round();
		assert_in_range(copies() - before, 0, GROUP_COPIES);
		assert_in_range(i, 1, MEMBERS / GROUP_COPIES + 1);
	}
	assert_int_equal(copies(), MEMBERS);
	rest();
	/* and what comes then begins with a full round */
	next_round();
	before = copies();
	assert_true(arrive());
	assert_int_equal(copies() - before, GROUP_COPIES + 1);
	assert_int_equal(rest(), 1);
}

/* A group of one costs what any datagram does: it is never held. */
static void multicast_rx__one_member_needs_no_turn(void **state)
{
	join(1, ONE, QKEY);
	for (unsigned i = 1; i <= 1000; i++) {
		assert_false(arrive());
		assert_int_equal(copies(), i);
	}
}

/* However much waits for one session's QPs, another's have theirs in the next round. */
static void multicast_rx__sessions_take_turns(void **state)
{
	uint64_t before;

	join(MEMBERS - 2, ONE, QKEY);
	join(2, OTHER, QKEY + 1);
	for (unsigned i = 1; i <= 10; i++) {
		assert_true(arrive());
		next_round();
		assert_in_range(copies_to_other(), 2 * i - 2, 2 * i);
	}
	before = copies();
	for (unsigned i = 0; i < 4; i++)
		next_round();
	assert_int_equal(copies_to_other(), 20);
	assert_in_range(copies() - before, 3 * GROUP_COPIES, 4 * GROUP_COPIES);
	rest();
	assert_int_equal(copies(), 10 * (MEMBERS - 2));
}

/* The wait list is bounded per session, so that one with many members does not fill it. */
static void multicast_rx__holds_so_many(void **state)
{
	unsigned held = 0;

	join(MEMBERS - 1, ONE, QKEY);
	for (unsigned i = 0; i < 2 * GROUP_HELD; i++)
		held += arrive();
	assert_int_equal(held, GROUP_HELD_SESSION);
	assert_int_equal(drops(DROP_GROUP_BUSY), 2 * GROUP_HELD - GROUP_HELD_SESSION);
	join(1, OTHER, QKEY + 1);
	assert_false(arrive());
	assert_int_equal(copies_to_other(), 1); /* its first copy */
	assert_int_equal(rest(), GROUP_HELD_SESSION);
	assert_int_equal(copies(), GROUP_HELD_SESSION * (MEMBERS - 1));
	assert_true(arrive());
	assert_int_equal(rest(), 1);
}

/* And in all: one place for each datagram ... */
static void multicast_rx__places_run_out(void **state)
{
	unsigned held = 0;

	join(MEMBERS, ONE, QKEY);
	for (unsigned i = 0; i < 2 * GROUP_HELD; i++) {
		for (unsigned m = 0; m < MEMBERS; m++)
			group->member[m].session = i % 8;
		held += arrive();
	}
	assert_int_equal(held, GROUP_HELD);
	assert_int_equal(drops(DROP_GROUP_BUSY), GROUP_HELD);
	for (unsigned s = 0; s < 8; s++) { /* the sessions go on with what they have */
		for (unsigned m = 0; m < MEMBERS; m++)
			group->member[m].session = s;
		for (unsigned i = 0; b.host->core.share[s].njobs; i++) {
			assert_in_range(i, 0, 10000);
			held -= next_round();
		}
	}
	assert_int_equal(held, 0);
	rest();
}

/* ... and one job for each session of its members. */
static void multicast_rx__jobs_run_out(void **state)
{
	unsigned held = 0;

	for (uint32_t s = 0; s < 64; s++)
		join(MEMBERS / 64, s, QKEY);
	for (unsigned i = 0; i < 32; i++)
		held += arrive();
	assert_in_range(held, GROUP_JOBS / 64, 32);
	assert_in_range(drops(DROP_GROUP_BUSY), 1, 32 * 64);
	assert_int_equal(rest(), held);
	assert_true(arrive());
	assert_int_equal(rest(), 1);
}

/* QPs that leave and come meanwhile: nobody gets a datagram twice. */
static void core_groups__the_group_changes(void **state)
{
	join(MEMBERS, ONE, QKEY);
	assert_true(arrive());
	group->n -= 20;
	memmove(group->member, group->member + 10, group->n * sizeof(group->member[0]));
	assert_int_equal(rest(), 1);
	assert_int_equal(copies(), MEMBERS - 10); /* the first ten had theirs */
	next_round();
	assert_true(arrive());
	mcast_replace(&mcasts, group, NULL);
	assert_int_equal(rest(), 1);
	assert_int_equal(copies(), MEMBERS - 10 + GROUP_COPIES + 1);
}

/* QPs of other workers have theirs there. */
static void core_groups__those_of_this_worker(void **state)
{
	uint16_t verdict;

	join(MEMBERS, ONE, QKEY);
	for (unsigned i = 0; i < MEMBERS; i += 2)
		atomic_store(&group->member[i].qp->owner, 3);
	verdict = deliver();
	assert_true(verdict & VERDICT_SPREAD && verdict & VERDICT_HELD);
	places[verdict_place(verdict)]++;
	assert_int_equal(rest(), 1);
	assert_int_equal(copies(), MEMBERS / 2);
	for (unsigned i = 0; i < MEMBERS; i += 2)
		atomic_store(&group->member[i].qp->owner, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(multicast_rx__in_turns),
		T(multicast_rx__one_member_needs_no_turn),
		T(multicast_rx__sessions_take_turns),
		T(multicast_rx__holds_so_many),
		T(multicast_rx__places_run_out),
		T(multicast_rx__jobs_run_out),
		T(core_groups__the_group_changes),
		T(core_groups__those_of_this_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
