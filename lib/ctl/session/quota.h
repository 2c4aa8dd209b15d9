/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/quota.h
 * Limits how much of each enum ctl_kind one application, and all applications of one user, may
 * have. An object is charged before it is created: to its session, and to the account of its user,
 * which keeps the charge as long as the object lasts, even beyond the session. A refusal is
 * -EDQUOT, or -EUSERS for sessions, with a sentence that names the option to raise.
 *
 * Several users together could still take everything. The last quarter of each kind is therefore
 * reserved for users who have little of it (USER_RESERVE, USER_SMALL), where memory that is not
 * unmapped yet counts. Nobody needs protection from root: only the limits per application
 * apply to it. Control thread.
 */
#ifndef SESSION_QUOTA_H
#define SESSION_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include "config/config.h"

struct quota;
struct reaped;
struct session;

/** An amount of one kind. */
struct charge {
	enum ctl_kind kind;
	uint64_t n; /* objects, or bytes */
};

/** @param wanted  0: the default, which depends on the machine's size for some kinds */
void quota_init(struct quota *q, const struct ctl_limits *wanted);

/** Frees the accounts once all sessions have ended, except those with memory that the unmapper has
 *  not unmapped. */
void quota_destroy(struct quota *q);

/** @return @p wanted with defaults in place of 0, and capped at the capacity. */
struct ctl_limits quota_limits(const struct quota *q, const struct ctl_limits *wanted);

/** Charges @p s, whose peer is known, to its user: s->account.  @return 0, -EUSERS or -ENOMEM with
 *  a sentence. */
int quota_open(struct session *s, char why[ABI_SENTENCE_MAX]);

/** Releases the charge of @p s itself, whose other charges have all been released. */
void quota_close(struct session *s);

/** Charges all @p n of @p c, or nothing.  @return 0, or -EDQUOT with a sentence. */
int quota_take(struct session *s, const struct charge c[], unsigned n, char why[ABI_SENTENCE_MAX]);

/** The same for one object of a single kind. */
int quota_take_one(struct session *s, enum ctl_kind kind, char why[ABI_SENTENCE_MAX]);

/** Releases charges. */
void quota_give(struct session *s, const struct charge c[], unsigned n);
void quota_give_one(struct session *s, enum ctl_kind kind);

/** Releases the charge of a mapping of @p bytes of @p kind, CTL_MEMORY or CTL_QUEUES, that is about
 *  to be unmapped.  @return the count for the reaper. */
struct reaped *quota_retire(struct session *s, enum ctl_kind kind, uint64_t bytes);

/** Moves charges from @p from to @p to, for an object that both share and that @p from leaves. */
void quota_pass(struct session *from, struct session *to, const struct charge c[], unsigned n);

/** @return whether @p s may take the place of another user's session. */
bool quota_may_open(const struct session *s);

/** @return whether the user of @p s has so little of @p kind that the last quarter is for it. */
bool quota_has_little(const struct session *s, enum ctl_kind kind);

/** @return the maximum of @p kind, in objects or MB, for @p s; UINT32_MAX: no limit. */
uint32_t quota_most(const struct session *s, enum ctl_kind kind);

/* --- limits by name ------------------------------------------------------------------- */

/** The names of all limits that can be set, as in `rocictl show limits`; ends with NULL. */
extern const char *const quota_limit_names[];

/** @return limit @p i of quota_limit_names. */
uint32_t *quota_limit(struct ctl_limits *l, unsigned i);

#endif
