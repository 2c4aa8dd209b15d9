/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verify.h
 * --verify: each message has contents of its own, made of the QP's and its own number, and who has
 * it in the end compares every byte. What a READ fetches depends on its slot instead, and is wiped
 * once compared. Who finds a difference ends the program and says where it is.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include "end.h"

/** Writes the contents of @p f's next message into its slot of tx. */
void verify_fill(struct end *e, const struct flow *f);

/** Compares the message that arrived, f->taken, of @p length bytes, the last @p skip ones excepted:
 *  they mark its arrival. */
void verify_arrived(struct end *e, struct flow *f, uint32_t length, uint32_t skip);

/** @return whether a message of @p length bytes is of a size before: its sender, whom nobody
 * answers, was done while it was on its way. */
bool verify_is_late(const struct end *e, uint32_t length);

/** Writes into all slots of tx what READs shall find there. */
void verify_offer(struct end *e);

/** Compares the next @p count messages that READs of @p f have fetched. */
void verify_fetched(struct end *e, struct flow *f, uint32_t count);

/** Compares what WRITEs left in rx; @p sent: how many messages each QP sent. */
void verify_left(struct end *e, const uint64_t sent[]);

#endif
