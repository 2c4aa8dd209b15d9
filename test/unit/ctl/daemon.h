/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file daemon.h
 * A real control thread for tests: a dataplane whose workers do not run (the caller of
 * worker_call() then executes their commands), and a client that speaks the protocol itself.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include "abi_ring.h"
#include "ctl.h"
#include "worker.h"

#define TEST_WORKERS 2

struct test_daemon {
	struct dataplane *dp;
	struct ctl_config cfg;
	struct ctl *ctl;
	pthread_t thread;
	pthread_t worker[TEST_WORKERS];
	char dir[32];
	char path[64];
	char why[ABI_SENTENCE_MAX];
};

/** Starts EAL without hugepages and makes a dataplane. cmocka group setup: *state is a struct
 *  test_daemon, not running yet. Skips visibly (exit status 77) when EAL does not start. */
int daemon_group_setup(void **state);
int daemon_group_teardown(void **state);

/** Runs the workers' poll loops on their own threads until daemon_stop_workers(). */
void daemon_start_workers(struct test_daemon *d);
void daemon_stop_workers(struct test_daemon *d);

/** Two static ports with addresses and neighbours, and a control thread that runs. */
int daemon_setup(void **state);
int daemon_teardown(void **state);

/** The default configuration, for tests that start the control thread themselves. */
void daemon_config(struct test_daemon *d);
void daemon_run(struct test_daemon *d);
void daemon_stop(struct test_daemon *d);

/** Pauses the control thread, so that the test can take its place, and resumes it. */
void daemon_pause(struct test_daemon *d);
void daemon_resume(struct test_daemon *d);

/** A program beside the daemon, which runs @p life once its gate is open. Fork it between
 *  daemon_config() and daemon_run(): of a process whose threads allocate, ASan's allocator leaves a
 *  child that waits for ever. It dies with the test. */
struct test_program {
	pid_t pid;
	int gate;
};
void program_fork(struct test_program *p, const struct test_daemon *d,
	void (*life)(const struct test_daemon *d));
void program_go(struct test_program *p);

/* Of the default configuration: port 1 has GID 0 10.0.0.1 and GID 1 2001:db8::1; 10.0.0.2 and
 * 2001:db8::2 are neighbours. */
extern const uint8_t gid_own4[16], gid_own6[16], gid_peer4[16], gid_peer6[16], gid_unknown4[16];
extern const uint8_t mac_own[6], mac_peer[6];

#define ANSWER_FDS 4

struct answer {
	struct abi_msg msg;
	_Alignas(8) uint8_t body[2 * ABI_MSG_MAX];
	size_t len; /* of the body */
	int fd[ANSWER_FDS];
	unsigned nfds;
};

int client_connect(const struct test_daemon *d);

/** Sends @p len bytes as they are, and @p nfds descriptors. */
void client_send(int sock, const void *bytes, size_t len, const int fds[], unsigned nfds);

/** Waits for one message. @return false at the end of the connection. */
bool client_receive(int sock, struct answer *a);

/** A request and its reply; the body of @p a is a sentence when the result is not 0.
 *  @return the reply's status. */
int client_call(int sock, uint32_t type, const void *body, size_t len, int fd, struct answer *a);

/** client_call() that must succeed without descriptors, its body copied to @p out. */
void client_must(int sock, uint32_t type, const void *body, size_t len, void *out, size_t out_len);

void answer_close(struct answer *a);

/** A session: connected and greeted. */
struct client {
	int sock;
	struct abi_hello_reply hello;
	uint8_t *region;
	int async;
};
void client_open(const struct test_daemon *d, struct client *c);
void client_close(struct client *c);

/** Objects with defaults; handles. */
uint32_t client_pd(struct client *c);
uint32_t client_cq(struct client *c, uint32_t channel);
struct abi_create_qp client_qp_request(uint32_t pd, uint32_t cq);
struct abi_create_qp_reply client_qp(struct client *c, uint32_t pd, uint32_t cq);
/** A sealed memfd of @p size bytes. */
int client_memfd(size_t size);
struct abi_reg_mr_reply client_mr(struct client *c, uint32_t pd, int fd, uint64_t length);

#endif
