/* SPDX-License-Identifier: BSD-3-Clause */
#include "ecn.h"
#include "headers.h"
#include "host.h"
#include "ioam.h"
#include "notify.h"
#include "opcode.h"
#include "switch.h"

/* Offsets and type of the headers by which a switch forwards a frame. */
struct headers {
	uint16_t type;
	size_t ip;    /* offset of the IP header or the GRH, */
	size_t after; /* and of the next header after any extension: UDP, or the BTH after a GRH */
};

/* @return the length of the single extension header, telemetry or Fast CNP, that may precede UDP.
 */
static size_t extensions(const uint8_t *ip, size_t len)
{
	const uint8_t *ext = ip + IP6_HLEN;

	if (len < IP6_HLEN + 2 ||
		(ip[IP6_NXT] != IP6_NXT_HOPOPTS && ip[IP6_NXT] != IP6_NXT_DSTOPTS) ||
		ext[0] != IPPROTO_ROCEV2)
		return 0;
	return (ext[1] + 1u) * 8;
}

static bool headers_find(struct headers *h, const uint8_t *b, size_t len)
{
	h->ip = ETH_HLEN;
	if (len < ETH_HLEN + VLAN_HLEN)
		return false;
	h->type = get_be16(b + ETH_TYPE);
	if (h->type == ETHERTYPE_VLAN) {
		h->ip += VLAN_HLEN;
		h->type = get_be16(b + h->ip - 2);
	}
	h->after = h->ip + (h->type == ETHERTYPE_IPV4 ? IP4_HLEN : IP6_HLEN);
	if (h->type == ETHERTYPE_IPV6)
		h->after += extensions(b + h->ip, len - h->ip);
	return h->after + UDP_HLEN <= len &&
	       (h->type == ETHERTYPE_IPV4 || h->type == ETHERTYPE_IPV6 ||
		       h->type == ETHERTYPE_ROCEV1);
}

int switch_opcode(const uint8_t *b, size_t len)
{
	struct headers h;
	size_t bth;

	if (!headers_find(&h, b, len))
		return SWITCH_NO_CODE;
	bth = h.after + (h.type == ETHERTYPE_ROCEV1 ? 0 : UDP_HLEN);
	return bth + BTH_HLEN <= len ? b[bth + BTH_OPCODE] : SWITCH_NO_CODE;
}

enum switch_class switch_class_of(int code)
{
	if (code == OPCODE_CNP || code == (OPC_RC | OP_ACKNOWLEDGE) ||
		code == (OPC_XRC | OP_ACKNOWLEDGE))
		return CLASS_CONTROL;
	return CLASS_DATA;
}

/* --- ECMP --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint32_t word)
{
	h = (h ^ word) * 0x9E3779B97F4A7C15ull;
	return h ^ h >> 32;
}

uint32_t switch_hash(const uint8_t *b, size_t len, uint32_t salt)
{
	uint64_t hash = mix(0xD1342543DE82EF95ull, salt);
	struct headers h;
	size_t from, until;

	if (!headers_find(&h, b, len))
		return (uint32_t)hash;
	from = h.ip + (h.type == ETHERTYPE_IPV4 ? IP4_SRC : IP6_SRC);
	until = h.ip + (h.type == ETHERTYPE_IPV4 ? IP4_HLEN : IP6_HLEN);
	for (size_t at = from; at < until; at += 4)
		hash = mix(hash, get_be32(b + at));
	if (h.type != ETHERTYPE_ROCEV1)
		hash = mix(hash, get_be16(b + h.after)); /* the source port is the first field */
	hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull;
	return (uint32_t)(hash >> 32);
}

/* @return the port by which @p b leaves, or NULL. */
static struct switch_port *port_to(struct sim_switch *s, const struct sim_buffer *b)
{
	uint32_t host = host_of_mac(b->bytes + ETH_DST);
	const struct switch_way *way = host < s->ways ? &s->way[host] : NULL;
	uint32_t i = 0;

