/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the kernel send a signal instead of executing the thread's system calls (Linux 5.11,
 * x86-64). The handler makes the calls itself, until it meets the one that creates a process.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include "raw.h"
#include "trap.h"

#ifdef __x86_64__

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define DISPATCH_OFF  0
#define DISPATCH_ON   1
#define CODE_DISPATCH 2 /* si_code of such a signal */
#define RESTORER      0x04000000ul
#define SYSCALL_BYTES 2
#define BIT(sig)      (1ull << ((sig)-1))
#define SET_BYTES     8

/* In the kernel's layout. */
struct kernel_action {
	void (*handler)(int sig, siginfo_t *info, void *context);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static struct {
	void (*before)(bool fork);
	void (*after)(bool child);
	volatile char block; /* read by the kernel at each system call */
	bool active;
	bool masked;		     /* signals are blocked */
	struct kernel_action action; /* the original one */
	uint64_t mask;		     /* the original one */
} trap;

/* The handler returns by a system call that must not be trapped. */
void arena_trap_return(void);
extern const char arena_trap_return_end[];
__asm__(".pushsection .text\n"
	".hidden arena_trap_return\n"
	".globl arena_trap_return\n"
	".type arena_trap_return, @function\n"
	"arena_trap_return:\n"
	"	mov $15, %eax\n" /* rt_sigreturn */
	"	syscall\n"
	".hidden arena_trap_return_end\n"
	".globl arena_trap_return_end\n"
	"arena_trap_return_end:\n"
	"	nop\n"
	".size arena_trap_return, . - arena_trap_return\n"
	".popsection");

static long plain_call(const greg_t *r)
{
	register long r10 __asm__("r10") = r[REG_R10];
	register long r8 __asm__("r8") = r[REG_R8];
	register long r9 __asm__("r9") = r[REG_R9];
	long result = r[REG_RAX];

	__asm__ volatile(
		"syscall"
		: "+a"(result)
		: "D"(r[REG_RDI]), "S"(r[REG_RSI]), "d"(r[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
		: "rcx", "r11", "memory");
	return result;
}

static void set_dispatch(unsigned long mode)
{
	uintptr_t at = (uintptr_t)arena_trap_return;

	trap.block = 0;
	if (mode == DISPATCH_ON)
		syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, at,
			(uintptr_t)arena_trap_return_end + 1 - at, &trap.block);
	else
		syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, 0, 0, 0);
}

/* Changes the mask to which the handler returns. SIGSYS stays unblocked: a trapped thread that
 * blocks it dies. */
static long mask_call(ucontext_t *context, const greg_t *r)
{
	uint64_t now, set = 0;

	memcpy(&now, &context->uc_sigmask, SET_BYTES);
	if (r[REG_RSI]) /* read first: old and new may be the same place */
		memcpy(&set, (const void *)r[REG_RSI], SET_BYTES);
	if (r[REG_RDX])
		memcpy((void *)r[REG_RDX], &now, SET_BYTES);
	if (!r[REG_RSI])
		return 0;
	if (r[REG_RDI] == SIG_BLOCK)
		set |= now;
	else if (r[REG_RDI] == SIG_UNBLOCK)
		set = now & ~set;
	set &= ~BIT(SIGSYS);
	memcpy(&context->uc_sigmask, &set, SET_BYTES);
	return 0;
}

static void on_call(int sig, siginfo_t *info, void *context);

/* If another thread has meanwhile set an action for SIGSYS, that one stays. */
static void disarm(void)
{
	struct kernel_action now;

	set_dispatch(DISPATCH_OFF);
	if (!syscall(SYS_rt_sigaction, SIGSYS, NULL, &now, SET_BYTES) && now.handler == on_call)
		syscall(SYS_rt_sigaction, SIGSYS, &trap.action, NULL, SET_BYTES);
	trap.active = false;
}

/* The SIGSYS comes from a seccomp filter of the program: handles it as without the trap. */
static void as_before(void)
{
	syscall(SYS_rt_sigaction, SIGSYS, &trap.action, NULL, SET_BYTES);
	raise(SIGSYS);
}

/* @return whether the new process gets a copy of our memory and of this stack. */
static bool is_fork(const greg_t *r)
{
	return r[REG_RAX] == SYS_fork ||
	       (r[REG_RAX] == SYS_clone && !(r[REG_RDI] & CLONE_VM) && !r[REG_RSI]);
}

static void make_process(greg_t *r)
{
	bool fork = is_fork(r);

	disarm();
	trap.before(fork);
	if (fork) {
		r[REG_RAX] = plain_call(r);
		trap.after(!r[REG_RAX]);
	} else {
		r[REG_RIP] -= SYSCALL_BYTES; /* it is repeated when the handler returns */
	}
}

static void on_call(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	int saved = errno;

	(void)sig;
	if (info->si_code != CODE_DISPATCH) {
		as_before();
		return;
	}
	trap.block = 0;
	r[REG_RAX] = info->si_syscall;
	switch (info->si_syscall) {
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
		make_process(r);
		break;
	case SYS_rt_sigprocmask:
		r[REG_RAX] = mask_call(context, r);
		break;
	default:
		r[REG_RAX] = plain_call(r);
	}
	errno = saved;
	trap.block = trap.active;
}

/* Other handlers would return by a system call that is trapped. */
static void block_signals(void)
{
	uint64_t all = ~(BIT(SIGSYS) | BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) |
			 BIT(SIGTRAP) | BIT(SIGABRT));

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &trap.mask, SET_BYTES);
	trap.masked = true;
}

static void unblock_signals(void)
{
	trap.masked = false;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &trap.mask, NULL, SET_BYTES);
}

static bool allowed(void)
{
	uint64_t blocked;

	/* A program that blocks SIGSYS waits for it by sigwait(), and one may be pending. The
	 * prctl() changes nothing, but fails if the kernel has no support. */
	return !syscall(SYS_rt_sigaction, SIGSYS, NULL, &trap.action, SET_BYTES) &&
	       !trap.action.handler &&
	       !syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, SET_BYTES) &&
	       !(blocked & BIT(SIGSYS)) &&
	       !syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_OFF, 0, 0, 0);
}

bool trap_fork(void (*before)(bool fork), void (*after)(bool child))
{
	const struct kernel_action sa = {.handler = on_call,
		.flags = SA_SIGINFO | SA_NODEFER | RESTORER,
		.restorer = arena_trap_return};

	if (!allowed())
		return false;
	block_signals();
	trap.before = before;
	trap.after = after;
	trap.active = true;
	syscall(SYS_rt_sigaction, SIGSYS, &sa, NULL, SET_BYTES);
	set_dispatch(DISPATCH_ON);
	trap.block = 1;
	return true;
}

void trap_end(void)
{
	if (!trap.masked)
		return;
	if (trap.active)
		disarm();
	unblock_signals();
}

#else

bool trap_fork(void (*before)(bool fork), void (*after)(bool child))
{
	(void)before;
	(void)after;
	return false;
}

void trap_end(void)
{
}

#endif
