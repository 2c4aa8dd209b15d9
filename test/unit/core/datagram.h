/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file datagram.h
 * Two hosts with a UD QP each, and datagrams between them, frame by frame. The golden vectors check
 * the bytes.
 */
#ifndef DATAGRAM_H
#define DATAGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cause.h"
#include "app.h"
#include "ud.h"

#define QKEY   0x11111111u
#define AREA   40u
#define BUFFER 2048u
#define AH_ID  0x10007u

struct end {
	struct sim_host *host;
	struct app app;
	struct app_cq *cq;
	struct app_qp *qp;
	struct app_mr *mr;
};

extern struct end a, b;
extern struct ah ah; /* of a, to b */
extern uint64_t now;
extern uint8_t frame[FRAME_MAX]; /* the last one that a sent */
extern uint16_t frame_len;
extern struct txd sent;

struct app_qp *make_qp_of(struct end *e, uint8_t type);
void climb(struct app_qp *qp, uint32_t qkey);
void open_end(struct end *e, uint8_t id);
void close_end(struct end *e);
/** The handle of a that leads to b. */
void lead(enum host_gid gid);
int datagram_setup(void **state);
int datagram_teardown(void **state);
void post_to(uint32_t qpn, uint32_t qkey, uint32_t id, uint32_t len, uint32_t flags);
void post(uint32_t len);
void receive_at(struct end *e, struct app_qp *qp, uint64_t wr_id, uint64_t off, uint32_t len);
/** Has host a send.  @return whether it sent a packet, which is then in `frame`. */
bool send_one(void);
const uint8_t *bth(void);
/** `frame` was changed: corrects its ICRC. */
void reseal(void);
/** b receives `frame`.  @return its verdict. */
uint16_t deliver_by(uint8_t queue);
uint16_t deliver(void);
/** The same in VLAN @p vid. */
uint16_t deliver_tagged(uint16_t vid);
struct abi_cqe take_cqe(struct end *e);
void assert_no_cqe(struct end *e);
/** The frame for a SEND of @p len bytes. */
void make_frame(uint32_t len);
uint64_t drops(enum drop why);
uint8_t *buffer(uint64_t off);
/** The request that a has just posted fails, with SQE, and completes in error. */
void assert_refused(uint8_t status, enum cause why);
/** a, from SQE to RTS. */
void recover(void);

#endif
