/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a link between two processes: link.py starts one at each end and tells both what to
 * do.
 *
 *   link_bench EAL-ARGUMENTS -- ROCID-OPTIONS   application and worker are one thread: a core an
 * end link_bench --socket PATH                    the application alone; the rocid at PATH runs
 * elsewhere
 *
 * It prints "address GID QPN RKEY VA" and reads lines:
 *   connect GID QPN RKEY VA                       answered "connected MTU"
 *   pingpong write|send SIZE COUNT first|second   the first end tells the times of round trips
 *   raw SIZE COUNT first|second                   the same of a frame that no worker sees
 *   stream SIZE COUNT out|in|both                 WRITEs; an end that sends tells the time
 *   quit
 * Each is answered by one line, of JSON for the measurements. Both ends get the same lines in
 * the same order; each is sent once both have answered the last.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "bits.h"
#include "host.h"
#include "pair.h"
#include "raw.h"
#include "worker.h"

/* Memory: what is sent, what comes in, and a byte that tells the other end that all has come. */
#define HALF	(1u << 20)
#define MEMORY	(2 * HALF + 64u)
#define FLAG	(2 * HALF)
#define DEPTH	128u
#define LIST	16u /* messages of one call, one of which makes a completion */
#define TRIPS	200000u
#define TIMEOUT 21 /* of the ACK, 8.6 s: a pause of the machine is no loss */
/* Round trips that are not counted: more than the rings of most ports have slots, whose pages are
 * new in the first lap. */
#define WARM_UP	  1000u
#define RAW_MIN	  60u
#define RAW_MAX	  1500u
#define RAW_LOOKS 0xFFFFFu /* for a frame that is not lost */
#define WAIT_S	  120.0
#define WAIT_LOOK 0xFFFFFu /* rounds between looks at the clock */

static struct {
	struct worker *worker; /* NULL: --socket */
	struct end end;
	struct end_address peer;
	uint8_t mark; /* of the last message of the ping-pong, and of the last stream */
	uint8_t flag;
	unsigned pending; /* signaled work requests that are not complete */
	unsigned quiet;	  /* others since the last of them */
	unsigned arrived; /* receive completions */
	uint64_t rounds;
	double since;
} here;

static float trip[TRIPS];

static void need(bool ok, const char *what)
{
	if (!ok)
		bench_die("%s: %s", what, roci_last_error());
}

static void be_patient(void)
{
	if ((++here.rounds & WAIT_LOOK) == 0 && bench_ns() - here.since > WAIT_S * 1e9)
		bench_die("nothing came for %.0f s: the other end or the link is gone", WAIT_S);
}

/* One round of all that is on this core. */
static void go_on(void)
{
	if (here.worker)
		worker_round(here.worker);
	else
		sched_yield();
	be_patient();
}

static void poll_cq(void)
{
	struct roci_wc wc[32];
	int n = roci_poll_cq(here.end.cq, 32, wc);

	need(n >= 0, "poll");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != ROCI_WC_SUCCESS)
			bench_die("a message failed: %s", roci_wc_status_str(wc[i].status));
		if (wc[i].opcode == ROCI_WC_RECV)
			here.arrived++;
		else
			here.pending--;
	}
}

static uint8_t at(size_t offset)
{
	return __atomic_load_n((uint8_t *)here.end.mr->addr + offset, __ATOMIC_ACQUIRE);
}

/* --- messages ----------------------------------------------------------------------------- */

static struct roci_sge piece(size_t offset, size_t size)
{
	return (struct roci_sge){
		(uintptr_t)here.end.mr->addr + offset, (uint32_t)size, here.end.mr->lkey};
}

/* One in LIST makes a completion, which stands for those before it too; so does each when @p last.
 */
static void post(enum roci_wr_opcode op, size_t from, size_t to, size_t size, bool last)
{
	bool signaled = last || ++here.quiet == LIST;
	struct roci_sge sge = piece(from, size);
	struct roci_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = signaled ? ROCI_SEND_SIGNALED : 0,
		.wr.rdma = {here.peer.addr + to, here.peer.rkey}};

	while (here.pending >= DEPTH / LIST - 1) {
		go_on();
		poll_cq();
	}
	need(!roci_post_send(here.end.qp, &wr, NULL), "post");
	if (signaled) {
		here.pending++;
		here.quiet = 0;
	}
}

/* For a message of any size: one is always posted. */
static void post_receive(void)
{
	struct roci_sge sge = piece(HALF, HALF);
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	need(!roci_post_recv(here.end.qp, &wr, NULL), "post a receive");
}

