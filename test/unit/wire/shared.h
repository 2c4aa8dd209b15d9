/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shared.h
 * Vectors and captures from the folder that the environment variable SHARED_DIR names. They
 * are not part of the source: a test asks first whether they are here.
 */
#ifndef SHARED_H
#define SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

/* More than the longest frame in the vectors and captures. */
#define SHARED_FRAME_MAX 16384

/* true when SHARED_DIR names a folder that has them. */
bool shared_here(void);

/* vectors.json, or NULL when there is none. */
json_t *vectors_load(void);

/* The number of bytes of a hex string; 0: it is not one, or too long. */
size_t hex_decode(const char *hex, uint8_t *dst, size_t room);

/* A classic pcap file of Ethernet or Linux cooked (v1) frames. */
struct pcap {
	uint8_t *data;
	size_t len;
	size_t at;
	bool cooked;
};

/* false when captures/`name` is not there; a file that is not such a pcap fails the test. */
bool pcap_open(struct pcap *c, const char *name);

/* Copies the next frame, cooked ones after an Ethernet header of zeros. 0 at the end. */
size_t pcap_next(struct pcap *c, uint8_t *dst, size_t room);

void pcap_close(struct pcap *c);

#endif
