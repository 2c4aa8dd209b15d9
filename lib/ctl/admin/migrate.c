/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "admin/migrate.h"
#include "migrate/migrate.h"
#include "refuse.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

int admin_migrate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	int err = migrate_qp(ctl, o, (uint32_t)arg[1].number);

	if (err == -EOPNOTSUPP)
		return refuse(why, err,
			"QP %u cannot move to another worker: it is in a multicast group, or the "
			"target of "
			"an XRC connection",
			o->qpn);
	if (err)
		return refuse(
			why, -EIO, "QP %u cannot move: check its state with \"show qps\"", o->qpn);
	return 0;
}
