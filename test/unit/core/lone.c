/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lone.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "qp.h"
#include "txd.h"

/* Offsets in an untagged RoCEv2 frame over IPv4 (A17 Figure 2, IBA 9.2). */
#define IP_AT  14
#define UDP_AT 34
#define BTH_AT 42
#define EXT_AT 54
#define OUR_ID 1
#define CNP    0x81
#define BECN   0x40000000u

static const char *const names[32] = {"SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM",
	"SEND_ONLY", "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM",
	"WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQ", "RESP_FIRST", "RESP_MIDDLE", "RESP_LAST",
	"RESP_ONLY", "ACK", "ATOMIC_ACK", "CMP_SWAP", "FETCH_ADD", "?15", "SEND_LAST_INV",
	"SEND_ONLY_INV", "?18", "?19", "?1A", "?1B", "FLUSH", "ATOMIC_WRITE", "?1E", "?1F"};

static bool has_reth(unsigned op)
{
	return op == 0x06 || op == 0x0A || op == 0x0B || op == 0x0C || op == 0x1C || op == 0x1D;
}

static bool has_feth(unsigned op)
{
	return op == 0x1C;
}

static bool has_ieth(unsigned op)
{
	return op == 0x16 || op == 0x17;
}

static bool has_aeth(unsigned op)
{
	return op == 0x0D || op == 0x0F || op == 0x10 || op == 0x11 || op == 0x12;
}

static bool has_atomiceth(unsigned op)
{
	return op == 0x13 || op == 0x14;
}

static bool has_atomicack(unsigned op)
{
	return op == 0x12;
}

/* XRC: requests only (BTH-22). */
static bool has_xrceth(unsigned opcode)
{
	unsigned op = opcode & 0x1F;

	return (opcode & 0xE0) == 0xA0 && (op < 0x0D || op > 0x12);
}

static bool has_imm(unsigned op)
{
	return op == 0x03 || op == 0x05 || op == 0x09 || op == 0x0B;
}

/* --- life ----------------------------------------------------------------------------- */

