/* SPDX-License-Identifier: BSD-3-Clause */
#include "address.h"
#include <arpa/inet.h>
#include <string.h>

bool gid_of_text(uint8_t gid[16], const char *text)
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	if (inet_pton(AF_INET6, text, gid) == 1)
		return true;
	memcpy(gid, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, gid + sizeof(mapped)) == 1;
}
