/* SPDX-License-Identifier: BSD-3-Clause */
#include "ecn.h"
#include "headers.h"
#include "host.h"
#include "switch.h"

int switch_opcode(const uint8_t *b, size_t len)
{
	size_t l3 = ETH_HLEN;
	size_t bth;

	if (len < ETH_HLEN + VLAN_HLEN)
		return SWITCH_NO_CODE;
	if (get_be16(b + ETH_TYPE) == ETHERTYPE_VLAN)
		l3 += VLAN_HLEN;
	switch (get_be16(b + l3 - 2)) {
	case ETHERTYPE_IPV4:
		bth = l3 + IP4_HLEN + UDP_HLEN;
		break;
	case ETHERTYPE_IPV6:
		bth = l3 + IP6_HLEN + UDP_HLEN;
		break;
	case ETHERTYPE_ROCEV1:
		bth = l3 + GRH_HLEN;
		break;
	default:
		return SWITCH_NO_CODE;
	}
	return bth + BTH_HLEN <= len ? b[bth + BTH_OPCODE] : SWITCH_NO_CODE;
}

enum switch_class switch_class_of(int code)
{
	if (code == OPCODE_CNP || code == (OPC_RC | OP_ACKNOWLEDGE) ||
		code == (OPC_XRC | OP_ACKNOWLEDGE))
		return CLASS_CONTROL;
	return CLASS_DATA;
}

static void watch(struct switch_port *p, unsigned class, uint64_t now)
{
	if (class == CLASS_DATA)
		meter_change(&p->meter, p->queue[CLASS_DATA].aqm.bytes, now);
}

static void mark(struct switch_port *p, struct sim_buffer *b)
{
	p->count.marked += ecn_mark(b->bytes, b->len);
}

static struct sim_buffer *port_pull(struct sim_wire *w, uint64_t now)
{
	struct switch_port *p = container_of(w, struct switch_port, out);

	for (unsigned class = 0; class < SWITCH_CLASSES; class ++) {
		struct switch_queue *q = &p->queue[class];
		struct sim_buffer *b = fifo_pop(&q->fifo);
		enum aqm_fate fate;

		if (!b)
			continue;
		fate = aqm_leave(&q->aqm, b->len + WIRE_FCS);
		watch(p, class, now);
		if (fate == AQM_MARK)
			mark(p, b);
		return b;
	}
	return NULL;
}

static void port_send(struct switch_port *p, struct sim_buffer *b, uint64_t now)
{
	unsigned class = switch_class_of(switch_opcode(b->bytes, b->len));
	struct switch_queue *q = &p->queue[class];
	enum aqm_fate fate = aqm_enter(&q->aqm, b->len + WIRE_FCS);

	p->count.frames++;
	if (fate == AQM_DROP) {
		p->count.dropped++;
		pool_put(p->sw->pool, b);
		return;
	}
	watch(p, class, now);
	if (fate == AQM_MARK)
		mark(p, b);
	fifo_push(&q->fifo, b);
	wire_kick(&p->out, now);
}

/* Copies to all ports but the one that it came in by. */
static void flood(struct switch_port *from, struct sim_buffer *b, uint64_t now)
{
	struct sim_switch *s = from->sw;

	for (unsigned i = 0; i < s->ports; i++) {
		struct sim_buffer *copy;

		if (&s->port[i] == from)
			continue;
		copy = pool_copy(s->pool, b);
		if (copy)
			port_send(&s->port[i], copy, now);
	}
	pool_put(s->pool, b);
}

static void port_receive(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct switch_port *from = container_of(to, struct switch_port, in);
	struct sim_switch *s = from->sw;
	uint32_t host = host_of_mac(b->bytes + ETH_DST);
	uint16_t way = host < s->ways ? s->way[host] : SWITCH_NO_WAY;

	if (s->lose && s->lose(s->arg, b)) {
		s->lost++;
		pool_put(s->pool, b);
	} else if (b->bytes[ETH_DST] & 1) {
		flood(from, b, now);
	} else if (way < s->ports) {
		port_send(&s->port[way], b, now);
	} else {
		s->lost++;
		pool_put(s->pool, b);
	}
}

void switch_init(struct sim_switch *s, struct buffer_pool *pool, struct switch_port *port,
	unsigned ports, const uint16_t *way, uint32_t ways)
{
	*s = (struct sim_switch){
		.pool = pool, .port = port, .ports = ports, .way = way, .ways = ways};
	memset(port, 0, ports * sizeof(*port));
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
