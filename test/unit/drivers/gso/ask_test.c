/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials, answers and what follows from them. The packet sockets are socket pairs: the test is the
 * network, and sees all that is sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/virtio_net.h>
#include "bits.h"
#include "frame.h"
#include "gso/ask.h"
#include "icrc.h"
#include "packet.h"
#include "path.h"
#include "path_write.h"

#define MS     1000u
#define T0     (1000000u * MS)
#define QUEUES 2u

/* A host: a port with two queues, each with its socket, whose other end the test has. */
struct host {
	struct gid_table gids;
	struct port port;
	struct gso_ask ask[QUEUES];
	int wire[QUEUES];
};

static struct host a, b;

static const uint8_t gid4[2][16] = {
	{[10] = 0xFF, 0xFF, 10, 9, 8, 1}, {[10] = 0xFF, 0xFF, 10, 9, 8, 2}};
static const uint8_t gid6[2][16] = {{0xFD, [15] = 1}, {0xFD, [15] = 2}};

static void open_host(struct host *h, unsigned i)
{
	memset(h, 0, sizeof(*h));
	h->gids.count = 2;
	h->gids.entry[0] = (struct gid_entry){.net = NET_IPV4, .valid = true};
	h->gids.entry[1] = (struct gid_entry){.net = NET_IPV6, .valid = true};
	memcpy(h->gids.entry[0].gid, gid4[i], 16);
	memcpy(h->gids.entry[1].gid, gid6[i], 16);
	atomic_store(&h->port.gids, &h->gids);
	for (unsigned q = 0; q < QUEUES; q++) {
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
		gso_ask_init(&h->ask[q], MS);
		h->ask[q].fd = pair[0];
		h->wire[q] = pair[1];
		h->ask[q].port = &h->port;
		h->ask[q].queues = QUEUES;
		for (unsigned k = 0; k < QUEUES; k++)
			h->ask[q].all[k] = &h->ask[k];
	}
}

static void close_host(struct host *h)
{
	for (unsigned q = 0; q < QUEUES; q++) {
		close(h->ask[q].fd);
		close(h->wire[q]);
	}
}

static int begin(void **state)
{
	open_host(&a, 0);
	open_host(&b, 1);
	return 0;
}

static int end(void **state)
{
	close_host(&a);
	close_host(&b);
	return 0;
}

struct frame {
	struct virtio_net_hdr vnet;
	uint8_t b[GSO_TRIAL_MAX];
	uint32_t len;
};

/* From host 0 to host 1. */
static struct frame data(unsigned net)
{
	struct gid_entry sgid = {.valid = true, .net = (uint8_t)net, .mac = {2, 0, 0, 0, 0, 1}};
	struct path_spec s = {
		.sgid = &sgid, .dmac = {2, 0, 0, 0, 0, 2}, .hop_limit = 9, .sport = 50000};
	struct frame f = {.len = 0};
	struct path p;
	uint8_t *bth;

	memcpy(sgid.gid, net == NET_IPV4 ? gid4[0] : gid6[0], 16);
	memcpy(s.dgid, net == NET_IPV4 ? gid4[1] : gid6[1], 16);
	path_init(&p, &s);
	bth = path_write(&p, f.b, BTH_HLEN + 64 + ICRC_LEN, 7);
	memset(bth, 0, BTH_HLEN + 64 + ICRC_LEN);
	f.len = (uint32_t)(bth - f.b) + BTH_HLEN + 64 + ICRC_LEN;
	return f;
}

/* The next frame that queue @p q of @p h sent. @return false: none */
static bool sent(const struct host *h, unsigned q, struct frame *f)
{
	struct iovec io[2] = {{&f->vnet, sizeof(f->vnet)}, {f->b, sizeof(f->b)}};
	struct msghdr m = {.msg_iov = io, .msg_iovlen = 2};
	ssize_t n = recvmsg(h->wire[q], &m, MSG_DONTWAIT);

	f->len = n < 0 ? 0 : (uint32_t)n - (uint32_t)sizeof(f->vnet);
	return n > 0;
}

