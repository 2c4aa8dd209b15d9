/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doc/abi.md against the headers: every structure's size, every field's offset and size. The
 * document's path is the argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "abi_fault.h"
#include "abi_ring.h"
#include "abi_wqe.h"

struct field {
	const char *structure;
	const char *name; /* NULL: the structure itself */
	size_t offset;
	size_t size;
};

#define S(s)                                  \
	{                                     \
#s, NULL, 0, sizeof(struct s) \
	}
#define F(s, f)                                                           \
	{                                                                 \
#s, #f, offsetof(struct s, f), sizeof(((struct s *)0)->f) \
	}

/* If you add a structure or a field to the ABI, it needs a row here and one in doc/abi.md. */
/* clang-format off */
static const struct field fields[] = {
	S(abi_queue),
	F(abi_queue, need_doorbell),
	F(abi_queue, consumer),
	F(abi_queue, bell),
	F(abi_queue, pad0),
	F(abi_queue, producer),
	F(abi_queue, pad1),
	S(abi_cq),
	F(abi_cq, arm),
	F(abi_cq, resizes),
	F(abi_cq, pad0),
	S(abi_cq_lane),
	F(abi_cq_lane, consumer),
	F(abi_cq_lane, pad0),
	S(abi_doorbell),
	F(abi_doorbell, summary),
	F(abi_doorbell, asleep),
	F(abi_doorbell, pad0),
	F(abi_doorbell, bits),
	S(abi_session),
	F(abi_session, epoch),
	F(abi_session, pad0),
	S(abi_sge),
	F(abi_sge, addr),
	F(abi_sge, length),
	F(abi_sge, lkey),
	S(abi_wqe),
	F(abi_wqe, ctl),
	F(abi_wqe, imm),
	F(abi_wqe, inv_rkey),
	F(abi_wqe, feth),
	F(abi_wqe, wr_id),
	F(abi_wqe, remote_addr),
	F(abi_wqe, rkey),
	F(abi_wqe, srqn),
	F(abi_wqe, ud.ah),
	F(abi_wqe, ud.remote_qpn),
	F(abi_wqe, ud.remote_qkey),
	F(abi_wqe, ud.pkey_index),
	F(abi_wqe, sge),
	F(abi_wqe, inline_data),
	F(abi_wqe, atomic.compare_add),
	F(abi_wqe, atomic.swap),
	F(abi_wqe, atomic.sge),
	F(abi_wqe, flush.length),
	F(abi_wqe, bind.mw),
	F(abi_wqe, bind.mr_lkey),
	F(abi_wqe, bind.new_rkey),
	F(abi_wqe, bind.access),
	F(abi_wqe, bind.addr),
	F(abi_wqe, bind.length),
	S(abi_recv_wqe),
	F(abi_recv_wqe, ctl),
	F(abi_recv_wqe, reserved),
	F(abi_recv_wqe, wr_id),
	F(abi_recv_wqe, sge),
	S(abi_cqe),
	F(abi_cqe, wr_id),
	F(abi_cqe, byte_len),
	F(abi_cqe, imm),
	F(abi_cqe, qpn),
	F(abi_cqe, src_qp),
	F(abi_cqe, status),
	F(abi_cqe, opcode),
	F(abi_cqe, flags),
	F(abi_cqe, sl),
	F(abi_cqe, pkey_index),
	F(abi_cqe, vid),
	F(abi_cqe, smac),
	F(abi_cqe, net),
	F(abi_cqe, reserved0),
	F(abi_cqe, vendor_err),
	F(abi_cqe, timestamp),
	F(abi_cqe, srqn),
	F(abi_cqe, mark),
	S(abi_msg),
	F(abi_msg, type),
	F(abi_msg, seq),
	F(abi_msg, status),
	F(abi_msg, reserved),
	S(abi_hello),
	F(abi_hello, magic),
	F(abi_hello, version_min),
	F(abi_hello, version_max),
	F(abi_hello, name),
	S(abi_hello_reply),
	F(abi_hello_reply, magic),
	F(abi_hello_reply, version),
	F(abi_hello_reply, workers),
	F(abi_hello_reply, epoch),
	F(abi_hello_reply, region_size),
	F(abi_hello_reply, doorbell_off),
	F(abi_hello_reply, doorbell_stride),
	F(abi_hello_reply, session),
	F(abi_hello_reply, device),
	F(abi_hello_reply, sleeps),
	F(abi_hello_reply, rocev1),
	S(abi_get_wake),
	F(abi_get_wake, worker),
	S(abi_explain_qp_reply),
	F(abi_explain_qp_reply, rule),
	F(abi_explain_qp_reply, cause),
	F(abi_explain_qp_reply, sentence),
	S(abi_inject_fault),
	F(abi_inject_fault, qp),
	F(abi_inject_fault, reserved),
	F(abi_inject_fault, fault),
	S(abi_fault),
	F(abi_fault, kind),
	F(abi_fault, direction),
	F(abi_fault, flags),
	F(abi_fault, packets),
	F(abi_fault, psn_first),
	F(abi_fault, psn_last),
	F(abi_fault, nth),
	F(abi_fault, every),
	F(abi_fault, count),
	F(abi_fault, chance),
	F(abi_fault, seed),
	F(abi_fault, time),
	F(abi_fault, value),
	F(abi_fault, offset),
	F(abi_fault, mask),
	F(abi_fault, reserved),
	S(abi_fault_id),
	F(abi_fault_id, qp),
	F(abi_fault_id, id),
	S(abi_fault_count),
	F(abi_fault_count, id),
	F(abi_fault_count, reserved),
	F(abi_fault_count, matched),
	F(abi_fault_count, hits),
	F(abi_fault_count, missed),
	S(abi_device_attr),
	F(abi_device_attr, node_guid),
	F(abi_device_attr, ports),
	F(abi_device_attr, max_qp),
	F(abi_device_attr, max_qp_wr),
	F(abi_device_attr, max_sge),
	F(abi_device_attr, max_inline),
	F(abi_device_attr, max_cq),
	F(abi_device_attr, max_cqe),
	F(abi_device_attr, max_mr),
	F(abi_device_attr, max_pd),
	F(abi_device_attr, max_srq),
	F(abi_device_attr, max_srq_wr),
	F(abi_device_attr, max_ah),
	F(abi_device_attr, max_rd_atomic),
	F(abi_device_attr, max_pkeys),
	F(abi_device_attr, atomic_cap),
	F(abi_device_attr, version),
	F(abi_device_attr, max_mw),
	F(abi_device_attr, max_srq_sge),
	F(abi_device_attr, max_mcast_groups),
	F(abi_device_attr, max_mcast_members),
	F(abi_device_attr, max_mcast_attach),
	F(abi_device_attr, max_res_rd_atomic),
	F(abi_device_attr, timestamp_bits),
	F(abi_device_attr, core_clock_khz),
	S(abi_query_port),
	F(abi_query_port, port),
	S(abi_port_attr),
	F(abi_port_attr, state),
	F(abi_port_attr, max_mtu),
	F(abi_port_attr, active_mtu),
	F(abi_port_attr, gids),
	F(abi_port_attr, pkeys),
	F(abi_port_attr, speed_mbps),
	F(abi_port_attr, mac),
	F(abi_port_attr, bad_pkey_cntr),
	F(abi_port_attr, netdev),
	F(abi_port_attr, qkey_viol_cntr),
	S(abi_query_gid),
	F(abi_query_gid, port),
	F(abi_query_gid, index),
	S(abi_gid),
	F(abi_gid, gid),
	F(abi_gid, type),
	F(abi_gid, ifindex),
	F(abi_gid, vid),
	F(abi_gid, mac),
	S(abi_query_pkey),
	F(abi_query_pkey, port),
	F(abi_query_pkey, index),
	S(abi_pkey),
	F(abi_pkey, pkey),
	S(abi_handle),
	F(abi_handle, handle),
	S(abi_reg_mr),
	F(abi_reg_mr, pd),
	F(abi_reg_mr, access),
	F(abi_reg_mr, iova),
	F(abi_reg_mr, length),
	F(abi_reg_mr, fd_off),
	F(abi_reg_mr, npieces),
	F(abi_reg_mr, writers),
	S(abi_piece),
	F(abi_piece, off),
	F(abi_piece, length),
	S(abi_rereg_mr),
	F(abi_rereg_mr, handle),
	F(abi_rereg_mr, reserved),
	F(abi_rereg_mr, reg),
	S(abi_query_gids),
	F(abi_query_gids, port),
	F(abi_query_gids, first),
	S(abi_gid_at),
	F(abi_gid_at, index),
	F(abi_gid_at, gid),
	S(abi_gids),
	F(abi_gids, count),
	F(abi_gids, next),
	F(abi_gids, at),
	S(abi_probe),
	F(abi_probe, device),
	F(abi_probe, node_guid),
	F(abi_probe, ports),
	F(abi_probe, reserved),
	S(abi_get_arena),
	F(abi_get_arena, page),
	F(abi_get_arena, reserved),
	S(abi_reg_mr_reply),
	F(abi_reg_mr_reply, handle),
	F(abi_reg_mr_reply, lkey),
	F(abi_reg_mr_reply, rkey),
	S(abi_alloc_mw),
	F(abi_alloc_mw, pd),
	F(abi_alloc_mw, type),
	S(abi_alloc_mw_reply),
	F(abi_alloc_mw_reply, handle),
	F(abi_alloc_mw_reply, rkey),
	S(abi_event),
	F(abi_event, type),
	F(abi_event, handle),
	F(abi_event, reserved),
	S(abi_create_cq),
	F(abi_create_cq, depth),
	F(abi_create_cq, channel),
	F(abi_create_cq, vector),
	F(abi_create_cq, flags),
	S(abi_create_cq_reply),
	F(abi_create_cq_reply, handle),
	F(abi_create_cq_reply, depth),
	F(abi_create_cq_reply, lanes),
	F(abi_create_cq_reply, lane_off),
	F(abi_create_cq_reply, lane_stride),
	F(abi_create_cq_reply, region_size),
	S(abi_resize_cq),
	F(abi_resize_cq, handle),
	F(abi_resize_cq, depth),
	S(abi_create_srq),
	F(abi_create_srq, pd),
	F(abi_create_srq, max_wr),
	F(abi_create_srq, max_sge),
	F(abi_create_srq, limit),
	F(abi_create_srq, xrcd),
	F(abi_create_srq, cq),
	S(abi_create_srq_reply),
	F(abi_create_srq_reply, handle),
	F(abi_create_srq_reply, srqn),
	F(abi_create_srq_reply, max_wr),
	F(abi_create_srq_reply, stride),
	F(abi_create_srq_reply, ring_off),
	F(abi_create_srq_reply, region_size),
	S(abi_modify_srq),
	F(abi_modify_srq, handle),
	F(abi_modify_srq, mask),
	F(abi_modify_srq, max_wr),
	F(abi_modify_srq, limit),
	S(abi_srq_attr),
	F(abi_srq_attr, max_wr),
	F(abi_srq_attr, max_sge),
	F(abi_srq_attr, limit),
	F(abi_srq_attr, waiting),
	S(abi_ah_attr),
	F(abi_ah_attr, dgid),
	F(abi_ah_attr, dmac),
	F(abi_ah_attr, sgid_index),
	F(abi_ah_attr, traffic_class),
	F(abi_ah_attr, hop_limit),
	F(abi_ah_attr, sl),
	F(abi_ah_attr, port),
	F(abi_ah_attr, is_global),
	F(abi_ah_attr, flow_label),
	S(abi_create_qp),
	F(abi_create_qp, pd),
	F(abi_create_qp, type),
	F(abi_create_qp, send_cq),
	F(abi_create_qp, recv_cq),
	F(abi_create_qp, srq),
	F(abi_create_qp, max_send_wr),
	F(abi_create_qp, max_recv_wr),
	F(abi_create_qp, max_send_sge),
	F(abi_create_qp, max_recv_sge),
	F(abi_create_qp, max_inline),
	F(abi_create_qp, sq_sig_all),
	F(abi_create_qp, xrcd),
	F(abi_create_qp, port),
	S(abi_create_qp_reply),
	F(abi_create_qp_reply, handle),
	F(abi_create_qp_reply, qpn),
	F(abi_create_qp_reply, worker),
	F(abi_create_qp_reply, doorbell),
	F(abi_create_qp_reply, sq_depth),
	F(abi_create_qp_reply, sq_stride),
	F(abi_create_qp_reply, rq_depth),
	F(abi_create_qp_reply, rq_stride),
	F(abi_create_qp_reply, max_send_sge),
	F(abi_create_qp_reply, max_recv_sge),
	F(abi_create_qp_reply, max_inline),
	F(abi_create_qp_reply, sq_queue_off),
	F(abi_create_qp_reply, sq_ring_off),
	F(abi_create_qp_reply, rq_queue_off),
	F(abi_create_qp_reply, rq_ring_off),
	F(abi_create_qp_reply, region_size),
	S(abi_qp_attr),
	F(abi_qp_attr, qp_state),
	F(abi_qp_attr, cur_qp_state),
	F(abi_qp_attr, en_sqd_async_notify),
	F(abi_qp_attr, sq_draining),
	F(abi_qp_attr, access_flags),
	F(abi_qp_attr, path_mtu),
	F(abi_qp_attr, qkey),
	F(abi_qp_attr, rq_psn),
	F(abi_qp_attr, sq_psn),
	F(abi_qp_attr, dest_qpn),
	F(abi_qp_attr, pkey_index),
	F(abi_qp_attr, port),
	F(abi_qp_attr, timeout),
	F(abi_qp_attr, retry_cnt),
	F(abi_qp_attr, rnr_retry),
	F(abi_qp_attr, min_rnr_timer),
	F(abi_qp_attr, max_rd_atomic),
	F(abi_qp_attr, max_dest_rd_atomic),
	F(abi_qp_attr, path_mig_state),
	F(abi_qp_attr, reserved),
	F(abi_qp_attr, ah),
	S(abi_modify_qp),
	F(abi_modify_qp, handle),
	F(abi_modify_qp, mask),
	F(abi_modify_qp, attr),
	S(abi_limit_qp),
	F(abi_limit_qp, handle),
	F(abi_limit_qp, rate),
	F(abi_limit_qp, burst),
	F(abi_limit_qp, packet),
	S(abi_report),
	F(abi_report, qpn),
	F(abi_report, sentence),
	S(abi_open_xrcd),
	F(abi_open_xrcd, flags),
	S(abi_mcast),
	F(abi_mcast, qp),
	F(abi_mcast, mgid),
	S(abi_create_ah),
	F(abi_create_ah, pd),
	F(abi_create_ah, attr),
	F(abi_create_ah, flags),
	S(abi_handle_reply),
	F(abi_handle_reply, handle),
};
/* clang-format on */
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const char *path;

