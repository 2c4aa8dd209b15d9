/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lab.h
 * A running scenario: hosts with the transport of rocid, switches, flows, and their measurements,
 * in virtual time.
 */
#ifndef LAB_H
#define LAB_H

#include "buffer.h"
#include "cc.h"
#include "engine.h"
#include "memory.h"
#include "random.h"

struct lab_flow;
struct lab_host;
struct lab_impair;
struct net_routes;
struct scenario;
struct sim_notify;
struct sim_switch;
struct source;
struct switch_list;
struct switch_port;

/** Virtual time of a scenario's 0. */
#define LAB_START 1000000000ull
/** Sampling interval of flows: Jain's index is computed from rates over this time. */
#define LAB_SAMPLE 1000000ull

/** The protection domain of all. */
#define LAB_PD 7u

/** Of all hosts, or the difference over the measurement. */
struct lab_counts {
	uint64_t packets; /* of data, delivered */
	uint64_t cnps;
	uint64_t handled;
	uint64_t retransmits;
	uint64_t timeouts;
	uint64_t marked;
	uint64_t dropped;
	uint64_t pauses;    /* that switches asked for */
	uint64_t paused_ns; /* of all of them */
};

struct lab {
	const struct scenario *s;
	struct cc_config cc[2]; /* the scenario's, and for packets without ACKs */
	struct sim_engine engine;
	struct sim_due *heap;
	uint32_t *place;
	struct buffer_pool pool;
	void *frames;
	struct memory memory; /* of hosts, queue pairs, ports and frames */
	uint8_t *messages;    /* the memory of all messages */
	struct random luck;   /* of impairments */
	struct sim_switch *sw;
	struct sim_notify *notify;  /* of each switch, if it makes Fast CNPs */
	struct switch_list *listed; /* which Fast CNPs hosts accept: all of them */
	struct lab_impair *impair;  /* of each host, if frames are impaired */
	struct net_routes *routes;  /* of each switch */
	struct switch_port *port;   /* of all switches, one after the other */
	uint32_t *first;	    /* port of each switch in `port`, and their number */
	unsigned ports;
	struct lab_host *host;
	unsigned hosts;
	struct lab_flow *flow;
	unsigned flows;
	struct lab_flow **by_source; /* flows, those of a host together */
	struct source *source;
	unsigned sources;
	/* measurement */
	struct lab_counts begin, end;
	uint32_t samples;
	float *share;	  /* packets of flow f in sample i: share[i * flows + f] */
	float *util;	  /* utilization of port p in sample i: util[i * ports + p] */
	uint64_t *passed; /* bytes of each port until the last sample */
	double *looked;	  /* values of `moment` metrics, by the expectation's number */
	float *slowdown;  /* of messages that began and ended in the measurement */
	size_t slowdowns, slowdown_room;
	double cpu_s;
	/** A message of @p f is complete. May be NULL */
	void (*complete)(struct lab *l, const struct lab_flow *f, uint64_t now);
	/** The run has reached @p at ns of the scenario. May be NULL */
	void (*progress)(struct lab *l, uint64_t at);
	void *listener; /* of both */
};

/** Builds @p s. @return NULL: no memory. It may take gigabytes for large ones. */
struct lab *lab_make(const struct scenario *s);
void lab_free(struct lab *l);

/** @return bytes that a frame of @p f has on the wire besides its payload. */
unsigned lab_headers(const struct lab *l);

/** @return bytes of payload of a full packet of @p f. */
double lab_payload(const struct lab *l, const struct lab_flow *f);

/** @return bit/s of the cable of @p host. */
uint64_t lab_rate(const struct lab *l, uint32_t host);

/* --- place.c ---------------------------------------------------------------------------- */

/** @return the flows of @p s. */
unsigned place_count(const struct scenario *s);

/** Assigns hosts to each flow. @return false: no memory */
bool place_flows(struct lab *l);

/** Starts the hosts of Poisson traffic. @return false: no memory */
bool place_sources(struct lab *l);

/* --- plug.c ----------------------------------------------------------------------------- */

/** Creates switches and cables between them and the hosts. @return false: no memory */
bool plug_all(struct lab *l);
void plug_free(struct lab *l);

/** Computes how long a message of @p f takes when nobody else sends. */
void ideal_find(struct lab *l, struct lab_flow *f);

/** @return ns that a message of @p size bytes takes then. */
double ideal_of(const struct lab_flow *f, uint64_t size);

/* --- flow.c ----------------------------------------------------------------------------- */

/** Connects the QPs of @p f, and schedules its start. @return false: no memory */
bool flow_init(struct lab *l, struct lab_flow *f, uint64_t begin);
void flow_free(struct lab_flow *f);

/** No packet of it leaves any more. */
void flow_stop(struct lab_flow *f, uint64_t now);

/** A CNP arrives for the QP that sends its data. */
void flow_cnp(struct lab_flow *f, uint64_t now);

/** @return the current state of that QP's algorithm. */
struct cc_view flow_view(const struct lab_flow *f, uint64_t now);

/** Brings f->packets up to date. */
void flow_look(struct lab_flow *f);

/** Messages have arrived at @p f. */
void flow_post(struct lab_flow *f, uint64_t now);

/** @return the length of the current message of @p f. */
uint64_t flow_size(const struct lab_flow *f);

/** @return how many times longer that message, now complete, took than it would have alone. */
double flow_slowdown(const struct lab_flow *f, uint64_t now);

/** Takes the completions of @p h and posts the next messages. */
void flow_news(struct lab_host *h, uint64_t now);

/* --- sample.c --------------------------------------------------------------------------- */

/** Runs the scenario to its end, once. */
void sample_run(struct lab *l);

#endif
