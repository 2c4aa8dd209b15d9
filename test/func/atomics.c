/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote atomics and those of a program's own CPU on the same words, over a link that loses and
 * doubles packets: a counter that both raise must have the sum in the end, the holder of a lock
 * taken by CmpSwap must be the only one, and each FetchAdd must see another value.
 */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "pair.h"

#define SIZE   4096
#define DEPTH  16
#define ADDS   4000u /* by each end, remotely */
#define LOCKED 1000u /* sections of each side */

/* Where things lie in the memory of end 1; answers lie from 1024 on. */
enum {
	COUNTER = 0,
	LOCK = 64,
	GUARDED = 128,
	SEEN = 1024
};

static uint64_t *word(struct end *e, size_t offset)
{
	return (uint64_t *)((char *)e->mr->addr + offset);
}

static void *raise_counter(void *arg)
{
	_Atomic uint64_t *counter = arg;

	for (unsigned i = 0; i < 10 * ADDS; i++)
		atomic_fetch_add(counter, 1);
	return NULL;
}

/* Each answer is larger than the one before it: the words are added to in order, once. */
static void add_remotely(struct end e[2])
{
	uint64_t last = 0;

	for (unsigned done = 0, posted = 0; done < ADDS; done++) {
		uint64_t seen;

		for (; posted < ADDS && posted < done + DEPTH; posted++)
			pair_post_atomic(&e[0], &e[1], ROCI_WR_ATOMIC_FETCH_AND_ADD,
				&(struct pair_atomic){.answer = SEEN + posted % DEPTH * 8,
					.word = COUNTER,
					.compare_add = 1});
		pair_wait(&e[0]);
		seen = *word(&e[0], SEEN + done % DEPTH * 8);
		if (done && seen <= last)
			errx(1,
				"FetchAdd %u saw %llu, the one before it %llu: it was done twice, "
				"or not",
				done, (unsigned long long)seen, (unsigned long long)last);
		last = seen;
	}
}

static uint64_t swap_remotely(struct end e[2], uint64_t compare, uint64_t swap)
{
	pair_post_atomic(&e[0], &e[1], ROCI_WR_ATOMIC_CMP_AND_SWP,
		&(struct pair_atomic){
			.answer = SEEN, .word = LOCK, .compare_add = compare, .swap = swap});
	pair_wait(&e[0]);
	return *word(&e[0], SEEN);
}

/* The step that the lock guards is not atomic: a READ, then a WRITE of one more. */
static void lock_remotely(struct end e[2])
{
	for (unsigned i = 0; i < LOCKED; i++) {
		while (swap_remotely(e, 0, 1) != 0)
			;
		pair_post(&e[0], &e[1], ROCI_WR_RDMA_READ, GUARDED, 8);
		pair_wait(&e[0]);
		++*word(&e[0], GUARDED);
		pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, GUARDED, 8);
		pair_wait(&e[0]);
		if (swap_remotely(e, 1, 0) != 1)
			errx(1, "the lock was taken while it was held");
	}
}

static void *lock_locally(void *arg)
{
	struct end *e = arg;
	_Atomic uint64_t *lock = (_Atomic uint64_t *)word(e, LOCK);
	volatile uint64_t *guarded = word(e, GUARDED);

	for (unsigned i = 0; i < LOCKED; i++) {
		uint64_t free_word = 0;

		while (!atomic_compare_exchange_weak(lock, &free_word, 2)) {
			free_word = 0;
			sched_yield();
		}
		*guarded = *guarded + 1;
		atomic_store(lock, 0);
		sched_yield();
	}
	return NULL;
}

static void run(pthread_t *t, void *(*body)(void *), void *arg)
{
	if (pthread_create(t, NULL, body, arg))
		err(1, "cannot start a thread");
}

static void expect(uint64_t is, uint64_t want, const char *what)
{
	if (is != want)
		errx(1, "%s: %llu instead of %llu", what, (unsigned long long)is,
			(unsigned long long)want);
}

int main(int argc, char **argv)
{
	struct end e[2];
	pthread_t t;

	if (argc < 2)
		errx(2, "use: atomics SOCKET");
	pair_open(e, argv[1], SIZE, ROCI_MTU_1024);
	run(&t, raise_counter, word(&e[1], COUNTER));
	add_remotely(e);
	pthread_join(t, NULL);
	expect(*word(&e[1], COUNTER), 11 * ADDS, "the counter");
	run(&t, lock_locally, &e[1]);
	lock_remotely(e);
	pthread_join(t, NULL);
	expect(*word(&e[1], GUARDED), 2 * LOCKED, "what the lock guards");
	printf("%u FetchAdds and %u locked sections, none lost, none twice\n", ADDS, LOCKED);
	pair_close(e);
	return 0;
}
