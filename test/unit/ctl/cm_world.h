/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cm_world.h
 * The communication manager of rocid in one thread: programs give commands without a control
 * thread, time is virtual, and what leaves QP1 goes to a peer, which is another communication
 * manager, once it is asked for. Link with
 * -Wl,--wrap=gsi_send,--wrap=loop_now_ns,--wrap=getsockopt.
 */
#ifndef CM_WORLD_H
#define CM_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "abi_cm.h"
#include "cm.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "cm/manager.h"
#include "config/ctl_parts.h"
#include "daemon.h"
#include "session/message.h"
#include "session/session.h"

#define MS	    1000000ull
#define WORLD_MADS  16384u
#define PEER_EVENTS 1024u
#define TCP(port)   (0x01060000ull | (port))
#define UDP(port)   (0x01110000ull | (port))

struct world_mad {
	struct cm_path path; /* of the sender */
	uint8_t mad[MAD_LEN];
};

struct peer_event {
	enum cm_event_type type;
	uint32_t id;
	unsigned reason;
	uint8_t private_data[224];
};

struct world {
	struct test_daemon *d;
	struct ctl *ctl;
	struct connections *all;
	uint64_t now; /* ns */
	/* what rocid sent, and what its peer did, neither delivered yet */
	struct world_mad out[WORLD_MADS], in[WORLD_MADS];
	unsigned nout, nin;
	bool deaf; /* the peer hears nothing */
	struct cm *peer;
	struct cm_path to; /* from the peer to rocid */
	struct peer_event event[PEER_EVENTS];
	unsigned nevents, taken;
};

/** cmocka: a group needs daemon_group_setup() first; *state becomes a struct world. */
int world_setup(void **state);
int world_teardown(void **state);

/** Delivers MADs both ways until none is left. */
void world_run(struct world *w);

/** Does all that is due now, step by step. */
void world_poll(struct world *w);

/** Lets @p ms pass, with what is due. */
void world_pass(struct world *w, uint64_t ms);

/** Everything is as before the programs, once timers have run. */
void world_is_empty(struct world *w);

/** Gives rocid @p mad as from @p from. */
void world_give(struct world *w, const struct cm_path *from, const uint8_t *mad);

/** The next event of the peer, which must be @p type. */
const struct peer_event *peer_take(struct world *w, enum cm_event_type type);

/** The peer connects to @p service of rocid.  @return its connection */
uint32_t peer_connect(struct world *w, uint64_t service, uint32_t qpn);

/** How many MADs of message @p attr rocid has sent, and how many REJs with @p reason. */
uint64_t world_sent(const struct world *w, enum cm_attr attr);
uint64_t world_refused(const struct world *w, enum cm_rej reason);

struct program {
	struct world *w;
	struct session *s;
	int sock;
	uint32_t channel;
	int fd; /* of the channel */
	uint32_t qpn;
};

/** Greeted, with a channel and a QP. */
void program_open(struct world *w, struct program *p);

/** The same for a program of user @p uid. */
void program_open_as(struct world *w, struct program *p, uid_t uid);

/** Makes another QP, which its next connections have. */
void program_qp(struct program *p);

/** It ends, as when it is killed. */
void program_die(struct program *p);

/** @return the result of a command. */
int program_ask(struct program *p, uint32_t type, const void *body, size_t len, void *reply,
	size_t reply_len);

uint32_t program_id(struct program *p, uint16_t ps, uint8_t qp_type, uint64_t uid);
int program_bind(struct program *p, uint32_t id, const uint8_t ip[16], uint16_t port);
int program_listen(struct program *p, uint32_t id, uint32_t backlog);
int program_destroy(struct program *p, uint32_t id, uint32_t *reported);
int program_option(struct program *p, uint32_t id, uint32_t option, uint32_t value);
/** For commands whose body is a handle. */
int program_simple(struct program *p, uint32_t type, uint32_t handle);

/** A TCP id that listens on @p port at all addresses. */
uint32_t program_serve(struct program *p, uint16_t port, uint32_t backlog);

/** A TCP id that is resolved to port @p port of the peer. */
uint32_t program_resolve(struct program *p, uint16_t port);
int program_connect(struct program *p, uint32_t id);
int program_accept(struct program *p, uint32_t id, uint64_t uid);

/** @return whether an event was there. */
bool program_event(struct program *p, struct abi_cm_event *e);

/** The next event, which must be @p type. */
struct abi_cm_event program_take(struct program *p, uint32_t type);

/** Whether the descriptor of the channel is readable. */
bool program_readable(const struct program *p);

extern const uint8_t gid_any4[16], gid_any6[16];

struct abi_cm_addr world_addr(const uint8_t ip[16], uint16_t port);

#endif
