/* SPDX-License-Identifier: BSD-3-Clause */
#include "caller.h"
#include "cm_world.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "bits.h"
#include "headers.h"
#include "session/sessions.h"

const uint8_t gid_any4[16] = {[10] = 0xFF, [11] = 0xFF};
const uint8_t gid_any6[16];

static struct world world;

/* --- what the linker puts in place of rocid's own ------------------------------------------- */

uint64_t __wrap_loop_now_ns(void);
void __wrap_gsi_send(struct gsi *g, const struct cm_path *to, const uint8_t mad[MAD_LEN]);

uint64_t __wrap_loop_now_ns(void)
{
	return world.now;
}

void __wrap_gsi_send(struct gsi *g, const struct cm_path *to, const uint8_t mad[MAD_LEN])
{
	struct world_mad *m = &world.out[world.nout++];

	assert_ptr_equal(g, &world.all->gsi);
	assert_true(world.nout < WORLD_MADS);
	assert_int_equal(mad_check(mad, MAD_LEN), MAD_CM);
	m->path = *to;
	memcpy(m->mad, mad, MAD_LEN);
}

/* --- the peer --------------------------------------------------------------------------------- */

static void peer_sends(void *arg, const struct cm_path *to, const uint8_t mad[MAD_LEN])
{
	struct world_mad *m = &world.in[world.nin++];

	(void)arg;
	(void)to;
	assert_true(world.nin < WORLD_MADS);
	m->path = world.to;
	memcpy(m->mad, mad, MAD_LEN);
}

static enum cm_rej peer_hears(void *arg, const struct cm_event *e)
{
	struct peer_event *to = &world.event[world.nevents++ % PEER_EVENTS];

	(void)arg;
	*to = (struct peer_event){.type = e->type, .id = e->id, .reason = e->reason};
	if (e->private_len)
		memcpy(to->private_data, e->private_data, e->private_len);
	return 0;
}

static struct cm_path turned(const struct cm_path *p)
{
	struct cm_path t = *p;

	memcpy(t.local, p->remote, 16);
	memcpy(t.remote, p->local, 16);
	return t;
}

static void make_peer(struct world *w)
{
	static const struct cm_ops ops = {peer_sends, peer_hears};
	struct cm_conf conf = cm_defaults();

	conf.guid = 0x0200000000000002ull;
	conf.id_key.byte[0] = 77;
	w->to = (struct cm_path){.pkey = 0xFFFF, .net = NET_IPV4, .hop_limit = 64};
	memcpy(w->to.local, gid_peer4, 16);
	memcpy(w->to.remote, gid_own4, 16);
	w->peer = cm_init(calloc(1, cm_size(8192, 64)), 8192, 64, &conf, &ops, w, w->now);
}

const struct peer_event *peer_take(struct world *w, enum cm_event_type type)
{
	const struct peer_event *e = &w->event[w->taken % PEER_EVENTS];

	assert_true(w->taken < w->nevents);
	assert_int_equal(e->type, type);
	w->taken++;
	return e;
}

uint32_t peer_connect(struct world *w, uint64_t service, uint32_t qpn)
{
	struct cma_hdr h = {.family = 4, .src_port = 40000};
	uint8_t hdr[CMA_HDR_LEN];
	const struct cm_param p = {.qpn = qpn,
		.psn = 0x654321,
		.mtu = 3,
		.responder_resources = 4,
		.initiator_depth = 4,
		.private_data = hdr,
		.private_len = sizeof(hdr)};
	uint32_t id;

	memcpy(h.src, w->to.local, 16);
	memcpy(h.dst, w->to.remote, 16);
	cma_write(hdr, &h);
	assert_int_equal(cm_connect(w->peer, &w->to, service, &p, qpn, &id, w->now), 0);
	return id;
}

/* --- the world -------------------------------------------------------------------------------- */

int world_setup(void **state)
{
	struct test_daemon *d = *state;
	char why[ABI_SENTENCE_MAX];

	memset(&world, 0,
		sizeof(world)); /* a literal that is not optimized away is too large for a stack */
	world.d = d;
	world.now = 1000000 * MS;
	daemon_config(d);
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), 0);
	world.ctl = d->ctl;
	world.all = d->ctl->connections;
	assert_int_equal(connections_open(world.all, why), 0);
	make_peer(&world);
	*state = &world;
	return 0;
}

int world_teardown(void **state)
{
	struct test_daemon *d = world.d;

	ctl_destroy(d->ctl);
	d->ctl = NULL;
	rmdir(d->dir);
	free(world.peer);
	*state = d;
	return 0;
}

void world_give(struct world *w, const struct cm_path *from, const uint8_t *mad)
{
	w->all->gsi.mad(w->all->gsi.arg, from, mad, MAD_LEN);
}

