/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's tables: GIDs and P_Keys. */
#include <arpa/inet.h>
#include <string.h>
#include "verbs.h"

/** A GID type as in sysfs and from ibv_query_gid_type(), which is not in the public headers. */
enum gid_type_sysfs {
	GID_SYSFS_ROCE_V1,
	GID_SYSFS_ROCE_V2
};

VERBS_API int ibv_query_gid_type(
	struct ibv_context *c, uint8_t port, unsigned int index, enum gid_type_sysfs *type);

/** Maximum entries of a port's table. */
#define GIDS_MAX 256

static int query(struct ibv_context *c, uint32_t port, uint32_t index, struct roci_gid_entry *e)
{
	*e = (struct roci_gid_entry){.size = sizeof(*e)};
	return roci_query_gid(context_of(c)->roci, port, index, e);
}

static int fail_errno(const char *name, int err)
{
	errno = explain(name, err);
	return -1;
}

VERBS_API int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	struct roci_gid_entry e;
	int err = query(c, port, (uint32_t)index, &e);

	memset(gid, 0, sizeof(*gid));
	if (err && err != ENODATA) /* an empty entry reads as zero */
		return fail_errno("ibv_query_gid", err);
	if (!err)
		memcpy(gid, &e.gid, sizeof(*gid));
	return 0;
}

VERBS_API int ibv_query_gid_type(
	struct ibv_context *c, uint8_t port, unsigned int index, enum gid_type_sysfs *type)
{
	struct roci_gid_entry e;
	int err = query(c, port, index, &e);

	if (err && err != ENODATA)
		return fail_errno("ibv_query_gid_type", err);
	*type = !err && e.gid_type == ROCI_GID_TYPE_ROCE_V2 ? GID_SYSFS_ROCE_V2 : GID_SYSFS_ROCE_V1;
	return 0;
}

static void convert(const struct roci_gid_entry *e, struct ibv_gid_entry *out)
{
	*out = (struct ibv_gid_entry){
		.gid_index = e->gid_index,
		.port_num = e->port_num,
		.gid_type = e->gid_type == ROCI_GID_TYPE_ROCE_V1 ? IBV_GID_TYPE_ROCE_V1
								 : IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = e->ndev_ifindex,
	};
	memcpy(&out->gid, &e->gid, sizeof(out->gid));
}

VERBS_API int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry out;
	struct roci_gid_entry e;
	int err;

	if (flags)
		return EOPNOTSUPP;
	if (entry_size < sizeof(out))
		return EINVAL;
	err = query(c, port, index, &e);
	if (err)
		return explain("ibv_query_gid_ex", err);
	convert(&e, &out);
	memset(entry, 0, entry_size);
	memcpy(entry, &out, sizeof(out));
	return 0;
}

/* @return the number of entries, or a negative errno. */
static ssize_t query_port_table(
	struct ibv_context *c, uint32_t port, uint8_t *to, size_t room, size_t entry_size)
{
	struct roci_gid_entry e[GIDS_MAX] = {0};
	int n;

	for (unsigned i = 0; i < GIDS_MAX; i++)
		e[i].size = sizeof(e[i]);
	n = roci_query_gids(context_of(c)->roci, port, e, GIDS_MAX);
	if (n > 0 && (size_t)n > room)
		return -EINVAL;
	for (int i = 0; i < n; i++) {
		struct ibv_gid_entry out;

		convert(&e[i], &out);
		memset(to, 0, entry_size);
		memcpy(to, &out, sizeof(out));
		to += entry_size;
	}
	return n;
}

VERBS_API ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entries,
	size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct roci_device_attr d = {.size = sizeof(d)};
	ssize_t total = 0;
	int err;

	if (flags)
		return -EOPNOTSUPP;
	if (entry_size < sizeof(*entries))
		return -EINVAL;
	err = roci_query_device(context_of(c)->roci, &d);
	if (err)
		return -explain("ibv_query_gid_table", err);
	for (uint32_t port = 1; port <= d.phys_port_cnt; port++) {
		ssize_t n =
			query_port_table(c, port, (uint8_t *)entries + (size_t)total * entry_size,
				max_entries - (size_t)total, entry_size);

		if (n < 0)
			return n;
		total += n;
	}
	return total;
}

VERBS_API int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
	uint16_t key;
	int err = roci_query_pkey(context_of(c)->roci, port, (uint32_t)index, &key);

	if (err)
		return fail_errno("ibv_query_pkey", err);
	*pkey = htons(key);
	return 0;
}

VERBS_API int ibv_get_pkey_index(struct ibv_context *c, uint8_t port, __be16 pkey)
{
	struct roci_port_attr p = {.size = sizeof(p)};
	int err = roci_query_port(context_of(c)->roci, port, &p);

	for (uint32_t i = 0; !err && i < p.pkey_tbl_len; i++) {
		uint16_t key;

		err = roci_query_pkey(context_of(c)->roci, port, i, &key);
		if (!err && htons(key) == pkey)
			return (int)i;
	}
	return fail_errno("ibv_get_pkey_index", err ? err : ENOENT);
}
