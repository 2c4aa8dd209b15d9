/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file diagnose/diagnosis.h
 * Declarations that the files of this directory share.
 */
#ifndef DIAGNOSE_DIAGNOSIS_H
#define DIAGNOSE_DIAGNOSIS_H

#include "cause.h"
#include "drop.h"
#include "session/failures.h"

struct drop_note;

/** A sentence under construction; truncated if it does not fit. */
struct sentence {
	char *text; /* ABI_WHY_MAX bytes */
	size_t len;
};

/** Appends to @p t. */
void sentence_add(struct sentence *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** A QP's failure that is being explained. */
struct diagnosis {
	struct ctl *ctl;
	const struct qp_obj *o;
	const struct qp *qp;
	const struct cause_note *n;
	uint64_t time_ms; /* wall-clock time of the failure */
	const char *rule; /* the cause's, unless a diagnosis sets a better one */
	struct sentence t;
};

/** diagnose/error.c: explains @p c. */
void diagnose_error(struct diagnosis *c);

/** diagnose/silence.c: explains why the peer may not answer. */
void diagnose_silence(struct diagnosis *c);

/** diagnose/hint.c: @return whether the peer of @p o, which has not failed, gave up because no
 *  receives were posted.
 *  @param n  receives a note about it, as if @p o had failed */
bool qp_peer_gave_up(const struct ctl *ctl, const struct qp_obj *o, struct cause_note *n);

/** diagnose/log.c: explains that the peer gave up.  @return false if it did not. */
bool diagnose_stalled(struct ctl *ctl, const struct qp_obj *o, struct sentence *t);

/** diagnose/silence.c: explains that another QP of this rocid names the same peer as @p o.
 *  @return false if none does. */
bool diagnose_rival(struct sentence *t, const struct qp_obj *o);

/** diagnose/silence.c: explains that the peer answers @p qp only with old ACKs.
 *  @return false if it does not. */
bool diagnose_old_acks(struct sentence *t, const struct qp *qp);

/** diagnose/region.c: explains what is wrong with the key, the range or the access of @p c->n.
 *  Continues the text about the request. @p what is the kind of key: "rkey" or "lkey". */
void diagnose_region(struct diagnosis *c, const char *what);

/** diagnose/window.c: explains what is wrong with the window of @p c->n, whose value is an
 *  enum mw_result. */
void diagnose_window(struct diagnosis *c);

/** diagnose/window.c: if @p c->n's key names a memory window of the QP's own program, explains
 *  what is wrong with that window.  @return false if it does not. */
bool diagnose_rkey_of_window(struct diagnosis *c);

/** diagnose/drop.c: explains why packets like @p n were dropped. @p o: the QP of that QPN, or
 *  NULL. */
void diagnose_drop(struct sentence *t, struct ctl *ctl, const struct qp_obj *o, enum drop why,
	const struct drop_note *n);

/** @return whether a drop indicates an error, rather than packet loss or the end of a QP.
 *  @param last  @p o will receive no more packets that could turn out to be valid */
bool drop_matters(struct ctl *ctl, const struct qp_obj *o, enum drop why, const struct drop_note *n,
	bool last);

/** Selects the drops to look for; NULL: all. */
typedef bool (*drop_fits)(const struct diagnosis *c, const struct drop_note *n);

/** Finds the dropped packet for @p o that says most about its peer.
 *  @param last  as for drop_matters()
 *  @param fits  called for each note, with @p c
 *  @return false if there is none. */
bool drop_of_qp(struct ctl *ctl, const struct qp_obj *o, bool last, drop_fits fits,
	const struct diagnosis *c, enum drop *why, struct drop_note *n);

/** @return the time of the workers' clocks. */
uint64_t worker_now_ns(const struct ctl *ctl);

/** @return milliseconds since the failure. */
uint64_t diagnosis_age_ms(const struct diagnosis *c);

/** The time of day, "12:34:56". @return @p text. */
const char *time_text(uint64_t time_ms, char text[16]);

/** @return whether any port has @p gid, of any type and VLAN. */
bool gid_is_ours(const struct ctl *ctl, const uint8_t gid[16]);

#endif
