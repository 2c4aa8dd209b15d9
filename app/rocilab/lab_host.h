/* SPDX-License-Identifier: BSD-3-Clause */
/** @file lab_host.h  A host of a running scenario. */
#ifndef LAB_HOST_H
#define LAB_HOST_H

#include <stdint.h>
#include "cq.h"
#include "limits.h"
#include "mr.h"
#include "nic.h"

struct abi_cq;
struct lab;

struct lab_host {
	struct lab *lab;
	struct sim_host *host;
	struct sim_nic nic;
	struct cq cq;
	struct abi_cq *cq_shared;
	uint32_t cq_depth;
	uint32_t cq_taken;
	struct mr mr;
	uint32_t qps;
	uint32_t posts;	   /* flows whose messages it posts */
	uint32_t sinks;	   /* flows that end here */
	uint32_t receives; /* of these, flows that consume receive WQEs */
	uint8_t header[FRAME_MAX];
};

#endif
