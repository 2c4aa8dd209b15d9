/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that change how QPs and ports address and mark packets, on a real control thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "admin/command.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "daemon.h"
#include "headers.h"
#include "net/congestion.h"
#include "net/net.h"
#include "net/netport.h"
#include "net/gids.h"
#include "qp.h"
#include "qp_table.h"
#include "text/document.h"
#include "verbs/dest.h"

#define V1_EUI64 9 /* of peer_eui64 */

static const uint8_t peer_eui64[16] = {0xFE, 0x80, [8] = 0, 0, 0, 0xFF, 0xFE, 0, 0, V1_EUI64};
static const uint8_t own_v1[16] = {0xFE, 0x80, [15] = 1};
static struct client c;
static struct abi_create_qp_reply qp;
static _Thread_local unsigned until_failure; /* 1: this thread's next allocation fails; 0: none */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return until_failure && !--until_failure ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return until_failure && !--until_failure ? NULL : __real_calloc(n, size);
}

/* A lookup that takes until the test answers it. */
static struct {
	bool wanted;
	struct neigh_query *query;
} slow;

int __real_dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q,
	bool *local, char why[ABI_SENTENCE_MAX]);
int __wrap_dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q,
	bool *local, char why[ABI_SENTENCE_MAX]);
int __wrap_dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q,
	bool *local, char why[ABI_SENTENCE_MAX])
{
	int err = __real_dest_find(ctl, key, q, local, why);

	if (err || !slow.wanted)
		return err;
	slow.wanted = false;
	slow.query = q;
	return -EINPROGRESS;
}

static int setup(void **state)
{
	static struct ctl_gid gid[3];
	struct test_daemon *d = *state;

	daemon_config(d);
	memcpy(gid, d->cfg.port[0].gids, 2 * sizeof(*gid));
	memcpy(gid[2].gid, own_v1, 16);
	d->cfg.port[0].gids = gid;
	d->cfg.port[0].ngids = 3;
	d->cfg.rocev1 = true;
	daemon_run(d);
	client_open(d, &c);
	qp = client_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	return 0;
}

static int teardown(void **state)
{
	client_close(&c);
	return daemon_teardown(state);
}

static int modify(struct abi_modify_qp m, struct answer *a)
{
	m.handle = qp.handle;
	return client_call(c.sock, ABI_MODIFY_QP, &m, sizeof(m), -1, a);
}

static int to_init(uint16_t pkey_index, struct answer *a)
{
	return modify(
		(struct abi_modify_qp){.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT |
					       ABI_QP_ACCESS_FLAGS,
			.attr = {.qp_state = ABI_QPS_INIT, .port = 1, .pkey_index = pkey_index}},
		a);
}

static struct abi_modify_qp rtr(uint8_t sgid_index, const uint8_t dgid[16])
{
	struct abi_modify_qp m = {.mask = ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU |
					  ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
					  ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER,
		.attr = {.qp_state = ABI_QPS_RTR,
			.path_mtu = 1024,
			.dest_qpn = 0x123,
			.ah = {.port = 1,
				.is_global = 1,
				.hop_limit = 9,
				.sl = 3,
				.traffic_class = 0x20,
				.sgid_index = sgid_index}}};

	memcpy(m.attr.ah.dgid, dgid, 16);
	memset(m.attr.ah.dmac, 0xFF, 6);
	return m;
}

static int to_rtr(uint8_t sgid_index, const uint8_t dgid[16], struct answer *a)
{
	return modify(rtr(sgid_index, dgid), a);
}

static const struct path *path(const struct test_daemon *d)
{
	return &atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)])->path;
}

/* A line of an administrator; returns the reply, to be freed. */
static char *ask(struct test_daemon *d, const char *fmt, ...)
{
	struct document doc = {0};
	struct text text = {0};
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	daemon_pause(d);
	assert_int_equal(admin_execute(d->ctl, line, &doc, &text), 0);
	for (int more = doc.section != NULL; more > 0;)
		more = document_part(&doc, &text);
	daemon_resume(d);
	assert_int_equal(text_add(&text, "", 1), 0);
	return text.bytes;
}

