/* SPDX-License-Identifier: BSD-3-Clause */
/** @file trace_text.h  Events of a trace as people and programs read them. */
#ifndef TRACE_TEXT_H
#define TRACE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct trace_event;

/** Longest line of trace_text() and trace_json(), without a newline. */
#define TRACE_LINE 256u

/**
 * Formats @p e for people: nanoseconds since @p base, worker, event, and its details.
 * @return the length; no NUL, no newline.
 */
size_t trace_text(char text[TRACE_LINE], const struct trace_event *e, uint64_t base);

/** The same as a JSON object. */
size_t trace_json(char text[TRACE_LINE], const struct trace_event *e, uint64_t base);

/** Column names of trace_csv(). */
#define TRACE_CSV_HEAD "t,qp,rate,target,alpha,window,rtt,goodput,cnps\n"

/** Minimum time over which goodput is averaged: two events may be a microsecond apart, in which
 *  either an ACK of a whole window arrives or nothing does. */
#define TRACE_GOODPUT_NS 10000000u

struct trace_goodput {
	uint64_t since; /* ns */
	uint64_t bytes;
	uint64_t rate; /* bit/s before that; 0 at first */
};

/**
 * Formats @p e, a TRACE_RATE of queue pair @p qpn, as a line of CSV: seconds since @p base, bit/s,
 * packets; an unknown value is empty.
 */
size_t trace_csv(char text[TRACE_LINE], const struct trace_event *e, uint32_t qpn, uint64_t base,
	struct trace_goodput *g);

#endif
