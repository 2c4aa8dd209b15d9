/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cm/id.h
 * Channels, ids and events of programs (abi_cm.h). Control thread.
 */
#ifndef CM_ID_H
#define CM_ID_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_cm.h"
#include "cm.h"
#include "list.h"
#include "wheel.h"

struct cm_lookup;
struct connections;
struct dest_key;
struct reply;
struct request;
struct session;

struct cm_channel {
	struct session *session;
	struct list of_session; /* in session.cm_channels */
	uint32_t handle;
	int fd[2];	    /* a pipe, holding one byte while events are queued */
	struct list ids;    /* cm_id.node, listeners first */
	struct list events; /* cm_note.node, oldest first */
};

enum cm_id_state {
	ID_IDLE,
	ID_RESOLVING,
	ID_ADDR,  /* resolved */
	ID_ROUTE, /* resolved */
	ID_LISTEN,
	ID_CONNECT, /* it has or had a connection */
	ID_STATES,
};

struct cm_id {
	struct connections *all;
	struct cm_channel *channel;
	struct list node;
	struct list events;	 /* cm_note.of, unread */
	struct cm_note *request; /* of a new id: its unread CONNECT_REQUEST, which is on the
				    listener's list */
	uint32_t unread;	 /* unread events */
	uint32_t handle;
	uint32_t reported; /* events that the program has read */
	uint64_t uid;
	uint16_t ps; /* enum abi_cm_ps */
	uint8_t qp_type;
	uint8_t state; /* enum cm_id_state */
	struct abi_cm_addr local, remote;
	struct list bind_node; /* in connections.bound, if `bound` */
	bool bound, reuse, afonly;
	bool chosen;	   /* source and device were chosen by a RESOLVE_ADDR */
	bool active;	   /* the active side */
	bool disconnected; /* DISCONNECTED was raised */
	bool has_path;
	bool address_gone;	  /* reported to the program */
	uint8_t tos, ack_timeout; /* set by options */
	bool has_ack_timeout;
	struct cm_path path;
	uint32_t conn;	   /* of lib/cm; 0: none */
	bool unanswered;   /* a request, charged to CTL_CM_REQUESTS */
	uint32_t qpn;	   /* named by the program */
	uint32_t listener; /* of lib/cm, in ID_LISTEN */
	uint32_t parent;   /* handle of the listener of a new id; 0: none */
	uint32_t psn;	   /* the peer's starting PSN */
	uint8_t resp_res, init_depth;
	/* in ID_RESOLVING */
	struct cm_note *answer; /* the event that will be raised */
	struct cm_lookup *lookup;
	struct list lookup_node;     /* in cm_lookup.ids */
	struct wheel_timer deadline; /* on connections.resolving */
};

/** An event that waits for CM_GET_EVENT. */
struct cm_note {
	struct list node;     /* of the channel */
	struct list of;	      /* of the id `counts` */
	struct cm_id *id;     /* the subject */
	struct cm_id *counts; /* the id whose `reported` includes it: for a CONNECT_REQUEST, the
				 listener */
	bool charged;	      /* to CTL_CM_EVENTS */
	struct abi_cm_event event;
};

/** @return whether the QP type uses datagrams. */
static inline bool id_is_datagram(const struct cm_id *id)
{
	return id->qp_type == ABI_QPT_UD;
}

/** @return the id of @p s with that handle; NULL: refused with -EINVAL. */
struct cm_id *id_named(struct session *s, uint32_t handle, struct reply *r);
struct cm_channel *channel_named(struct session *s, uint32_t handle, struct reply *r);

/** Creates an id on @p ch.  @return 0 or a negative errno with a sentence. */
int id_create(struct cm_channel *ch, const struct abi_cm_create_id *in, struct cm_id **id,
	char why[ABI_SENTENCE_MAX]);

/** Gives back what a channel of @p s was charged. */
void channel_uncharge(struct session *s);

/** Puts @p id, whose state has changed, in its place among those of its channel. */
void id_enlist(struct cm_id *id);

/** Frees its events, and that of the request that made it. */
void id_drop_events(struct cm_id *id);

/* end.c */

/** Ids per step of an operation on many ids. */
#define CM_STEP 64u

/** Destroys it in any state; the peer is notified. */
void id_destroy(struct cm_id *id);

/** Destroys the channel and its ids. */
void channel_destroy(struct cm_channel *ch);

/** @p s is being closed: its listeners accept nothing any more. */
void channels_give_up(struct session *s);

/** Destroys some of its ids and channels.  @return false if none is left. */
bool channels_release_some(struct session *s);

