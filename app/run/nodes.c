/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodes.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "shadow.h"

#define DEV "/dev"

/* A bound /dev/null has the type that programs look for, and can be opened by anybody. */
static int add_node(const char *name)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), STAGE "/infiniband/%s", name);
	err = make_file(path);
	return err ? err : bind_to(DEV "/null", path);
}

static int add_nodes(unsigned devices)
{
	char name[32];
	int err = mkdir(STAGE "/infiniband", 0755) ? -errno : add_node("rdma_cm");

	for (unsigned i = 0; !err && i < devices; i++) {
		snprintf(name, sizeof(name), "uverbs%u", i);
		err = add_node(name);
	}
	return err;
}

int nodes_make(unsigned devices, char why[WHY_MAX])
{
	static const char *const hidden[] = {"infiniband", NULL};
	int err = shadow_begin(DEV, hidden, why);

	if (err)
		return err;
	err = add_nodes(devices);
	if (!err)
		return shadow_end(DEV, false, why);
	shadow_abandon();
	return refuse(why, err, DEV "/infiniband cannot be created: %s", strerror(-err));
}
