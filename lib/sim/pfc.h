/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pfc.h
 * Priority flow control (IEEE 802.1Qbb): a receiver whose buffer fills asks the other end of the
 * cable to send no data for now. Its frames take their time on the wire as others do, and leave
 * before them. Here a pause lasts until the frame that ends it, as of receivers that repeat theirs
 * in time. Only data are paused: CNPs and acknowledgements have a priority of their own.
 */
#ifndef PFC_H
#define PFC_H

#include <stdbool.h>
#include <stdint.h>

struct buffer_pool;
struct sim_buffer;

/** The priority of data. */
#define PFC_PRIORITY 3u

enum pfc_word {
	PFC_NONE, /* the frame is another one */
	PFC_XON,
	PFC_XOFF
};

/** @return a frame that says @p word, XON or XOFF; NULL: no memory. */
struct sim_buffer *pfc_frame(struct buffer_pool *pool, enum pfc_word word);

/** @return what @p b says. */
enum pfc_word pfc_read(const struct sim_buffer *b);

/** When an ingress asks the other end of its cable to pause. */
struct pfc_config {
	uint64_t xoff;	   /* bytes of it that wait in the switch: more pause it; 0: never */
	uint64_t xon;	   /* as few let it go on */
	uint64_t headroom; /* bytes above `xoff` that still fit; 0: as much as the buffer has */
};

/** The buffer that all ports of a switch share. */
struct switch_memory {
	uint64_t size; /* bytes; 0: any number */
	double alpha;  /* a queue may have this many times what is unused; 0: all. Not with PFC */
	struct pfc_config pfc;
};

/** Written by the switch. */
struct pfc_ingress {
	uint64_t bytes; /* of data that came in here, and wait */
	bool paused;	/* the other end */
	uint64_t pauses;
	uint64_t since;	    /* ns: of the pause */
	uint64_t paused_ns; /* in all that have ended */
};

/** @return whether @p len more bytes fit. */
bool pfc_fits(const struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len);

/** @p len bytes came in.  @return what is to be said now */
enum pfc_word pfc_enter(
	struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len, uint64_t now);

/** @p len of them have left the switch.  @return what is to be said now */
enum pfc_word pfc_leave(
	struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len, uint64_t now);

#endif