/* Places in the memory go round, so that it stays in the cache of a core that has one. */
static void post_list(size_t size, size_t *place)
{
	struct roci_send_wr wr[LIST];
	struct roci_sge sge[LIST];

	for (unsigned i = 0; i < LIST; i++) {
		if (*place + size > HALF / 2)
			*place = 0;
		sge[i] = piece(*place, size);
		wr[i] = (struct roci_send_wr){.next = i + 1 < LIST ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = ROCI_WR_RDMA_WRITE,
			.send_flags = i + 1 < LIST ? 0 : ROCI_SEND_SIGNALED,
			.wr.rdma = {here.peer.addr + HALF + *place, here.peer.rkey}};
		*place += size;
	}
	need(!roci_post_send(here.end.qp, wr, NULL), "post");
	here.pending++;
}

static void drain(void)
{
	while (here.pending) {
		go_on();
		poll_cq();
	}
}

/* --- ping-pong ---------------------------------------------------------------------------- */

static void pass(bool send, size_t size, bool last)
{
	*((uint8_t *)here.end.mr->addr + size - 1) = ++here.mark;
	post(send ? ROCI_WR_SEND : ROCI_WR_RDMA_WRITE, 0, HALF, size, last);
}

/* The mark is right in both cases, but a receive is not done before its completion. */
static void await(bool send, size_t size)
{
	uint8_t mark = (uint8_t)(here.mark + 1);

	while (send ? !here.arrived : at(HALF + size - 1) != mark) {
		go_on();
		if (send || here.pending)
			poll_cq();
	}
	if (send) {
		here.arrived--;
		post_receive();
	}
	here.mark = mark;
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a;
	float y = *(const float *)b;

	return (x > y) - (x < y);
}

static void print_trips(unsigned n)
{
	qsort(trip, n, sizeof(trip[0]), by_value);
	printf("{\"round_trips\": %u, \"median_ns\": %.1f, \"p99_ns\": %.1f, \"min_ns\": %.1f}\n",
		n, trip[n / 2], trip[n - 1 - n / 100], trip[0]);
}

static void pingpong(bool send, size_t size, unsigned count, bool first)
{
	unsigned all = count + WARM_UP;
	unsigned n = 0;

	for (unsigned i = 0; i < all; i++) {
		double start = first ? bench_ns() : 0;

		if (first)
			pass(send, size, i + 1 == all);
		await(send, size);
		if (!first)
			pass(send, size, i + 1 == all);
		else if (i >= WARM_UP)
			trip[n++] = (float)(bench_ns() - start);
	}
	drain();
	if (first)
		print_trips(n);
	else
		puts("{}");
}

/* --- a raw frame -------------------------------------------------------------------------- */

/* The worker of an end that is still to read the order drops the first frame: it is repeated. */
static void await_raw(size_t size, uint32_t number, bool first)
{
	for (uint64_t looks = 1; !raw_arrived(here.worker, number); looks++) {
		if (first && (looks & RAW_LOOKS) == 0)
			raw_send(here.worker, size, number);
		be_patient();
	}
}

static void raw(size_t size, unsigned count, bool first)
{
	for (unsigned i = 0; i < count; i++) {
		double start = bench_ns();

		if (first)
			raw_send(here.worker, size, i);
		await_raw(size, i, first);
		if (!first)
			raw_send(here.worker, size, i);
		trip[i] = (float)(bench_ns() - start);
	}
	if (first)
		print_trips(count);
	else
		puts("{}");
}

/* --- stream ------------------------------------------------------------------------------- */

static void stream(size_t size, unsigned count, bool out, bool in)
{
	double start = bench_ns();
	double ns = 0;
	size_t place = 0;
	unsigned posted = 0;
	uint8_t flag = (uint8_t)(here.flag + 1);

	here.flag = flag;
	while (out && posted < count) {
		if (here.pending < DEPTH / LIST) {
			post_list(size, &place);
			posted += LIST;
		}
		go_on();
		poll_cq();
	}
	drain();
	ns = bench_ns() - start;
	if (out) { /* all has come: say so */
		*((uint8_t *)here.end.mr->addr) = flag;
		post(ROCI_WR_RDMA_WRITE, 0, FLAG, 1, true);
		drain();
	}
	while (in && at(FLAG) != flag)
		go_on();
	if (out)
		printf("{\"messages\": %u, \"ns\": %.0f}\n", posted, ns);
	else
		puts("{}");
}

/* --- orders ------------------------------------------------------------------------------- */

