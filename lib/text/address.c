/* SPDX-License-Identifier: BSD-3-Clause */
#include "address.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "number.h"

bool gid_of_text(uint8_t gid[16], const char *text)
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	if (inet_pton(AF_INET6, text, gid) == 1)
		return true;
	memcpy(gid, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, gid + sizeof(mapped)) == 1;
}

bool mac_of_text(uint8_t mac[6], const char *text)
{
	uint64_t byte;

	for (unsigned i = 0; i < 6; i++) {
		const char *at = text;

		if (!take_number(&text, 16, 0xFF, &byte) || text - at > 2)
			return false;
		mac[i] = (uint8_t)byte;
		if (*text++ != (i < 5 ? ':' : '\0'))
			return false;
	}
	return true;
}

const char *mac_text(const uint8_t m[6], char text[MAC_TEXT])
{
	snprintf(text, MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		m[5]);
	return text;
}