	if (!way || !way->ports)
		return NULL;
	if (way->ports > 1)
		i = (uint32_t)((uint64_t)switch_hash(b->bytes, b->len, s->salt) * way->ports >> 32);
	return &s->port[s->next[way->first + i]];
}

/* --- queues ------------------------------------------------------------------------------- */

static void watch(struct switch_port *p, unsigned class, uint64_t now)
{
	if (class == CLASS_DATA)
		meter_change(&p->meter, p->queue[CLASS_DATA].aqm.bytes, now);
}

static void send_back(struct sim_switch *s, struct sim_buffer *b, uint64_t now);

static void mark(struct switch_port *p, struct sim_buffer *b, uint64_t now)
{
	struct sim_switch *s = p->sw;
	struct sim_buffer *answer;

	if (!s->notify || !notify_marked(s->notify, s->pool, b, now, &answer))
		p->count.marked += ecn_mark(b->bytes, b->len);
	else if (answer)
		send_back(s, answer, now);
}

/* Sends @p word to the other end of port @p p. */
static void say(struct switch_port *p, enum pfc_word word, uint64_t now)
{
	struct sim_buffer *b = word == PFC_NONE ? NULL : pfc_frame(p->sw->pool, word);

	if (!b)
		return;
	fifo_push(&p->said, b);
	wire_kick(&p->out, now);
}

/* INT: records the link's use as @p b leaves by it, without @p b. */
static void record(struct switch_port *p, struct sim_buffer *b, uint64_t now)
{
	uint64_t queue = p->queue[CLASS_DATA].aqm.bytes;

	ioam_add(b->bytes, b->len,
		&(struct ioam_node){
			.rate = p->out.cfg.rate_bps,
			.time = (uint32_t)now,
			.sent = (uint32_t)(p->out.bytes / 128),
			.queue = queue < IOAM_QUEUE_MAX ? (uint32_t)queue : IOAM_QUEUE_MAX,
		});
}

/* Releases the buffer space of @p b, which leaves. */
static void forget(struct switch_port *p, unsigned class, const struct sim_buffer *b, uint64_t now)
{
	struct sim_switch *s = p->sw;
	struct switch_port *from = &s->port[b->from];

	s->used -= b->len + WIRE_FCS;
	if (class == CLASS_DATA)
		say(from, pfc_leave(&from->ingress, &s->memory.pfc, b->len + WIRE_FCS, now), now);
}

/* If nothing waits, the wire need not ask again, which saves an event for half of all frames. */
static bool has_more(const struct switch_port *p)
{
	return p->said.head || p->queue[CLASS_CONTROL].fifo.head ||
	       (!p->held && p->queue[CLASS_DATA].fifo.head);
}

static struct sim_buffer *port_pull(struct sim_wire *w, uint64_t now)
{
	struct switch_port *p = container_of(w, struct switch_port, out);
	struct sim_buffer *b = fifo_pop(&p->said);

	for (unsigned class = 0; !b && class < (p->held ? CLASS_DATA : SWITCH_CLASSES); class ++) {
		struct switch_queue *q = &p->queue[class];
		enum aqm_fate fate;

		b = fifo_pop(&q->fifo);
		if (!b)
			continue;
		fate = aqm_leave(&q->aqm, b->len + WIRE_FCS);
		watch(p, class, now);
		if (fate == AQM_MARK)
			mark(p, b, now);
		record(p, b, now);
		forget(p, class, b, now);
	}
	w->quiet = !has_more(p);
	return b;
}

/* @return whether the buffer has room for @p len more bytes in @p q that come in by @p from. */
static bool fits(const struct sim_switch *s, const struct switch_port *from,
	const struct switch_queue *q, unsigned class, uint32_t len)
{
	const struct switch_memory *m = &s->memory;

	if (class == CLASS_DATA && !pfc_fits(&from->ingress, &m->pfc, len))
		return false;
	if (!m->size)
		return true;
	if (s->used + len > m->size)
		return false;
	return m->pfc.xoff || m->alpha <= 0 ||
	       (double)(q->aqm.bytes + len) <= m->alpha * (double)(m->size - s->used);
}

