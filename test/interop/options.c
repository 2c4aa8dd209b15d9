/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum option_id {
	O_DRIVER = 256,
	O_UC,
	O_UD,
	O_SRQ,
	O_MCAST,
	O_MW,
	O_MW1,
	O_DEVICE,
	O_GID,
	O_MTU,
	O_DEPTH,
	O_SGE,
	O_INLINE,
	O_SIGNAL,
	O_TIMEOUT,
	O_RETRY,
	O_RNR_RETRY,
	O_MIN_RNR,
	O_RD_ATOMIC,
	O_RNR_TEST,
	O_SOLICITED,
	O_MARKS,
	O_PORT,
	O_WAIT,
	O_ROUNDS,
	O_COUNT,
	O_SEED,
	O_MIN,
	O_MAX,
	O_TARGET,
	O_OPS,
	O_HELP
};

static const struct option longopts[] = {
	{"driver", no_argument, NULL, O_DRIVER},
	{"uc", no_argument, NULL, O_UC},
	{"ud", no_argument, NULL, O_UD},
	{"srq", no_argument, NULL, O_SRQ},
	{"mcast", no_argument, NULL, O_MCAST},
	{"mw", no_argument, NULL, O_MW},
	{"mw1", no_argument, NULL, O_MW1},
	{"device", required_argument, NULL, O_DEVICE},
	{"gid-index", required_argument, NULL, O_GID},
	{"mtu", required_argument, NULL, O_MTU},
	{"qp-depth", required_argument, NULL, O_DEPTH},
	{"sge", required_argument, NULL, O_SGE},
	{"inline", required_argument, NULL, O_INLINE},
	{"signal-every", required_argument, NULL, O_SIGNAL},
	{"timeout", required_argument, NULL, O_TIMEOUT},
	{"retry", required_argument, NULL, O_RETRY},
	{"rnr-retry", required_argument, NULL, O_RNR_RETRY},
	{"min-rnr", required_argument, NULL, O_MIN_RNR},
	{"rd-atomic", required_argument, NULL, O_RD_ATOMIC},
	{"rnr-test", no_argument, NULL, O_RNR_TEST},
	{"solicited", no_argument, NULL, O_SOLICITED},
	{"marks", no_argument, NULL, O_MARKS},
	{"port", required_argument, NULL, O_PORT},
	{"wait", required_argument, NULL, O_WAIT},
	{"rounds", required_argument, NULL, O_ROUNDS},
	{"count", required_argument, NULL, O_COUNT},
	{"seed", required_argument, NULL, O_SEED},
	{"min", required_argument, NULL, O_MIN},
	{"max", required_argument, NULL, O_MAX},
	{"target", required_argument, NULL, O_TARGET},
	{"ops", required_argument, NULL, O_OPS},
	{"help", no_argument, NULL, O_HELP},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: %s [OPTION...] [HOST]\n"
	"Check SEND, WRITE, READ and atomics over a queue pair with another peer, byte by byte.\n"
	"Without HOST wait for the other peer. One of the two is the driver.\n"
	"  --driver           say what is done (the other side follows)\n"
	"  --uc               over a UC queue pair: SEND and WRITE, which may be lost\n"
	"  --ud               over UD: SENDs of one packet each, which may be lost\n"
	"  --srq              take receives from a shared receive queue\n"
	"  --mcast            over UD to a multicast group, which the follower is in; both sides\n"
	"                     need it\n"
	"  --mw               the driver uses a type 2 memory window of the follower, which is "
	"bound\n"
	"                     anew for each batch; both sides need it\n"
	"  --mw1              the same with a window of type 1\n"
	"  --device NAME      device (the first)\n"
	"  --port PORT        TCP port (18600)\n"
	"  --gid-index N      source GID (1)\n"
	"  --mtu BYTES        path MTU 256..4096 (1024); the smaller of both sides counts\n"
	"  --qp-depth N       work requests outstanding each way (16)\n"
	"  --sge N            scatter and gather messages over up to N pieces, 1..16 (1)\n"
	"  --inline BYTES     post messages up to so long inline (0: none)\n"
	"  --signal-every N   ask for a completion of each Nth request only (1)\n"
	"  --solicited        set the solicited event on SENDs and WRITEs with immediate\n"
	"  --marks            traffic class, flow label, hop limit and service level that nobody "
	"else has\n"
	"  --timeout CODE --retry N --rnr-retry N --min-rnr CODE --rd-atomic N\n"
	"                     as in ibv_modify_qp (20, 7, 7, 12, 4)\n"
	"  --rnr-test         post receives late, so that the other side meets RNR\n"
	"  --wait S           give up on the other side after S seconds (100)\n"
	"of the driver:\n"
	"  --ops LIST         send,send_imm,write,write_imm,read,cmp_swap,fetch_add;\n"
	"                     with --mw send_inv too (all)\n"
	"  --rounds N         batches of each operation (1)\n"
	"  --count N          operations a batch (20)\n"
	"  --seed N           of lengths, offsets and contents (1)\n"
	"  --min N, --max N   message length, bytes (0, 20000); --max of both sides counts\n"
	"  --target BYTES     memory for the other side to READ and WRITE (4 * max)\n";

static uint64_t number(const char *name, const char *arg, uint64_t lo, uint64_t hi)
{
	char *end;
	uint64_t v = strtoull(arg, &end, 0);

	if (*end || end == arg || *arg == '-' || v < lo || v > hi) {
		fprintf(stderr, "--%s %s: give a number from %llu to %llu\n", name, arg,
			(unsigned long long)lo, (unsigned long long)hi);
		exit(2);
	}
	return v;
}

static unsigned kinds(const char *arg)
{
	char *list = strdup(arg), *save = NULL;
	unsigned mask = 0;

	for (char *k = strtok_r(list, ",", &save); k; k = strtok_r(NULL, ",", &save)) {
		enum op_kind kind = op_kind_find(k);

		if (kind == OP_KINDS) {
			fprintf(stderr,
				"--ops %s: give some of send,send_imm,write,write_imm,read,"
				"cmp_swap,fetch_add,send_inv\n",
				arg);
			exit(2);
		}
		mask |= 1u << kind;
	}
	free(list);
	return mask;
}

static void set(struct options *opt, int id, const char *name, const char *arg)
{
	switch (id) {
	case O_DRIVER:
		opt->driver = true;
		break;
	case O_UC:
		opt->uc = true;
		break;
	case O_UD:
		opt->ud = true;
		break;
	case O_SRQ:
		opt->srq = true;
		break;
	case O_MCAST:
		opt->mcast = true;
		break;
	case O_MW:
		opt->mw = 2;
		break;
	case O_MW1:
		opt->mw = 1;
		break;
	case O_DEVICE:
		opt->device = arg;
		break;
	case O_GID:
		opt->gid_index = (int)number(name, arg, 0, 255);
		break;
	case O_MTU:
		opt->mtu = (unsigned)number(name, arg, 256, 4096);
		break;
	case O_DEPTH:
		opt->depth = (unsigned)number(name, arg, 1, 4096);
		break;
	case O_SGE:
		opt->sge = (unsigned)number(name, arg, 1, PLAN_MAX_SGE);
		break;
	case O_INLINE:
		opt->inline_max = (unsigned)number(name, arg, 0, 4096);
		break;
	case O_SIGNAL:
		opt->signal_every = (unsigned)number(name, arg, 1, 4096);
		break;
	case O_TIMEOUT:
		opt->timeout = (unsigned)number(name, arg, 0, 31);
		break;
	case O_RETRY:
		opt->retry = (unsigned)number(name, arg, 0, 7);
		break;
	case O_RNR_RETRY:
		opt->rnr_retry = (unsigned)number(name, arg, 0, 7);
		break;
	case O_MIN_RNR:
		opt->min_rnr = (unsigned)number(name, arg, 0, 31);
		break;
	case O_RD_ATOMIC:
		opt->rd_atomic = (unsigned)number(name, arg, 1, 128);
		break;
	case O_RNR_TEST:
		opt->rnr_test = true;
		break;
	case O_SOLICITED:
		opt->solicited = true;
		break;
	case O_MARKS:
		opt->marks = true;
		break;
	case O_PORT:
		opt->port = arg;
		break;
	case O_WAIT:
		opt->wait_s = (unsigned)number(name, arg, 1, 3600);
		break;
	case O_ROUNDS:
		opt->rounds = (unsigned)number(name, arg, 1, 1000000);
		break;
	case O_COUNT:
		opt->count = (unsigned)number(name, arg, 1, 1000000);
		break;
	case O_SEED:
		opt->seed = number(name, arg, 0, UINT64_MAX);
		break;
	case O_MIN:
		opt->min_len = (uint32_t)number(name, arg, 0, 1u << 30);
		break;
	case O_MAX:
		opt->max_len = (uint32_t)number(name, arg, 1, 1u << 30);
		break;
	case O_TARGET:
		opt->target_len = (uint32_t)number(name, arg, 1, 1u << 30);
		break;
	case O_OPS:
		opt->kinds = kinds(arg);
		break;
	}
}

static void refuse(const char *sentence)
{
	fprintf(stderr, "%s\n", sentence);
	exit(2);
}

static void check(struct options *opt)
{
	if (opt->mtu & (opt->mtu - 1))
		refuse("--mtu: give 256, 512, 1024, 2048 or 4096");
	if (opt->min_len > opt->max_len)
		refuse("--min is larger than --max: give a smaller --min or a larger --max");
	if (opt->signal_every > opt->depth)
		refuse("--signal-every is larger than --qp-depth: requests would never be freed");
	if (!opt->target_len)
		opt->target_len = opt->max_len > 1u << 20 ? opt->max_len : 4 * opt->max_len;
	if (opt->uc + opt->ud + !!opt->mw > 1)
		refuse("--uc, --ud, --mw: give one of them; windows are used over RC here");
	if (opt->ud && opt->max_len > opt->mtu)
		refuse("--ud: a datagram is one packet: give a --max of at most --mtu");
	if (opt->mcast && !opt->ud)
		refuse("--mcast: groups are of UD: give --ud too");
	if (opt->mw != 2) /* a peer invalidates type 2 only (INV-04) */
		opt->kinds &= ~(1u << OP_SEND_INV);
	if (opt->ud)
		opt->kinds &= 1u << OP_SEND | 1u << OP_SEND_IMM;
	if (opt->uc)
		opt->kinds &=
			1u << OP_SEND | 1u << OP_SEND_IMM | 1u << OP_WRITE | 1u << OP_WRITE_IMM;
	if (opt->target_len < opt->max_len)
		refuse("--target is smaller than --max: give a larger --target");
	if (opt->target_len < sizeof(uint64_t))
		refuse("--target: atomics need a word: give 8 or more, or a larger --max");
}

void options_parse(struct options *opt, int argc, char **argv)
{
	int id, index;

	*opt = (struct options){
		.port = "18600",
		.gid_index = 1,
		.mtu = 1024,
		.depth = 16,
		.sge = 1,
		.signal_every = 1,
		.timeout = 20,
		.retry = 7,
		.rnr_retry = 7,
		.min_rnr = 12,
		.rd_atomic = 4,
		.wait_s = 100,
		.rounds = 1,
		.count = 20,
		.seed = 1,
		.max_len = 20000,
		.kinds = (1u << OP_KINDS) - 1,
	};
	while ((id = getopt_long(argc, argv, "", longopts, &index)) != -1) {
		if (id == O_HELP) {
			printf(usage, argv[0]);
			exit(0);
		}
		if (id == '?')
			exit(2);
		set(opt, id, longopts[index].name, optarg);
	}
	if (argc - optind > 1)
		refuse("more than one HOST: name one peer");
	opt->host = argv[optind];
	check(opt);
}
