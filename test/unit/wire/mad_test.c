/* SPDX-License-Identifier: BSD-3-Clause */
/* Management datagrams: each field of each message, alone and in a message of Linux. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "mad.h"

/* The REQ of Linux 6.1 (shared/captures/rping.pcap), header to alternate path, and its header of
 * the RDMA IP CM service. */
static const uint8_t linux_req[] = {0x01, 0x07, 0x02, 0x03, 0, 0, 0, 0, 0, 0, 0, 2, 0x81, 0xb5,
	0x29, 0x02, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x02, 0x29, 0xb5, 0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0x01,
	0x06, 0x1c, 0x06, 0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0x11, 1, 0, 0, 0, 1, 0, 0, 0, 0xa0, 0x4d, 0x2a, 0xd4, 0xa7, 0xff, 0xff, 0x37, 0xf0, 0xff,
	0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xc0, 0xa8, 0x4d, 0x03, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xc0, 0xa8, 0x4d, 0x02, 0x57, 0xb8, 0x60, 0, 0, 0x40, 0,
	0x98};
static const uint8_t linux_cma[] = {0, 0x40, 0xb0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0,
	0xa8, 0x4d, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0xa8, 0x4d, 0x02};

/* proves CM-02, CM-03, CM-06: field by field as tshark reads it */
static void cm_get__linux(void **state)
{
	static const struct {
		enum cm_field f;
		uint64_t v;
	} want[] = {{CM_F_REQ_LOCAL_ID, 0x0229b581}, {CM_F_REQ_SERVICE_ID, 0x01061c06},
		{CM_F_REQ_GUID, 0x505400fffe770003}, {CM_F_REQ_QPN, 0x11}, {CM_F_REQ_RESP_RES, 1},
		{CM_F_REQ_INIT_DEPTH, 1}, {CM_F_REQ_REMOTE_TIMEOUT, 20}, {CM_F_REQ_TRANSPORT, 0},
		{CM_F_REQ_FLOW_CONTROL, 0}, {CM_F_REQ_PSN, 0x4d2ad4}, {CM_F_REQ_LOCAL_TIMEOUT, 20},
		{CM_F_REQ_RETRY, 7}, {CM_F_REQ_PKEY, 0xffff}, {CM_F_REQ_MTU, 3},
		{CM_F_REQ_RNR_RETRY, 7}, {CM_F_REQ_MAX_RETRIES, 15}, {CM_F_REQ_SRQ, 0},
		{CM_F_REQ_LOCAL_LID, 0xffff}, {CM_F_REQ_REMOTE_LID, 0xffff},
		{CM_F_REQ_FLOW_LABEL, 0x57b86}, {CM_F_REQ_RATE, 0}, {CM_F_REQ_TCLASS, 0},
		{CM_F_REQ_HOP_LIMIT, 0x40}, {CM_F_REQ_ACK_TIMEOUT, 19}};
	uint8_t mad[MAD_LEN] = {0}, made[MAD_LEN];

	(void)state;
	memcpy(mad, linux_req, sizeof(linux_req));
	assert_int_equal(mad_check(mad, MAD_LEN), MAD_CM);
	assert_int_equal(mad_attr(mad), CM_REQ);
	assert_int_equal(mad_tid(mad), 0x0000000281b52902);
	mad_begin(made, CM_REQ, mad_tid(mad));
	for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(cm_get(mad, want[i].f), want[i].v);
		cm_put(made, want[i].f, want[i].v);
	}
	cm_put_bytes(made, CM_F_REQ_LOCAL_GID, cm_bytes(mad, CM_F_REQ_LOCAL_GID, NULL), 16);
	cm_put_bytes(made, CM_F_REQ_REMOTE_GID, cm_bytes(mad, CM_F_REQ_REMOTE_GID, NULL), 16);
	assert_memory_equal(made, mad, MAD_LEN);
}

/* proves CM-06: a field is where it is, whatever is around it */
static void cm_put__alone(void **state)
{
	uint8_t ones[MAD_LEN], zeroes[MAD_LEN] = {0};

	(void)state;
	memset(ones, 0xFF, sizeof(ones));
	for (unsigned f = 0; f < CM_FIELD_END; f++) {
		uint8_t a[MAD_LEN], b[MAD_LEN];
		unsigned width = cm_width(f), set = 0;
		uint64_t all = width >= 64 ? UINT64_MAX : (1ull << width) - 1;

		if (width > 64)
			continue;
		memcpy(a, zeroes, MAD_LEN);
		cm_put(a, f, UINT64_MAX);
		assert_int_equal(cm_get(a, f), all);
		for (unsigned i = 0; i < MAD_LEN; i++)
			set += (unsigned)__builtin_popcount(a[i]);
		assert_int_equal(set, width);
		memcpy(b, ones, MAD_LEN);
		cm_put(b, f, 0);
		for (unsigned i = 0; i < MAD_LEN; i++)
			assert_int_equal(a[i] ^ b[i], 0xFF);
		assert_int_equal(cm_get(b, f), 0);
	}
}

