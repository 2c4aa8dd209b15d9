/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verify.h
 * --verify: each message has unique contents, derived from the QP's and its own number, and its
 * receiver compares every byte. The data of a READ depends on its slot instead, and is erased once
 * compared. A difference ends the program with a sentence that locates it.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include <stdbool.h>
#include <stdint.h>

struct end;
struct flow;

/** Writes the contents of @p f's next message into its slot of tx. */
void verify_fill(struct end *e, const struct flow *f);

/** Compares the message that arrived, f->taken, of @p length bytes, the last @p skip ones excepted:
 *  they mark its arrival. */
void verify_arrived(struct end *e, struct flow *f, uint32_t length, uint32_t skip);

/** @return whether a message of @p length bytes is of an earlier size: its sender, which gets no
 * answer, was done while it was in flight. */
bool verify_is_late(const struct end *e, uint32_t length);

/** Writes the data for READs into all slots of tx. */
void verify_offer(struct end *e);

/** Compares the next @p count messages that READs of @p f have fetched. */
void verify_fetched(struct end *e, struct flow *f, uint32_t count);

/** Compares the data that WRITEs left in rx; @p sent: how many messages each QP sent. */
void verify_left(struct end *e, const uint64_t sent[]);

#endif
