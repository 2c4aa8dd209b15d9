/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture.h
 * RoCE frames as the workers send and receive them, including dropped ones, for administrators
 * (rocictl capture). Each worker copies the selected frames into its own ring and never waits; a
 * thread of the capture (capture_stream.c) takes them out and sends them, as pcapng, through a
 * socket. A full ring loses frames, which are counted.
 *
 * A frame between two QPs of this daemon is captured twice, as sent and as received, on a separate
 * interface after those of the ports.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "limits.h"

struct capture;
struct dataplane;

/** Interfaces of a capture: the ports, then the path inside the daemon. */
#define CAPTURE_INTERFACES (PORT_MAX + 1)

#define CAPTURE_ANY UINT32_MAX

/** Selects the frames to capture. */
struct capture_filter {
	uint32_t qpn;  /* frames that this QP sends or that are addressed to it; CAPTURE_ANY: all */
	uint32_t port; /* of the dataplane; CAPTURE_ANY: all, and frames inside the daemon */
	uint32_t snap; /* bytes to keep of each frame; 1 or more */
	bool drops;    /* only dropped frames */
	bool in, out;  /* received frames, sent frames */
};

/** The description of an interface in pcapng. */
struct capture_interface {
	char name[64];
	char description[128];
	bool has_mac;
	uint8_t mac[6];
	uint64_t speed; /* bits per second; 0: unknown */
};

struct capture_config {
	struct capture_filter filter;
	char text[128];	      /* the filter in words */
	uint64_t count;	      /* frames after which it ends; 0: never */
	int socket;	      /* AF_UNIX, SOCK_STREAM; stays the caller's */
	int done;	      /* eventfd, written when the capture has ended without
			       * capture_stop() */
	uint32_t ninterfaces; /* the ports of the dataplane, and one more */
	struct capture_interface interface[CAPTURE_INTERFACES];
	const char *application; /* name and version of this program */
};

/**
 * Starts a capture. It ends by itself when the other end of the socket is shut down for writing or
 * closed, or after `count` frames; the frames captured until then are sent, followed by statistics.
 * Control thread.
 * @param cfg  is copied
 * @return 0, -ENOMEM, or another negative errno: no thread.
 */
int capture_start(struct capture **out, struct dataplane *dp, const struct capture_config *cfg);

/** Stops @p c at once, unless it has ended by itself, and frees it. Control thread. */
void capture_stop(struct dataplane *dp, struct capture *c);

/** @return frames sent so far, and in *lost those that found no room. Control thread. */
uint64_t capture_counts(const struct capture *c, uint64_t *lost);

#endif