/* Part @p i of a super-frame, as it arrives. */
static struct frame part_of(const struct frame *whole, unsigned i)
{
	struct frame part = {.len = 0};
	struct gso_split s;

	assert_int_equal(whole->vnet.gso_type, 5);
	assert_int_equal(whole->vnet.gso_size, GSO_TRIAL_PART);
	assert_true(
		gso_split_begin(&s, whole->b, whole->len, whole->vnet.gso_size, sizeof(part.b)));
	assert_int_equal(gso_split_count(&s), 2);
	for (unsigned k = 0; k <= i; k++)
		part.len = gso_split_next(&s, part.b);
	return part;
}

static bool takes(unsigned q, unsigned net, uint64_t now)
{
	struct frame f = data(net);

	return gso_ask_takes(&a.ask[q], f.b, now);
}

static bool hears(struct host *h, unsigned q, const struct frame *f)
{
	return gso_trial_long(f->len) && gso_ask_heard(&h->ask[q], f->b, f->len, true);
}

/* An answer makes a peer known, whatever queue it arrives at. */
static void gso_ask__runs_after_an_answer(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++)
		for (unsigned from = 0; from < QUEUES; from++) {
			uint64_t now = T0 + (from + 2 * net) * 1000 * MS;
			struct frame trial, part, answer;

			assert_false(takes(from, net, now));
			assert_true(sent(&a, from, &trial));
			assert_false(takes(from, net, now + 1));
			assert_false(sent(&a, from, &answer));
			part = part_of(&trial, 1);
			assert_true(hears(&b, 0, &part));
			gso_ask_reply(&b.ask[0]);
			assert_true(sent(&b, 0, &answer));
			assert_int_equal(answer.vnet.gso_type, VIRTIO_NET_HDR_GSO_NONE);
			assert_memory_equal(answer.b + ETH_DST, data(net).b + ETH_SRC, 6);
			assert_memory_equal(answer.b + ETH_SRC, data(net).b + ETH_DST, 6);
			assert_true(hears(&a, 1 - from, &answer));
			assert_true(takes(from, net, now + 2));
			assert_false(takes(from, net, now + GSO_KNOWN_MS * MS));
			sent(&a, from, &trial);
			gso_ask_reply(&a.ask[1 - from]);
			assert_false(sent(&a, 1 - from, &answer)); /* an answer to an answer */
		}
	assert_int_equal(a.ask[0].trials + a.ask[1].trials, 8);
	assert_int_equal(b.ask[0].answered, 4);
}

static uint16_t checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(ip + i);
	return (uint16_t)~path_csum_fold(sum);
}

/* Where it was cut on its way each part comes alone, with a checksum. */
static void gso_ask__a_trial_that_was_cut(void **state)
{
	struct frame trial, answer, none;

	takes(0, NET_IPV4, T0);
	assert_true(sent(&a, 0, &trial));
	for (unsigned i = 0; i < 2; i++) {
		struct frame part = part_of(&trial, i);

		assert_false(sent(&b, 0, &none)); /* to the first alone */
		put_be16(part.b + ETH_HLEN + IP4_HLEN + UDP_CSUM, 0x1234);
		assert_true(hears(&b, 0, &part));
		gso_ask_reply(&b.ask[0]);
	}
	assert_true(sent(&b, 0, &answer));
	assert_false(sent(&b, 0, &none)); /* one, for both */
	assert_true(hears(&a, 0, &answer));
	assert_true(takes(0, NET_IPV4, T0 + 1));
}