static void apart(void (*fn)(void *arg), void *arg)
{
	if (here.worker)
		host_while(fn, arg);
	else
		fn(arg);
}

static void open_end(void *socket)
{
	struct end_address a;
	char gid[INET6_ADDRSTRLEN];

	end_open_deep(&here.end, socket, MEMORY, DEPTH);
	memset(here.end.mr->addr, 0, MEMORY);
	end_to_init(&here.end, 1);
	post_receive();
	a = end_address(&here.end, 1);
	inet_ntop(AF_INET6, a.gid.raw, gid, sizeof(gid));
	printf("address %s %u %u %llu\n", gid, a.qpn, a.rkey, (unsigned long long)a.addr);
}

static void connect_end(void *arg)
{
	struct roci_port_attr port = {.size = sizeof(port)};
	struct end_tuning tuning = {.timeout = TIMEOUT, .retry_cnt = 7};

	need(!roci_query_port(here.end.ctx, 1, &port), "port 1");
	tuning.mtu = port.active_mtu;
	end_to_rts(&here.end, 1, &here.peer, &tuning);
	printf("connected %d\n", 128 << port.active_mtu);
}

static void close_end(void *arg)
{
	end_close(&here.end);
}

static void order_connect(char *word[])
{
	if (inet_pton(AF_INET6, word[1], here.peer.gid.raw) != 1)
		bench_die("%s is no GID", word[1]);
	here.peer.qpn = (uint32_t)strtoul(word[2], NULL, 10);
	here.peer.rkey = (uint32_t)strtoul(word[3], NULL, 10);
	here.peer.addr = strtoull(word[4], NULL, 10);
	apart(connect_end, NULL);
	bench_settle();
}

static void order_pingpong(char *word[])
{
	bool send = !strcmp(word[1], "send");
	size_t size = strtoul(word[2], NULL, 10);
	unsigned count = (unsigned)strtoul(word[3], NULL, 10);

	if (!size || size > HALF || !count || count > TRIPS)
		bench_die("pingpong: sizes up to %u, counts up to %u", HALF, TRIPS);
	pingpong(send, size, count, !strcmp(word[4], "first"));
}

static void order_raw(char *word[])
{
	size_t size = strtoul(word[1], NULL, 10);
	unsigned count = (unsigned)strtoul(word[2], NULL, 10);

	if (!here.worker)
		bench_die("raw: the port is another process's");
	if (size < RAW_MIN || size > RAW_MAX || !count || count > TRIPS)
		bench_die("raw: sizes from %u to %u, counts up to %u", RAW_MIN, RAW_MAX, TRIPS);
	raw(size, count, !strcmp(word[3], "first"));
}

static void order_stream(char *word[])
{
	size_t size = strtoul(word[1], NULL, 10);
	unsigned count = (unsigned)strtoul(word[2], NULL, 10);
	bool both = !strcmp(word[3], "both");

	if (!size || size > HALF / 2 || !count)
		bench_die("stream: sizes up to %u", HALF / 2);
	stream(size, count, both || !strcmp(word[3], "out"), both || !strcmp(word[3], "in"));
}

static const struct order {
	const char *name;
	unsigned words;
	void (*obey)(char *word[]);
} order[] = {
	{"connect", 5, order_connect},
	{"pingpong", 5, order_pingpong},
	{"raw", 4, order_raw},
	{"stream", 4, order_stream},
};

struct input {
	char line[256];
	bool end;
};

static void read_line(void *arg)
{
	struct input *in = arg;

	in->end = !fgets(in->line, sizeof(in->line), stdin);
}

/* @return false when there is nothing more to do. */
static bool obey(char *line)
{
	char *word[6];
	unsigned n = 0;
	char *save;

	for (char *w = strtok_r(line, " \n", &save); w && n < 6; w = strtok_r(NULL, " \n", &save))
		word[n++] = w;
	if (n && !strcmp(word[0], "quit"))
		return false;
	here.since = bench_ns();
	for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
		if (n == order[i].words && !strcmp(word[0], order[i].name)) {
			order[i].obey(word);
			return true;
		}
	bench_die("%s: an order that is not known", n ? word[0] : "an empty line");
}

int main(int argc, char *argv[])
{
	struct input in;
	bool alone = argc == 3 && !strcmp(argv[1], "--socket");

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!alone)
		here.worker = host_start_at(argc, argv);
	apart(open_end, alone ? argv[2] : (char *)host_socket());
	do
		apart(read_line, &in);
	while (!in.end && obey(in.line));
	apart(close_end, NULL);
	if (!alone)
		host_stop();
	return 0;
}
