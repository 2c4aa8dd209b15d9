/* SPDX-License-Identifier: BSD-3-Clause */
/* loaded: prints which libibverbs it has, and whether madvise() is that of libroci-preload.so. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <sys/mman.h>

static const char *file_of(void *function)
{
	Dl_info info;

	return dladdr(function, &info) ? info.dli_fname : "?";
}

int main(void)
{
	printf("%s\n%s\n", file_of(dlsym(RTLD_DEFAULT, "ibv_get_device_list")),
		file_of(dlsym(RTLD_DEFAULT, "madvise")));
	return ibv_node_type_str(IBV_NODE_CA) == NULL; /* so that the library is needed */
}
