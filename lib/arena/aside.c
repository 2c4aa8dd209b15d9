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
	_Atomic uint32_t waits; /* the caller touches nothing any more */
	_Atomic uint32_t done;	/* futex */
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

	while (!atomic_load(&h->waits)) /* it may still be in pthread_create() */
		sched_yield();
	h->result = h->work(h->arg);
	atomic_store(&h->done, 1);
	syscall(SYS_futex, &h->done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
	return NULL;
}

/* Sets @p waits, then sleeps until @p done is set. Between the two it uses registers only: its
 * stack is being replaced, and what it wrote there would be lost. */
static void wait_in_registers(_Atomic uint32_t *waits, _Atomic uint32_t *done)
{
#ifdef __x86_64__
	register const void *timeout __asm__("r10") = NULL;

	__asm__ volatile("movl	$1, (%[waits])\n"
			 "1:	movl	%[call], %%eax\n"
			 "	syscall\n"
			 "	cmpl	$0, (%[done])\n"
			 "	je	1b\n"
			 :
			 : [waits] "r"(waits), [done] "D"(done), [call] "i"(SYS_futex),
			 "S"((long)FUTEX_WAIT_PRIVATE), "d"(0l), "r"(timeout)
			 : "rax", "rcx", "r11", "memory", "cc");
#elif defined(__aarch64__)
	register long op __asm__("x1") = FUTEX_WAIT_PRIVATE;
	register long value __asm__("x2") = 0;
	register const void *timeout __asm__("x3") = NULL;

	__asm__ volatile(
		"stlr	%w[one], [%[waits]]\n"
		"1:	mov	x0, %[done]\n"
		"	mov	x8, %[call]\n"
		"	svc	0\n"
		"	ldar	w9, [%[done]]\n"
		"	cbz	w9, 1b\n"
		:
		: [waits] "r"(waits), [done] "r"(done), [one] "r"(1), [call] "i"(SYS_futex),
		"r"(op), "r"(value), "r"(timeout)
		: "x0", "x8", "x9", "memory", "cc");
#else
#error "aside.c: write this in the assembler of this CPU"
#endif
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
		wait_in_registers(&h->waits, &h->done);
		pthread_join(t, NULL);
		err = h->result;
		memcpy(arg, h->arg, size);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	raw_munmap(p, ASIDE_STACK + room);
	return err;
}