static void done(struct test_daemon *d, const char *what, unsigned long value)
{
	char *reply = ask(d, "set qp %u %s %lu", qp.qpn, what, value);

	assert_non_null(strstr(reply, "\"done\""));
	free(reply);
}

static void refused(struct test_daemon *d, const char *why, const char *what, unsigned long value)
{
	char *reply = ask(d, "set qp %u %s %lu", qp.qpn, what, value);

	if (!strstr(reply, "\"error\"") || !strstr(reply, why))
		fail_msg("%s %lu: %s", what, value, reply);
	free(reply);
}

/* The counts from before the administrator's reset are subtracted, and nothing else. */
static void show_counters__of_an_idle_daemon(void **state)
{
	struct test_daemon *d = *state;
	char *reply = ask(d, "show counters");
	json_t *root = json_loads(reply, 0, NULL), *value;
	const char *name;
	unsigned n = 0;

	json_object_foreach(json_object_get(root, "counters"), name, value)
	{
		if (json_integer_value(value))
			fail_msg("%s: %lld", name, (long long)json_integer_value(value));
		n++;
	}
	assert_true(n > 10);
	json_decref(root);
	free(reply);
}

/* proves UDP-08, UDP-11: each for itself; all else of the path stays. */
static void set_qp__changes_the_path(void **state)
{
	struct path was;
	struct answer a;

	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(1, gid_peer6, &a), 0);
	was = *path(*state);
	done(*state, "sport", 0xC123);
	assert_int_equal(path_sport(path(*state)), 0xC123);
	done(*state, "hop-limit", 77);
	done(*state, "traffic-class", 0xFF);
	assert_int_equal(path(*state)->hdr[was.l3_off + IP6_HLIM], 77);
	assert_int_equal(get_be16(path(*state)->hdr + was.l3_off) >> 4 & 0xFF, 0xFC); /* CA17-14 */
	assert_int_equal(path_sport(path(*state)), 0xC123);
	done(*state, "flow-label", 0x12345);
	assert_int_equal(path_flow_label(path(*state)), 0x12345);
	assert_int_equal(path_sport(path(*state)), 0xE341); /* ENT-01 */
	done(*state, "flow-label", 0);
	done(*state, "hop-limit", 9);
	done(*state, "traffic-class", 0x20);
	assert_memory_equal(path(*state), &was, sizeof(was));
}

/* proves UDP-11: what the program asks for next takes its place. */
static void set_qp__until_the_next_address_vector(void **state)
{
	const struct abi_modify_qp reset = {
		.mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_RESET}};
	uint16_t sport;
	struct answer a;

	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(0, gid_peer4, &a), 0);
	sport = path_sport(path(*state));
	done(*state, "sport", 0xFFFF);
	assert_int_equal(path_sport(path(*state)), 0xFFFF);
	assert_int_equal(modify(reset, &a), 0);
	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(0, gid_peer4, &a), 0);
	assert_int_equal(path_sport(path(*state)), sport);
	done(*state, "hop-limit", 1); /* the former source port is forgotten */
	assert_int_equal(path_sport(path(*state)), sport);
}

static void set_qp__refuses(void **state)
{
	struct answer a;

	refused(*state, "no path", "sport", 0xC000);
	refused(*state, "no path", "flow-label", 1);
	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(0, gid_peer4, &a), 0);
	refused(*state, "49152", "sport", 0xBFFF); /* UDP-10 */
	refused(*state, "65535", "sport", 0x10000);
	refused(*state, "1048575", "flow-label", 0x100000);
	refused(*state, "255", "traffic-class", 256);
	refused(*state, "255", "hop-limit", 256);
	refused(*state, "0 to 7", "sl", 8); /* ETH-06 */
}

/* proves ETH-13, V1-05, V1-07, GID-02, GID-05: the type of the SGID entry; the MAC is in the DGID,
 * and no neighbour table knows it. */