void world_run(struct world *w)
{
	while (w->nout || w->nin) {
		const unsigned nout = w->nout, nin = w->nin;
		struct world_mad *out = malloc(sizeof(*out) * (nout + nin + 1)), *in = out + nout;

		memcpy(out, w->out, sizeof(*out) * nout);
		memcpy(in, w->in, sizeof(*in) * nin);
		w->nout = w->nin = 0;
		for (unsigned i = 0; i < nin; i++) {
			const struct cm_path from = turned(&in[i].path);

			world_give(w, &from, in[i].mad);
		}
		for (unsigned i = 0; i < nout; i++) {
			const struct cm_path from = turned(&out[i].path);

			if (w->deaf)
				continue;
			if (!memcmp(out[i].path.remote, gid_peer4, 16))
				cm_mad(w->peer, &from, out[i].mad, MAD_LEN, w->now);
			else /* to ourselves */
				world_give(w, &from, out[i].mad);
		}
		free(out);
	}
}

void world_poll(struct world *w)
{
	while (!connections_poll(w->ctl) || lookups_poll(w->ctl))
		;
}

void world_pass(struct world *w, uint64_t ms)
{
	const uint64_t end = w->now + ms * MS;

	do {
		w->now = RTE_MIN(end, w->now + 500 * MS);
		world_poll(w);
		while (!cm_expire(w->peer, w->now, CM_STEP))
			;
		world_run(w);
	} while (w->now < end);
}

void world_is_empty(struct world *w)
{
	static const enum ctl_kind kinds[] = {CTL_LOOKUPS, CTL_CM_IDS, CTL_CM_PORTS, CTL_LISTENERS,
		CTL_CONNECTIONS, CTL_CM_EVENTS, CTL_CM_REQUESTS};

	assert_int_equal(w->all->ids.used, 0);
	assert_int_equal(w->all->channels.used, 0);
	assert_int_equal(cm_half_open(w->all->cm), 0);
	for (unsigned i = 0; i < BIND_BUCKETS; i++)
		assert_true(list_empty(&w->all->bound[i]));
	for (unsigned i = 0; i < SESSION_MAX; i++)
		assert_true(list_empty(&w->all->lookups[i]));
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_int_equal(w->ctl->sessions->quota.used[kinds[i]], 0);
	assert_true(wheel_deadline(&w->all->resolving) == WHEEL_NEVER);
	world_pass(w, 300 * 1000);
	assert_int_equal(cm_used(w->all->cm), 0);
}

uint64_t world_sent(const struct world *w, enum cm_attr attr)
{
	return cm_counters(w->all->cm)->tx[attr - CM_REQ];
}

uint64_t world_refused(const struct world *w, enum cm_rej reason)
{
	return cm_counters(w->all->cm)->refused[reason];
}

/* --- programs --------------------------------------------------------------------------------- */

static int ask(struct program *p, uint32_t type, const void *body, size_t len, struct reply *r)
{
	struct request q = {.msg = {.type = type}, .body_len = len, .fd = -1};
	int err;

	*r = (struct reply){0};
	if (len)
		memcpy(q.body, body, len);
	err = p->w->ctl->sessions->ops->run(p->s, &q, r);
	assert_true(err <= 0);
	assert_true(!err || r->why[0]); /* a failure comes with a sentence */
	return err;
}

int program_ask(struct program *p, uint32_t type, const void *body, size_t len, void *reply,
	size_t reply_len)
{
	struct reply r;
	int err = ask(p, type, body, len, &r);

	if (!err && reply_len)
		assert_int_equal(r.body_len, reply_len);
	if (!err && reply)
		memcpy(reply, r.body, reply_len);
	for (unsigned i = 0; i < r.nfds; i++)
		close(r.fd[i]);
	return err;
}

static void must(int err)
{
	assert_int_equal(err, 0);
}

static void hello(struct program *p)
{
	const struct abi_hello h = {.magic = ABI_MAGIC,
		.version_min = ABI_VERSION_MIN,
		.version_max = ABI_VERSION,
		.name = "program"};
	struct sessions *all = p->w->ctl->sessions;
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	must(session_open(p->w->ctl, pair[0]));
	p->sock = pair[1];
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (all->session[i] && all->session[i]->watch.fd == pair[0])
			p->s = all->session[i];
	must(program_ask(p, ABI_HELLO, &h, sizeof(h), NULL, 0));
}

void program_qp(struct program *p)
{
	struct abi_create_cq cq = {.depth = 16, .channel = ABI_NO_HANDLE};
	struct abi_create_cq_reply made = {0};
	struct abi_create_qp_reply qp = {0};
	struct abi_handle_reply pd = {0};
	struct abi_create_qp in;

	must(program_ask(p, ABI_ALLOC_PD, NULL, 0, &pd, sizeof(pd)));
	must(program_ask(p, ABI_CREATE_CQ, &cq, sizeof(cq), &made, sizeof(made)));
	in = client_qp_request(pd.handle, made.handle);
	must(program_ask(p, ABI_CREATE_QP, &in, sizeof(in), &qp, sizeof(qp)));
	p->qpn = qp.qpn;
}

