/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file group.h
 * Multicast groups as text and as stored in a plan: the two halves of an MGID. An IPv4 group is an
 * MGID in its mapped form (A17.4.2).
 */
#ifndef GROUP_H
#define GROUP_H

#include <roci.h>
#include <stdbool.h>
#include <stdint.h>

/** Room for group_text(). */
#define GROUP_TEXT 46

/** Converts "239.1.2.3" or "ff1e::1" to the halves of an MGID. @return false: it is not an address.
 */
bool group_parse(const char *text, uint64_t *high, uint64_t *low);

/** @return the MGID of these halves. */
union roci_gid group_gid(uint64_t high, uint64_t low);

/** @return whether a QP can be attached to @p gid (MC-01). */
bool group_is_multicast(const union roci_gid *gid);

/** Writes @p gid as group_parse() reads it.  @return @p text. */
const char *group_text(const union roci_gid *gid, char text[GROUP_TEXT]);

#endif
