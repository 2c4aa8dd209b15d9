/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "sentence.h"

int refuse(char why[ABI_SENTENCE_MAX], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, ABI_SENTENCE_MAX, fmt, ap);
	va_end(ap);
	return err;
}

bool gid_is_ip4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	return !memcmp(gid, mapped, sizeof(mapped));
}

bool gid_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
}

const char *gid_text(const uint8_t gid[16], char buf[GID_TEXT])
{
	_Static_assert(GID_TEXT == INET6_ADDRSTRLEN, "room for the longest address");

	if (gid_is_ip4(gid))
		inet_ntop(AF_INET, gid + 12, buf, GID_TEXT);
	else
		inet_ntop(AF_INET6, gid, buf, GID_TEXT);
	return buf;
}
