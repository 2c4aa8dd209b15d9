/* SPDX-License-Identifier: BSD-3-Clause */
/* Six hosts on a link that loses datagrams, one that restarts without a word, and an address that
 * two have, all at once, by ARP and by ND. Virtual time; each seed loses others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "link.h"

#define S	  1000000000ull
#define TICK	  (S / 10)
#define SEEDS	  30u
#define RESTARTED 1u /* these hosts */
#define THIEF	  2u
#define ROBBED	  3u

static struct link l;

/* Each kernel asks for what it does not know, and sends to all that it knows. */
static void tick(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		for (unsigned k = 0; k < HOSTS; k++) {
			if (!memcmp(l.host[i].ip, l.host[k].ip, 4))
				continue;
			if (!l.host[i].knows[k])
				host_arp(&l, i, k);
			if (!l.host[i].knows6[k])
				host_solicit(&l, i, k);
			if (l.host[i].knows[k])
				host_ip(&l, i, k);
			if (l.host[i].knows6[k])
				host_ip6(&l, i, k);
		}
	link_run(&l, TICK);
	assert_int_equal(l.misled, 0);
}

static bool all_know_all(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		for (unsigned k = 0; k < HOSTS; k++)
			if (i != k && !(l.host[i].knows[k] && l.host[i].knows6[k]))
				return false;
	return true;
}

/* Whether packets of host i, of both families, have come to host k since @p since. */
static bool reaches(unsigned i, unsigned k, uint64_t since)
{
	return l.host[k].heard4[i] > since && l.host[k].heard6[i] > since;
}

/* Both ways. Of the two with one address one is reached, and both have noticed the restart. */
static bool all_reach(unsigned k, uint64_t since)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		bool one_of_two = i == THIEF || i == ROBBED;

		if (i == k)
			continue;
		if (!host_count(&l, i, IPOIB_RESTARTED) || !reaches(i, k, since) ||
			!(one_of_two || reaches(k, i, since)))
			return false;
	}
	return reaches(k, THIEF, since) || reaches(k, ROBBED, since);
}

/* The addresses of ROBBED are at THIEF too, whose kernel announces them as one that takes over. */
static void steal(void)
{
	struct host *thief = &l.host[THIEF], *robbed = &l.host[ROBBED];

	memcpy(thief->ip, robbed->ip, sizeof(thief->ip));
	memcpy(thief->ip6, robbed->ip6, sizeof(thief->ip6));
	for (unsigned i = 0; i < HOSTS; i++) /* its former ones are nobody's */
		l.host[i].knows[THIEF] = l.host[i].knows6[THIEF] = i == THIEF;
	for (unsigned i = 0; i < 5; i++) { /* some are lost */
		host_arp(&l, THIEF, 0);
		host_solicit(&l, THIEF, 0);
		link_run(&l, TICK);
	}
}

/* Probes and their answers are lost too: a second more per per cent. */
static uint64_t patience(void)
{
	return (5 + l.loss) * S;
}

static void learn_all(void)
{
	uint64_t since = l.now;

	while (!all_know_all()) {
		tick();
		assert_true(l.now - since < patience());
	}
}

static void run(uint32_t seed, unsigned loss)
{
	uint8_t mac[HOSTS][6], mac6[HOSTS][6];
	uint64_t since;

	link_init(&l);
	l.random = seed;
	l.loss = loss;
	learn_all();
	for (unsigned i = 0; i < HOSTS; i++) {
		memcpy(mac[i], l.host[i].mac[RESTARTED], 6);
		memcpy(mac6[i], l.host[i].mac6[RESTARTED], 6);
		assert_int_equal(host_count(&l, i, IPOIB_RESTARTED), 0);
		assert_int_equal(host_count(&l, i, IPOIB_DUPLICATE), 0);
	}
	since = l.now;
	host_restart(&l, RESTARTED, 777);
	steal();
	while (!all_reach(RESTARTED, since)) {
		tick();
		if (l.now - since >= patience())
			fail_msg("seed %u, loss %u %%", seed, loss);
	}
	for (unsigned i = 0; i < HOSTS; i++) {
		if (i == RESTARTED)
			continue;
		assert_int_equal(host_count(&l, i, IPOIB_RESTARTED), 1);
		assert_memory_equal(l.host[i].mac[RESTARTED], mac[i], 6);
		assert_memory_equal(l.host[i].mac6[RESTARTED], mac6[i], 6);
		if (i == ROBBED || i == THIEF)
			assert_true(host_count(&l, i, IPOIB_DUPLICATE) >= (i == ROBBED));
		else
			assert_int_equal(host_count(&l, i, IPOIB_DUPLICATE), 0);
		assert_int_equal(host_count(&l, i, IPOIB_FORGED), 0);
		assert_int_equal(host_count(&l, i, IPOIB_EVICTED), 0);
	}
	link_fini(&l);
}

/* proves IPB-16: all traffic is back in time, and no kernel ever has a MAC that leads to
 * another host than one with the address */
static void restart__with_loss_and_a_duplicate(void **state)
{
	for (uint32_t seed = 1; seed <= SEEDS; seed++)
		run(seed, seed % 4 * 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restart__with_loss_and_a_duplicate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
