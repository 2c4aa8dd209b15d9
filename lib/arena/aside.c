/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include "aside.h"
#include "raw.h"

#define PAGES 4096u /* for the helper's data */
/* Room for callees and callers that run meanwhile, and for the rest of the thread's block. */
#define NEAR_BELOW (256u << 10)
#define NEAR_ABOVE (64u << 10)
#define NEAR_DATA  (64u << 10)

struct helper {
	int (*work)(void *arg);
	int result;
	_Atomic uint32_t done; /* futex */
	_Alignas(16) uint8_t arg[];
};

void own_spans(struct span out[2])
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
	uintptr_t data = (uintptr_t)&errno;

	out[0] = (struct span){stack - NEAR_BELOW, stack + NEAR_ABOVE};
	out[1] = (struct span){data - NEAR_DATA, data + NEAR_DATA};
}

bool is_own(uintptr_t s, uintptr_t e)
{
	struct span own[2];

	own_spans(own);
	return (s < own[0].e && own[0].s < e) || (s < own[1].e && own[1].s < e);
}

static void *help(void *arg)
{
	struct helper *h = arg;

	h->result = h->work(h->arg);
	atomic_store(&h->done, 1);
	syscall(SYS_futex, &h->done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
	return NULL;
}

int aside_start(pthread_t *t, void *stack, void *(*run)(void *arg), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, ASIDE_STACK);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = -pthread_create(t, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

int aside(int (*work)(void *arg), void *arg, size_t size)
{
	size_t room = (sizeof(struct helper) + size + PAGES - 1) / PAGES * PAGES;
	uint8_t *p = raw_mmap(NULL, ASIDE_STACK + room, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct helper *h = (struct helper *)p;
	sigset_t all, old;
	pthread_t t;
	int err;

	if (p == MAP_FAILED)
		return -errno;
	h->work = work;
	memcpy(h->arg, arg, size);
	sigfillset(&all); /* a handler would run on the stack that is being copied */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = aside_start(&t, p + room, help, h);
	while (!err && !atomic_load(&h->done))
		syscall(SYS_futex, &h->done, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
	if (!err) {
		pthread_join(t, NULL);
		err = h->result;
		memcpy(arg, h->arg, size);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	raw_munmap(p, ASIDE_STACK + room);
	return err;
}