static void drop(struct switch_port *p, struct sim_buffer *b)
{
	p->count.dropped++;
	pool_put(p->sw->pool, b);
}

static void port_send(struct switch_port *p, struct sim_buffer *b, uint64_t now)
{
	struct sim_switch *s = p->sw;
	struct switch_port *from = &s->port[b->from];
	unsigned class = switch_class_of(switch_opcode(b->bytes, b->len));
	struct switch_queue *q = &p->queue[class];
	uint32_t len = b->len + WIRE_FCS;
	enum aqm_fate fate;

	p->count.frames++;
	if (!fits(s, from, q, class, len)) {
		drop(p, b);
		return;
	}
	fate = aqm_enter(&q->aqm, len);
	if (fate == AQM_DROP) {
		drop(p, b);
		return;
	}
	watch(p, class, now);
	if (fate == AQM_MARK)
		mark(p, b, now);
	s->used += len;
	fifo_push(&q->fifo, b);
	if (class == CLASS_DATA)
		say(from, pfc_enter(&from->ingress, &s->memory.pfc, len, now), now);
	wire_kick(&p->out, now);
}

static void lost(struct sim_switch *s, struct sim_buffer *b)
{
	s->lost++;
	pool_put(s->pool, b);
}

/* Sends a control frame @p b of the switch's own; having no ingress port, it takes no buffer space.
 */
static void send_back(struct sim_switch *s, struct sim_buffer *b, uint64_t now)
{
	struct switch_port *p = port_to(s, b);

	if (!p) {
		lost(s, b);
		return;
	}
	p->count.frames++;
	fifo_push(&p->said, b);
	wire_kick(&p->out, now);
}

/* Copies the frame to all ports except its ingress. */
static void flood(struct switch_port *from, struct sim_buffer *b, uint64_t now)
{
	struct sim_switch *s = from->sw;

	for (unsigned i = 0; i < s->ports; i++) {
		struct sim_buffer *copy;

		if (&s->port[i] == from)
			continue;
		copy = pool_copy(s->pool, b);
		if (!copy)
			continue;
		copy->from = b->from;
		port_send(&s->port[i], copy, now);
	}
	pool_put(s->pool, b);
}

/* The other end of port @p p pauses or resumes data. */
static void pause_data(
	struct switch_port *p, enum pfc_word word, struct sim_buffer *b, uint64_t now)
{
	p->held = word == PFC_XOFF;
	pool_put(p->sw->pool, b);
	wire_kick(&p->out, now);
}

static void port_receive(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct switch_port *from = container_of(to, struct switch_port, in);
	struct sim_switch *s = from->sw;
	enum pfc_word word = pfc_read(b);
	struct switch_port *way;

	b->from = (uint16_t)(from - s->port);
	if (word != PFC_NONE) {
		pause_data(from, word, b, now);
	} else if (b->bytes[ETH_DST] & 1) {
		flood(from, b, now);
	} else {
		way = port_to(s, b);
		if (way)
			port_send(way, b, now);
		else
			lost(s, b);
	}
}

void switch_init(
	struct sim_switch *s, struct buffer_pool *pool, struct switch_port *port, unsigned ports)
{
	*s = (struct sim_switch){.pool = pool, .port = port, .ports = ports};
	memset(port, 0, ports * sizeof(*port));
}

void switch_route(
	struct sim_switch *s, const struct switch_way *way, uint32_t ways, const uint16_t *next)
{
	s->way = way;
	s->ways = ways;
	s->next = next;
}

void switch_plug(struct sim_switch *s, unsigned index, struct sim_engine *e,
	const struct wire_config *wire, const struct aqm_config *aqm, uint64_t seed,
	struct sim_sink *to)
{
	struct switch_port *p = &s->port[index];

	p->sw = s;
	p->in.receive = port_receive;
	wire_init(&p->out, e, wire, port_pull, to);
	aqm_init(&p->queue[CLASS_CONTROL].aqm, &(struct aqm_config){0}, seed);
	aqm_init(&p->queue[CLASS_DATA].aqm, aqm, seed);
	meter_begin(&p->meter, 0, e->now);
}
