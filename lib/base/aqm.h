/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file aqm.h
 * The bytes queued at an egress: whether another frame fits, and which frames random early
 * detection (RED) marks. The caller stores the frames: the simulator's switch and the emulated link
 * do so differently.
 *
 * RED considers the queued bytes without the frame being sent, and here without the frame that it
 * decides on. Below `kmin` it marks none; from there the probability rises to `pmax` at `kmax`;
 * above `kmax` it marks all. It decides when a frame leaves the queue (egress) or enters it
 * (ingress): doc/decisions/0116.
 */
#ifndef AQM_H
#define AQM_H

#include <stdbool.h>
#include <stdint.h>
#include "random.h"

struct aqm_config {
	uint64_t limit; /* bytes that may be queued; 0: unlimited */
	uint64_t kmin;	/* bytes */
	uint64_t kmax;	/* bytes; 0: no RED */
	double pmax;	/* [0, 1] */
	bool ingress;	/* decide when a frame enters the queue, not when it leaves */
};

/** Written by the queue's owner. */
struct aqm {
	struct aqm_config cfg;
	uint64_t bytes; /* queued */
	struct random random;
};

enum aqm_fate {
	AQM_PASS,
	AQM_MARK, /* as "congestion experienced" */
	AQM_DROP, /* it does not fit; not counted in `bytes` */
};

void aqm_init(struct aqm *q, const struct aqm_config *cfg, uint64_t seed);

/** A frame of @p len bytes arrives at the queue. */
enum aqm_fate aqm_enter(struct aqm *q, uint32_t len);

/** The oldest queued frame, of @p len bytes, begins to leave.
 *  @return AQM_PASS or AQM_MARK */
enum aqm_fate aqm_leave(struct aqm *q, uint32_t len);

#endif
