/* SPDX-License-Identifier: BSD-3-Clause */
#include "mad.h"
#include <string.h>
#include "bits.h"

/* Byte offsets inside the MAD header (CM-02). */
enum {
	MAD_O_BASE = 0,
	MAD_O_CLASS = 1,
	MAD_O_CLASS_VER = 2,
	MAD_O_METHOD = 3,
	MAD_O_TID = 8,
	MAD_O_ATTR = 16,
};

struct field {
	uint8_t attr;
	uint8_t byte;
	uint8_t bit;
	uint16_t width;
	char name[28];
};

static const struct field fields[CM_FIELD_END] = {
#define X(id, message, name, byte, bit, width) {CM_##message, byte, bit, width, name},
	CM_FIELDS(X)
#undef X
};

static const char attr_names[CM_ATTRS][9] = {
	"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};

static const char fault_names[MAD_FAULTS][12] = {
	"cm", "mad_short", "mad_version", "mad_class", "mad_method", "mad_attr"};

enum mad_fault mad_check(const uint8_t *mad, size_t len)
{
	uint16_t attr;

	if (len != MAD_LEN)
		return MAD_SHORT;
	if (mad[MAD_O_BASE] != MAD_BASE_VER)
		return MAD_VERSION;
	if (mad[MAD_O_CLASS] != MAD_CLASS_CM)
		return MAD_CLASS;
	if (mad[MAD_O_CLASS_VER] != MAD_CM_VER)
		return MAD_VERSION;
	if (mad[MAD_O_METHOD] != MAD_METHOD_SEND)
		return MAD_METHOD;
	attr = get_be16(mad + MAD_O_ATTR);
	return attr >= CM_REQ && attr < CM_ATTR_END ? MAD_CM : MAD_ATTR;
}

const char *mad_fault_name(enum mad_fault fault)
{
	return fault_names[fault];
}

const char *cm_attr_name(unsigned attr)
{
	return attr - CM_REQ < CM_ATTRS ? attr_names[attr - CM_REQ] : NULL;
}

enum cm_attr mad_attr(const uint8_t *mad)
{
	return (enum cm_attr)get_be16(mad + MAD_O_ATTR);
}

uint64_t mad_tid(const uint8_t *mad)
{
	return get_be64(mad + MAD_O_TID);
}

void mad_begin(uint8_t mad[MAD_LEN], enum cm_attr attr, uint64_t tid)
{
	memset(mad, 0, MAD_LEN);
	mad[MAD_O_BASE] = MAD_BASE_VER;
	mad[MAD_O_CLASS] = MAD_CLASS_CM;
	mad[MAD_O_CLASS_VER] = MAD_CM_VER;
	mad[MAD_O_METHOD] = MAD_METHOD_SEND;
	put_be64(mad + MAD_O_TID, tid);
	put_be16(mad + MAD_O_ATTR, (uint16_t)attr);
}

/* A field of a fractional number of bytes spans at most four. */
uint64_t cm_get(const uint8_t *mad, enum cm_field f)
{
	const struct field *field = &fields[f];
	const uint8_t *at = mad + MAD_DATA + field->byte;
	unsigned bits = field->bit + field->width;
	uint64_t v = 0;

	for (unsigned i = 0; i < bits; i += 8)
		v = v << 8 | *at++;
	v >>= -bits % 8;
	return field->width == 64 ? v : v & ((1ull << field->width) - 1);
}

uint32_t cm_rep_qpn(const uint8_t *mad, bool extended)
{
	return (uint32_t)cm_get(mad, extended ? CM_F_REP_EECN : CM_F_REP_QPN);
}

void cm_put(uint8_t *mad, enum cm_field f, uint64_t v)
{
	const struct field *field = &fields[f];
	unsigned bits = field->bit + field->width, shift = -bits % 8;
	uint8_t *at = mad + MAD_DATA + field->byte + (bits + 7) / 8;
	uint64_t mask = field->width == 64 ? UINT64_MAX : (1ull << field->width) - 1;

	v = (v & mask) << shift;
	mask <<= shift;
	for (; mask; mask >>= 8, v >>= 8) {
		at--;
		*at = (uint8_t)((*at & ~mask) | v);
	}
}

const uint8_t *cm_bytes(const uint8_t *mad, enum cm_field f, size_t *len)
{
	if (len)
		*len = fields[f].width / 8;
	return mad + MAD_DATA + fields[f].byte;
}

bool cm_put_bytes(uint8_t *mad, enum cm_field f, const void *src, size_t len)
{
	if (len > fields[f].width / 8)
		return false;
	if (len)
		memcpy(mad + MAD_DATA + fields[f].byte, src, len);
	return true;
}

static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

enum cm_field cm_field_find(enum cm_attr attr, const char *name)
{
	unsigned f = 0;

	while (f < CM_FIELD_END && (fields[f].attr != attr || !same_name(fields[f].name, name)))
		f++;
	return (enum cm_field)f;
}

enum cm_field cm_private_field(enum cm_attr attr)
{
	static const uint8_t of[CM_ATTRS] = {CM_F_REQ_PRIVATE, CM_F_MRA_PRIVATE, CM_F_REJ_PRIVATE,
		CM_F_REP_PRIVATE, CM_F_RTU_PRIVATE, CM_F_DREQ_PRIVATE, CM_F_DREP_PRIVATE,
		CM_F_SIDR_REQ_PRIVATE, CM_F_SIDR_REP_PRIVATE, CM_F_LAP_PRIVATE, CM_F_APR_PRIVATE};

	return (enum cm_field)of[attr - CM_REQ];
}

unsigned cm_width(enum cm_field f)
{
	return fields[f].width;
}

/* --- RDMA IP CM service ---------------------------------------------------------------------- */

#define IP_CM_PREFIX 0x0000000001000000ull

/* Byte offsets inside the header (CM-29). */
enum {
	CMA_VERSION = 0,
	CMA_FAMILY = 1,
	CMA_PORT = 2,
	CMA_SRC = 4,
	CMA_DST = 20,
};

bool cma_is_ip(uint64_t service_id)
{
	return (service_id & ~0xFFFFFFull) == IP_CM_PREFIX;
}

/* An IPv4 address is in the last four bytes; those before it are ignored. */
static void address_read(uint8_t gid[16], const uint8_t *p, uint8_t family)
{
	memcpy(gid, p, 16);
	if (family == 4) {
		memset(gid, 0, 10);
		gid[10] = gid[11] = 0xFF;
	}
}

static void address_write(uint8_t *p, const uint8_t gid[16], uint8_t family)
{
	memcpy(p, gid, 16);
	if (family == 4)
		memset(p, 0, 12);
}

bool cma_read(struct cma_hdr *h, const uint8_t p[CMA_HDR_LEN])
{
	h->family = p[CMA_FAMILY] >> 4;
	if (p[CMA_VERSION] >> 4 || (h->family != 4 && h->family != 6))
		return false;
	h->src_port = get_be16(p + CMA_PORT);
	address_read(h->src, p + CMA_SRC, h->family);
	address_read(h->dst, p + CMA_DST, h->family);
	return true;
}

void cma_write(uint8_t p[CMA_HDR_LEN], const struct cma_hdr *h)
{
	p[CMA_VERSION] = 0;
	p[CMA_FAMILY] = (uint8_t)(h->family << 4);
	put_be16(p + CMA_PORT, h->src_port);
	address_write(p + CMA_SRC, h->src, h->family);
	address_write(p + CMA_DST, h->dst, h->family);
}