static void modify_qp__rocev1_link_local(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, V1_EUI64};
	uint8_t group[16];
	struct answer a;

	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(2, peer_eui64, &a), -EHOSTUNREACH); /* RoCEv2 asks for neighbours */
	memcpy(group, peer_eui64, 16);
	group[8] |= 1;
	assert_int_equal(to_rtr(GID_ROCEV1_FIRST + 2, group, &a), -EHOSTUNREACH); /* no station's */
	group[8] = 0;
	group[11] = 0;
	assert_int_equal(to_rtr(GID_ROCEV1_FIRST + 2, group, &a), -EHOSTUNREACH); /* no EUI-64 */
	assert_int_equal(to_rtr(GID_ROCEV1_FIRST + 2, peer_eui64, &a), 0);
	assert_int_equal(path(*state)->net, NET_ROCEV1);
	assert_memory_equal(path(*state)->hdr + ETH_DST, mac, 6);
	refused(*state, "flow-label", "sport", 0xC000);
	done(*state, "flow-label", 0xABCDE);
	assert_int_equal(path_flow_label(path(*state)), 0xABCDE);
}

/* proves V1-04: a link-local destination on the same link has a GRH like any other. */
static void modify_qp__rocev1_needs_a_grh(void **state)
{
	struct abi_modify_qp m = rtr(GID_ROCEV1_FIRST + 2, peer_eui64);
	struct answer a;

	assert_int_equal(to_init(0, &a), 0);
	m.attr.ah.is_global = 0;
	assert_int_equal(modify(m, &a), -EINVAL);
	assert_non_null(strstr((char *)a.body, "is_global"));
	m.attr.ah.sgid_index = 2; /* RoCEv2 */
	assert_int_equal(modify(m, &a), -EINVAL);
	assert_non_null(strstr((char *)a.body, "is_global"));
}

/* proves V1-01: the GRH has the hop limit of the address vector, 0 too. */
static void modify_qp__rocev1_hop_limit(void **state)
{
	struct answer a;

	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(GID_ROCEV1_FIRST + 2, peer_eui64, &a), 0);
	for (unsigned hops = 0; hops < 3; hops++) {
		done(*state, "hop-limit", hops);
		assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP6_HLIM], hops);
	}
}

/* --- ports ------------------------------------------------------------------------------ */

/* proves ETH-05: of QPs that are connected from then on, and of a CNP to anybody. */
static void set_port__priority(void **state)
{
	const struct test_daemon *d = *state;
	const struct port *shared = d->ctl->net->port[0].shared;
	struct answer a;

	free(ask(*state, "set port 1 priority sl3=6,dscp46=1,tag=yes"));
	assert_true(shared->priority_tag);
	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(0, gid_peer4, &a), 0);
	assert_int_equal(path_tci(path(*state)), 6 << 13);
	done(*state, "traffic-class", 46 << 2);
	assert_int_equal(path_tci(path(*state)), 1 << 13);
	done(*state, "traffic-class", 0);
	done(*state, "sl", 2);
	assert_int_equal(path_tci(path(*state)), 2 << 13);
	free(ask(*state, "set port 1 priority default"));
	assert_false(shared->priority_tag);
	assert_int_equal(path_tci(path(*state)), 2 << 13);
	done(*state, "sl", 2);
	assert_int_equal(path_tci(path(*state)), -1);
}

/* proves CNP-10, IP4-05: workers answer marks so at once, and the packets of QPs, connected before
 * or after, are ECN-capable. */
static void set_port__cc(void **state)
{
	struct answer a;
	char *reply = ask(*state, "set port 1 cc sometimes");

	assert_non_null(strstr(reply, "not one of off, notify"));
	free(reply);
	free(ask(*state, "set port 1 cc notify,np_cnp_dscp=46"));
	assert_int_equal(to_init(0, &a), 0);
	assert_int_equal(to_rtr(0, gid_peer4, &a), 0);
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TOS] & 3, ECN_ECT0);
	free(ask(*state, "set port 1 cc off"));
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TOS] & 3, 0);
	free(ask(*state, "set port 1 cc dcqcn,line=10G"));
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TOS] & 3, ECN_ECT0);
	free(ask(*state, "set port 1 cc off"));
	done(*state, "traffic-class", 4);
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TOS], 4);
}

