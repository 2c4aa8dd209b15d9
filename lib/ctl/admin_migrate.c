/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include "admin_command.h"
#include "admin_migrate.h"
#include "headers.h"
#include "migrate.h"
#include "sentence.h"
#include "state.h"

/* @return whether @p word is a number, in C's notations, of at most @p most. */
static bool number(const char *word, uint32_t most, uint32_t *n)
{
	char *end;
	unsigned long value;

	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	value = strtoul(word, &end, 0);
	if (errno || *end || value > most)
		return false;
	*n = (uint32_t)value;
	return true;
}

/* A session that is ending has withdrawn its QPs from the table. */
static struct qp_obj *find_qp(struct ctl *ctl, uint32_t qpn)
{
	struct qp *qp =
		atomic_load_explicit(&ctl->dp->qps->slot[QPN_SLOT(qpn)], memory_order_relaxed);
	struct session *s = qp ? ctl->session[qp->session % SESSION_MAX] : NULL;

	return s && qp->qpn == qpn ? handle_get(&s->qps, qp->handle) : NULL;
}

int admin_migrate(struct ctl *ctl, char *const arg[], char why[ABI_SENTENCE_MAX])
{
	uint32_t nworkers = ctl->dp->nworkers;
	uint32_t qpn, worker;
	struct qp_obj *o;

	if (!number(arg[0], QPN_MULTICAST, &qpn) || !(o = find_qp(ctl, qpn)))
		return refuse(
			why, -ENOENT, "there is no QP %.32s: \"show qps\" lists them", arg[0]);
	if (!number(arg[1], nworkers - 1, &worker))
		return refuse(why, -EINVAL, "there is no worker %.32s: this rocid has 0 to %u",
			arg[1], nworkers - 1);
	if (migrate_qp(ctl, o, worker))
		return refuse(why, -EIO, "QP %u cannot move: see its state with \"show qps\"", qpn);
	return 0;
}
