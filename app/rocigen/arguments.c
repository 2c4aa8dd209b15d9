/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of rocigen. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "address.h"
#include "bits.h"
#include "number.h"
#include "opcode.h"
#include "plan.h"

typedef int (*set_fn)(struct plan *p, const char *value);

/* --- values: each returns 0 or -EINVAL ---------------------------------------------------- */

static int number(const char *text, uint64_t max, uint64_t *v)
{
	return parse_number(text, max, v) ? 0 : -EINVAL;
}

static int number32(const char *text, uint32_t max, uint32_t *v)
{
	uint64_t wide;
	int err = number(text, max, &wide);

	*v = (uint32_t)wide;
	return err;
}

static int gid(const char *text, uint8_t gid[16], uint8_t *net)
{
	*net = strchr(text, ':') ? NET_IPV6 : NET_IPV4;
	return gid_of_text(gid, text) ? 0 : -EINVAL;
}

static int mac(const char *text, uint8_t m[6])
{
	return mac_of_text(m, text) ? 0 : -EINVAL;
}

static int set_src(struct plan *p, const char *v)
{
	uint8_t net;
	int err = gid(v, p->source.gid, &net);

	if (p->source.net != NET_ROCEV1)
		p->source.net = net;
	return err;
}

static int set_dst(struct plan *p, const char *v)
{
	uint8_t net;

	return gid(v, p->way.dgid, &net);
}

static int set_v1(struct plan *p, const char *v)
{
	p->source.net = NET_ROCEV1;
	return 0;
}

static int set_smac(struct plan *p, const char *v)
{
	return mac(v, p->source.mac);
}

static int set_dmac(struct plan *p, const char *v)
{
	return mac(v, p->way.dmac);
}

static int set_vlan(struct plan *p, const char *v)
{
	uint32_t vid;
	int err = number32(v, 4094, &vid);

	p->source.vid = (uint16_t)vid;
	return err;
}

static int set_pcp(struct plan *p, const char *v)
{
	uint32_t pcp;
	int err = number32(v, 7, &pcp);

	p->way.pcp = (uint8_t)pcp;
	return err;
}

static int set_dscp(struct plan *p, const char *v)
{
	uint32_t dscp;
	int err = number32(v, 63, &dscp);

	p->way.traffic_class = (uint8_t)(dscp << 2);
	return err;
}

/* "RC_WRITE_ONLY", "WRITE_ONLY" of RC, or the code of one that the table need not have. */
static const struct opcode *find_opcode(const char *name)
{
	uint32_t code;

	if (!number32(name, 255, &code))
		return opcode_row((uint8_t)code)->hdr_len ? opcode_row((uint8_t)code) : NULL;
	for (code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);

		if (op->name &&
			(!strcasecmp(op->name, name) ||
				(!strncmp(op->name, "RC_", 3) && !strcasecmp(op->name + 3, name))))
			return op;
	}
	return NULL;
}

static int each_word(struct plan *p, const char *list, set_fn add)
{
	char copy[16384];
	char *save;

	if (strlen(list) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, list);
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save))
		if (add(p, w))
			return -EINVAL;
	return 0;
}

static int add_opcode(struct plan *p, const char *v)
{
	const struct opcode *op = find_opcode(v);

	if (!op || p->nops == PLAN_OPS)
		return -EINVAL;
	p->op[p->nops++] = op;
	return 0;
}

static int set_opcode(struct plan *p, const char *v)
{
	return each_word(p, v, add_opcode);
}

static int add_qpn(struct plan *p, const char *v)
{
	return p->nqps == PLAN_QPS ? -EINVAL : number32(v, 0xFFFFFF, &p->qpn[p->nqps++]);
}

static int set_qpn(struct plan *p, const char *v)
{
	return each_word(p, v, add_qpn);
}

static int set_message(struct plan *p, const char *v)
{
	return number32(v, 1u << 19, &p->message) || !p->message ? -EINVAL : 0;
}

