/* SPDX-License-Identifier: BSD-3-Clause */
#include "option_table.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include "bits.h"

/* Room for the longest of the names that are derived from it too. */
#define SOCKET_PATH_MAX \
	(sizeof(((struct sockaddr_un *)0)->sun_path) - (sizeof(ABI_ADMIN_SUFFIX) - 1))
#define LIMIT_MB_MAX (UINT32_MAX - 1)

#define FIELD(kind, field, max, what)                                  \
	{                                                              \
		kind, offsetof(struct options, field), max, what, NULL \
	}
#define TEXT(field, what)	FIELD(VALUE_TEXT, field, sizeof(((struct options *)0)->field), what)
#define OCTAL(field)		FIELD(VALUE_OCTAL, field, 0777, "an octal mode such as 0660")
#define COUNT(field, max, what) FIELD(VALUE_COUNT, field, max, what)
#define FLAG(field)		FIELD(VALUE_FLAG, field, 0, NULL)
#define OWN(set)             \
	{                    \
		.own = (set) \
	}

/* If you add an option here, add it to doc/man/rocid.8 and config/rocid.conf too. */
static const struct option_row row[] = {
	{"socket", required_argument, SECTION_APPLICATIONS, false,
		FIELD(VALUE_TEXT, socket, SOCKET_PATH_MAX, "the socket's path"), "PATH",
		"socket for applications (" ABI_SOCKET_DEFAULT ")"},
	{"socket-mode", required_argument, SECTION_APPLICATIONS, false, OCTAL(socket_mode), "MODE",
		"its mode, octal (0660)"},
	{"socket-group", required_argument, SECTION_APPLICATIONS, false,
		TEXT(socket_group, "the group"), "GROUP", "its group"},
	{"admin-mode", required_argument, SECTION_APPLICATIONS, false, OCTAL(admin_mode), "MODE",
		"mode of rocictl's socket, octal (0600)"},
	{"admin-group", required_argument, SECTION_APPLICATIONS, false,
		TEXT(admin_group, "the group"), "GROUP", "its group"},
	{"max-sessions", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_SESSIONS], SESSION_MAX, "a number"), "N",
		"applications per user, except root (256)"},
	{"max-qps", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_QPS], SESSION_QP_MAX, "a number"), "N",
		"QPs per application (12288)"},
	{"max-cqs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_CQS], SESSION_CQ_MAX, "a number"), "N",
		"CQs per application (12288)"},
	{"max-mrs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_KEYS], SESSION_MR_MAX, "a number"), "N",
		"memory regions and windows per application (49152)"},
	{"max-queues", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_QUEUES], LIMIT_MB_MAX, "a number"), "MB",
		"memory of an application's queues (8192)"},
	{"max-memory", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_MEMORY], LIMIT_MB_MAX, "a number"), "MB",
		"registered memory per application (the machine's memory)"},
	{"max-connections", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.session[CTL_CONNECTIONS], SESSION_CONNECTION_MAX, "a number"), "N",
		"RDMA CM connections per application (24576)"},
	{"max-user-qps", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_QPS], QP_MAX, "a number"), "N",
		"QPs of all applications of one user, except root (12288)"},
	{"max-user-cqs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_CQS], CQ_MAX, "a number"), "N", "their CQs (16384)"},
	{"max-user-mrs", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_KEYS], MR_MAX - 1, "a number"), "N",
		"their memory regions and windows (32764)"},
	{"max-user-connections", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_CONNECTIONS], CONNECTIONS_MAX, "a number"), "N",
		"their connections (16384)"},
	{"max-user-queues", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_QUEUES], LIMIT_MB_MAX, "a number"), "MB",
		"memory of their queues (an eighth of the machine's)"},
	{"max-user-memory", required_argument, SECTION_APPLICATIONS, false,
		COUNT(limits.user[CTL_MEMORY], LIMIT_MB_MAX, "a number"), "MB",
		"their registered memory (half of the machine's)"},
	{"application-faults", optional_argument, SECTION_APPLICATIONS, false,
		FLAG(application_faults), "[=yes|no]",
		"let programs inject faults into the packets of their own QPs"},
	{"application-macs", optional_argument, SECTION_APPLICATIONS, false, FLAG(application_macs),
		"[=yes|no]",
		"let programs choose the destination MAC, regardless of the host's routes and "
		"neighbours"},
	{"device", required_argument, SECTION_APPLICATIONS, false, OWN(set_device), "NAME",
		"name of the device that programs see (roci0)"},
	{"cm", required_argument, SECTION_APPLICATIONS, false, OWN(set_cm), "yes|no",
		"connect programs by RDMA CM, using QP1 of each port (yes); no: QP1 is left to a "
		"program"},
	{"cm-timeout", required_argument, SECTION_APPLICATIONS, false,
		COUNT(cm_timeout, CM_TIMEOUT_MAX, "an exponent"), "N",
		"how long to wait for a peer's answer to a connection message: 4.096 us * 2^N (20: "
		"4.3 s)"},
	{"cm-retries", required_argument, SECTION_APPLICATIONS, false,
		COUNT(cm_retries, CM_RETRIES_MAX, "a number"), "N",
		"how often an unanswered connection message is repeated (15)"},
	{"userfaultfd", required_argument, SECTION_APPLICATIONS, false, OWN(set_userfaultfd),
		"yes|no",
		"pass /dev/userfaultfd to programs, which use it to stop their other threads' "
		"writes while memory is registered (yes)"},
	{"share", required_argument, SECTION_PORT, true, OWN(set_share), "[PORT=]IFNAME",
		"share the kernel's netdev IFNAME, with its addresses: creates an AF_PACKET port, "
		"or names the netdev that ethdev PORT uses"},
	{"tap", required_argument, SECTION_PORT, true, OWN(set_tap), "PORT[=NAME]",
		"create a kernel netdev NAME (roci0 for port 0) for PORT, which rocid owns: "
		"addresses, ARP, ping, TCP"},
	{"ipoib", required_argument, SECTION_PORT, true, OWN(set_ipoib),
		"PORT[,name=NAME][,pkey=PKEY][,mtu=BYTES]",
		"create a kernel netdev NAME (rib0) for IP over InfiniBand on PORT (RFC 4391), in "
		"the partition of PKEY (0xffff), with an IP MTU of BYTES (2044)"},
	{"gid", required_argument, SECTION_PORT, true, OWN(set_gid), "PORT,IP[,vid=VLAN]",
		"a static address of PORT"},
	{"neigh", required_argument, SECTION_PORT, true, OWN(set_neigh), "PORT,IP,MAC",
		"a static neighbour on PORT"},
	{"rocev1", optional_argument, SECTION_PORTS, false, OWN(set_rocev1), "[=yes|no|connect]",
		"RoCEv1 GIDs in addition to the RoCEv2 ones; connect: RDMA CM also connects over "
		"RoCEv1"},
	{"gso", optional_argument, SECTION_PORTS, false, OWN(set_gso), "[=yes|no|auto]",
		"pass many frames at a time to and from shared netdevs: to all peers, to none, or "
		"to those that are seen to take them (auto)"},
	{"mtu", required_argument, SECTION_PORT, true, OWN(set_mtu), "PORT,BYTES",
		"Ethernet MTU of PORT"},
	{"queues", required_argument, SECTION_PORT, true, OWN(set_queues), "PORT,N",
		"number of queues of memif PORT, at both ends: as many as rocid has workers (1)"},
	{"flow-label", required_argument, SECTION_PORTS, false, OWN(set_flow_label), "hash|av",
		"IPv6 flow label if the address vector's is 0: a hash of the QPNs, or 0 as Linux "
		"sends it (hash)"},
	{"pkey", required_argument, SECTION_PORT, true, OWN(set_pkey), "PORT,INDEX,PKEY",
		"an entry of PORT's P_Key table (0xffff at 0)"},
	{"priority", required_argument, SECTION_PORT, true, OWN(set_priority), "PORT,PRIORITIES",
		"802.1p priorities: slA[-B]=P,dscpA[-B]=P,tag=yes (the service level, in VLAN tags "
		"only)"},
	{"cc", required_argument, SECTION_PORT, true, OWN(set_cc),
		"PORT,notify|dcqcn|off[,PARAM=VALUE...]",
		"mark packets as ECN-capable, answer those that met congestion with CNPs (notify), "
		"and limit rates when CNPs arrive (dcqcn, hpcc, swift, fixed) (off)"},
	{"ring-pair", optional_argument, SECTION_PORTS, true, OWN(set_ring_pair), "[=IMPAIRMENT]",
		"two more ports, connected to each other in memory"},
	{"impair", required_argument, SECTION_PORT, true, OWN(set_impair), "PORT,IMPAIRMENT",
		"impair the frames that PORT receives: "
		"loss=P,dup=P,reorder=P,corrupt=P,truncate=P,nth=N,mask=HEX,delay=50us,rate=1G,"
		"queue=400K,red=KMIN:KMAX:PMAX,mark=egress|ingress,seed=N,spread=hash|random"},
	{"window", required_argument, SECTION_WORKERS, false,
		COUNT(window, WINDOW_MAX, "a number of packets"), "N",
		"packets in flight per QP (128)"},
	{"workers", required_argument, SECTION_WORKERS, false,
		COUNT(workers, WORKER_MAX, "a number of workers"), "N",
		"worker threads, one per lcore (1)"},
	{"migrate", required_argument, SECTION_WORKERS, false, OWN(set_migrate), "on|off|MS",
		"whether QPs move to the worker on whose queue their packets arrive (on); MS: also "
		"move some every MS milliseconds, to test programs"},
	{"idle", required_argument, SECTION_WORKERS, false, OWN(set_idle), "poll|yield|adaptive",
		"how workers idle: spin, yield the CPU in each round, or sleep (poll)"},
	{"icrc", required_argument, SECTION_WORKERS, false, OWN(set_icrc), "NAME",
		"how to compute CRCs: avx512, vpclmul, pclmul, pmull, isal, table"},
	{"interactive", optional_argument, SECTION_START, false, FLAG(interactive), "[=yes|no]",
		"-i: a prompt, or commands from standard input, one per line; end of file ends "
		"rocid"},
	{"cmdline-file", required_argument, SECTION_START, false, TEXT(cmdline_file, "the path"),
		"FILE", "commands of the prompt to execute first, one per line"},
	{"ready-fd", required_argument, SECTION_START, false, OWN(set_ready_fd), "FD",
		"write a line to FD when serving"},
	{"stats-on-exit", optional_argument, SECTION_START, false, OWN(set_stats), "[=text|json]",
		"print all counters on exit"},
};

_Static_assert(ARRAY_SIZE(row) <= OPTION_ROWS_MAX, "rows of other files");

const struct option_row *options_at(unsigned i)
{
	return i < ARRAY_SIZE(row) ? &row[i] : NULL;
}

const struct option_row *options_find(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(row[i].name, name))
			return &row[i];
	return NULL;
}

const char *options_section(enum option_section section)
{
	static const char *const name[SECTION_MAX] = {
		[SECTION_APPLICATIONS] = "applications",
		[SECTION_PORTS] = "ports",
		[SECTION_PORT] = "port NAME",
		[SECTION_WORKERS] = "workers",
		[SECTION_START] = "start",
	};

	return name[section];
}

int options_set(struct options *o, const char *name, const char *value, char why[VALUE_MAX])
{
	const struct option_row *r = options_find(name);

	if (!r) {
		snprintf(why, VALUE_MAX, "there is no such option");
		return -EINVAL;
	}
	if (!*value && r->argument == required_argument) {
		snprintf(why, VALUE_MAX, "it needs a value, %s", r->value);
		return -EINVAL;
	}
	return value_set(o, &r->type, value, why);
}
