/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/quota.h
 * How much one application, and all of one user, may have of each enum ctl_kind. An object is
 * charged before it is made: to its session, and to the account of its user, who keeps the charge
 * while the object lasts, whether the session ends or not. What is refused is -EDQUOT, or -EUSERS
 * for sessions, with a sentence that names the option behind it.
 *
 * Some users together could still take all. The last quarter of each kind is therefore kept for
 * users who have little of it (USER_RESERVE, USER_SMALL), and memory that is not unmapped yet
 * counts there. root is no user that others are protected from: only the limits of an application
 * hold for it. Control thread.
 */
#ifndef SESSION_QUOTA_H
#define SESSION_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "config/config.h"
#include "list.h"
#include "session/reaper.h"

struct session;

/** What a user has. It lasts until nothing is left of it. */
struct account {
	struct list node; /* of quota.accounts */
	uid_t uid;
	uint64_t used[CTL_KINDS];
	/** Given back, but still mapped: of CTL_MAPPINGS, CTL_MEMORY and CTL_QUEUES. */
	uint64_t retired[CTL_KINDS];
	struct reaped memory, queues; /* that the unmapper has unmapped since */
};

struct quota {
	struct ctl_limits limits;     /* none is 0 */
	uint64_t capacity[CTL_KINDS]; /* what there is; UINT64_MAX: no matter */
	uint64_t used[CTL_KINDS];     /* of all accounts */
	uint64_t retired[CTL_KINDS];  /* likewise */
	struct list accounts;
};

/** Some of a kind. */
struct charge {
	enum ctl_kind kind;
	uint64_t n; /* objects, or bytes */
};

/** @param wanted  0: the default, which the machine's size decides for some kinds */
void quota_init(struct quota *q, const struct ctl_limits *wanted);

/** Frees the accounts, all sessions having gone; not those that the unmapper did not get to. */
void quota_destroy(struct quota *q);

/** @return @p wanted with defaults for what is 0, and nothing beyond what there is. */
struct ctl_limits quota_limits(const struct quota *q, const struct ctl_limits *wanted);

/** Charges @p s, whose peer is known, to its user: s->account.  @return 0, -EUSERS or -ENOMEM with
 *  a sentence. */
int quota_open(struct session *s, char why[ABI_SENTENCE_MAX]);

/** Takes @p s, which has nothing else any more, off its user's account. */
void quota_close(struct session *s);

/** Charges all @p n of @p c, or nothing.  @return 0, or -EDQUOT with a sentence. */
int quota_take(struct session *s, const struct charge c[], unsigned n, char why[ABI_SENTENCE_MAX]);

/** The same of one object of a single kind. */
int quota_take_one(struct session *s, enum ctl_kind kind, char why[ABI_SENTENCE_MAX]);

/** Gives back what was charged. */
void quota_give(struct session *s, const struct charge c[], unsigned n);
void quota_give_one(struct session *s, enum ctl_kind kind);

/** Gives back a mapping of @p bytes of @p kind, CTL_MEMORY or CTL_QUEUES, that is to be unmapped.
 *  @return where the reaper says that it was. */
struct reaped *quota_retire(struct session *s, enum ctl_kind kind, uint64_t bytes);

/** @p to keeps what @p from was charged for: an object that both share, and that @p from leaves. */
void quota_pass(struct session *from, struct session *to, const struct charge c[], unsigned n);

/** @return whether quota_open() would let @p s have the place of another user's session. */
bool quota_may_open(const struct session *s);

/** @return how many objects of @p kind, or MB, @p s may have at most; UINT32_MAX: any number. */
uint32_t quota_most(const struct session *s, enum ctl_kind kind);

/* --- limits by name ------------------------------------------------------------------- */

/** The names of all limits that can be set, as `rocictl show limits` has them; NULL at the end. */
extern const char *const quota_limit_names[];

/** @return limit @p i of quota_limit_names. */
uint32_t *quota_limit(struct ctl_limits *l, unsigned i);

#endif