void program_open(struct world *w, struct program *p)
{
	struct abi_handle_reply made;
	struct reply r;

	*p = (struct program){.w = w};
	hello(p);
	must(ask(p, ABI_CM_OPEN, NULL, 0, &r));
	memcpy(&made, r.body, sizeof(made));
	assert_int_equal(r.nfds, 1);
	p->fd = r.fd[0];
	p->channel = made.handle;
	program_qp(p);
}

void program_open_as(struct world *w, struct program *p, uid_t uid)
{
	caller = uid;
	program_open(w, p);
	caller = 0;
}

void program_die(struct program *p)
{
	session_close(p->s);
	close(p->sock);
	close(p->fd);
}

uint32_t program_id(struct program *p, uint16_t ps, uint8_t qp_type, uint64_t uid)
{
	const struct abi_cm_create_id in = {
		.channel = p->channel, .ps = ps, .qp_type = qp_type, .uid = uid};
	struct abi_handle_reply out;

	must(program_ask(p, ABI_CM_CREATE_ID, &in, sizeof(in), &out, sizeof(out)));
	return out.handle;
}

struct abi_cm_addr world_addr(const uint8_t ip[16], uint16_t port)
{
	struct abi_cm_addr a = {.family = ip[10] == 0xFF ? 4 : 6, .port = port};

	memcpy(a.ip, ip, 16);
	return a;
}

int program_bind(struct program *p, uint32_t id, const uint8_t ip[16], uint16_t port)
{
	const struct abi_cm_bind in = {.id = id, .addr = world_addr(ip, port)};

	return program_ask(p, ABI_CM_BIND, &in, sizeof(in), NULL, 0);
}

int program_listen(struct program *p, uint32_t id, uint32_t backlog)
{
	const struct abi_cm_listen in = {.id = id, .backlog = backlog};

	return program_ask(p, ABI_CM_LISTEN, &in, sizeof(in), NULL, 0);
}

int program_destroy(struct program *p, uint32_t id, uint32_t *reported)
{
	const struct abi_handle in = {.handle = id};
	struct abi_cm_destroyed out = {0};
	int err = program_ask(p, ABI_CM_DESTROY_ID, &in, sizeof(in), &out, sizeof(out));

	if (reported)
		*reported = out.events_reported;
	return err;
}

int program_option(struct program *p, uint32_t id, uint32_t option, uint32_t value)
{
	const struct abi_cm_set_option in = {.id = id, .option = option, .value = value};

	return program_ask(p, ABI_CM_SET_OPTION, &in, sizeof(in), NULL, 0);
}

int program_simple(struct program *p, uint32_t type, uint32_t handle)
{
	const struct abi_handle in = {.handle = handle};

	return program_ask(p, type, &in, sizeof(in), NULL, 0);
}

uint32_t program_serve(struct program *p, uint16_t port, uint32_t backlog)
{
	uint32_t id = program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);

	must(program_bind(p, id, gid_any4, port));
	must(program_listen(p, id, backlog));
	return id;
}

uint32_t program_resolve(struct program *p, uint16_t port)
{
	uint32_t id = program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 2);
	const struct abi_cm_resolve_addr in = {
		.id = id, .timeout_ms = 1000, .dst = world_addr(gid_peer4, port)};
	const struct abi_cm_resolve_route route = {.id = id};

	must(program_ask(p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0));
	program_take(p, ABI_CM_ADDR_RESOLVED);
	must(program_ask(p, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0));
	program_take(p, ABI_CM_ROUTE_RESOLVED);
	return id;
}

static struct abi_cm_param param_of(const struct program *p)
{
	return (struct abi_cm_param){.qpn = p->qpn,
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7};
}

int program_connect(struct program *p, uint32_t id)
{
	const struct abi_cm_connect in = {.id = id, .param = param_of(p)};

	return program_ask(p, ABI_CM_CONNECT, &in, sizeof(in), NULL, 0);
}

int program_accept(struct program *p, uint32_t id, uint64_t uid)
{
	const struct abi_cm_accept in = {.id = id, .uid = uid, .param = param_of(p)};

	return program_ask(p, ABI_CM_ACCEPT, &in, sizeof(in), NULL, 0);
}

bool program_event(struct program *p, struct abi_cm_event *e)
{
	const struct abi_handle in = {.handle = p->channel};
	int err = program_ask(p, ABI_CM_GET_EVENT, &in, sizeof(in), e, sizeof(*e));

	assert_true(!err || err == -EAGAIN);
	return !err;
}

bool program_readable(const struct program *p)
{
	struct pollfd poll_fd = {.fd = p->fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) == 1;
}

struct abi_cm_event program_take(struct program *p, uint32_t type)
{
	struct abi_cm_event e;

	assert_true(program_readable(p));
	assert_true(program_event(p, &e));
	if (e.event != type)
		fprintf(stderr, "event %u (%d): %s\n", e.event, e.status, e.why);
	assert_int_equal(e.event, type);
	return e;
}