/* Sends @p m, whose lookup is answered after the administrator's @p line. */
static void modify_slowly(struct test_daemon *d, struct abi_modify_qp m, const char *line)
{
	struct abi_handle h = {qp.handle};
	struct {
		struct abi_msg msg;
		struct abi_modify_qp body;
	} request = {{.type = ABI_MODIFY_QP}, m};
	struct answer a;

	request.body.handle = qp.handle;
	slow.wanted = true;
	client_send(c.sock, &request, sizeof(request), NULL, 0);
	assert_int_equal(client_call(c.sock, ABI_QUERY_QP, &h, sizeof(h), -1, &a), 0);
	assert_false(slow.wanted);
	free(ask(d, "%s", line));
	daemon_pause(d);
	slow.query->done(slow.query, 0, NULL);
	daemon_resume(d);
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.type, ABI_MODIFY_QP);
	assert_int_equal(a.msg.status, 0);
}

/* proves CNP-14: a QP gets the port's setting as it is when its path is complete. */
static void set_port__cc_during_a_lookup(void **state)
{
	struct abi_modify_qp reset = {.mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_RESET}};
	struct answer a;

	assert_int_equal(to_init(0, &a), 0);
	modify_slowly(*state, rtr(0, gid_peer4), "set port 1 cc notify");
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TOS] & 3, ECN_ECT0);
	assert_int_equal(modify(reset, &a), 0);
	assert_int_equal(to_init(0, &a), 0);
	modify_slowly(*state, rtr(0, gid_peer4), "set port 1 cc off");
	assert_int_equal(path(*state)->hdr[path(*state)->l3_off + IP4_TOS] & 3, 0);
}

/* Executes @p line with each allocation failing in turn, until it succeeds.
 * @param same  checks after each failure that nothing has changed
 * @return the number of failures. */
static unsigned starve(struct test_daemon *d, const char *line, void (*same)(struct test_daemon *d))
{
	for (unsigned n = 1;; n++) {
		char *reply;
		bool is_done;

		until_failure = n;
		reply = ask(d, "%s", line);
		until_failure = 0;
		is_done = strstr(reply, "\"done\"") != NULL;
		if (!is_done && !strstr(reply, "out of memory"))
			fail_msg("%s: %s", line, reply);
		free(reply);
		if (is_done)
			return n - 1;
		same(d);
	}
}

/* Port 1 is as after "set port 1 cc dcqcn,line=10G". */
static void port_limits_10g(struct test_daemon *d)
{
	const struct netport *p = &d->ctl->net->port[0];

	assert_true(p->shared->cc->ops == &cc_dcqcn && p->shared->cc->line == 10e9);
	assert_true(p->congestion->cfg.ops == &cc_dcqcn && p->congestion->cfg.line == 10e9);
	assert_int_equal(p->shared->cnp_interval, 50000);
	assert_null(p->shared->switches);
}

/* An algorithm must not be lost silently. */
static void set_port__cc_without_memory(void **state)
{
	free(ask(*state, "set port 1 cc dcqcn,line=10G"));
	assert_true(starve(*state, "set port 1 cc dcqcn,fastcnp=fd00::1,np_min_time_between_cnps=7",
			    port_limits_10g) >= 2);
	free(ask(*state, "set port 1 cc off"));
}

static void choose(struct test_daemon *d, const char *choice, const char *said)
{
	char *reply = ask(d, "set qp %u cc %s", qp.qpn, choice);

	if (!strstr(reply, said))
		fail_msg("%s: %s", choice, reply);
	free(reply);
}

static void shows(struct test_daemon *d, const char *what)
{
	char *reply = ask(d, "show qp %u", qp.qpn);

	if (!strstr(reply, what))
		fail_msg("no %s: %s", what, reply);
	free(reply);
}