void lone_init(struct lone *l)
{
	memset(l, 0, sizeof(*l));
	l->now = 1000000;
	memcpy(l->eth, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\x00", sizeof(l->eth));
	l->host = aligned_alloc(CACHE_LINE, sizeof(*l->host));
	assert_non_null(l->host);
	host_init(l->host, OUR_ID, icrc_best(), l->now);
	app_init(&l->app, l->host);
	l->attr = app_attr(PEER_QPN, SQ_PSN, RQ_PSN);
	l->spec = (struct app_qp_spec){
		.sq_depth = 16, .rq_depth = 16, .max_sge = SGE_MAX, .max_inline = 128};
	l->cq_depth = 64;
}

void lone_climb(struct lone *l, unsigned state)
{
	static struct sim_host peer;
	struct path_spec path;

	host_init(&peer, PEER_ID, icrc_best(), 0);
	path = host_path(l->host, &peer, 0, HOST_GID_IPV4);
	path.ect = l->ect;
	if (state >= ABI_QPS_INIT)
		assert_int_equal(app_to_init(l->qp, &l->attr, l->now), 0);
	if (state >= ABI_QPS_RTR)
		assert_int_equal(app_to_rtr(l->qp, &l->attr, &path, l->now), 0);
	if (state >= ABI_QPS_RTS)
		assert_int_equal(app_to_rts(l->qp, &l->attr, l->now), 0);
}

void lone_start_in(struct lone *l, unsigned state)
{
	l->send_cq = app_cq(&l->app, l->cq_depth);
	l->recv_cq = app_cq(&l->app, l->cq_depth);
	l->spec.send_cq = l->send_cq;
	l->spec.recv_cq = l->recv_cq;
	l->qp = app_qp(&l->app, &l->spec);
	l->mr = app_mr(&l->app, LONE_MEM,
		ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ |
			ABI_ACCESS_REMOTE_ATOMIC);
	lone_climb(l, state);
}

void lone_start(struct lone *l)
{
	lone_start_in(l, ABI_QPS_RTS);
	assert_string_equal(lone_tx(l), "");
}

void lone_fini(struct lone *l)
{
	assert_true(app_guards_ok(&l->app));
	app_fini(&l->app);
	free(l->host);
}

/* --- the peer's packets --------------------------------------------------------------- */

static void put_ip_udp(uint8_t *f, uint8_t tos, uint8_t src, size_t udp_len)
{
	uint32_t sum = 0;

	memcpy(f, "\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\x00", 14);
	put_be16(f + IP_AT, 0x4500u | tos);
	put_be16(f + IP_AT + 2, (uint16_t)(20 + udp_len));
	put_be16(f + IP_AT + 4, 0x1234);
	put_be16(f + IP_AT + 6, 0x4000);
	put_be16(f + IP_AT + 8, 0x4011);
	put_be16(f + IP_AT + 10, 0);
	memcpy(f + IP_AT + 12, (uint8_t[]){10, 0, 0, src, 10, 0, 0, OUR_ID}, 8);
	for (unsigned i = 0; i < 20; i += 2)
		sum += get_be16(f + IP_AT + i);
	sum = (sum & 0xFFFF) + (sum >> 16);
	put_be16(f + IP_AT + 10, (uint16_t) ~((sum & 0xFFFF) + (sum >> 16)));
	put_be16(f + UDP_AT, 0xC001);
	put_be16(f + UDP_AT + 2, 4791);
	put_be16(f + UDP_AT + 4, (uint16_t)udp_len);
	put_be16(f + UDP_AT + 6, 0);
}

static uint8_t *put_extended(uint8_t *p, const struct shot *s)
{
	unsigned op = s->opcode & 0x1F;

	if (has_xrceth(s->opcode)) {
		put_be32(p, s->srqn);
		p += 4;
	}
	if (has_feth(op)) {
		put_be32(p, s->feth);
		p += 4;
	}
	if (has_reth(op)) {
		put_be64(p, s->va);
		put_be32(p + 8, s->rkey);
		put_be32(p + 12, s->dma_len);
		p += 16;
	}
	if (has_atomiceth(op)) {
		put_be64(p, s->va);
		put_be32(p + 8, s->rkey);
		put_be64(p + 12, s->swap_add);
		put_be64(p + 20, s->compare);
		p += 28;
	}
	if (has_aeth(op)) {
		put_be32(p, (uint32_t)s->syndrome << 24 | s->msn);
		p += 4;
	}
	if (has_atomicack(op)) {
		put_be64(p, s->orig);
		p += 8;
	}
	if (has_imm(op) || has_ieth(op)) {
		put_be32(p, has_imm(op) ? s->imm : s->rkey);
		p += 4;
	}
	return p;
}

size_t lone_frame(const struct lone *l, uint8_t *f, const struct shot *s)
{
	uint32_t pad = -s->len & 3;
	uint8_t *p = put_extended(f + EXT_AT, s);
	uint32_t crc;

	f[BTH_AT] = s->opcode;
	f[BTH_AT + 1] = (uint8_t)((s->se ? 0x80 : 0) | 0x40 | pad << 4);
	put_be16(f + BTH_AT + 2, s->pkey ? s->pkey : 0xFFFF);
	put_be32(f + BTH_AT + 4, s->dest_qp ? s->dest_qp : l->qp->qp->qpn);
	put_be32(f + BTH_AT + 8, (s->ackreq ? 0x80000000u : 0) | s->psn);
	for (uint32_t i = 0; i < s->len; i++)
		*p++ = s->payload ? ((const uint8_t *)s->payload)[i] : (uint8_t)i;
	memset(p, 0, pad);
	p += pad;
	put_ip_udp(f, s->tos, s->src_ip ? s->src_ip : PEER_ID, (size_t)(p - f) + 4 - UDP_AT);
	if (s->dmac)
		memcpy(f, s->dmac, 6);
	crc = icrc_header(icrc_by_name("table"), f + IP_AT, NET_IPV4, (size_t)(p - f) - IP_AT);
	icrc_store(p, crc);
	p[0] ^= s->bad_icrc;
	return (size_t)(p - f) + 4;
}

void lone_rx_burst(struct lone *l, const struct shot *s, unsigned n)
{
	static uint8_t frames[BURST][FRAME_MAX];
	struct pkt pkts[BURST];
	uint16_t verdict[BURST];
	struct core *c = l->core ? l->core : &l->host->core;

	assert_true(n <= BURST);
	for (unsigned i = 0; i < n; i++) {
		size_t len = lone_frame(l, frames[i], &s[i]);

		memset(&pkts[i], 0xEE, sizeof(pkts[i])); /* what is not filled in is garbage */
		pkts[i].port = s[i].port;
		pkts[i].queue = s[i].queue ? (uint8_t)(s[i].queue - 1) : PKT_NO_QUEUE;
		assert_int_equal(host_parse(c, &pkts[i], frames[i], len), DROP_NONE);
		l->expected = pkts[i].expected;
	}
	core_rx(c, pkts, n, l->now, verdict);
	l->verdict = verdict[n - 1];
}

uint16_t lone_rx(struct lone *l, const struct shot *s)
{
	lone_rx_burst(l, s, 1);
	return l->verdict;
}

void lone_request(
	struct lone *l, uint8_t opcode, uint32_t psn, uint64_t off, uint32_t dma_len, uint32_t len)
{
	lone_rx(l, &(struct shot){.opcode = opcode,
			   .psn = psn,
			   .ackreq = true,
			   .va = app_va(l->mr, off),
			   .rkey = l->mr->mr.key,
			   .dma_len = dma_len,
			   .len = len});
}

void lone_response(struct lone *l, uint8_t opcode, uint32_t psn, uint32_t len)
{
	lone_rx(l, &(struct shot){
			   .opcode = opcode, .psn = psn, .syndrome = 0x1F, .msn = 1, .len = len});
}

void lone_ack(struct lone *l, uint32_t psn, uint32_t msn)
{
	lone_rx(l, &(struct shot){.opcode = 0x11, .psn = psn, .syndrome = 0x1F, .msn = msn});
}

void lone_nak(struct lone *l, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	lone_rx(l, &(struct shot){.opcode = 0x11, .psn = psn, .syndrome = syndrome, .msn = msn});
}

/* --- what the host sends -------------------------------------------------------------- */

static void say(struct lone *l, const char *fmt, ...)
{
	size_t used = strlen(l->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->log + used, sizeof(l->log) - used, fmt, ap);
	va_end(ap);
}

/* All that is the same in every packet of ours. */
static void check_fixed(const struct lone *l, const uint8_t *f, size_t len, unsigned pad)
{
	uint32_t crc = icrc_header(icrc_by_name("table"), f + IP_AT, NET_IPV4, len - 4 - IP_AT);
	uint8_t icrc[4];

	icrc_store(icrc, crc);
	assert_memory_equal(icrc, f + len - 4, 4);
	assert_memory_equal(f, l->eth, sizeof(l->eth));
	assert_int_equal(get_be16(f + IP_AT), 0x4500 | (f[BTH_AT] == CNP ? l->cnp_tos : l->tos));
	assert_int_equal(get_be16(f + IP_AT + 2), len - IP_AT); /* CA17-6 */
	assert_int_equal(get_be16(f + IP_AT + 6), 0x4000);	/* CA17-7 */
	assert_int_equal(get_be16(f + UDP_AT + 2), 4791);
	assert_int_equal(get_be16(f + UDP_AT + 4), len - UDP_AT); /* CA17-21 */
	assert_int_equal(get_be16(f + BTH_AT + 2), 0xFFFF);	  /* BTH-11 */
	assert_int_equal(get_be32(f + BTH_AT + 4) & (f[BTH_AT] == CNP ? ~BECN : ~0u),
		PEER_QPN);			   /* BTH-03, BTH-12 */
	assert_int_equal(f[BTH_AT + 8] & 0x7F, 0); /* BTH-03 */
	assert_int_equal(f[BTH_AT + 1] & 0x0F, 0); /* BTH-02 */
	for (unsigned i = 0; i < pad; i++)
		assert_int_equal(f[len - 5 - i], 0); /* BTH-05 */
}

static unsigned opcode_class(uint8_t type)
{
	if (type == ABI_QPT_XRC_SEND || type == ABI_QPT_XRC_RECV)
		return 0xA0;
	return type == ABI_QPT_UC ? 0x20 : 0;
}

static void tell(struct lone *l, const uint8_t *f, size_t len)
{
	unsigned op = f[BTH_AT];
	unsigned pad = f[BTH_AT + 1] >> 4 & 3;
	const uint8_t *p = f + EXT_AT;
	size_t payload;

	if (op == CNP) {
		check_fixed(l, f, len, 0);
		say(l, "%sCNP", l->log[0] ? " " : "");
		return;
	}
	assert_int_equal(op & 0xE0, opcode_class(l->spec.type));
	check_fixed(l, f, len, pad);
	say(l, "%s%s@%x", l->log[0] ? " " : "", names[op & 0x1F], get_be24(f + BTH_AT + 9));
	if (has_xrceth(op)) {
		say(l, "[%x]", get_be32(p));
		p += 4;
		len -= 4;
	}
	op &= 0x1F;
	payload = len - EXT_AT - 4 - pad - (has_reth(op) ? 16 : 0) - (has_aeth(op) ? 4 : 0) -
		  (has_imm(op) || has_ieth(op) ? 4 : 0) - (has_atomiceth(op) ? 28 : 0) -
		  (has_atomicack(op) ? 8 : 0) - (has_feth(op) ? 4 : 0);
	if (payload)
		say(l, "+%zu", payload);
	say(l, "%s%s", f[BTH_AT + 8] & 0x80 ? "!" : "", f[BTH_AT + 1] & 0x80 ? "*" : "");
	if (has_feth(op)) {
		say(l, "{%x}", get_be32(p));
		p += 4;
	}
	if (has_reth(op)) {
		say(l, "(%llx,%u)", (unsigned long long)(get_be64(p) - PEER_VA), get_be32(p + 12));
		assert_int_equal(get_be32(p + 8), PEER_KEY);
		p += 16;
	}
	if (has_atomiceth(op)) {
		say(l, "(%llx,%llx,%llx)", (unsigned long long)(get_be64(p) - PEER_VA),
			(unsigned long long)get_be64(p + 12), (unsigned long long)get_be64(p + 20));
		assert_int_equal(get_be32(p + 8), PEER_KEY);
	}
	if (has_aeth(op)) {
		say(l, "%02x/%u", p[0], get_be24(p + 1));
		p += 4;
	}
	if (has_atomicack(op))
		say(l, "=%llx", (unsigned long long)get_be64(p));
	if (has_imm(op) || has_ieth(op))
		say(l, "#%x", get_be32(p));
}

const char *lone_tx_max(struct lone *l, unsigned max)
{
	struct txd t[BURST];
	uint16_t len[BURST];
	unsigned n;

	app_ring(&l->app, l->now);
	l->log[0] = '\0';
	while (max) {
		unsigned ask = max < BURST ? max : BURST;

		for (unsigned i = 0; i < ask; i++)
			t[i].frame = l->host->tx[i];
		n = core_tx(&l->host->core, t, ask, l->now);
		core_seal_burst(&l->host->core, t, n, len);
		for (unsigned i = 0; i < n; i++) {
			if (!len[i])
				continue;
			memcpy(l->frame, t[i].frame, len[i]);
			l->frame_len = len[i];
			l->packets++;
			tell(l, t[i].frame, len[i]);
		}
		max -= n;
		if (core_grace_wanted(&l->host->core)) {
			if (l->no_grace)
				break;
			core_grace_end(&l->host->core, core_grace_wanted(&l->host->core));
			continue;
		}
		if (n < ask)
			break;
	}
	app_events(&l->app);
	return l->log;
}

const char *lone_tx(struct lone *l)
{
	return lone_tx_max(l, 1u << 20);
}

void lone_wait(struct lone *l, uint64_t ns)
{
	l->now += ns;
	core_expire(&l->host->core, l->now);
	app_events(&l->app);
}

/* --- completions ---------------------------------------------------------------------- */

static const char *status_name(unsigned s)
{
	static const char *const n[] = {[0] = "OK",
		[1] = "LOC_LEN",
		[2] = "LOC_QP_OP",
		[4] = "LOC_PROT",
		[5] = "FLUSH",
		[6] = "MW_BIND",
		[7] = "BAD_RESP",
		[9] = "REM_INV_REQ",
		[10] = "REM_ACCESS",
		[11] = "REM_OP",
		[12] = "RETRY_EXC",
		[13] = "RNR_RETRY_EXC"};

	return s < ARRAY_SIZE(n) && n[s] ? n[s] : "?";
}

const char *lone_cqes(struct lone *l)
{
	struct app_cq *cqs[] = {l->send_cq, l->recv_cq};

	l->log[0] = '\0';
	for (unsigned i = 0; i < 2; i++) {
		while (app_poll(&l->app, cqs[i], &l->last)) {
			const struct abi_cqe *c = &l->last;
			bool recv = c->opcode & 0x80;

			say(l, "%s%c%llu:%s", l->log[0] ? " " : "", recv ? 'R' : 'S',
				(unsigned long long)c->wr_id, status_name(c->status));
			if (!recv || c->status)
				continue;
			say(l, "+%u", c->byte_len);
			if (c->flags & ABI_WC_WITH_IMM)
				say(l, "#%x", __builtin_bswap32(c->imm));
			if (c->flags & ABI_WC_WITH_INV)
				say(l, "~%x", c->imm);
			if (c->flags & ABI_WC_SOLICITED)
				say(l, "*");
		}
	}
	app_events(&l->app);
	return l->log;
}

/* --- the application's work ----------------------------------------------------------- */

void lone_post(struct lone *l, uint8_t opcode, uint64_t wr_id, uint32_t len, uint32_t flags)
{
	struct app_send s = {
		.opcode = opcode,
		.flags = flags | ABI_WQE_SIGNALED,
		.imm = __builtin_bswap32(0xBEEF),
		.wr_id = wr_id,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 1,
		.sge = {app_sge(l->mr, 0, len)},
	};

	app_post_send(l->qp, &s);
}

void lone_recv(struct lone *l, uint64_t wr_id, uint64_t off, uint32_t len)
{
	struct abi_sge sge = app_sge(l->mr, off, len);

	app_post_recv(l->qp, wr_id, &sge, 1);
}
