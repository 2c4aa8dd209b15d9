/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "end.h"
#include "measure.h"
#include "message.h"
#include "op.h"
#include "plan.h"
#include "roci.h"
#include "roci_event.h"
#include "run.h"
#include "side.h"
#include "ticks.h"
#include "verify.h"

/* After this long without work, yield: rocid may be waiting for this CPU. */
#define SPIN_US 5
/* Then, and periodically in a full stream, read the other end's messages. Not more often, so that
 * system calls do not affect the measurement. */
#define QUIET_US    100
#define HEAR_US	    1000
#define HEAR_LAT_US 50000 /* so rarely that no percentile shows it */
#define SLEEP_MS    200
#define FDS_A_END   3
/* A lost UC message is not sent again: then the ping-pong stops. */
#define LOST_SECONDS 30
/* Messages that are still missing this long after the last arrival are lost: longer than the pause
 * of a poll loop. */
#define LATE_US 500000

/* In ticks. */
struct pace {
	uint64_t spin;
	uint64_t quiet;
	uint64_t hear;
	uint64_t late;
	uint64_t second;
};

/* Activities other than the steps. */
struct loop {
	struct run *run;
	struct pace pace;
	uint64_t idle_since; /* 0: not idle */
	uint64_t next_hear;
	uint64_t next_line;
	uint64_t line_completed; /* at the last line */
	enum phase line_phase;
};

static struct pace measure_pace(const struct plan *plan)
{
	unsigned hear = plan_test(plan) == TEST_LAT ? HEAR_LAT_US : HEAR_US;
	double us = ticks_per_second() / 1e6;

	return (struct pace){
		.spin = (uint64_t)(SPIN_US * us),
		.quiet = (uint64_t)(QUIET_US * us),
		.hear = (uint64_t)(hear * us),
		.late = (uint64_t)(LATE_US * us),
		.second = (uint64_t)(1e6 * us),
	};
}

/* --- between the ends --------------------------------------------------------------------- */

/* MESSAGE_DRAINED: the figures, then with --verify how many messages each QP sent. */
static uint32_t drained_words(const struct end *e, uint32_t flows)
{
	return FIGURE_COUNT + (e->plan->value[PARAM_VERIFY] ? flows : 0);
}

static uint64_t *new_words(uint32_t count)
{
	uint64_t *word = calloc(count, sizeof(word[0]));

	if (!word)
		errx(1, "out of memory for a report");
	return word;
}

static void tell_drained(struct side *s)
{
	const struct end *e = &s->end;
	uint32_t words = drained_words(e, e->flows);
	uint64_t *word = new_words(words);
	bool half = plan_test(e->plan) == TEST_LAT && !op_told(e->op);

	measure_figures(&s->measure, half ? 2 : 1, s->own);
	for (uint32_t i = 0; i < e->flows; i++)
		s->own[FIGURE_SENT] += (double)e->flow[i].sent.seq;
	memcpy(word, s->own, sizeof(s->own));
	for (uint32_t i = FIGURE_COUNT; i < words; i++)
		word[i] = e->flow[i - FIGURE_COUNT].sent.seq;
	message_send(e->fd, MESSAGE_DRAINED, word, words);
	s->told_drained = true;
	free(word);
}

static void hear_drained(struct side *s)
{
	struct end *e = &s->end;
	uint32_t words = drained_words(e, e->peer_flows);
	uint64_t *word = new_words(words);

	message_receive(e->fd, MESSAGE_DRAINED, word, words);
	memcpy(s->peer, word, sizeof(s->peer));
	if (e->plan->value[PARAM_VERIFY] && !e->op->receives && !e->op->fetches && !s->marks)
		verify_left(e, word + FIGURE_COUNT);
	s->heard_drained = true;
	free(word);
}

static void hear(struct side *s)
{
	switch (message_next(s->end.fd)) {
	case MESSAGE_MEASURED:
		message_receive(s->end.fd, MESSAGE_MEASURED, NULL, 0);
		s->heard_measured = true;
		break;
	case MESSAGE_ARRIVED:
		message_receive(s->end.fd, MESSAGE_ARRIVED, &s->peer_arrived, 1);
		s->heard_arrived = true;
		break;
	default:
		hear_drained(s);
	}
}

static bool heard_all(const struct side *s)
{
	return s->heard_drained && (s->heard_arrived || !plan_counts_lost(s->end.plan));
}

