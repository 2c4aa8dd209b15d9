/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/pkeys.h"
#include "path.h"

#define PKEY_DEFAULT 0xFFFFu

void pkeys_init(struct port *p, const struct ctl_pkey *k, uint32_t n)
{
	p->pkeys = PKEY_MAX;
	p->pkey[0] = PKEY_DEFAULT; /* GID-07 */
	for (uint32_t i = 0; i < n; i++)
		p->pkey[k[i].index] = k[i].pkey;
}

bool pkeys_set(struct port *p, uint32_t index, uint16_t pkey)
{
	if (atomic_load(&p->pkey[index]) == pkey)
		return false;
	atomic_store(&p->pkey[index], pkey);
	return true;
}
