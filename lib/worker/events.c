/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "worker_impl.h"

void events_poll(struct worker *w)
{
	unsigned passed;

	/* What the notifier's ring did not take stays here, and the rest in the core, so that
	 * nothing is lost while that thread is behind. */
	if (!w->nkept)
		w->nkept = core_events(&w->core, w->kept, BURST);
	if (likely(!w->nkept))
		return;
	passed = rte_ring_enqueue_burst_elem(
		w->dp->events, w->kept, sizeof(w->kept[0]), w->nkept, NULL);
	w->nkept -= passed;
	memmove(w->kept, w->kept + passed, w->nkept * sizeof(w->kept[0]));
	if (w->dp->idle == IDLE_ADAPTIVE)
		waker_wake(&w->dp->notifier);
}
