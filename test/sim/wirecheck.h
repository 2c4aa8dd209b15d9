/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wirecheck.h
 * Checks the frames that QPs send against the rules of the wire. Two cores with the same bug
 * understand each other; an independent checker notices. It parses frames itself and tracks each
 * connection: which PSNs belong to which message, what was sent with each PSN, how far the
 * responses have come.
 */
#ifndef WIRECHECK_H
#define WIRECHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "link.h"

#define WIRECHECK_MESSAGES 512u	 /* remembered per direction */
#define WIRECHECK_PACKETS  4096u /* likewise */
#define WIRECHECK_STREAMS  32u

/** Services; the first three bits of an opcode. */
enum wire_service {
	WIRE_RC = 0x00,
	WIRE_UC = 0x20,
	WIRE_UD = 0x60,
	WIRE_XRC = 0xA0,
};

/** A request message. */
struct wire_message {
	uint32_t first_psn;
	uint32_t last_psn; /* of an open one: so far */
	uint32_t number;   /* the MSN when it is complete */
	bool read;	   /* or ATOMIC: answered by more than an ACK */
	bool complete;	   /* its LAST was sent */
	bool answered;	   /* READ: its last response was sent */
	uint64_t va;	   /* READ and WRITE */
	uint32_t rkey;
	uint32_t length;
	bool atomic;
	bool once;     /* FLUSH, ATOMIC WRITE */
	uint64_t orig; /* ATOMIC: the value in the first response */
	uint32_t srqn; /* XRC */
};

/** One direction of requests and the responses to them, or the datagrams of a QP. */
struct wire_stream {
	enum wire_service service;
	/* the receivers of the requests and of the responses: last byte of the MAC, QPN */
	uint8_t to_host, from_host;
	uint32_t to_qpn, from_qpn;
	uint32_t mtu;
	uint32_t first_psn;
	uint32_t next_psn; /* of the next new request */
	bool gaps;	   /* UD: datagrams within the host may be sent without frames */
	uint32_t messages; /* begun */
	uint32_t naked;	   /* PSN of the last PSN sequence NAK */
	bool any_nak;
	uint32_t written; /* bytes of the open WRITE */
	uint8_t open;	  /* opcode of the last new request packet; 0xFF before the first */
	struct wire_message msg[WIRECHECK_MESSAGES];
	struct {
		uint32_t psn;
		uint64_t hash;
	} sent[WIRECHECK_PACKETS];
};

struct wirecheck {
	unsigned direct; /* a bit per host, by id: it has core_direct() */
	unsigned streams;
	struct wire_stream *stream[WIRECHECK_STREAMS];
	uint64_t frames;  /* checked */
	uint64_t strange; /* of no known connection */
	bool stale;	  /* packets of earlier connections may arrive and be NAKed */
};

/** One end of a connection. */
struct wire_end {
	uint8_t host; /* last byte of its MAC */
	uint32_t qpn;
	uint32_t sq_psn;
};

void wirecheck_init(struct wirecheck *w);
void wirecheck_fini(struct wirecheck *w);

/** A QP was destroyed or reset: frames that its peer still sends to it are no longer checked. */
void wirecheck_forget(struct wirecheck *w, uint8_t host, uint32_t qpn);

/** A connection begins; an end's previous connection is forgotten. */
void wirecheck_connect(
	struct wirecheck *w, const struct wire_end *a, const struct wire_end *b, uint32_t mtu);

/** The same for another service. UC: also for a connection that an end restarts after an error in
 *  the middle of a message. */
void wirecheck_connect_by(struct wirecheck *w, const struct wire_end *a, const struct wire_end *b,
	uint32_t mtu, enum wire_service service);

/** A QP starts to send datagrams. */
void wirecheck_datagrams(struct wirecheck *w, const struct wire_end *from);

/** Checks every frame that is sent on @p l. */
void wirecheck_tap(struct wirecheck *w, struct sim_link *l);

#endif