/* Frames that were cut so would have a wrong ICRC: there is no answer. proves IP4-17 */
static void gso_ask__cut_with_the_same_identification(void **state)
{
	struct frame trial, none;

	takes(0, NET_IPV4, T0);
	assert_true(sent(&a, 0, &trial));
	for (unsigned i = 0; i < 2; i++) {
		struct frame part = part_of(&trial, i);

		put_be16(part.b + ETH_HLEN + IP4_ID, 0);
		put_be16(part.b + ETH_HLEN + IP4_CSUM, 0);
		put_be16(part.b + ETH_HLEN + IP4_CSUM, checksum(part.b + ETH_HLEN));
		assert_int_equal(hears(&b, 0, &part), !i);
		gso_ask_reply(&b.ask[0]);
		assert_false(sent(&b, 0, &none));
	}
}

/* Nobody else drops it for a reason that would be reported as damage. */
static void gso_ask__others_see_an_unknown_opcode(void **state)
{
	struct frame trial, part, answer;
	struct pkt p;

	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		takes(0, net, T0 + net * MS);
		assert_true(sent(&a, 0, &trial));
		part = part_of(&trial, 1);
		hears(&b, 0, &part);
		gso_ask_reply(&b.ask[0]);
		assert_true(sent(&b, 0, &answer));
		assert_int_equal(frame_parse(&p, trial.b, trial.len), DROP_OPCODE_CLASS);
		assert_int_equal(frame_parse(&p, part.b, part.len), DROP_OPCODE_CLASS);
		assert_int_equal(frame_parse(&p, answer.b, answer.len), DROP_OPCODE_CLASS);
	}
}

static uint16_t port_of(const struct frame *f)
{
	assert_int_equal(get_be16(f->b + ETH_HLEN + IP4_HLEN + UDP_DPORT), 4791);
	return get_be16(f->b + ETH_HLEN + IP4_HLEN + UDP_SPORT);
}

/* UDP-10; and no offload merges two trials with the frames of one QP. */
static void gso_trial_write__a_flow_of_its_own(void **state)
{
	struct frame f = data(NET_IPV4);
	struct frame trial, answer;
	uint16_t head;

	for (uint64_t cookie = 0; cookie < 0x10000; cookie += 0x3333) {
		trial.len = gso_trial_write(trial.b, f.b, cookie, &head);
		assert_int_equal(port_of(&trial), 0xC000 | (cookie & 0x3FFF));
		trial.vnet = (struct virtio_net_hdr){.gso_type = 5, .gso_size = GSO_TRIAL_PART};
		trial = part_of(&trial, 1);
		answer.len = gso_trial_answer(answer.b, trial.b);
		assert_int_equal(port_of(&answer), 0xC000 | (cookie & 0x3FFF));
	}
}

#define NIC_PART_MIN 224u /* of ibmveth, the most that a NIC of note asks for */

/* A NIC cuts a trial if it cuts runs, and frames of the smallest path MTU are as long. */
static void gso_trial_write__parts_that_a_nic_cuts(void **state)
{
	struct frame f = data(NET_IPV4);
	struct frame trial;
	uint16_t head;

	trial.len = gso_trial_write(trial.b, f.b, 7, &head);
	assert_int_equal((trial.len - head) % 2, 0);
	assert_in_range((trial.len - head) / 2, NIC_PART_MIN, BTH_HLEN + PATH_MTU_MIN + ICRC_LEN);
	assert_int_equal((trial.len - head) / 2, GSO_TRIAL_PART);
}

/* A copy for another host must not be answered: that host may take no runs. */
static void gso_ask__only_the_receiver_answers(void **state)
{
	struct frame trial, part, answer;

	takes(0, NET_IPV4, T0);
	assert_true(sent(&a, 0, &trial));
	part = part_of(&trial, 1);
	assert_true(gso_ask_heard(&b.ask[0], part.b, part.len, false)); /* another's MAC */
	gso_ask_reply(&b.ask[0]);
	assert_false(sent(&b, 0, &answer));
	part.b[ETH_SRC] |= 1;
	assert_true(hears(&b, 0, &part));
	gso_ask_reply(&b.ask[0]);
	assert_false(sent(&b, 0, &answer));
	part.b[ETH_SRC] &= 0xFE;
	b.gids.entry[0].valid = false; /* our MAC, another's address */
	assert_true(hears(&b, 0, &part));
	gso_ask_reply(&b.ask[0]);
	assert_false(sent(&b, 0, &answer));
	b.gids.entry[0].valid = true;
	atomic_store(&b.port.gids, NULL);
	assert_true(hears(&b, 0, &part));
	gso_ask_reply(&b.ask[0]);
	assert_false(sent(&b, 0, &answer));
}

