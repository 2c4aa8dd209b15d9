/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread of a capture: takes frames out of the workers' rings, ordered by time, and sends them
 * as pcapng. Only this thread makes system calls for the capture, and none of them blocks on the
 * reader for longer than it takes to notice that the capture is to stop.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <rte_cycles.h>
#include "capture_impl.h"
#include "inject.h"
#include "pcapng.h"
#include "worker_impl.h"

/* The pause of a thread that found no frames: too short for a viewer to notice. */
#define REST_MS 5
/* A worker reads its clock before it writes the frames of that time, so another worker's later
 * frame may already be written: frames younger than this wait. Longer than a burst takes. */
#define SETTLE_NS 1000000u
/* Gathered before it is sent. */
#define BUFFER	  (256u << 10)
#define BLOCK_MAX (FRAME_MAX + MBUF_ROOM + PCAPNG_BLOCK_MAX)

struct stream {
	struct capture *c;
	struct tsc_clock clock;
	uint64_t start;	 /* ns since 1970 */
	uint64_t offset; /* of that time to the workers' clocks */
	uint64_t last;	 /* time of the last frame */
	uint64_t seen[CAPTURE_INTERFACES];
	uint32_t lost[WORKER_MAX][CAPTURE_INTERFACES]; /* before the frames sent so far */
	bool broken;				       /* nobody reads */
	uint32_t len;
	uint8_t buffer[BUFFER + BLOCK_MAX];
};

/* --- time ------------------------------------------------------------------------------- */

/* The counter's rate is known only to parts per million, so the two clocks are compared repeatedly;
 * of several readings the closest was not interrupted. */
static void compare_clocks(struct stream *s)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t before = rte_rdtsc(), after;
		struct timespec ts;
		uint64_t wall;

		clock_gettime(CLOCK_REALTIME, &ts);
		after = rte_rdtsc();
		wall = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
		if (after - before >= best)
			continue;
		best = after - before;
		s->offset = wall - clock_at(&s->clock, before + best / 2);
	}
}

/* --- sending ---------------------------------------------------------------------------- */

static bool stopped(const struct stream *s)
{
	return atomic_load_explicit(&s->c->stop, memory_order_relaxed);
}

/* Whether the reader has shut down its end, or closed it. */
static bool ended(const struct stream *s, int patience_ms)
{
	struct pollfd p = {.fd = s->c->cfg.socket, .events = POLLRDHUP};

	return poll(&p, 1, patience_ms) > 0;
}

static void wait_for_room(struct stream *s)
{
	struct pollfd p = {.fd = s->c->cfg.socket, .events = POLLOUT};

	poll(&p, 1, REST_MS);
}

/* Blocks are sent whole even if the reader is slow, unless the capture is stopped. */
static void flush(struct stream *s)
{
	uint32_t sent = 0;

	while (sent < s->len && !s->broken && !stopped(s)) {
		ssize_t n = send(s->c->cfg.socket, s->buffer + sent, s->len - sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0)
			sent += (uint32_t)n;
		else if (errno == EAGAIN)
			wait_for_room(s);
		else if (errno != EINTR)
			s->broken = true;
	}
	s->len = 0;
}

static uint8_t *room(struct stream *s)
{
	if (s->len > BUFFER)
		flush(s);
	return s->buffer + s->len;
}

static void send_head(struct stream *s)
{
	const struct capture_config *cfg = &s->c->cfg;
	struct utsname u;
	char os[PCAPNG_STRING_MAX + 1];

	if (uname(&u))
		memset(&u, 0, sizeof(u));
	snprintf(os, sizeof(os), "%s %s", u.sysname, u.release);
	s->len += (uint32_t)pcapng_section(room(s), u.machine, os, cfg->application);
	for (uint32_t i = 0; i < cfg->ninterfaces; i++) {
		const struct capture_interface *from = &cfg->interface[i];
		const struct pcapng_interface block = {
			.name = from->name,
			.description = from->description,
			.filter = cfg->text,
			.mac = from->has_mac ? from->mac : NULL,
			.speed = from->speed,
			.snap = cfg->filter.snap,
		};

		s->len += (uint32_t)pcapng_interface(room(s), &block);
	}
	flush(s);
}

/* Two readings of the clocks differ by some nanoseconds, which must not reorder frames. If the
 * clock was set back by more, that is shown. */
static uint64_t time_of(struct stream *s, const struct capture_record *e)
{
	uint64_t t = e->time + s->offset;

	if (t < s->last && s->last - t < SETTLE_NS)
		t = s->last;
	s->last = t;
	return t;
}

#define COMMENT_MAX 96

/* An injected fault must be distinguishable from a real one. */
static const char *say_what_befell(const struct capture_record *e, char text[COMMENT_MAX])
{
	const char *fault = inject_names[e->fault];

	if (!e->why)
		snprintf(text, COMMENT_MAX, "injected: %s", fault);
	else if (e->why == DROP_INJECTED)
		snprintf(text, COMMENT_MAX, "dropped: injected");
	else
		snprintf(text, COMMENT_MAX, "dropped: %s (%s)%s%s", drop_name((enum drop)e->why),
			drop_rule((enum drop)e->why), e->fault ? ", injected: " : "",
			e->fault ? fault : "");
	return text;
}

