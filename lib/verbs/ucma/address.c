/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket addresses; invalid ones get the kernel's errnos. */
#include <errno.h>
#include <linux/in6.h>
#include <string.h>
#include <sys/socket.h>
#include "ucma.h"

static size_t size_of(sa_family_t family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct ucma_address_ib);
	default:
		return 0;
	}
}

int ucma_address_read(struct abi_cm_addr *to, const void *sockaddr, size_t len, bool exact)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;
	sa_family_t family = AF_UNSPEC;
	size_t size;

	*to = (struct abi_cm_addr){0};
	if (len >= sizeof(family))
		memcpy(&family, sockaddr, sizeof(family));
	size = size_of(family);
	if (!size || (exact ? len != size : len < size))
		return EINVAL;
	switch (family) {
	case AF_INET:
		memcpy(&four, sockaddr, sizeof(four));
		to->family = 4;
		to->port = ntohs(four.sin_port);
		memset(to->ip + 10, 0xFF, 2);
		memcpy(to->ip + 12, &four.sin_addr, 4);
		return 0;
	case AF_INET6:
		memcpy(&six, sockaddr, sizeof(six));
		to->family = 6;
		to->port = ntohs(six.sin6_port);
		to->scope = six.sin6_scope_id;
		to->flow_label = ntohl(six.sin6_flowinfo) & IPV6_FLOWINFO_FLOWLABEL;
		memcpy(to->ip, &six.sin6_addr, 16);
		return 0;
	default: /* AF_IB addresses InfiniBand ports */
		return ENODEV;
	}
}

uint16_t ucma_address_write(struct sockaddr_in6 *to, const struct abi_cm_addr *a)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(a->port)};

	memset(to, 0, sizeof(*to));
	switch (a->family) {
	case 4:
		memcpy(&four.sin_addr, a->ip + 12, 4);
		memcpy(to, &four, sizeof(four));
		return sizeof(four);
	case 6:
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(a->port);
		to->sin6_scope_id = a->scope;
		to->sin6_flowinfo = htonl(a->flow_label);
		memcpy(&to->sin6_addr, a->ip, 16);
		return sizeof(*to);
	default:
		return 0;
	}
}
