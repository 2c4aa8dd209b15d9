/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file victim.h
 * Well-behaved programs beside the hostile ones, each a process of its own: one moves and
 * checks data, one asks the control thread. What they see of an attack is what the suite judges.
 */
#ifndef VICTIM_H
#define VICTIM_H

#include <stdatomic.h>
#include <stdint.h>

/** Longest time that rocid may be busy with others, CPU time (proc.h). A virtual machine counts the
 *  time that its host takes away as used, and others are slower; ASan slows it down. */
#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#define ASAN __has_feature(address_sanitizer)
#else
#define ASAN 0
#endif
#define STALL_NS (ASAN ? 1000000000u : 300000000u)

#define SECRET_LEN 32

/** In memory that all processes of the suite share. */
struct victim {
	/* written by the victims */
	_Atomic uint64_t messages;    /* sent, received and checked */
	_Atomic uint64_t commands;    /* answered */
	_Atomic uint64_t data_stalls; /* of more than STALL_NS */
	_Atomic uint64_t command_stalls;
	_Atomic uint64_t longest_data_ns;
	_Atomic uint64_t longest_command_ns;
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
};

/** Process bodies; they end with status 0 after `stop`, with a sentence when rocid failed them. */
void victim_data(struct victim *v, const char *socket);
void victim_commands(struct victim *v, const char *socket);

#endif