static void send_frame(struct stream *s, uint32_t worker, const struct capture_record *e)
{
	uint32_t *lost = &s->lost[worker][e->interface];
	char comment[COMMENT_MAX];
	struct pcapng_packet block = {
		.interface = e->interface,
		.time = time_of(s, e),
		.bytes = (const uint8_t *)(e + 1),
		.kept = e->kept,
		.len = e->len,
		.direction = e->out ? PCAPNG_OUT : PCAPNG_IN,
		.queue = worker,
		.lost = e->lost - *lost,
	};

	*lost = e->lost;
	if (e->why || e->fault)
		block.comment = say_what_befell(e, comment);
	s->len += (uint32_t)pcapng_packet(room(s), &block);
	s->seen[e->interface]++;
	atomic_store_explicit(&s->c->sent,
		atomic_load_explicit(&s->c->sent, memory_order_relaxed) + 1, memory_order_relaxed);
}

static bool complete(const struct stream *s)
{
	return s->c->cfg.count &&
	       atomic_load_explicit(&s->c->sent, memory_order_relaxed) == s->c->cfg.count;
}

/* Losses after the last requested frame do not count. */
static uint64_t lost_of(const struct stream *s, uint32_t worker, uint32_t interface)
{
	if (complete(s))
		return s->lost[worker][interface];
	return atomic_load_explicit(&s->c->ring[worker]->lost[interface], memory_order_relaxed);
}

static void send_statistics(struct stream *s)
{
	compare_clocks(s);
	for (uint32_t i = 0; i < s->c->cfg.ninterfaces; i++) {
		struct pcapng_statistics block = {
			.interface = i,
			.start = s->start,
			.end = clock_at(&s->clock, rte_rdtsc()) + s->offset,
		};

		for (uint32_t k = 0; k < s->c->dp->nworkers; k++)
			block.dropped += lost_of(s, k, i);
		block.received = s->seen[i] + block.dropped;
		s->len += (uint32_t)pcapng_statistics(room(s), &block);
	}
	flush(s);
}

/* --- rings ------------------------------------------------------------------------------ */

const struct capture_record *capture_ring_peek(struct capture_ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	uint32_t at = tail & (CAPTURE_RING - 1);
	const struct capture_record *e = (const void *)&r->bytes[at];

	if (head == tail)
		return NULL;
	if (CAPTURE_RING - at >= sizeof(*e) && e->len)
		return e;
	/* The end of the ring was too short for the next record, which is at the start. */
	atomic_store_explicit(&r->tail, tail + CAPTURE_RING - at, memory_order_release);
	return (const void *)r->bytes;
}

void capture_ring_pass(struct capture_ring *r, const struct capture_record *e)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	atomic_store_explicit(&r->tail, tail + e->size, memory_order_release);
}

/* Finds the oldest frame of all rings before @p until. Returns its worker, or -1. */
static int oldest(struct stream *s, uint64_t until, const struct capture_record **out)
{
	int worker = -1;

	for (uint32_t i = 0; i < s->c->dp->nworkers; i++) {
		const struct capture_record *e = capture_ring_peek(s->c->ring[i]);

		if (!e || e->time >= until)
			continue;
		until = e->time;
		worker = (int)i;
		*out = e;
	}
	return worker;
}

/* Sends the frames before @p until from all rings. Returns whether there were any. */
static bool drain(struct stream *s, uint64_t until)
{
	const struct capture_record *e;
	bool any = false;
	int worker;

	while (!complete(s) && !s->broken && !stopped(s) && (worker = oldest(s, until, &e)) >= 0) {
		send_frame(s, (uint32_t)worker, e);
		capture_ring_pass(s->c->ring[worker], e);
		any = true;
	}
	flush(s);
	return any;
}

/* --- the thread ------------------------------------------------------------------------- */

static void run(struct stream *s)
{
	bool busy = false;

	compare_clocks(s);
	s->start = clock_at(&s->clock, rte_rdtsc()) + s->offset;
	send_head(s);
	while (!stopped(s) && !s->broken && !complete(s) && !ended(s, busy ? 0 : REST_MS)) {
		compare_clocks(s);
		busy = drain(s, clock_at(&s->clock, rte_rdtsc()) - SETTLE_NS);
	}
	if (!s->broken && !stopped(s)) {
		drain(s, clock_at(&s->clock, rte_rdtsc()));
		send_statistics(s);
	}
}

void *capture_stream(void *arg)
{
	struct capture *c = arg;
	struct stream *s = calloc(1, sizeof(*s));

	if (s) {
		s->c = c;
		clock_init(&s->clock, rte_get_tsc_hz(), c->dp->tsc);
		run(s);
		free(s);
	}
	shutdown(c->cfg.socket, SHUT_RDWR);
	eventfd_write(c->cfg.done, 1);
	return NULL;
}
