/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file aqm.h
 * The bytes that wait at an egress: whether one more frame fits, and which frames random early
 * detection (RED) marks. The frames themselves are the caller's: the simulator's switch and the
 * emulated link keep different ones.
 *
 * RED looks at the bytes that wait without the frame that is being sent, and here without the one
 * that it decides on: below `kmin` it marks none, from there on with a probability that rises to
 * `pmax` at `kmax`, and above that all. It does so when a frame leaves the queue (egress), or when
 * it enters (ingress): doc/decisions/0116.
 */
#ifndef AQM_H
#define AQM_H

#include <stdbool.h>
#include <stdint.h>
#include "random.h"

struct aqm_config {
	uint64_t limit; /* bytes that may wait; 0: any number */
	uint64_t kmin;	/* bytes */
	uint64_t kmax;	/* bytes; 0: no RED */
	double pmax;	/* [0, 1] */
	bool ingress;	/* decide when a frame enters the queue, not when it leaves */
};

/** Written by its queue's owner. */
struct aqm {
	struct aqm_config cfg;
	uint64_t bytes; /* that wait */
	struct random random;
};

enum aqm_fate {
	AQM_PASS,
	AQM_MARK, /* "congestion experienced" */
	AQM_DROP, /* it does not fit; not counted in `bytes` */
};

void aqm_init(struct aqm *q, const struct aqm_config *cfg, uint64_t seed);

/** A frame of @p len bytes is to wait. */
enum aqm_fate aqm_enter(struct aqm *q, uint32_t len);

/** The frame of @p len bytes that waited for longest begins to leave.
 *  @return AQM_PASS or AQM_MARK */
enum aqm_fate aqm_leave(struct aqm *q, uint32_t len);

#endif
