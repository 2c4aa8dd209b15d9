/* SPDX-License-Identifier: BSD-3-Clause */
#define ALLOW_EXPERIMENTAL_API /* rte_intr_instance_alloc() in DPDK 22.11 */
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <rte_interrupts.h>
#include "interrupts.h"

static sem_t parked;

static void park(void *arg)
{
	sem_post(&parked);
	for (;;)
		pause();
}

/* A handler that does not return: the thread calls one after the other. Not an alarm, for whose end
 * rte_eal_cleanup() waits. */
static bool register_parking(void)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	bool registered = h && !rte_intr_fd_set(h, fd) &&
			  !rte_intr_type_set(h, RTE_INTR_HANDLE_EXT) &&
			  !rte_intr_callback_register(h, park, NULL);

	rte_intr_instance_free(h); /* EAL has a copy */
	return registered;
}

void interrupts_stop(void)
{
	sem_init(&parked, 0, 0);
	if (!register_parking())
		return;
	while (sem_wait(&parked) && errno == EINTR)
		;
}
