/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_closed SOCKET LIBROCI: a plug-in uses libroci, and is closed. Memory that it registered is
 * still the arena's, so the handlers of fork() must not have gone.
 */
#include <dlfcn.h>
#include <err.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "roci.h"

#define LEN (1ul << 20)

static void *lib;

static void *symbol(const char *name)
{
	void *p = dlsym(lib, name);

	if (!p)
		errx(1, "%s", dlerror());
	return p;
}

static void use(const char *socket, void *p)
{
	struct roci_context *(*open_)(const char *) = symbol("roci_open");
	struct roci_pd *(*alloc_pd)(struct roci_context *) = symbol("roci_alloc_pd");
	struct roci_mr *(*reg)(struct roci_pd *, void *, size_t, int) = symbol("roci_reg_mr");
	int (*dereg)(struct roci_mr *) = symbol("roci_dereg_mr");
	int (*dealloc_pd)(struct roci_pd *) = symbol("roci_dealloc_pd");
	int (*close_)(struct roci_context *) = symbol("roci_close");
	struct roci_context *ctx = open_(socket);
	struct roci_pd *pd = ctx ? alloc_pd(ctx) : NULL;
	struct roci_mr *mr = pd ? reg(pd, p, LEN, ROCI_ACCESS_LOCAL_WRITE) : NULL;

	if (!mr || dereg(mr) || dealloc_pd(pd) || close_(ctx))
		errx(1, "cannot register and close");
}

int main(int argc, char **argv)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (argc < 3 || p == MAP_FAILED)
		errx(1, "memory_closed SOCKET LIBROCI");
	memset(p, 1, LEN);
	lib = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		errx(1, "%s", dlerror());
	use(argv[1], p);
	dlclose(lib);
	pid = fork();
	if (!pid) {
		p[0] = 2;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	if (p[0] != 1)
		errx(1, "the child wrote to memory of its parent");
	return 0;
}
