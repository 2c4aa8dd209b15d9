/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file diagnose/diagnosis.h
 * What the files of this room share.
 */
#ifndef DIAGNOSE_DIAGNOSIS_H
#define DIAGNOSE_DIAGNOSIS_H

#include "cause.h"
#include "diagnose/diagnose.h"
#include "drop.h"
#include "session/failures.h"

/** A sentence that grows; what does not fit is cut off. */
struct sentence {
	char *text; /* ABI_WHY_MAX bytes */
	size_t len;
};

/** Appends to @p t. */
void sentence_add(struct sentence *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** A QP's failure that is to be told. */
struct diagnosis {
	struct ctl *ctl;
	const struct qp_obj *o;
	const struct qp *qp;
	const struct cause_note *n;
	uint64_t time_ms; /* of the calendar, when it failed */
	const char *rule; /* in: the cause's; a diagnosis may know a better one */
	struct sentence t;
};

/** diagnose/error.c: tells @p c. */
void diagnose_error(struct diagnosis *c);

/** diagnose/silence.c: why may the peer not answer? */
void diagnose_silence(struct diagnosis *c);

/** diagnose/hint.c: has the peer of @p o, which lives, given up for want of receives?
 *  @param n  receives what there is to tell, as of a failure */
bool qp_peer_gave_up(const struct ctl *ctl, const struct qp_obj *o, struct cause_note *n);

/** diagnose/log.c: tells that.  @return false: it has not. */
bool diagnose_stalled(struct ctl *ctl, const struct qp_obj *o, struct sentence *t);

/** diagnose/silence.c: has another QP of this rocid the peer of @p o?  @return false: no. */
bool diagnose_rival(struct sentence *t, const struct qp_obj *o);

/** diagnose/silence.c: does the peer answer @p qp with old ACKs only?  @return false: no. */
bool diagnose_old_acks(struct sentence *t, const struct qp *qp);

/** diagnose/region.c: what is wrong with the key, the range or the access of @p c->n? Goes on
 * behind what has been said of the request. @p what calls the key: "rkey" or "lkey". */
void diagnose_region(struct diagnosis *c, const char *what);

/** diagnose/window.c: what is wrong with the window of @p c->n, whose value is an enum mw_result?
 */
void diagnose_window(struct diagnosis *c);

/** diagnose/window.c: @p c->n's key is not that of a region. Is it a window's of the QP's own
 * program? Then tells what is wrong with it. */
bool diagnose_rkey_of_window(struct diagnosis *c);

/** diagnose/drop.c: tells why packets like @p n were dropped. @p o: of that QPN, NULL: there is
 * none. */
void diagnose_drop(struct sentence *t, struct ctl *ctl, const struct qp_obj *o, enum drop why,
	const struct drop_note *n);

/** Whether a drop tells of something that is wrong, and not just of loss or of a QP's end.
 *  @param last  nothing will come to @p o any more that could still be right */
bool drop_matters(struct ctl *ctl, const struct qp_obj *o, enum drop why, const struct drop_note *n,
	bool last);

/** Which drops are looked for; NULL: any. */
typedef bool (*drop_fits)(const struct diagnosis *c, const struct drop_note *n);

/** Finds what was dropped of those packets for @p o that tell most about its peer.
 *  @param last  as for drop_matters()
 *  @param fits  asked of each, with @p c
 *  @return false: nothing. */
bool drop_of_qp(struct ctl *ctl, const struct qp_obj *o, bool last, drop_fits fits,
	const struct diagnosis *c, enum drop *why, struct drop_note *n);

/** @return the time of the workers' clocks. */
uint64_t worker_now_ns(const struct ctl *ctl);

/** @return milliseconds since the failure. */
uint64_t diagnosis_age_ms(const struct diagnosis *c);

/** The time of day, "12:34:56". @return @p text. */
const char *time_text(uint64_t time_ms, char text[16]);

/** @return "RoCEv2 over IPv4" ... of enum net_type. */
const char *net_text(unsigned net);

/** @return whether @p gid is one of any port, of whatever type or VLAN. */
bool gid_is_ours(const struct ctl *ctl, const uint8_t gid[16]);

#endif