/* A host that did not get the trial cannot answer it. */
static void gso_ask__a_cookie_that_was_not_sent(void **state)
{
	struct frame trial, part, answer;
	uint64_t cookie, wrong;

	takes(0, NET_IPV4, T0);
	assert_true(sent(&a, 0, &trial));
	part = part_of(&trial, 1);
	assert_int_equal(gso_trial_read(part.b, part.len, &cookie), GSO_TRIAL);
	for (wrong = cookie + GSO_ANSWER_SLOTS; wrong != cookie + 9 * GSO_ANSWER_SLOTS;
		wrong += GSO_ANSWER_SLOTS)
		gso_answers_put(&a.ask[0].answers, wrong);
	assert_false(takes(0, NET_IPV4, T0 + 1));
	/* That of the last trial counts no more after the next. */
	assert_false(takes(0, NET_IPV4, T0 + 20 * MS));
	assert_true(sent(&a, 0, &trial));
	assert_true(hears(&b, 0, &part));
	gso_ask_reply(&b.ask[0]);
	assert_true(sent(&b, 0, &answer));
	assert_true(hears(&a, 0, &answer));
	assert_false(takes(0, NET_IPV4, T0 + 20 * MS + 1));
}

/* Any byte of it: the frame is somebody else's then, or damaged. */
static void gso_trial_read__all_else(void **state)
{
	struct frame trial, part;
	uint64_t cookie;

	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		takes(0, net, T0 + net * MS);
		assert_true(sent(&a, 0, &trial));
		part = part_of(&trial, 1);
		for (unsigned i = ETH_TYPE; i < part.len; i++) {
			struct frame f = part;
			unsigned udp = part.len - GSO_TRIAL_PART - UDP_HLEN;
			bool free = net == NET_IPV6 && i >= ETH_HLEN && i < ETH_HLEN + IP6_PLEN;

			/* Variant fields, which no ICRC covers. */
			free |= net == NET_IPV6 && i == ETH_HLEN + IP6_HLIM;
			free |= i == udp + UDP_CSUM || i == udp + UDP_CSUM + 1;
			free |= i == udp + UDP_HLEN + BTH_RESV8A;
			f.b[i] ^= 1;
			if (!free)
				assert_int_equal(
					gso_trial_read(f.b, f.len, &cookie), GSO_TRIAL_NOT);
		}
		for (uint32_t len = 0; len < part.len; len++)
			assert_int_equal(gso_trial_read(part.b, len, &cookie), GSO_TRIAL_NOT);
		assert_int_equal(gso_trial_read(part.b, part.len, &cookie), GSO_TRIAL);
	}
}

/* One that a kernel cannot send: never again. */
static void gso_ask__a_kernel_that_is_too_old(void **state)
{
	a.ask[0].refused = true;
	assert_false(takes(0, NET_IPV4, T0));
	assert_int_equal(a.ask[0].trials, 0);
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		test(gso_ask__runs_after_an_answer),
		test(gso_ask__a_trial_that_was_cut),
		test(gso_ask__cut_with_the_same_identification),
		test(gso_ask__others_see_an_unknown_opcode),
		test(gso_trial_write__a_flow_of_its_own),
		test(gso_trial_write__parts_that_a_nic_cuts),
		test(gso_ask__only_the_receiver_answers),
		test(gso_ask__a_cookie_that_was_not_sent),
		test(gso_trial_read__all_else),
		test(gso_ask__a_kernel_that_is_too_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