/* Done once everything that the other end sent has arrived, or nothing more arrives. */
static void count_arrived(struct side *s, const struct pace *pace, uint64_t now)
{
	double awaited = s->peer[FIGURE_SENT] * (double)plan_members(s->end.plan);

	if (s->arrived != s->arrived_known || !s->arrived_at) {
		s->arrived_known = s->arrived;
		s->arrived_at = now;
	}
	if ((double)s->arrived < awaited && now - s->arrived_at < pace->late)
		return;
	message_send(s->end.fd, MESSAGE_ARRIVED, &s->arrived, 1);
	s->told_arrived = true;
}

/* Enters the next phase, and announces it, once the last one is over. */
static void advance(struct side *s, const struct pace *pace, uint64_t now)
{
	struct measure *m = &s->measure;
	bool duplex = s->end.plan->value[PARAM_BIDIRECTIONAL];

	if (m->phase == PHASE_HOLD && !s->told_measured) {
		message_send(s->end.fd, MESSAGE_MEASURED, NULL, 0);
		s->told_measured = true;
	}
	if (m->phase == PHASE_HOLD && (!duplex || s->heard_measured)) {
		m->phase = PHASE_DRAIN;
		side_flush(s);
	}
	/* An end that only answers is done when the other end is. */
	if (!s->told_drained && !s->under_way &&
		(m->phase == PHASE_DRAIN || (m->phase == PHASE_PASSIVE && s->heard_drained)))
		tell_drained(s);
	if (plan_counts_lost(s->end.plan) && s->heard_drained && !s->told_arrived)
		count_arrived(s, pace, now);
}

static bool finished(const struct side *s)
{
	return s->told_drained && heard_all(s) &&
	       (s->told_arrived || !plan_counts_lost(s->end.plan));
}

/* --- the daemon's events ------------------------------------------------------------------ */

static void take_async_event(const struct end *e)
{
	struct roci_async_event event = {.size = sizeof(event)};

	if (roci_get_async_event(e->ctx, &event))
		return;
	switch (event.event_type) {
	case ROCI_EVENT_DEVICE_FATAL:
		errx(1, "rocid has ended: read its messages");
	case ROCI_EVENT_CQ_ERR:
		errx(1, "rocid reports: %s", roci_event_type_str(event.event_type));
	case ROCI_EVENT_QP_FATAL:
	case ROCI_EVENT_QP_REQ_ERR:
	case ROCI_EVENT_QP_ACCESS_ERR:
		errx(1, "rocid reports: %s: %s", roci_event_type_str(event.event_type),
			roci_qp_error(event.element.qp));
	default: /* changes of the network: if they matter, requests fail */
		roci_ack_async_event(&event);
	}
}

static void take_completion_event(const struct end *e)
{
	struct roci_cq *cq;

	if (roci_get_cq_event(e->channel, &cq, NULL))
		end_must(false, "completion events");
	roci_ack_cq_events(cq, 1);
}

/* Waits for at most @p timeout_ms until one of the ends has a message to read. */
static void listen_for(struct loop *l, int timeout_ms)
{
	struct pollfd fd[2 * FDS_A_END];
	unsigned n = 0;

	for (unsigned i = 0; i < l->run->sides; i++) {
		const struct side *s = l->run->side[i];

		fd[n++] = (struct pollfd){.fd = heard_all(s) ? -1 : s->end.fd, .events = POLLIN};
		fd[n++] = (struct pollfd){.fd = s->end.ctx->async_fd, .events = POLLIN};
		fd[n++] = (struct pollfd){
			.fd = s->end.channel ? s->end.channel->fd : -1, .events = POLLIN};
	}
	if (poll(fd, n, timeout_ms) <= 0)
		return;
	for (unsigned i = 0; i < l->run->sides; i++) {
		struct side *s = l->run->side[i];

		if (fd[i * FDS_A_END + 1].revents)
			take_async_event(&s->end);
		if (fd[i * FDS_A_END].revents)
			hear(s);
		if (fd[i * FDS_A_END + 2].revents)
			take_completion_event(&s->end);
	}
}

/* --- the loop ------------------------------------------------------------------------------- */