/* proves CM-27 */
static void cm_private_field__sizes(void **state)
{
	static const uint8_t want[CM_ATTRS] = {
		92, 222, 148, 196, 224, 220, 224, 216, 136, 168, 148};
	uint8_t mad[MAD_LEN + 1];

	(void)state;
	for (unsigned i = 0; i < CM_ATTRS; i++) {
		enum cm_field f = cm_private_field(CM_REQ + i);
		size_t len;

		mad_begin(mad, CM_REQ + i, 1);
		assert_ptr_equal(cm_bytes(mad, f, &len) + len, mad + MAD_LEN);
		assert_int_equal(len, want[i]);
		assert_true(cm_put_bytes(mad, f, linux_req, 1));
		assert_false(cm_put_bytes(mad, f, mad, len + 1));
		assert_int_equal(cm_field_find(CM_REQ + i, "private_data"), f);
	}
	assert_int_equal(cm_field_find(CM_RTU, "service_id"), CM_FIELD_END);
	assert_string_equal(cm_attr_name(CM_APR), "APR");
	assert_null(cm_attr_name(CM_REQ - 1));
	assert_null(cm_attr_name(CM_ATTR_END));
}

/* proves CM-04, CM-05 */
static void mad_check__strange(void **state)
{
	static const struct {
		uint8_t at, value;
		enum mad_fault want;
	} rows[] = {{0, 2, MAD_VERSION}, {0, 0, MAD_VERSION}, {1, 0x03, MAD_CLASS},
		{1, 0x01, MAD_CLASS}, {1, 0x04, MAD_CLASS}, {1, 0x06, MAD_CLASS},
		{2, 1, MAD_VERSION}, {2, 3, MAD_VERSION}, {3, 0x81, MAD_METHOD},
		{3, 0x01, MAD_METHOD}, {3, 0x83, MAD_METHOD}, {17, 0x0F, MAD_ATTR},
		{17, 0x1B, MAD_ATTR}, {16, 1, MAD_ATTR}, {17, 0x1A, MAD_CM}, {17, 0x10, MAD_CM}};
	uint8_t mad[MAD_LEN + 4] = {0};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		mad_begin(mad, CM_REQ, 1);
		mad[rows[i].at] = rows[i].value;
		assert_int_equal(mad_check(mad, MAD_LEN), rows[i].want);
		assert_non_null(mad_fault_name(rows[i].want));
	}
	mad_begin(mad, CM_REQ, 1);
	assert_int_equal(mad_check(mad, MAD_LEN - 1), MAD_SHORT);
	assert_int_equal(mad_check(mad, MAD_LEN + 4), MAD_SHORT);
	assert_int_equal(mad_check(NULL, 0), MAD_SHORT);
}

/* proves CM-28, CM-29, CM-30 */
static void cma__header(void **state)
{
	static const uint8_t v6[16] = {0x20, 1, 0x0d, 0xb8, [15] = 1};
	uint8_t p[CMA_HDR_LEN];
	struct cma_hdr h;

	(void)state;
	assert_true(cma_read(&h, linux_cma));
	assert_int_equal(h.family, 4);
	assert_int_equal(h.src_port, 0xb080);
	assert_memory_equal(h.src, linux_req + MAD_DATA + 56, 16);
	assert_memory_equal(h.dst, linux_req + MAD_DATA + 72, 16);
	cma_write(p, &h);
	assert_memory_equal(p, linux_cma, sizeof(p));
	memcpy(h.src, v6, 16);
	h.family = 6;
	cma_write(p, &h);
	assert_true(cma_read(&h, p) && !memcmp(h.src, v6, 16));
	for (unsigned family = 0; family < 16; family++) {
		p[1] = (uint8_t)(family << 4);
		assert_int_equal(cma_read(&h, p), family == 4 || family == 6);
	}
	p[1] = 0x40;
	p[0] = 0x01;
	assert_true(cma_read(&h, p));
	p[0] = 0x10;
	assert_false(cma_read(&h, p));
	assert_true(cma_is_ip(0x01061c06) && cma_is_ip(0x01111d2f));
	assert_false(cma_is_ip(0x1000000001061c06) || cma_is_ip(0x02061c06));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_get__linux),
		cmocka_unit_test(cm_put__alone),
		cmocka_unit_test(cm_private_field__sizes),
		cmocka_unit_test(mad_check__strange),
		cmocka_unit_test(cma__header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
