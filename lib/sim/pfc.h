/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pfc.h
 * Priority flow control (IEEE 802.1Qbb): a receiver whose buffer fills up asks the other end of the
 * cable to stop sending data. PFC frames take time on the wire like any other, but go first. Here a
 * pause lasts until the frame that ends it, as with receivers that refresh theirs in time. Only
 * data are paused: CNPs and acknowledgements have their own priority.
 */
#ifndef PFC_H
#define PFC_H

#include <stdbool.h>
#include <stdint.h>

struct buffer_pool;
struct sim_buffer;

/** The priority of data packets. */
#define PFC_PRIORITY 3u

enum pfc_word {
	PFC_NONE, /* not a PFC frame */
	PFC_XON,
	PFC_XOFF
};

/** @return a frame with @p word, XON or XOFF; NULL: no memory. */
struct sim_buffer *pfc_frame(struct buffer_pool *pool, enum pfc_word word);

/** @return the word in @p b. */
enum pfc_word pfc_read(const struct sim_buffer *b);

/** When an ingress pauses and resumes the other end of its cable. */
struct pfc_config {
	uint64_t xoff;	   /* pause above this many of its bytes in the switch; 0: never */
	uint64_t xon;	   /* resume at this many or fewer */
	uint64_t headroom; /* bytes above `xoff` that still fit; 0: the rest of the buffer */
};

/** The buffer shared by all ports of a switch. */
struct switch_memory {
	uint64_t size; /* bytes; 0: unlimited */
	double alpha;  /* a queue may use this multiple of the free space; 0: all. Not with PFC */
	struct pfc_config pfc;
};

/** Written by the switch. */
struct pfc_ingress {
	uint64_t bytes; /* data bytes that came in here and are still queued */
	bool paused;	/* the other end is paused */
	uint64_t pauses;
	uint64_t since;	    /* ns: start of the pause */
	uint64_t paused_ns; /* total of all finished pauses */
};

/** @return whether @p len more bytes fit. */
bool pfc_fits(const struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len);

/** @p len bytes came in.  @return the word to send now */
enum pfc_word pfc_enter(
	struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len, uint64_t now);

/** @p len of them left the switch.  @return the word to send now */
enum pfc_word pfc_leave(
	struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len, uint64_t now);

#endif
