/* SPDX-License-Identifier: BSD-3-Clause */
/* The device list: each rocid that answers on a socket of ROCI_SOCKET. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "abi_ctl.h"
#include "ucma.h"
#include "unique_name.h"
#include "verbs.h"

#define DEVICES_MAX 64

struct device *device_hold(struct device *d)
{
	atomic_fetch_add(&d->users, 1);
	return d;
}

void device_release(struct device *d)
{
	if (atomic_fetch_sub(&d->users, 1) == 1)
		free(d);
}

static void set_names(struct ibv_device *d, const char *name, int index)
{
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%d", index);
	snprintf(d->dev_path, sizeof(d->dev_path), "/sys/class/infiniband_verbs/%s", d->dev_name);
	snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/class/infiniband/%s", d->name);
}

/* Queries the name and GUID of the rocid at the device's socket. */
static int look(struct device *d, int index)
{
	struct roci_device_info info = {.size = sizeof(info)};
	int err = roci_probe(d->socket, &info);

	if (err)
		return err;
	d->node_guid = info.node_guid;
	set_names(&d->pub, info.name, index);
	return 0;
}

static struct device *make(const char *socket, int index)
{
	struct device *d = calloc(1, sizeof(*d));
	int err = d ? 0 : ENOMEM;

	if (!err && strlen(socket) >= sizeof(d->socket))
		err = ENAMETOOLONG;
	if (!err) {
		strcpy(d->socket, socket);
		d->pub.node_type = IBV_NODE_CA;
		d->pub.transport_type = IBV_TRANSPORT_IB;
		d->index = index;
		atomic_init(&d->users, 1);
		err = look(d, index);
	}
	if (!err)
		return d;
	free(d);
	errno = err;
	return NULL;
}

struct listed {
	struct ibv_device **device;
	int n;
};

static bool in_list(const void *arg, const char *name)
{
	const struct listed *l = arg;

	for (int i = 0; i < l->n; i++)
		if (!strcmp(l->device[i]->name, name))
			return true;
	return false;
}

static void make_unique(struct ibv_device **list, int n, struct device *d)
{
	const struct listed l = {list, n};
	char name[IBV_SYSFS_NAME_MAX];

	strcpy(name, d->pub.name);
	unique_name(name, sizeof(name), in_list, &l);
	set_names(&d->pub, name, d->index);
}

/** Devices of past lists, one reference each. */
static struct {
	pthread_mutex_t lock;
	struct device *device[DEVICES_MAX];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool same(const struct device *a, const struct device *b)
{
	return a->index == b->index && a->node_guid == b->node_guid &&
	       !strcmp(a->socket, b->socket) && !strcmp(a->pub.name, b->pub.name);
}

/* Every list has the same object for a device: by its address librdmacm sees that the device was
 * not replaced. @param d  its reference is taken over. */
static struct device *intern(struct device *d)
{
	struct device **slot = &known.device[d->index];

	pthread_mutex_lock(&known.lock);
	if (!*slot || !same(*slot, d)) {
		if (*slot)
			device_release(*slot);
		*slot = device_hold(d);
	} else {
		device_release(d);
		d = device_hold(*slot);
	}
	pthread_mutex_unlock(&known.lock);
	return d;
}

static int find_all(struct ibv_device **list)
{
	const char *sockets = secure_getenv(ABI_SOCKET_ENV);
	char *copy = strdup(sockets && *sockets ? sockets : ABI_SOCKET_DEFAULT);
	char *rest = copy;
	char *socket;
	int n = 0;

	while (copy && n < DEVICES_MAX && (socket = strsep(&rest, ":"))) {
		struct device *d = *socket ? make(socket, n) : NULL;

		if (!d) {
			if (*socket)
				explain("ibv_get_device_list", errno);
			continue;
		}
		make_unique(list, n, d);
		list[n++] = &intern(d)->pub;
	}
	free(copy);
	return n;
}

VERBS_API struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc(DEVICES_MAX + 1, sizeof(struct ibv_device *));
	int n = 0;

	ucma_attach(); /* if librdmacm was loaded later, it calls this first */
	if (list)
		n = find_all(list);
	else
		errno = ENOMEM;
	if (num)
		*num = n;
	return list;
}

VERBS_API void ibv_free_device_list(struct ibv_device **list)
{
	for (int i = 0; list[i]; i++)
		device_release((struct device *)list[i]);
	free(list);
}

VERBS_API const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VERBS_API int ibv_get_device_index(struct ibv_device *device)
{
	return ((struct device *)device)->index;
}

VERBS_API __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return ((struct device *)device)->node_guid;
}