/** @return an event for @p id, to be filled in and raised; NULL: out of memory. */
struct cm_note *note_new(struct cm_id *id, uint32_t type, int32_t status);

/** The same for a command that will raise it; it is charged while it is unread.
 *  @return 0, or a negative errno with a sentence, -ENOBUFS if too many are unread. */
int note_asked(struct cm_id *id, uint32_t type, struct cm_note **n, char why[ABI_SENTENCE_MAX]);

/** Frees an event, raised or not. */
void note_free(struct cm_note *n);

/** Appends the event to the queue of the id's channel. */
void note_raise(struct cm_note *n);

/** Creates and raises an event that has no further details. */
void id_raise(struct cm_id *id, uint32_t type, int32_t status, const char *why);

/* bind.c */

/** Gives @p id the address @p a, whose port may be 0.  @return 0 or a negative errno with a
 *  sentence. */
int id_bind(struct cm_id *id, const struct abi_cm_addr *a, char why[ABI_SENTENCE_MAX]);
void id_unbind(struct cm_id *id);
/** Checks whether another listener has the address. */
int id_check_listen(struct cm_id *id, char why[ABI_SENTENCE_MAX]);
/** @return 0; -EINVAL with a sentence if the family does not say how to read the address; @p mapped
 *  for an IPv4 address within IPv6, which no port has. */
int addr_check(const struct abi_cm_addr *a, int mapped, char why[ABI_SENTENCE_MAX]);
bool addr_is_any(const struct abi_cm_addr *a);
bool addr_is_loopback(const struct abi_cm_addr *a);
/** @return whether an id that is bound to @p a has a device. As in Linux, an id bound to a loopback
 *  address has none and listens at all addresses of its family: libfabric expects an id with a
 *  device to have a real address. */
bool addr_has_device(const struct abi_cm_addr *a);

/* resolve.c */

/** Ends a RESOLVE_ADDR: raises its event. */
void id_resolved(struct cm_id *id, int err, const char *why);
/** Cancels a RESOLVE_ADDR. */
void id_stop_resolving(struct cm_id *id);
/** Sets the device of @p id from its local address, if a port has that. */
bool id_take_device(struct cm_id *id);
/** Raises ADDR_CHANGE, once, if no port has the address of @p id any more. */
void id_check_address(struct cm_id *id);

/* lookup.c */

/** Has the kernel resolve the destination of @p id.
 *  @return 0: it is resolved; -EINPROGRESS: id_resolved() will be called, within @p timeout_ms (0:
 *  the default); another negative errno with a sentence. */
int lookup_begin(struct cm_id *id, const struct dest_key *key, uint32_t timeout_ms,
	char why[ABI_SENTENCE_MAX]);
void lookup_cancel(struct cm_id *id);
/** Ends some of those whose time is over at @p now (ns).  @return whether there may be more. */
bool lookups_expire(struct connections *all, uint64_t now);

/* explain.c */

/** Writes a sentence for a REJ of @p id, or for a peer that did not answer. */
void explain_rejected(const struct cm_id *id, unsigned reason, char *to, size_t size);
void explain_no_service(const struct cm_id *id, unsigned status, char *to, size_t size);
void explain_unreachable(const struct cm_id *id, unsigned message, char *to, size_t size);

/* connect.c */

/** @return the packet lifetime of its path: derived from the ACK timeout, if one is set, as in IBA
 *  12.7.34. */
uint8_t id_packet_life(const struct cm_id *id);

/* events.c */

/** The request of @p id, if it was one, waits for its program no more. */
void id_answered(struct cm_id *id);

/** @return the sender of its MADs: the user, so that users take turns. */
uint32_t id_sender(const struct cm_id *id);

/* attributes.c */
void id_ah(const struct cm_id *id, struct abi_ah_attr *ah);

/* Handlers with the signature of session_ops.run; the body begins with the session's own channel or
 * id. */
int cmd_cm_open(struct session *s, const struct request *q, struct reply *r);
int cmd_cm_close(struct cm_channel *ch, const struct request *q, struct reply *r);
int cmd_cm_create_id(struct cm_channel *ch, const struct request *q, struct reply *r);
int cmd_cm_destroy_id(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_migrate_id(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_get_event(struct cm_channel *ch, const struct request *q, struct reply *r);
int cmd_cm_bind(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_resolve_addr(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_resolve_route(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_listen(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_connect(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_accept(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_reject(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_disconnect(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_notify(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_query(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_init_qp_attr(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_set_option(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_join(struct cm_id *id, const struct request *q, struct reply *r);
int cmd_cm_leave(struct cm_id *id, const struct request *q, struct reply *r);

#endif