/* The congestion control of one QP, in place of its port's, whose line it follows. */
static void set_qp__cc(void **state)
{
	struct answer a;

	choose(*state, "off", "has no port yet");
	assert_int_equal(to_init(0, &a), 0);
	choose(*state, "off", "done"); /* as its port */
	choose(*state, "dcqcn", "congestion control of port 1 is off");
	choose(*state, "port", "done");
	shows(*state, "\"own_cc\":null");
	free(ask(*state, "set port 1 cc dcqcn,line=10G"));
	choose(*state, "fixed,rate=3", "done");
	shows(*state, "\"own_cc\":\"fixed,profile=plain,rate=3\"");
	shows(*state, "\"rate_mbps\":3.0");
	choose(*state, "dcqcn,np_cnp_dscp=3", "set port PORT cc np_cnp_dscp");
	choose(*state, "hpcc", "hpcc needs telemetry, and port 1");
	choose(*state, "notify", "not one of port, off, dcqcn");
	shows(*state, "\"rate_mbps\":3.0");
	choose(*state, "dcqcn,profile=ns3hpcc", "done");
	shows(*state, "\"rate_mbps\":10000.0");
	shows(*state, "rp_ai_rate=2,");
	free(ask(*state, "set port 1 cc line=50G"));
	shows(*state, "\"rate_mbps\":50000.0");
	shows(*state, "rp_ai_rate=10,"); /* per 25 Gb/s */
	choose(*state, "rp_min_rate=7", "done");
	shows(*state, "rp_min_rate=7,");
	free(ask(*state, "set port 1 cc off"));
	shows(*state, "\"algorithm\":null");
	free(ask(*state, "set port 1 cc notify"));
	shows(*state, "\"algorithm\":\"dcqcn\"");
	choose(*state, "off", "done");
	shows(*state, "\"own_cc\":\"off\"");
	shows(*state, "\"algorithm\":null");
}

static void qp_has_rate_3(struct test_daemon *d)
{
	shows(d, "\"own_cc\":\"fixed,profile=plain,rate=3\"");
	shows(d, "\"rate_mbps\":3.0");
}

static void qp_follows_port(struct test_daemon *d)
{
	shows(d, "\"own_cc\":null");
}

/* A QP keeps its algorithm when memory is short, although nobody learns of it. */
static void set_qp__cc_without_memory(void **state)
{
	struct answer a;
	char line[64];

	assert_int_equal(to_init(0, &a), 0);
	free(ask(*state, "set port 1 cc dcqcn,line=10G"));
	snprintf(line, sizeof(line), "set qp %u cc fixed,rate=3", qp.qpn);
	assert_true(starve(*state, line, qp_follows_port) >= 2);
	snprintf(line, sizeof(line), "set qp %u cc fixed,rate=4", qp.qpn);
	assert_true(starve(*state, line, qp_has_rate_3) >= 1);
	for (unsigned n = 1; n < 4; n++) { /* the port's own copy is the first */
		until_failure = n;
		free(ask(*state, "set port 1 cc line=50G"));
		until_failure = 0;
		shows(*state, "\"rate_mbps\":4.0");
	}
	free(ask(*state, "set port 1 cc off"));
}

/* proves CA17-16: what needs telemetry holds as long as the port has it. */
static void set_qp__hpcc(void **state)
{
	struct answer a;

	assert_int_equal(to_init(0, &a), 0);
	free(ask(*state, "set port 1 cc hpcc"));
	choose(*state, "base_rtt=5", "done");
	shows(*state, "base_rtt=5,");
	free(ask(*state, "set port 1 cc dcqcn"));
	shows(*state, "\"algorithm\":null");
	free(ask(*state, "set port 1 cc hpcc"));
	shows(*state, "\"algorithm\":\"hpcc\"");
	free(ask(*state, "set port 1 cc off"));
}

/* A QP that goes to another port follows that one's line. */
static void set_qp__cc_of_another_port(void **state)
{
	struct abi_modify_qp m = {.mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_RESET}};
	struct answer a;

	free(ask(*state, "set port 1 cc dcqcn,line=10G"));
	free(ask(*state, "set port 2 cc swift,line=40G"));
	assert_int_equal(to_init(0, &a), 0);
	choose(*state, "rp_min_rate=9", "done");
	assert_int_equal(modify(m, &a), 0);
	m.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS;
	m.attr = (struct abi_qp_attr){.qp_state = ABI_QPS_INIT, .port = 2};
	assert_int_equal(modify(m, &a), 0);
	shows(*state, "\"algorithm\":\"dcqcn\"");
	shows(*state, "\"rate_mbps\":40000.0");
	free(ask(*state, "set port 1 cc off"));
	free(ask(*state, "set port 2 cc off"));
}

