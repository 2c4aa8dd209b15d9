/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
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

/* @return how many threads sleep on @p futex, which is 0: it requeues one of them to where it is.
 * Negative where a filter forbids that; then nothing can be known. */
static long waiters(_Atomic uint32_t *futex)
{
	return syscall(SYS_futex, futex, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1l, futex, 0);
}

static void *help(void *arg)
{
	struct helper *h = arg;

	while (waiters(&h->done) == 0) /* it may still be in pthread_create() */
		sched_yield();
	h->result = h->work(h->arg);
	atomic_store(&h->done, 1);
	syscall(SYS_futex, &h->done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
	return NULL;
}

/* Sleeps until @p done is set. It uses registers only: should the kernel wake it early, its stack
 * is still being replaced, and what it wrote there would be lost. */
static void wait_in_registers(_Atomic uint32_t *done)
{
#ifdef __x86_64__
	register const void *timeout __asm__("r10") = NULL;

	__asm__ volatile("1:	movl	%[call], %%eax\n"
			 "	syscall\n"
			 "	cmpl	$0, (%[done])\n"
			 "	je	1b\n"
			 :
			 : [done] "D"(done), [call] "i"(SYS_futex), "S"((long)FUTEX_WAIT_PRIVATE),
			 "d"(0l), "r"(timeout)
			 : "rax", "rcx", "r11", "memory", "cc");
#elif defined(__aarch64__)
	register long op __asm__("x1") = FUTEX_WAIT_PRIVATE;
	register long value __asm__("x2") = 0;
	register const void *timeout __asm__("x3") = NULL;

	__asm__ volatile(
		"1:	mov	x0, %[done]\n"
		"	mov	x8, %[call]\n"
		"	svc	0\n"
		"	ldar	w9, [%[done]]\n"
		"	cbz	w9, 1b\n"
		:
		: [done] "r"(done), [call] "i"(SYS_futex), "r"(op), "r"(value), "r"(timeout)
		: "x0", "x8", "x9", "memory", "cc");
#else
#error "aside.c: write this in the assembler of this CPU"
#endif
}

/* The signals that libc keeps for itself, too, which pthread_sigmask() leaves out: setuid() in
 * another thread sends one. */
static void block_everything(void)
{
	static const uint64_t every = ~0ull;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, sizeof(every));
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
	if (!err) {
		block_everything();
		wait_in_registers(&h->done);
		pthread_sigmask(SIG_SETMASK, &all, NULL); /* join may wait for setuid() elsewhere */
		pthread_join(t, NULL);
		err = h->result;
		memcpy(arg, h->arg, size);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	raw_munmap(p, ASIDE_STACK + room);
	return err;
}
