/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <linux/if_packet.h>
#include "sockets.h"

static bool stands_on(int fd, int domain, unsigned ifindex)
{
	struct sockaddr_ll addr = {0};
	socklen_t len = sizeof(addr);
	int of_fd = 0;
	socklen_t size = sizeof(of_fd);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &of_fd, &size) || of_fd != domain)
		return false;
	return domain == AF_XDP || (!getsockname(fd, (struct sockaddr *)&addr, &len) &&
					   addr.sll_ifindex == (int)ifindex);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

unsigned sockets_find(int domain, unsigned ifindex, int fd[WORKER_MAX])
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	unsigned count = 0;

	while (dir && (e = readdir(dir))) {
		int candidate = atoi(e->d_name);

		if (!stands_on(candidate, domain, ifindex))
			continue;
		if (count < WORKER_MAX)
			fd[count] = candidate;
		count++;
	}
	if (dir)
		closedir(dir);
	if (count <= WORKER_MAX)
		qsort(fd, count, sizeof(fd[0]), by_number);
	return count;
}
