/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file abi_cm.h
 * The messages by which programs use rocid's communication manager (doc/connections.md). They have
 * the units of RDMA CM: event channels, ids, addresses, events. Framing: abi_ctl.h.
 *
 * A CM channel has a queue of events in rocid, and one descriptor, the read end of a pipe: it is
 * readable while the queue is not empty, and hangs up when rocid is gone. Nobody reads from it:
 * CM_GET_EVENT takes the oldest event, or returns EAGAIN. Ids are handles of the session.
 */
#ifndef ABI_CM_H
#define ABI_CM_H

#include <stdint.h>
#include "abi_ctl.h"

/** Private data of a message, at most; longer buffers are refused. */
#define ABI_CM_PRIVATE_MAX 224u

/** Port spaces; the values are those of enum rdma_port_space. */
enum abi_cm_ps {
	ABI_CM_PS_IPOIB = 0x0002,
	ABI_CM_PS_TCP = 0x0106,
	ABI_CM_PS_UDP = 0x0111,
	ABI_CM_PS_IB = 0x013F,
};

/** An IP address and port. IPv4 as ::ffff:a.b.c.d; the family tells :: of IPv6 from 0.0.0.0. */
struct abi_cm_addr {
	uint8_t family; /* 0: none, 4, 6 */
	uint8_t zero;
	uint16_t port;	/* host byte order */
	uint32_t scope; /* ifindex of a link-local address; 0: none */
	uint8_t ip[16];
	uint32_t flow_label; /* of an IPv6 socket address, host byte order; 0: none (ENT-09) */
};

/* CM_OPEN: no body. The reply is struct abi_handle_reply and the descriptor of the channel.
 * CM_CLOSE: struct abi_handle; destroys the ids of the channel, too. */

/* CM_CREATE_ID: the reply is struct abi_handle_reply. */
struct abi_cm_create_id {
	uint32_t channel;
	uint16_t ps;	 /* enum abi_cm_ps */
	uint8_t qp_type; /* enum abi_qp_type */
	uint8_t zero;
	uint64_t uid; /* of the program, repeated in events */
};

/* CM_DESTROY_ID: struct abi_handle. Unread events of the id are dropped. A connection is
 * disconnected, a waiting REQ rejected. CM_DISCONNECT: struct abi_handle. The reply of DESTROY_ID:
 */
struct abi_cm_destroyed {
	uint32_t events_reported; /* by CM_GET_EVENT */
};

/* CM_MIGRATE_ID: moves the id and its unread events. The reply is struct abi_cm_destroyed. */
struct abi_cm_migrate {
	uint32_t id;
	uint32_t channel;
};

/* CM_BIND: port 0 gives an ephemeral one. EADDRINUSE, EADDRNOTAVAIL, EACCES. */
struct abi_cm_bind {
	uint32_t id;
	uint32_t zero;
	struct abi_cm_addr addr;
};

/* CM_RESOLVE_ADDR: an event follows, ADDR_RESOLVED or ADDR_ERROR. Binds the id unless it is. */
struct abi_cm_resolve_addr {
	uint32_t id;
	uint32_t timeout_ms;
	struct abi_cm_addr src; /* family 0: the route decides */
	struct abi_cm_addr dst;
};

/* CM_RESOLVE_ROUTE: an event follows, ROUTE_RESOLVED or ROUTE_ERROR. */
struct abi_cm_resolve_route {
	uint32_t id;
	uint32_t timeout_ms;
};

/* CM_QUERY: struct abi_handle; the reply: */
struct abi_cm_query {
	struct abi_cm_addr local;
	struct abi_cm_addr remote;
	uint64_t node_guid; /* as in abi_device_attr; 0: no device yet */
	uint32_t port;	    /* from 1; 0: none yet */
	uint16_t pkey;
	uint16_t gid_index;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t mtu; /* path MTU in bytes */
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t packet_life; /* 4.096 us * 2^packet_life */
	uint32_t resolved;   /* 1: RESOLVE_ROUTE or a REQ gave the path */
};

/* CM_LISTEN: the events of new connections name the new id and the uid of this one. EADDRINUSE. */
struct abi_cm_listen {
	uint32_t id;
	uint32_t backlog; /* 0: 10,240 */
};

