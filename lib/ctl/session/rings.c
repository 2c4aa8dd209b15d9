/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "memory/numa.h"
#include "memory/shm.h"
#include "session/quota.h"
#include "session/rings.h"
#include "session/session.h"
#include "session/sessions.h"
#include "sigbus.h"
#include "worker.h"

int rings_create(struct session *s, struct shm *m, const char *name, size_t size, int *fd,
	char why[ABI_SENTENCE_MAX])
{
	const struct charge c[] = {{CTL_QUEUES, shm_rounded(size)}, {CTL_MAPPINGS, 1}};
	int err = quota_take(s, c, ARRAY_SIZE(c), why);

	*fd = -1;
	if (err)
		return err;
	err = shm_create(m, name, size, fd, why);
	if (!err)
		err = shm_guard(m, &(struct sigbus_area){.kind = SIGBUS_RING, .owner = s}, why);
	if (err) {
		shm_unmap(m);
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		quota_give(s, c, ARRAY_SIZE(c));
		return err;
	}
	place_memory(m->base, m->size, s->ctl->dp->node[0]);
	return 0;
}

void rings_free(struct session *s, struct shm *m)
{
	if (m->base)
		shm_retire(m, m->size, s->ctl->sessions->unmapper,
			quota_retire(s, CTL_QUEUES, m->size));
}
