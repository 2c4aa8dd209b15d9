/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file step.h
 * Runs a function after each instruction between step_begin() and step_end(), as if another CPU ran
 * it at that point. Only x86-64 has a flag with which a program single-steps itself; elsewhere the
 * test is skipped, and meson.build says so.
 */
#ifndef STEP_H
#define STEP_H

#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef __x86_64__
static inline void step_flag(int on)
{
	const unsigned long long trap = 1u << 8; /* TF */
	unsigned long long flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | trap : flags & ~trap);
}
#else
static inline void step_flag(int on)
{
	skip();
}
#endif

/** @param each  called after each instruction, as a signal handler */
static inline void step_begin(void (*each)(int sig))
{
	struct sigaction step = {.sa_handler = each};

	assert_int_equal(sigaction(SIGTRAP, &step, NULL), 0);
	step_flag(1);
}

static inline void step_end(void)
{
	step_flag(0);
	signal(SIGTRAP, SIG_DFL);
}

#endif