/* An administrator limits a QP, in any state. */
static void set_qp__rate(void **state)
{
	struct answer a;
	char *reply;

	assert_int_equal(to_init(0, &a), 0);
	free(ask(*state, "set qp %u rate 1.5G", qp.qpn));
	reply = ask(*state, "show qp %u", qp.qpn);
	assert_non_null(strstr(reply, "\"limit_mbps\":1500.0"));
	free(reply);
	reply = ask(*state, "show cc");
	assert_non_null(strstr(reply, "\"rate_mbps\":1500.0"));
	free(reply);
	free(ask(*state, "set qp %u rate off", qp.qpn));
	reply = ask(*state, "show qp %u", qp.qpn);
	assert_non_null(strstr(reply, "\"limit_mbps\":null"));
	free(reply);
	reply = ask(*state, "set qp %u rate 100", qp.qpn);
	assert_non_null(strstr(reply, "neither a rate from 1M to 1000G"));
	free(reply);
}

static uint32_t next_event(void)
{
	struct abi_event ev = {0};

	return recv(c.async, &ev, sizeof(ev), 0) == sizeof(ev) ? ev.type : 0;
}

/* proves BTH-11, VAL-09, GID-07, QPS-15: the QP's entry changes under it, and programs get an
 * event. */
static void set_port__pkey(void **state)
{
	struct test_daemon *d = *state;
	struct qp *q = atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)]);
	char *reply;
	struct answer a;

	assert_int_equal(to_init(3, &a), -EINVAL); /* QPS-15: empty */
	assert_non_null(strstr((char *)a.body, "empty"));
	assert_int_equal(to_init(PKEY_MAX, &a), -EINVAL);
	free(ask(d, "set port 1 pkey 3 0x8123"));
	assert_int_equal(next_event(), ABI_EVENT_PKEY_CHANGE);
	assert_int_equal(to_init(3, &a), 0);
	assert_int_equal(q->pkey, 0x8123);
	free(ask(d, "set port 1 pkey 3 0x123"));
	assert_int_equal(q->pkey, 0x123);
	assert_int_equal(next_event(), ABI_EVENT_PKEY_CHANGE);
	free(ask(d, "set port 2 pkey 3 0x8777"));
	assert_int_equal(q->pkey, 0x123);
	reply = ask(d, "show pkeys port 1");
	assert_non_null(strstr(reply, "0x0123"));
	assert_non_null(strstr(reply, "limited"));
	assert_non_null(strstr(reply, "0xffff"));
	assert_null(strstr(reply, "0x8777"));
	free(reply);
	reply = ask(d, "set port 1 pkey %u 1", PKEY_MAX);
	assert_non_null(strstr(reply, "error"));
	free(reply);
	reply = ask(d, "set port 1 pkey 1 0x10000");
	assert_non_null(strstr(reply, "error"));
	free(reply);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(show_counters__of_an_idle_daemon),
		T(set_qp__changes_the_path),
		T(set_qp__until_the_next_address_vector),
		T(set_qp__refuses),
		T(modify_qp__rocev1_link_local),
		T(modify_qp__rocev1_needs_a_grh),
		T(modify_qp__rocev1_hop_limit),
		T(set_port__priority),
		T(set_port__cc),
		T(set_port__cc_during_a_lookup),
		T(set_port__cc_without_memory),
		T(set_qp__cc),
		T(set_qp__cc_without_memory),
		T(set_qp__hpcc),
		T(set_qp__cc_of_another_port),
		T(set_qp__rate),
		T(set_port__pkey),
	};

	return cmocka_run_group_tests_name(
		"admin_path", tests, daemon_group_setup, daemon_group_teardown);
}
