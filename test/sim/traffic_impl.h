/* SPDX-License-Identifier: BSD-3-Clause */
/** @file traffic_impl.h  Between the files of traffic.h. */
#ifndef TRAFFIC_IMPL_H
#define TRAFFIC_IMPL_H

#include "traffic.h"

/* --- traffic_memory.c: where the bytes of messages lie, and whether they are right ------- */

/** Registers @p size bytes of FILL. */
void area_init(struct traffic_area *a, struct app *app, uint32_t size, uint32_t access);
/** Deregisters it. From now on only the application writes to it. */
void area_dereg(struct traffic_area *a, struct app *app);
/** Nothing is under way: all must be FILL. */
void area_clear(struct traffic_area *a);
/** A deregistered one must be as the application left it; registers it again. */
void area_again(struct traffic_area *a, struct app *app);
void area_fini(struct traffic_area *a);

/** Takes a place for @p len bytes and the gaps between and around their pieces.
 *  @return false when there is no room. */
bool area_take(struct traffic_area *a, uint32_t len, struct traffic_place *p);
/** Gives the oldest place back. */
void area_give(struct traffic_area *a, const struct traffic_place *p);
/** @return bytes of an area that a message of @p len bytes takes. */
uint32_t area_need(uint32_t len);

/** Offset of the place in the area's region. */
uint32_t place_offset(const struct traffic_area *a, const struct traffic_place *p);
uint8_t *place_mem(const struct traffic_area *a, const struct traffic_place *p);

/** Cuts @p len bytes into at most @p max pieces, empty ones among them, with gaps between; 0: one
 *  piece at the start. */
struct traffic_pieces pieces_cut(struct random *r, uint32_t len, unsigned max);

/** Puts the bytes of the message with @p key into the pieces. */
void pieces_put(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key);

/** @return the word that the message with @p key is, 8 bytes long. */
uint64_t word_of(uint64_t key);

/** As pieces_check() for one aligned word, which must be @p v, or may be @p or. */
void word_check(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint64_t v, uint64_t or);

/** The application overwrites the place with FILL. */
void pieces_wipe(const struct traffic_area *a, const struct traffic_place *place, uint32_t len);

/** The pieces must hold the first @p len bytes of the message with @p key, and the rest of the
 * place FILL. All of it is FILL afterwards. */
void pieces_check(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key);

/** The same for what may have arrived of a message that broke: its first bytes, then FILL. */
void pieces_check_begun(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key);

/* --- traffic_mw.c ------------------------------------------------------------------- */

/** Makes the window for side @p e's target. */
void target_mw_init(struct traffic *t, int e, struct app *owner);
/** The QP that bound it, if any, is gone, or as new. */
void target_mw_forget(struct traffic_mw *w);
/** @return @p op, or a SEND instead of what side @p e cannot do now with a window. */
enum traffic_op target_mw_op(const struct traffic *t, int e, enum traffic_op op);
/** The effect on a window of a message that side @p e posts now. */
void target_mw_lay_out(struct traffic *t, int e, struct traffic_message *m);
void target_mw_describe(
	const struct traffic *t, int e, const struct traffic_message *m, struct app_send *w);
/** It is done, as its sender knows. */
void target_mw_done(struct traffic *t, int e, const struct traffic_message *m);
/** The SEND_INV @p m was received by side @p e. */
void target_mw_invalidated(struct traffic *t, int e, const struct traffic_message *m);

/* --- traffic_judge.c ------------------------------------------------------------------ */

/** The QPs are gone: judges what is left of what was not completed. */
void judge_rest(struct traffic *t);

#endif
