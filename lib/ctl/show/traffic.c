/* SPDX-License-Identifier: BSD-3-Clause */
/* The PSNs at which each queue pair is: two looks give its packet rate, at no cost to the hot path.
 */
#include "abi_names.h"
#include "config/ctl_parts.h"
#include "pacing.h"
#include "qp.h"
#include "row.h"
#include "session/session.h"
#include "show/show.h"
#include "text/sentence.h"
#include "verbs/qp_obj.h"

static bool next_traffic(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct qp_obj *o = show_next_qp(ctl, at);
	char gid[GID_TEXT] = "";
	const struct qp *qp;
	struct row row;

	if (!o)
		return false;
	qp = o->qp;
	row_begin(&row);
	put_int(&row, "qpn", o->qpn);
	put_int(&row, "session", o->session->number);
	put_text(&row, "program", o->session->program);
	put_text(&row, "type", qp_type_name(qp->type));
	put_text(&row, "state", qp_state_name(LOOK(qp->state)));
	put_int(&row, "port", LOOK(qp->attr.port));
	put_int(&row, "worker", o->worker);
	put_text(&row, "peer", o->dest ? gid_text(qp->attr.ah.dgid, gid) : gid);
	put_int(&row, "peer_qpn", LOOK(qp->attr.dest_qpn));
	put_int(&row, "sent_psn", LOOK(qp->req.psn_new));
	put_int(&row, "expected_psn", LOOK(qp->resp.epsn));
	put_int(&row, "limit_mbps", pacing_rate(qp) / 1000000);
	put_int(&row, "cnps_handled", LOOK(qp->limiter->cnps));
	*element = row_end(&row);
	return true;
}

const struct document_section show_traffic = {.name = "traffic", .next = next_traffic};
