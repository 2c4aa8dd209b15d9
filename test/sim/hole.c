/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "hole.h"
#include "mr.h"

static struct {
	struct sim_host *host;
	struct mr mr;
	int fd;
} hole;

/* A zero page over the hole, and one more fault. A fault elsewhere is the program's own. */
static void on_sigbus(int sig, siginfo_t *info, void *ctx)
{
	uint8_t *at = info->si_addr;

	if (at < hole.mr.base + HOLE_PAGE || at >= hole.mr.base + 2 * HOLE_PAGE ||
		mmap(hole.mr.base + HOLE_PAGE, HOLE_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		_exit(99);
	atomic_store(&hole.host->mrs.slot[HOLE_KEY >> 8], NULL); /* decision 0003 */
	hole.host->faults++;
}

struct mr *hole_open(struct sim_host *h, uint32_t pd)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	hole.host = h;
	hole.fd = memfd_create("hole", 0);
	assert_true(hole.fd >= 0);
	assert_int_equal(ftruncate(hole.fd, HOLE_PAGE), 0);
	hole.mr = (struct mr){.key = HOLE_KEY,
		.pd = pd,
		.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE |
			  ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC,
		.iova = HOLE_VA,
		.length = 2 * HOLE_PAGE,
		.base = mmap(NULL, 2 * HOLE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, hole.fd, 0)};
	assert_ptr_not_equal(hole.mr.base, MAP_FAILED);
	assert_int_equal(sigaction(SIGBUS, &sa, NULL), 0);
	atomic_store(&h->mrs.slot[HOLE_KEY >> 8], &hole.mr);
	return &hole.mr;
}

void hole_close(struct sim_host *h)
{
	atomic_store(&h->mrs.slot[HOLE_KEY >> 8], NULL);
	munmap(hole.mr.base, 2 * HOLE_PAGE);
	close(hole.fd);
	signal(SIGBUS, SIG_DFL);
}