static int set_rate(struct plan *p, const char *v)
{
	return parse_decimal(v, &p->mpps) ? 0 : -EINVAL;
}

static int set_va(struct plan *p, const char *v)
{
	return number(v, UINT64_MAX, &p->va);
}

static int set_fast_cnp(struct plan *p, const char *v)
{
	uint8_t net;

	p->fast = true;
	return gid(v, p->dip, &net) || net != NET_IPV6 ? -EINVAL : 0;
}

static int set_trace(struct plan *p, const char *v)
{
	return number32(v, FAST_CNP_TRACE_MAX, &p->trace);
}

static int set_option(struct plan *p, const char *v)
{
	return number32(v, UINT8_MAX, &p->option);
}

static int set_fault(struct plan *p, const char *v)
{
	unsigned i = 0;

	while (fast_fault_name(i) && strcmp(fast_fault_name(i), v) != 0)
		i++;
	p->fault = (enum fast_fault)i;
	return fast_fault_name(i) ? 0 : -EINVAL;
}

static int set_count(struct plan *p, const char *v)
{
	return number(v, UINT64_MAX, &p->count);
}

static int set_pcap(struct plan *p, const char *v)
{
	p->pcap = v;
	return 0;
}

static int set_hold(struct plan *p, const char *v)
{
	p->hold = true;
	return 0;
}

static int set_help(struct plan *p, const char *v)
{
	p->help = true;
	return 0;
}

#define NUMBER(field, max)                                    \
	static int set_##field(struct plan *p, const char *v) \
	{                                                     \
		return number32(v, max, &p->field);           \
	}
NUMBER(psn, 0xFFFFFF)
NUMBER(psn_step, 0xFFFFFF)
NUMBER(size, PLAN_FRAME)
NUMBER(rkey, UINT32_MAX)
NUMBER(qkey, UINT32_MAX)
NUMBER(pkey, 0xFFFF)
NUMBER(syndrome, 0xFF)
NUMBER(ackreq, UINT32_MAX)
NUMBER(ce, UINT32_MAX)
NUMBER(bad_icrc, UINT32_MAX)
NUMBER(mtu, PLAN_FRAME)

/* --- the table --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	const char *value; /* NULL: none */
	set_fn set;
	const char *help;
} row[] = {
	{"src", "IP", set_src, "source GID; its family is the protocol's (192.0.2.2)"},
	{"dst", "IP", set_dst, "destination GID (192.0.2.1)"},
	{"smac", "MAC", set_smac, "source MAC (02:00:00:00:00:0b)"},
	{"dmac", "MAC", set_dmac, "destination MAC (02:00:00:00:00:0a)"},
	{"v1", NULL, set_v1, "RoCEv1 instead of RoCEv2"},
	{"vlan", "VID", set_vlan, "VLAN ID; adds a tag"},
	{"pcp", "0..7", set_pcp, "its 802.1p priority"},
	{"dscp", "0..63", set_dscp, "of IPv4 or IPv6"},
	{"opcode", "NAME,...", set_opcode,
		"names (RC_SEND_ONLY; WRITE_ONLY means RC) or numbers, used in turn (WRITE_ONLY)"},
	{"message", "N", set_message, "packets per message: FIRST, MIDDLE, LAST (1)"},
	{"size", "BYTES", set_size, "payload per packet; for a READ, the requested bytes (64)"},
	{"qpn", "N,...", set_qpn, "destination QPs, used in turn for messages (0x11)"},
	{"psn", "N", set_psn, "first PSN of each QP (0)"},
	{"psn-step", "N", set_psn_step,
		"between consecutive packets of a QP; 0: always the same PSN (1)"},
	{"va", "ADDRESS", set_va, "of RETH and AtomicETH"},
	{"rkey", "KEY", set_rkey, "of RETH, AtomicETH and IETH"},
	{"qkey", "KEY", set_qkey, "of DETH"},
	{"pkey", "KEY", set_pkey, "of BTH (0xffff)"},
	{"syndrome", "N", set_syndrome, "of AETH (0x1f)"},
	{"ackreq", "N", set_ackreq, "every N-th packet requests an ACK (16)"},
	{"ce", "N", set_ce, "every N-th packet is marked: congestion experienced"},
	{"bad-icrc", "N", set_bad_icrc, "every N-th packet has a wrong ICRC"},
	{"fast-cnp", "IPV6", set_fast_cnp,
		"Fast CNPs, as a switch (--src) sends them for packets from --dst to IPV6"},
	{"trace", "BYTES", set_trace, "bytes of IOAM trace: option 2 (0: option 1)"},
	{"option", "TYPE", set_option, "type of the option (0x9e; with a trace 0x9f)"},
	{"fault", "NAME", set_fault,
		"what is wrong with it: good, padded (also good), short, long, twice, unknown, "
		"none, "
		"overrun, beyond, opcode, icrc, ip4 or after-udp"},
	{"count", "N", set_count, "packets; 0: until SIGINT (1000000)"},
	{"rate", "MPPS", set_rate, "millions of packets per second; 0: as many as possible (0)"},
	{"mtu", "BYTES", set_mtu, "Ethernet MTU of the sending port"},
	{"pcap", "FILE", set_pcap, "write the packets to a capture file instead"},
	{"hold", NULL, set_hold,
		"when all packets are sent, keep the port open until standard input ends"},
	{"help", NULL, set_help, "print this help"},
};

