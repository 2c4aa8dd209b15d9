/* SPDX-License-Identifier: BSD-3-Clause */
#include "headers.h"
#include "host.h"
#include "nic.h"
#include "switch.h"
#include "telemetry.h"
#include "txd.h"

/* Consecutive calls of core_tx() that may build nothing although QPs are ready. */
#define TRIES 64u

/* @return when the core has something to do. While the wire is busy or paused, packets that are
 * ready do not matter. */
static uint64_t timer_due(const struct sim_nic *n, bool busy, uint64_t now)
{
	const struct core *c = &n->host->core;
	uint64_t due = busy || n->held ? wheel_deadline(&c->wheel) : core_deadline(c);

	return due > now ? due : now;
}

static void rearm(struct sim_nic *n, bool busy, uint64_t now)
{
	struct sim_engine *e = n->out.engine;

	engine_at(e, &n->timer, timer_due(n, busy, now));
	if (core_events_wait(&n->host->core))
		engine_at(e, &n->news_due, now);
}

/* Copies the packet to a buffer of the right size and seals it. */
static struct sim_buffer *seal(struct sim_nic *n, struct txd *t)
{
	size_t len = t->sealed == TXD_OPEN ? t->hdr_len + t->payload_len +
						     (-(size_t)t->payload_len & 3) + ICRC_LEN
					   : t->frame_len;
	unsigned more = core_telemetry_room(&n->host->core, t);
	struct sim_buffer *b = pool_get(n->pool, len + more);

	n->host->sent++;
	if (!b) {
		n->lost++;
		return NULL;
	}
	memcpy(b->bytes + more, t->frame, t->sealed == TXD_OPEN ? t->hdr_len : len);
	t->frame = b->bytes + more;
	len = core_seal(&n->host->core, t);
	if (len && more)
		core_telemetry_tx(&n->host->core, t, (uint16_t)len);
	if (len)
		return b;
	n->host->unsealed += t->sealed != TXD_LOST;
	pool_put(n->pool, b);
	return NULL;
}

/* @return the core's next packet, or NULL. */
static struct sim_buffer *build(struct sim_nic *n, uint64_t now)
{
	struct core *c = &n->host->core;
	struct sim_buffer *b = NULL;

	for (unsigned i = 0; i < TRIES && !b; i++) {
		struct txd t = {.frame = n->header};

		if (core_tx(c, &t, 1, now))
			b = seal(n, &t);
		else if (core_grace_wanted(c)) /* a host's one core is between two calls */
			core_grace_end(c, core_grace_wanted(c));
		else if (core_deadline(c))
			break;
	}
	return b;
}

/* While data are paused: @return the next packet that is not data. */
static struct sim_buffer *build_control(struct sim_nic *n, uint64_t now)
{
	while (core_tx_urgent(&n->host->core)) {
		struct sim_buffer *b = build(n, now);

		if (!b)
			break;
		if (switch_class_of(switch_opcode(b->bytes, b->len)) == CLASS_CONTROL)
			return b;
		fifo_push(&n->waiting, b);
	}
	return NULL;
}

static struct sim_buffer *nic_pull(struct sim_wire *w, uint64_t now)
{
	struct sim_nic *n = container_of(w, struct sim_nic, out);
	struct sim_buffer *b;

	if (n->held) {
		b = build_control(n, now);
	} else {
		b = fifo_pop(&n->waiting);
		b = b ? b : build(n, now);
	}
	rearm(n, b != NULL, now);
	return b;
}

void nic_wake(struct sim_nic *n, uint64_t now)
{
	wire_kick(&n->out, now);
	rearm(n, wire_busy(&n->out), now);
}

static void nic_receive(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct sim_nic *n = container_of(to, struct sim_nic, in);
	enum pfc_word word = pfc_read(b);

	if (word == PFC_NONE)
		host_frame(n->host, b->bytes, b->len, 0, now);
	else
		n->held = word == PFC_XOFF;
	pool_put(n->pool, b);
	nic_wake(n, now);
}

static void nic_timer(struct sim_event *ev, uint64_t now)
{
	struct sim_nic *n = container_of(ev, struct sim_nic, timer);

	while (core_expire(&n->host->core, now))
		continue;
	nic_wake(n, now);
}

static void nic_news(struct sim_event *ev, uint64_t now)
{
	struct sim_nic *n = container_of(ev, struct sim_nic, news_due);

	n->news(n, now);
	nic_wake(n, now);
}

void nic_init(struct sim_nic *n, struct sim_host *host, struct buffer_pool *pool, uint8_t *header)
{
	memset(n, 0, sizeof(*n));
	n->host = host;
	n->pool = pool;
	n->header = header;
	n->in.receive = nic_receive;
	engine_event(&n->timer, nic_timer);
	engine_event(&n->news_due, nic_news);
}

void nic_plug(struct sim_nic *n, struct sim_engine *e, const struct wire_config *wire,
	struct sim_sink *to)
{
	wire_init(&n->out, e, wire, nic_pull, to);
}
