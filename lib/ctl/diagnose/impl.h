/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file diagnose/impl.h
 * What the files of this room share.
 */
#ifndef DIAGNOSE_IMPL_H
#define DIAGNOSE_IMPL_H

#include "cause.h"
#include "diagnose/diagnose.h"
#include "drop.h"
#include "session/failures.h"

/** A sentence that grows; what does not fit is cut off. */
struct why_text {
	char *text; /* ABI_WHY_MAX bytes */
	size_t len;
};

/** Appends to @p t. */
void why_say(struct why_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** A QP's failure that is to be told. */
struct why_case {
	struct ctl *ctl;
	const struct qp_obj *o;
	const struct qp *qp;
	const struct cause_note *n;
	uint64_t time_ms; /* of the calendar, when it failed */
	const char *rule; /* in: the cause's; a diagnosis may know a better one */
	struct why_text t;
};

/** diagnose/error.c: tells @p c. */
void why_tell_error(struct why_case *c);

/** diagnose/silence.c: why may the peer not answer? */
void why_tell_silence(struct why_case *c);

/** diagnose/hint.c: has the peer of @p o, which lives, given up for want of receives?
 *  @param n  receives what there is to tell, as of a failure */
bool why_peer_gave_up(const struct ctl *ctl, const struct qp_obj *o, struct cause_note *n);

/** diagnose/log.c: tells that.  @return false: it has not. */
bool why_tell_stalled(struct ctl *ctl, const struct qp_obj *o, struct why_text *t);

/** diagnose/silence.c: has another QP of this rocid the peer of @p o?  @return false: no. */
bool why_tell_rival(struct why_text *t, const struct qp_obj *o);

/** diagnose/silence.c: does the peer answer @p qp with old ACKs only?  @return false: no. */
bool why_tell_old_acks(struct why_text *t, const struct qp *qp);

/** diagnose/region.c: what is wrong with the key, the range or the access of @p c->n? Goes on
 * behind what has been said of the request. @p what calls the key: "rkey" or "lkey". */
void why_tell_region(struct why_case *c, const char *what);

/** diagnose/window.c: what is wrong with the window of @p c->n, whose value is an enum mw_result?
 */
void why_tell_window(struct why_case *c);

/** diagnose/window.c: @p c->n's key is not that of a region. Is it a window's of the QP's own
 * program? Then tells what is wrong with it. */
bool why_tell_rkey_of_window(struct why_case *c);

/** diagnose/drop.c: tells why packets like @p n were dropped. @p o: of that QPN, NULL: there is
 * none. */
void why_tell_drop(struct why_text *t, struct ctl *ctl, const struct qp_obj *o, enum drop why,
	const struct drop_note *n);

/** Whether a drop tells of something that is wrong, and not just of loss or of a QP's end.
 *  @param last  nothing will come to @p o any more that could still be right */
bool why_drop_matters(struct ctl *ctl, const struct qp_obj *o, enum drop why,
	const struct drop_note *n, bool last);

/** Which drops are looked for; NULL: any. */
typedef bool (*why_drop_fits)(const struct why_case *c, const struct drop_note *n);

/** Finds what was dropped of those packets for @p o that tell most about its peer.
 *  @param last  as for why_drop_matters()
 *  @param fits  asked of each, with @p c
 *  @return false: nothing. */
bool why_drop_of_qp(struct ctl *ctl, const struct qp_obj *o, bool last, why_drop_fits fits,
	const struct why_case *c, enum drop *why, struct drop_note *n);

/** @return the time of the workers' clocks. */
uint64_t why_now_ns(const struct ctl *ctl);

/** @return milliseconds since the failure. */
uint64_t why_age_ms(const struct why_case *c);

/** The time of day, "12:34:56". @return @p text. */
const char *why_time(uint64_t time_ms, char text[16]);

/** @return "RoCEv2 over IPv4" ... of enum net_type. */
const char *why_net(unsigned net);

/** @return whether @p gid is one of any port, of whatever type or VLAN. */
bool why_gid_is_ours(const struct ctl *ctl, const uint8_t gid[16]);

#endif
