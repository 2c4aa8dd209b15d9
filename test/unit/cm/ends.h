/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication managers in a network in virtual time, which loses, duplicates and delays MADs. */
#ifndef ENDS_H
#define ENDS_H

#include "cm.h"
#include "random.h"

#define ENDS	   2u
#define END_EVENTS 65536u
#define NET_MADS   65536u
#define MS	   1000000ull
#define SERVICE	   0x01061d2full /* TCP port 7471 */
#define SIDR	   0x01111d2full
#define LISTENER   0x1157

struct ends;

struct end_event {
	enum cm_event_type type;
	uint32_t id;
	unsigned reason;
	bool over_share;
	uint64_t cookie;
	uint8_t private_data[224];
	size_t private_len;
};

struct end {
	struct ends *net;
	unsigned number;
	struct cm *cm;
	struct cm_path to; /* the other */
	struct end_event event[END_EVENTS];
	unsigned events, taken;
	enum cm_rej refuses;   /* new requests, for this reason */
	uint8_t last[MAD_LEN]; /* MAD sent last, ... */
	uint32_t last_label;   /* ... and its flow label */
	unsigned sent;
};

struct in_flight {
	uint64_t when;
	unsigned to;
	struct cm_path from;
	uint8_t mad[MAD_LEN];
};

struct ends {
	struct end end[ENDS];
	struct in_flight *mads;
	unsigned n;
	uint64_t now;
	struct random random;
	unsigned loss, twice; /* of 100 */
	uint64_t delay, jitter;
	/* says of a MAD whether it is lost, and may change it; NULL: none is */
	bool (*filter)(struct ends *net, unsigned to, uint8_t *mad);
};

struct ends *ends_new(
	uint32_t conns, uint32_t listeners, uint64_t seed, const struct cm_conf *conf);
void ends_free(struct ends *net);

/** Advances the time to @p when, or to the last event before it. */
void ends_run(struct ends *net, uint64_t when);

/** The next event of @p e, which must be @p type. */
const struct end_event *end_take(struct end *e, enum cm_event_type type);

/** Whether an event is left. */
const struct end_event *end_peek(struct end *e);

/** Private data of a REQ to SERVICE: the header of the RDMA IP CM service. @return CMA_HDR_LEN */
size_t end_cma(const struct end *e, uint8_t *p);

/** Parameters to connect or accept with; @p hdr of CMA_HDR_LEN bytes for a REQ, or NULL. */
struct cm_param end_param(const struct end *e, uint32_t qpn, uint8_t *hdr);

/** Gives @p mad to @p e as from the other end. */
void end_give(struct end *e, const uint8_t *mad);

#endif