static void print_line(struct loop *l, uint64_t now)
{
	const struct side *s = l->run->side[0];
	const struct measure *m = &s->measure;
	double messages;

	if (!l->run->progress || now < l->next_line)
		return;
	if (m->phase != PHASE_MEASURE && m->phase != PHASE_WARM)
		return;
	messages = (double)(m->completed -
			    (l->line_phase == m->phase ? l->line_completed : 0)); /* a second's */
	if (l->next_line)
		printf("\r %-10u %-14llu %.2f Gb/sec %.3f Mpps%s ", s->end.shape.size,
			(unsigned long long)m->completed, messages * 8 * s->end.shape.size / 1e9,
			messages / 1e6, m->phase == PHASE_WARM ? " (warming up)" : "");
	fflush(stdout);
	l->line_completed = m->completed;
	l->line_phase = m->phase;
	l->next_line = now + l->pace.second;
}

/* Whether this end has nothing to poll for: rocid answers for it. */
static bool is_silent(const struct side *s)
{
	return s->measure.phase == PHASE_PASSIVE && !s->end.op->receives && !s->marks;
}

static bool step_all(struct loop *l, uint64_t now)
{
	bool progress = false;

	for (unsigned i = 0; i < l->run->sides; i++) {
		struct side *s = l->run->side[i];

		if (!is_silent(s))
			progress |= s->step(s, now);
		if (s->measure.phase >= PHASE_HOLD)
			advance(s, &l->pace, now);
	}
	return progress;
}

/* Arms, polls once more, and sleeps until a completion or the other end wakes it. */
static void sleep_until_woken(struct loop *l)
{
	for (unsigned i = 0; i < l->run->sides; i++)
		if (l->run->side[i]->end.channel)
			end_must(!roci_req_notify_cq(l->run->side[i]->end.cq, 0), "events");
	if (!step_all(l, ticks()))
		listen_for(l, SLEEP_MS);
}

/* Whether an end waits for a message that may be lost. */
static bool awaits_message(const struct run *r)
{
	const struct side *s = r->side[0];

	return !plan_reliable(s->end.plan) && s->end.initiates && s->awaits;
}

static void rest(struct loop *l, uint64_t now)
{
	bool sleeps = true;

	for (unsigned i = 0; i < l->run->sides; i++)
		sleeps &= l->run->side[i]->end.channel || is_silent(l->run->side[i]);
	if (sleeps) {
		sleep_until_woken(l);
		return;
	}
	if (!l->idle_since)
		l->idle_since = now;
	if (now - l->idle_since > LOST_SECONDS * l->pace.second && awaits_message(l->run))
		errx(1,
			"no message arrived for %u seconds: one was lost, and %s does not "
			"retransmit; see `rocictl show errors` at both ends for the reason, or use "
			"--connection RC",
			LOST_SECONDS, plan_service(l->run->side[0]->end.plan)->name);
	if (now - l->idle_since > l->pace.quiet && now >= l->next_hear) {
		listen_for(l, 0);
		l->next_hear = now + l->pace.hear;
	}
	if (now - l->idle_since > l->pace.spin)
		sched_yield();
}

static bool all_finished(const struct run *r)
{
	for (unsigned i = 0; i < r->sides; i++)
		if (!finished(r->side[i]))
			return false;
	return true;
}

static void loop(struct loop *l)
{
	while (!all_finished(l->run)) {
		uint64_t now = ticks();

		if (!step_all(l, now)) {
			rest(l, now);
			continue;
		}
		l->idle_since = 0;
		if (now < l->next_hear)
			continue;
		listen_for(l, 0);
		l->next_hear = now + l->pace.hear;
		print_line(l, now);
	}
}

static void start(struct side *s, uint32_t size)
{
	end_shape(&s->end, size);
	s->awaits = false;
	s->told_measured = s->heard_measured = false;
	s->told_drained = s->heard_drained = false;
	s->told_arrived = s->heard_arrived = false;
	s->arrived = s->peer_arrived = s->arrived_known = s->arrived_at = 0;
	end_tell_ready(&s->end);
}

void run_size(struct run *r, uint32_t size)
{
	struct loop l = {.run = r, .pace = measure_pace(r->side[0]->end.plan)};

	for (unsigned i = 0; i < r->sides; i++)
		start(r->side[i], size);
	for (unsigned i = 0; i < r->sides; i++)
		end_hear_ready(&r->side[i]->end);
	for (unsigned i = 0; i < r->sides; i++) {
		struct side *s = r->side[i];

		measure_start(&s->measure, s->end.plan, s->end.initiates,
			(uint64_t)s->end.flows * s->end.shape.depth, ticks());
	}
	loop(&l);
	if (r->progress)
		printf("\r%*s\r", 70, "");
}
