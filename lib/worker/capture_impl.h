/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture_impl.h
 * The internals of a capture. A ring of bytes connects a worker, the only writer, with the
 * capture's thread, the only reader: consecutive records, each in one piece.
 */
#ifndef CAPTURE_IMPL_H
#define CAPTURE_IMPL_H

#include <pthread.h>
#include "bits.h"
#include "capture.h"

/** One frame; its bytes follow. Begins and ends at multiples of 8. */
struct capture_record {
	uint64_t time; /* of the worker's clock */
	uint32_t size; /* of the record, including bytes after the frame */
	uint16_t kept; /* bytes of the frame that follow */
	uint16_t len;  /* its original length; 0: no frame, skip to the ring's end */
	uint8_t interface;
	bool out;
	uint8_t why;   /* enum drop */
	uint8_t fault; /* enum abi_fault_kind */
	uint32_t lost; /* low bits of this worker's `lost` of the interface before it */
};
_Static_assert(sizeof(struct capture_record) == 24, "capture_record");

struct capture_ring {
	/* the worker */
	_Atomic uint64_t head; /* bytes ever written */
	_Atomic uint64_t lost[CAPTURE_INTERFACES];
	/* the capture's thread */
	_Atomic uint64_t tail CACHE_ALIGNED; /* bytes ever read */
	uint8_t bytes[CAPTURE_RING] CACHE_ALIGNED;
};

struct capture {
	_Atomic(struct capture *) next; /* on all workers' lists; control thread */
	struct capture_config cfg;
	struct dataplane *dp;
	pthread_t thread;
	_Atomic bool stop;     /* control thread: at once */
	_Atomic uint64_t sent; /* frames; the thread */
	struct capture_ring *ring[WORKER_MAX];
};

/** @return the next record of @p r, or NULL. Its bytes stay until capture_ring_pass(). The
 *  capture's thread. */
const struct capture_record *capture_ring_peek(struct capture_ring *r);

/** Frees the room of record @p e. */
void capture_ring_pass(struct capture_ring *r, const struct capture_record *e);

/** The function of the thread; @p arg is the struct capture. */
void *capture_stream(void *arg);

#endif
