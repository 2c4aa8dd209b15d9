/* SPDX-License-Identifier: BSD-3-Clause */
/** @file traffic_impl.h  Shared by the files that implement traffic.h. */
#ifndef TRAFFIC_IMPL_H
#define TRAFFIC_IMPL_H

#include "traffic.h"

/* --- traffic_memory.c: places for the bytes of messages, and checks of the bytes --------- */

/** Registers @p size bytes of FILL. */
void area_init(struct traffic_area *a, struct app *app, uint32_t size, uint32_t access);
/** Deregisters it. From now on only the application writes to it. */
void area_dereg(struct traffic_area *a, struct app *app);
/** No message is outstanding: the whole area must be FILL. */
void area_clear(struct traffic_area *a);
/** Checks that a deregistered area is as the application left it, and registers it again. */
void area_again(struct traffic_area *a, struct app *app);
void area_fini(struct traffic_area *a);

/** Allocates a place for @p len bytes and the gaps between and around their pieces.
 *  @return false when there is no room. */
bool area_take(struct traffic_area *a, uint32_t len, struct traffic_place *p);
/** Frees the oldest place. */
void area_give(struct traffic_area *a, const struct traffic_place *p);
/** @return how many bytes of an area a message of @p len bytes takes. */
uint32_t area_need(uint32_t len);

/** Offset of the place in the area's region. */
uint32_t place_offset(const struct traffic_area *a, const struct traffic_place *p);
uint8_t *place_mem(const struct traffic_area *a, const struct traffic_place *p);

/** Cuts @p len bytes into at most @p max pieces, some of them empty, with gaps between them;
 *  @p max 0: one piece at the start. */
struct traffic_pieces pieces_cut(struct random *r, uint32_t len, unsigned max);

/** Puts the bytes of the message with @p key into the pieces. */
void pieces_put(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key);

/** @return the 8 bytes of the message with @p key, as a word. */
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

/** The same for an unfinished message, of which the first bytes may have arrived; the rest is FILL.
 */
void pieces_check_begun(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key);

/* --- traffic_mw.c ------------------------------------------------------------------- */

/** Creates the window for side @p e's target. */
void target_mw_init(struct traffic *t, int e, struct app *owner);
/** The QP that bound the window, if any, was destroyed or reset. */
void target_mw_forget(struct traffic_mw *w);
/** @return @p op, or a SEND if side @p e cannot do @p op now because of the window's state. */
enum traffic_op target_mw_op(const struct traffic *t, int e, enum traffic_op op);
/** The effect on a window of a message that side @p e posts now. */
void target_mw_lay_out(struct traffic *t, int e, struct traffic_message *m);
void target_mw_describe(
	const struct traffic *t, int e, const struct traffic_message *m, struct app_send *w);
/** The sender of @p m knows that it is done. */
void target_mw_done(struct traffic *t, int e, const struct traffic_message *m);
/** The SEND_INV @p m was received by side @p e. */
void target_mw_invalidated(struct traffic *t, int e, const struct traffic_message *m);

/* --- traffic_judge.c ------------------------------------------------------------------ */

/** The QPs are gone: checks the memory of the messages that did not complete. */
void judge_rest(struct traffic *t);

#endif
