/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file text/sentence.h
 * Names and GIDs as error sentences show them (refuse.h).
 */
#ifndef TEXT_SENTENCE_H
#define TEXT_SENTENCE_H

#include <stdbool.h>
#include <stdint.h>

/** @return the name of an enum abi_qp_type. */
const char *qp_type_name(uint8_t type);

/** @return the name of port space @p ps, an enum abi_cm_ps. */
const char *port_space_name(uint32_t ps);

/** Room for the text of a GID: an IPv6 address and its NUL. */
#define GID_TEXT 46

/** Formats @p gid: IPv4-mapped ones as IPv4, others as IPv6.
 *  @return @p buf. */
const char *gid_text(const uint8_t gid[16], char buf[GID_TEXT]);

/** @return the common name of enum net_type @p net as the type of a GID. */
const char *gid_type_name(uint8_t net);

/** @return the name of enum net_type @p net as an encapsulation, such as "RoCEv2 over IPv4". */
const char *net_type_name(uint8_t net);

/** @return true when @p gid is link-local, fe80::/10. */
bool gid_is_link_local(const uint8_t gid[16]);

#endif
