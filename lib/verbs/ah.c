/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles. */
#include <stdlib.h>
#include <string.h>
#include "verbs.h"

VERBS_API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ah *ah = calloc(1, sizeof(*ah));
	struct roci_ah_attr r;

	ah_attr_to_roci(attr, &r);
	if (ah)
		ah->roci = roci_create_ah(pd_of(pd)->roci, &r);
	if (!ah || !ah->roci) {
		free(ah);
		return refused_null(pd->context, "ibv_create_ah", errno);
	}
	ah->pub = (struct ibv_ah){
		.context = pd->context, .pd = pd, .handle = roci_ah_handle(ah->roci)};
	object_enter(pd->context, OBJECT_AH, &ah->object);
	return &ah->pub;
}

/* wc->sl is the packet type of a datagram; the priority is in dlid_path_bits: decision 0107. */
VERBS_API int ibv_init_ah_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct roci_ah_attr r;
	struct roci_wc w;
	int err;

	memcpy(&w, wc, sizeof(w));
	w.sl = wc->dlid_path_bits & 7;
	err = roci_init_ah_from_wc(
		context_of(c)->roci, port, &w, (const struct roci_grh_area *)grh, &r);
	if (err) {
		errno = explain("ibv_init_ah_from_wc", err);
		return -1;
	}
	ah_attr_from_roci(&r, attr);
	return 0;
}

VERBS_API struct ibv_ah *ibv_create_ah_from_wc(
	struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

VERBS_API int ibv_destroy_ah(struct ibv_ah *p)
{
	struct ah *ah = (struct ah *)p;
	int err = roci_destroy_ah(ah->roci);

	if (err)
		return explain("ibv_destroy_ah", err);
	object_leave(p->context, &ah->object);
	free(ah);
	return 0;
}
