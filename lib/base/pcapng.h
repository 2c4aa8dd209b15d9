/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pcapng.h
 * Blocks of the pcapng file format (draft-ietf-opsawg-pcapng), written into memory, with the
 * options that librte_pcapng of DPDK 22.11 lacks (decision 0060). Byte order of this machine.
 */
#ifndef PCAPNG_H
#define PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pcapng_interface {
	const char *name;
	const char *description;
	const char *filter;
	const uint8_t *mac; /* NULL: none */
	uint64_t speed;	    /* bits per second; 0: unknown */
	uint32_t snap;	    /* maximum bytes kept of a frame */
};

enum pcapng_direction {
	PCAPNG_IN = 1,
	PCAPNG_OUT = 2,
};

struct pcapng_packet {
	uint32_t interface; /* in the order of their blocks */
	uint64_t time;	    /* ns since 1970 */
	const uint8_t *bytes;
	uint32_t kept; /* bytes captured */
	uint32_t len;  /* bytes it had on the wire */
	enum pcapng_direction direction;
	uint32_t queue;	     /* of the interface */
	uint64_t lost;	     /* frames that the interface lost since the last packet */
	const char *comment; /* NULL: none */
};

struct pcapng_statistics {
	uint32_t interface;
	uint64_t start, end; /* ns since 1970 */
	uint64_t received;   /* matched the filter */
	uint64_t dropped;    /* of these, dropped for lack of room */
};

/** Longest string that is written; longer ones are truncated. */
#define PCAPNG_STRING_MAX 255u
/** Maximum bytes of a block, not counting a packet's data. */
#define PCAPNG_BLOCK_MAX 1024u

/* Each returns the number of bytes written. */
size_t pcapng_section(uint8_t *to, const char *hardware, const char *os, const char *application);
size_t pcapng_interface(uint8_t *to, const struct pcapng_interface *i);
size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *p);
size_t pcapng_statistics(uint8_t *to, const struct pcapng_statistics *s);

#endif
