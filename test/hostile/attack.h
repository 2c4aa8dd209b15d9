/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file attack.h
 * An attack is a function that runs in a process of its own against a rocid that also serves
 * victims. It ends the program with a sentence when rocid does something forbidden: grants an
 * access that it must refuse, leaks the bytes of another program, or ends a session that has done
 * nothing wrong.
 *
 * If you add an attack, add its row to a table at the end of its file; hostile.c runs all tables.
 */
#ifndef ATTACK_H
#define ATTACK_H

#include <stdbool.h>
#include "random.h"
#include "raw.h"
#include "victim.h"

struct arena {
	const char *socket;
	const struct victim *victim;
	struct random random;
	unsigned effort; /* 1 in `make test` */
	int rocid;	 /* its process id */
	bool root;	 /* the attack keeps root's rights */
	bool starves;	 /* it uses up resources of rocid that victims also need */
};

struct attack {
	const char *name;
	void (*run)(struct arena *a);
};

/** Tables; the last row has no name. attacks_root, _passed_root, _quota and _cm keep root's rights,
 *  to change limits of rocid itself or to run programs as several users; all others run as
 *  USER_ATTACKER. The attacks in attacks_open still succeed, and run only by name. */
extern const struct attack attacks_words[], attacks_wqe[], attacks_srq[], attacks_keys[],
	attacks_socket[], attacks_objects[], attacks_memory[], attacks_wire[], attacks_paths[],
	attacks_crowds[], attacks_pieces[], attacks_storms[], attacks_passed_root[],
	attacks_rounds[], attacks_huge[], attacks_open[], attacks_commands[], attacks_quota[],
	attacks_cm[], attacks_fuzz[], attacks_events[], attacks_root[];

/** A session with two connected QPs that share one CQ and one region. */
struct duo {
	struct raw s;
	struct raw_cq cq;
	struct raw_mr mr;
	struct raw_qp qp[2];
};
#define DUO_MEMORY 65536u
#define DUO_AROUND 4096u
#define DUO_DEPTH  64u
#define DUO_ACCESS (ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ)

void duo_open(struct duo *d, const struct arena *a);
void duo_close(struct duo *d);

/** Brings both QPs back to RTS from any state, and discards their completions. */
void duo_reset(struct duo *d);

/** @return the status of the next completion of @p qp; -1: none came within RAW_PATIENCE_S. */
int duo_status(struct duo *d, const struct raw_qp *qp);

/** [@p at, @p at + @p len) of the region as an SGE. */
struct abi_sge duo_sge(const struct duo *d, size_t at, uint32_t len);

/** Ends the program when @p ok is false. */
void must(bool ok, const char *what);

#endif
