/* SPDX-License-Identifier: BSD-3-Clause */
/** @file address.h  Addresses that users type and read. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/** Reads an IPv6 address, or an IPv4 address as its IPv4-mapped GID.
 *  @return false: it is neither, and @p gid is undefined. */
bool gid_of_text(uint8_t gid[16], const char *text);

/** Reads a MAC address: six bytes of one or two hexadecimal digits each, separated by colons.
 *  @return false: it is not one, and @p mac is undefined. */
bool mac_of_text(uint8_t mac[6], const char *text);

/** Room for the text of a MAC address, and its NUL. */
#define MAC_TEXT 18

/** @return @p text, with the bytes of @p mac as two digits each. */
const char *mac_text(const uint8_t mac[6], char text[MAC_TEXT]);

#endif
