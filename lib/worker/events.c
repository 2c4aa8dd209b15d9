/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "core.h"
#include "worker_impl.h"

/* Takes one burst from the core and passes it on. Returns true if there may be more. */
static bool pass_on(struct worker *w)
{
	unsigned taken, passed;

	/* Events that did not fit into the notifier's ring stay here, and the rest in the core, so
	 * that none is lost while that thread lags. */
	if (!w->nkept && core_events_wait(&w->core))
		w->nkept = core_events(&w->core, w->kept, BURST);
	taken = w->nkept;
	if (likely(!taken))
		return false;
	passed = rte_ring_enqueue_burst_elem(
		w->dp->events, w->kept, sizeof(w->kept[0]), taken, NULL);
	w->nkept -= passed;
	memmove(w->kept, w->kept + passed, w->nkept * sizeof(w->kept[0]));
	waker_wake(&w->dp->notifier); /* no system call unless it sleeps */
	return passed == BURST;
}

static NOINLINE void tell_late(struct worker *w)
{
	w->core.late_news = false;
	atomic_store_explicit(&w->dp->late, true, memory_order_release);
	waker_wake(&w->dp->notifier);
}

/* More than a burst: QPs may fail by the hundred. */
void events_poll(struct worker *w)
{
	if (unlikely(w->core.late_news))
		tell_late(w);
	for (unsigned i = 0; i < EVENTS_ROUND / BURST && pass_on(w); i++)
		;
}