/** As struct rdma_conn_param; in events what the peer sent. */
struct abi_cm_param {
	uint32_t qpn;
	uint32_t qkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint16_t private_len;
	uint8_t private_data[ABI_CM_PRIVATE_MAX];
};

/* CM_CONNECT: for a UD id, requests the peer's QPN (SIDR). The QP must be of this session. */
struct abi_cm_connect {
	uint32_t id;
	uint32_t zero;
	struct abi_cm_param param;
};

/* CM_ACCEPT: the passive side sends a REP or SIDR_REP. The active side, after CONNECT_RESPONSE,
 * sends an RTU; only the private data of `param` is then used. */
struct abi_cm_accept {
	uint32_t id;
	uint32_t zero;
	uint64_t uid; /* passive side: of the new id from now on */
	struct abi_cm_param param;
};

/* CM_REJECT */
struct abi_cm_reject {
	uint32_t id;
	uint8_t reason; /* of the REJ; 0: 28, by the consumer */
	uint8_t zero;
	uint16_t private_len;
	uint8_t private_data[ABI_CM_PRIVATE_MAX];
};

/* CM_INIT_QP_ATTR: the attributes for MODIFY_QP of this side to `state`. */
struct abi_cm_init_qp_attr {
	uint32_t id;
	uint32_t state; /* enum abi_qp_state: INIT, RTR, RTS */
};
struct abi_cm_qp_attr {
	uint32_t mask; /* ABI_QP_*; as Linux sets it */
	uint32_t zero;
	struct abi_qp_attr attr;
};

/* CM_NOTIFY: an event of the QP: ABI_EVENT_COMM_EST establishes the connection (CM-16). */
struct abi_cm_notify {
	uint32_t id;
	uint32_t event;
};

/* CM_SET_OPTION: before BIND, RESOLVE or CONNECT, as it applies. */
enum abi_cm_option {
	ABI_CM_OPT_TOS = 1, /* traffic class of the path */
	ABI_CM_OPT_REUSEADDR,
	ABI_CM_OPT_AFONLY,
	ABI_CM_OPT_ACK_TIMEOUT, /* local ACK timeout of the QP, 0..31 */
};
struct abi_cm_set_option {
	uint32_t id;
	uint32_t option; /* enum abi_cm_option */
	uint32_t value;
};

/* CM_JOIN: an event follows, MULTICAST_JOIN with the address of the group, or MULTICAST_ERROR. The
 * program attaches its QP by ATTACH_MCAST. The reply, struct abi_handle_reply, has the group's
 * handle, which CM_LEAVE takes. */
struct abi_cm_join {
	uint32_t id;
	uint32_t send_only;
	uint64_t uid; /* of the membership, in its events */
	struct abi_cm_addr addr;
};

/** The values are those of enum rdma_cm_event_type. */
enum abi_cm_event_type {
	ABI_CM_ADDR_RESOLVED,
	ABI_CM_ADDR_ERROR,
	ABI_CM_ROUTE_RESOLVED,
	ABI_CM_ROUTE_ERROR,
	ABI_CM_CONNECT_REQUEST,
	ABI_CM_CONNECT_RESPONSE,
	ABI_CM_CONNECT_ERROR,
	ABI_CM_UNREACHABLE,
	ABI_CM_REJECTED,
	ABI_CM_ESTABLISHED,
	ABI_CM_DISCONNECTED,
	ABI_CM_DEVICE_REMOVAL,
	ABI_CM_MULTICAST_JOIN,
	ABI_CM_MULTICAST_ERROR,
	ABI_CM_ADDR_CHANGE,
	ABI_CM_TIMEWAIT_EXIT,
};

/* CM_GET_EVENT: struct abi_handle, of a channel. EAGAIN. */
struct abi_cm_event {
	uint64_t uid; /* of the id; CONNECT_REQUEST: of the listener; join: of the membership */
	uint32_t id;  /* with CONNECT_REQUEST the new one */
	uint32_t listener; /* with CONNECT_REQUEST, else 0 */
	uint32_t event;	   /* enum abi_cm_event_type */
	int32_t status;	   /* negative errno; with REJECTED the reason of the REJ, positive */
	struct abi_cm_param param;
	struct abi_ah_attr ah;	   /* UD: of the peer or the group */
	char why[ABI_WHY_MAX / 2]; /* of a failure: a sentence that says what to do, or empty */
};

#endif