void plan_help(void)
{
	printf("usage: rocigen [EAL arguments] -- [options]     sends on the first port\n"
	       "       rocigen -- --pcap FILE [options]         writes a capture file\n\n"
	       "RoCE packets with valid ICRCs, as fast as the port takes them.\n\n");
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		printf("  --%s%s%s\n        %s\n", row[i].name, row[i].value ? " " : "",
			row[i].value ? row[i].value : "", row[i].help);
}

static void set_defaults(struct plan *p)
{
	memset(p, 0, sizeof(*p));
	set_src(p, "192.0.2.2");
	set_dst(p, "192.0.2.1");
	set_smac(p, "02:00:00:00:00:0b");
	set_dmac(p, "02:00:00:00:00:0a");
	p->message = 1;
	p->size = 64;
	p->psn_step = 1;
	p->pkey = 0xFFFF;
	p->syndrome = AETH_ACK | AETH_CREDIT_NONE;
	p->ackreq = 16;
	p->count = 1000000;
}

static int refuse_value(char why[PLAN_WHY], int code, const char *value)
{
	const char *kind = row[code].value;

	if (!strcmp(kind, "MAC"))
		snprintf(why, PLAN_WHY, "--%s %.100s: not a MAC address such as 02:00:00:00:00:0b",
			row[code].name, value);
	else if (!strcmp(kind, "IP"))
		snprintf(why, PLAN_WHY, "--%s %.100s: not an IPv4 or IPv6 address", row[code].name,
			value);
	else
		snprintf(why, PLAN_WHY, "--%s %.100s: not %s: %s", row[code].name, value, kind,
			row[code].help);
	return -EINVAL;
}

int plan_parse(struct plan *p, int argc, char *argv[], char why[PLAN_WHY])
{
	struct option table[ARRAY_SIZE(row) + 1] = {{0}};
	int code;

	set_defaults(p);
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		table[i] = (struct option){row[i].name, row[i].value != NULL, NULL, (int)i};
	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((code = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (code == '?' || code == ':') {
			snprintf(why, PLAN_WHY,
				"%s: there is no such option, or it needs a value: see `rocigen -- "
				"--help`",
				argv[optind - 1]);
			return -EINVAL;
		}
		if (row[code].set(p, optarg))
			return refuse_value(why, code, optarg);
	}
	if (optind < argc) {
		snprintf(why, PLAN_WHY, "%.100s is not an option: options begin with --",
			argv[optind]);
		return -EINVAL;
	}
	return 0;
}
