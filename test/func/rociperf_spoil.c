/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into rociperf: flips one bit of the data, as a broken transport would, so that --verify
 * has something to find. Of what is sent before it is posted, of what is fetched before its
 * completion is seen. $SPOIL says which request of the process it is, $SPOIL_BYTE which byte.
 */
#include <dlfcn.h>
#include <err.h>
#include <roci.h>
#include <stdlib.h>

typedef int (*post_send)(
	struct roci_qp *, const struct roci_send_wr *, const struct roci_send_wr **);
typedef int (*poll_cq)(struct roci_cq *, int, struct roci_wc *);

static unsigned long posted;
static uint8_t *fetched; /* the byte to flip */

static void *real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		errx(1, "spoil: no %s", name);
	return f;
}

static unsigned long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : 0;
}

ROCI_API int roci_post_send(
	struct roci_qp *qp, const struct roci_send_wr *wr, const struct roci_send_wr **bad_wr)
{
	static post_send next;

	if (!next)
		next = (post_send)real("roci_post_send");
	for (const struct roci_send_wr *w = wr; w; w = w->next) {
		uint8_t *byte = (uint8_t *)(uintptr_t)w->sg_list[0].addr + number("SPOIL_BYTE");

		if (posted++ != number("SPOIL"))
			continue;
		if (w->opcode >= ROCI_WR_RDMA_READ && w->opcode <= ROCI_WR_ATOMIC_FETCH_AND_ADD)
			fetched = byte;
		else
			*byte ^= 0x10;
	}
	return next(qp, wr, bad_wr);
}

ROCI_API int roci_poll_cq(struct roci_cq *cq, int count, struct roci_wc *wc)
{
	static poll_cq next;
	int n;

	if (!next)
		next = (poll_cq)real("roci_poll_cq");
	n = next(cq, count, wc);
	/* Its bytes are there when its completion is, and it is the only one under way. */
	if (n > 0 && fetched) {
		*fetched ^= 0x10;
		fetched = NULL;
	}
	return n;
}
