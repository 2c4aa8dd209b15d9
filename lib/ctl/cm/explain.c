/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences that explain why a connection failed, and what to do. */
#include <stdio.h>
#include "cm/id.h"
#include "text/sentence.h"

static const char *cause_of(unsigned reason)
{
	switch (reason) {
	case CM_REJ_NO_QP:
	case CM_REJ_NO_RESOURCES:
		return "the peer has no room for another connection: its backlog is full, its user "
		       "has all the connections that it may have (rocictl show limits), or it is "
		       "short of QPs";
	case CM_REJ_TIMEOUT:
		return "the peer gave up waiting for an answer: look for lost packets (rocictl "
		       "show "
		       "drops)";
	case CM_REJ_UNSUPPORTED:
		return "the peer does not support the request";
	case CM_REJ_INVALID_COMM_ID:
		return "the peer no longer knows the connection: connect again";
	case CM_REJ_INVALID_TRANSPORT:
		return "the peer does not support the QP type";
	case CM_REJ_STALE_CONN:
		return "the peer considered the QP still connected, and has now ended that "
		       "connection: connect again";
	case CM_REJ_INVALID_GID:
		return "the peer does not accept the path: check the GIDs and P_Keys of both";
	case CM_REJ_INVALID_MTU:
		return "the peer does not accept the path MTU: give both ports the same MTU";
	default:
		return "IBA 12.6.7.2 lists the reason codes";
	}
}

static void nobody_listens(const struct cm_id *id, const char *ip, char *to, size_t size)
{
	snprintf(to, size,
		"nobody listens on %s port %u at %s: start the server, or check its port",
		port_space_name(id->ps), id->remote.port, ip);
}

void explain_rejected(const struct cm_id *id, unsigned reason, char *to, size_t size)
{
	char ip[GID_TEXT];

	gid_text(id->remote.ip, ip);
	if (reason == CM_REJ_INVALID_SERVICE_ID)
		nobody_listens(id, ip, to, size);
	else if (reason == CM_REJ_CONSUMER)
		snprintf(to, size,
			"the program at %s port %u rejected the connection: its private data may "
			"say why",
			ip, id->remote.port);
	else
		snprintf(to, size, "%s port %u rejected the connection (reason %u): %s", ip,
			id->remote.port, reason, cause_of(reason));
}

void explain_no_service(const struct cm_id *id, unsigned status, char *to, size_t size)
{
	char ip[GID_TEXT];

	gid_text(id->remote.ip, ip);
	if (status == CM_SIDR_UNSUPPORTED)
		nobody_listens(id, ip, to, size);
	else
		snprintf(to, size,
			"the program at %s port %u does not disclose its QPN (SIDR status %u): its "
			"private data may say why",
			ip, id->remote.port, status);
}

void explain_unreachable(const struct cm_id *id, unsigned message, char *to, size_t size)
{
	const char *name = cm_attr_name(message);
	char ip[GID_TEXT];

	snprintf(to, size,
		"%s did not answer the %s on %s port %u: check that its RDMA CM runs, and that UDP "
		"port 4791 passes both ways",
		gid_text(id->remote.ip, ip), name ? name : "request", port_space_name(id->ps),
		id->remote.port);
}
