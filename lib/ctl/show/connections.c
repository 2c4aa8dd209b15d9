/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of programs as documents, and the communication manager's counters. */
#include <stdio.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "row.h"
#include "session/session.h"
#include "show/show.h"
#include "text/sentence.h"

static void put_address(struct row *row, const char *column, const struct abi_cm_addr *a)
{
	char ip[GID_TEXT];

	put_text(row, column, a->family ? gid_text(a->ip, ip) : "-");
}

static struct cm_id *next_of(struct ctl *ctl, struct document_cursor *at, bool listening)
{
	struct cm_id *id;

	while ((id = handle_next(&ctl->connections->ids, &at->index)))
		if ((id->state == ID_LISTEN) == listening && (listening || id->conn))
			return id;
	return NULL;
}

static void begin(struct row *row, const struct cm_id *id)
{
	row_begin(row);
	put_int(row, "session", id->channel->session->number);
	put_text(row, "program", id->channel->session->program);
	put_text(row, "space", port_space_name(id->ps));
}

static bool next_listener(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	const struct cm_id *id = next_of(ctl, at, true);
	struct row row;

	if (!id)
		return false;
	begin(&row, id);
	put_address(&row, "address", &id->local);
	put_int(&row, "port", id->local.port);
	put_int(&row, "refused", (int64_t)cm_listener_refused(id->all->cm, id->listener));
	*element = row_end(&row);
	return true;
}

static const char *state_of(const struct ctl *ctl, const struct cm_id *id)
{
	int state = cm_state_of(ctl->connections->cm, id->conn);

	return state < 0 ? "ENDED" : cm_state_name((enum cm_state)state);
}

static bool next_connection(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	const struct cm_id *id = next_of(ctl, at, false);
	struct row row;

	if (!id)
		return false;
	begin(&row, id);
	put_address(&row, "local", &id->local);
	put_int(&row, "local_port", id->local.port);
	put_address(&row, "remote", &id->remote);
	put_int(&row, "remote_port", id->remote.port);
	put_text(&row, "side", id->active ? "active" : "passive");
	put_text(&row, "state", state_of(ctl, id));
	*element = row_end(&row);
	return true;
}

static bool next_message(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	const struct cm_count *n;
	uint32_t i = at->index++;
	struct row row;

	if (!ctl->connections->cm || i >= CM_ATTRS)
		return false;
	n = cm_counters(ctl->connections->cm);
	row_begin(&row);
	put_text(&row, "message", cm_attr_name(CM_REQ + i));
	put_int(&row, "sent", (int64_t)n->tx[i]);
	put_int(&row, "received", (int64_t)n->rx[i]);
	put_int(&row, "repeated", (int64_t)n->repeated[i]);
	put_int(&row, "duplicates", (int64_t)n->duplicates[i]);
	put_int(&row, "ignored", (int64_t)n->ignored[i]);
	*element = row_end(&row);
	return true;
}

static void put_refusals(struct row *row, const struct cm_count *n)
{
	char name[32];

	for (unsigned i = 0; i < ARRAY_SIZE(n->refused); i++) {
		if (!n->refused[i])
			continue;
		snprintf(name, sizeof(name), "refused_reason_%u", i);
		put_int(row, name, (int64_t)n->refused[i]);
	}
}

static json_t *summary(struct ctl *ctl, const struct argument arg[])
{
	const struct connections *all = ctl->connections;
	const struct cm_count *n;
	struct row row;

	if (!all->cm)
		return json_null();
	n = cm_counters(all->cm);
	row_begin(&row);
	put_int(&row, "connections", cm_used(all->cm));
	put_int(&row, "waiting", cm_half_open(all->cm));
	put_int(&row, "ids", all->ids.used);
	put_int(&row, "strangers_limited", (int64_t)n->strangers_limited);
	for (unsigned i = MAD_CM + 1; i < MAD_FAULTS; i++)
		put_int(&row, mad_fault_name((enum mad_fault)i), (int64_t)n->bad[i]);
	put_int(&row, "unresolved", (int64_t)all->gsi.unresolved);
	put_int(&row, "send_queue_full", (int64_t)all->gsi.full);
	put_int(&row, "strange", (int64_t)all->gsi.strange);
	put_refusals(&row, n);
	return row_end(&row);
}

const struct document_section show_cm = {.name = "cm", .object = summary};
const struct document_section show_cm_messages = {.name = "cm_messages", .next = next_message};
const struct document_section show_cm_listeners = {.name = "cm_listeners", .next = next_listener};
const struct document_section show_cm_connections = {
	.name = "cm_connections", .next = next_connection};
