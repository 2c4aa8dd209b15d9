/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file victim.h
 * Well-behaved programs beside the hostile ones, each a process of its own: one moves and
 * checks data, one asks the control thread. The suite judges an attack by its effects on them.
 */
#ifndef VICTIM_H
#define VICTIM_H

#include <stdatomic.h>
#include <stdint.h>
#include "limits.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#define ASAN __has_feature(address_sanitizer)
#else
#define ASAN 0
#endif

/** How long a victim may be kept waiting (proc.h); sanitizers slow rocid down. */
#define SLOWER	   (ASAN ? 4ull : 1ull)
#define MESSAGE_NS (SLOWER * BOUND_MESSAGE_ROUNDS * BOUND_ROUND_NS)
#define COMMAND_NS (SLOWER * BOUND_COMMAND_NS)
#define EVENT_NS   (SLOWER * BOUND_EVENT_NS)

#define SECRET_LEN 32
#define PAUSE_US \
	500 /* a victim's, between requests: stalls last longer, and attacks need the CPUs */

/** The waits of one victim. */
struct waits {
	_Atomic uint64_t done;	 /* messages, commands, events */
	_Atomic uint64_t stalls; /* that took longer than they may */
	_Atomic uint64_t longest_ns;
};

/** Notes a wait of @p ns that may take @p bound. */
void waits_note(struct waits *w, uint64_t ns, uint64_t bound);

/** In memory that all processes of the suite share. */
struct victim {
	/* written by the victims */
	struct waits message;	/* sent, received and checked */
	struct waits command;	/* answered */
	struct waits event;	/* that came */
	_Atomic uint32_t ready; /* victims that have begun */
	/* what a hostile program might guess; read by attacks */
	uint32_t key[2];
	uint64_t addr[2];
	uint64_t len;
	uint32_t qpn[2];
	uint32_t qp_handle, mr_handle, cq_handle, pd_handle;
	uint8_t secret[SECRET_LEN];
	/* written by the suite */
	_Atomic uint32_t stop;
	_Atomic uint32_t starved; /* rocid itself is out of memory and descriptors: it may refuse */
};

/** Process bodies; they end with status 0 after `stop`, with a sentence when rocid failed them. */
void victim_data(struct victim *v, const char *socket);
void victim_commands(struct victim *v, const char *socket);
void victim_events(struct victim *v, const char *socket);

#endif