static const struct field *find(const char *structure, const char *name)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		const struct field *f = &fields[i];

		if (strcmp(f->structure, structure))
			continue;
		if (name && f->name ? strcmp(f->name, name) == 0 : name == f->name)
			return f;
	}
	return NULL;
}

/* Reads the document; marks in `seen` what it tells, and fails on what it tells wrongly. */
static unsigned read_document(bool seen[FIELDS])
{
	FILE *doc = fopen(path, "r");
	char line[1000], structure[64] = "", name[64];
	unsigned wrong = 0;
	size_t offset, size;

	assert_non_null(doc);
	while (fgets(line, sizeof(line), doc)) {
		const struct field *f;

		if (sscanf(line, "`struct %63[a-z_]`, %zu bytes", structure, &size) == 2) {
			f = find(structure, NULL);
			offset = 0;
		} else if (sscanf(line, "| %zu | %zu | `%63[a-z0-9_.]`", &offset, &size, name) ==
			   3) {
			f = find(structure, name);
		} else {
			continue;
		}
		if (!f || f->offset != offset || f->size != size) {
			print_error("struct %s: the headers disagree: %s", structure, line);
			wrong++;
		} else {
			seen[f - fields] = true;
		}
	}
	fclose(doc);
	return wrong;
}

static void document__agrees_with_the_headers(void **state)
{
	bool seen[FIELDS] = {false};

	assert_int_equal(read_document(seen), 0);
	for (unsigned i = 0; i < FIELDS; i++) {
		if (!seen[i])
			print_error("doc/abi.md does not tell of struct %s %s\n",
				fields[i].structure, fields[i].name ? fields[i].name : "");
		assert_true(seen[i]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document__agrees_with_the_headers),
	};

	path = argc > 1 ? argv[1] : "doc/abi.md";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
