/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow labels of connections (specification 004; decision 0071). */
#include "cm_impl.h"
#include "headers.h"

uint32_t cm_flow_label(uint16_t dst_port, uint16_t src_port, bool as_linux)
{
	uint32_t hash = (uint32_t)dst_port * src_port;

	if (as_linux)
		return (src_port * 31u + dst_port) & FLOW_LABEL_MASK;
	hash ^= hash >> 16;
	hash ^= hash >> 8;
	return hash & FLOW_LABEL_MASK;
}

/* ENT-08: a peer that puts no label into its REQ leaves it to us. RoCEv1 has none (V1-01). */
void cm_label_request(const struct cm *cm, struct cm_conn *c, const uint8_t *mad)
{
	uint64_t service_id = cm_get(mad, CM_F_REQ_SERVICE_ID);
	struct cma_hdr h;

	if (c->path.flow_label || c->path.net == NET_ROCEV1 || !cma_is_ip(service_id) ||
		!cma_read(&h, cm_bytes(mad, CM_F_REQ_PRIVATE, NULL)))
		return;
	c->path.flow_label = cm_flow_label((uint16_t)service_id, h.src_port, cm->conf.linux_labels);
}
