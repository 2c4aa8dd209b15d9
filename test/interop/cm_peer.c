/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of the RDMA CM world on the stock librdmacm, for refusals.py:
 *   cm_peer accept|reject tcp|udp ADDRESS
 * It answers every request until it is ended: accepts it with a QP of its own, or rejects it with
 * as many bytes of private data as a REJ has. librdmacm is loaded, as its headers are not needed
 * otherwise. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PORT 7471

enum {
	CONNECT_REQUEST = 4,
	DISCONNECTED = 10
};
enum {
	REJ_PRIVATE = 148,
	SIDR_REP_PRIVATE = 136
};
enum {
	PS_TCP = 0x106,
	PS_UDP = 0x111
};

/* As <rdma/rdma_cma.h> has them, as far as they are used. */
struct event {
	void *id, *listener;
	int type, status;
};

struct parameters {
	const void *private_data;
	uint8_t private_len, responder_resources, initiator_depth, flow_control;
	uint8_t retry_count, rnr_retry_count, srq;
	uint32_t qp_num;
};

static struct {
	void *(*create_channel)(void);
	int (*create_id)(void *channel, void **id, void *context, int space);
	int (*bind_addr)(void *id, struct sockaddr *address);
	int (*listen)(void *id, int backlog);
	int (*get_event)(void *channel, struct event **event);
	int (*ack_event)(struct event *event);
	int (*create_qp)(void *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*accept)(void *id, struct parameters *parameters);
	int (*reject)(void *id, const void *private_data, uint8_t len);
	int (*disconnect)(void *id);
} cm;

static bool load(void)
{
	const struct {
		void *to;
		const char *name;
	} row[] = {{&cm.create_channel, "rdma_create_event_channel"},
		{&cm.create_id, "rdma_create_id"}, {&cm.bind_addr, "rdma_bind_addr"},
		{&cm.listen, "rdma_listen"}, {&cm.get_event, "rdma_get_cm_event"},
		{&cm.ack_event, "rdma_ack_cm_event"}, {&cm.create_qp, "rdma_create_qp"},
		{&cm.accept, "rdma_accept"}, {&cm.reject, "rdma_reject"},
		{&cm.disconnect, "rdma_disconnect"}};
	void *library = dlopen("librdmacm.so.1", RTLD_NOW);

	for (unsigned i = 0; library && i < sizeof(row) / sizeof(row[0]); i++) {
		void *f = dlsym(library, row[i].name);

		if (!f)
			return false;
		memcpy(row[i].to, &f, sizeof(f));
	}
	return library;
}

static int listener(int space, const char *address, void **channel)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	void *id;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		return -1;
	*channel = cm.create_channel();
	if (!*channel || cm.create_id(*channel, &id, NULL, space))
		return -1;
	return cm.bind_addr(id, (struct sockaddr *)&to) ?: cm.listen(id, 8);
}

static int take(void *id, int space)
{
	struct ibv_qp_init_attr attr = {
		.cap = {1, 1, 1, 1, 0}, .qp_type = space == PS_TCP ? IBV_QPT_RC : IBV_QPT_UD};
	struct parameters p = {.responder_resources = 1, .initiator_depth = 1};

	return cm.create_qp(id, NULL, &attr) ?: cm.accept(id, &p);
}

static int refuse(void *id, int space)
{
	uint8_t data[REJ_PRIVATE];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	return cm.reject(id, data, space == PS_TCP ? REJ_PRIVATE : SIDR_REP_PRIVATE);
}

static void serve(void *channel, int space, bool accepts)
{
	struct event *e;

	while (!cm.get_event(channel, &e)) {
		void *id = e->id;
		int type = e->type;

		cm.ack_event(e); /* the ids are few, and end with the program */
		if (type == CONNECT_REQUEST && (accepts ? take(id, space) : refuse(id, space)))
			perror(accepts ? "accept" : "reject");
		if (type == DISCONNECTED)
			cm.disconnect(id);
	}
}

int main(int argc, char **argv)
{
	int space = argc == 4 && !strcmp(argv[2], "udp") ? PS_UDP : PS_TCP;
	void *channel;

	if (argc != 4 || !load()) {
		fprintf(stderr, "usage: cm_peer accept|reject tcp|udp ADDRESS, with librdmacm\n");
		return 2;
	}
	if (listener(space, argv[3], &channel)) {
		perror("cm_peer: cannot listen");
		return 1;
	}
	serve(channel, space, !strcmp(argv[1], "accept"));
	return 0;
}
