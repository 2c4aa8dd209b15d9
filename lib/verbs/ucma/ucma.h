/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucma/ucma.h
 * The kernel's rdma_cm device, as the stock librdmacm uses it (<rdma/rdma_user_cm.h>, version 4),
 * implemented by rocid's communication manager (abi_cm.h): doc/connections.md.
 *
 * In librdmacm alone, our functions replace open, write, close and fstat (got.c). A file of the
 * device is a CM channel of rocid (file.c), and a write() is a command (command.c).
 *
 * One lock guards everything. It is held while rocid processes a command, so that a command and its
 * changes to the tables are one step; only waiting for an event is done without it.
 */
#ifndef UCMA_H
#define UCMA_H

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "abi_cm.h"
#include "list.h"

/** The sysfs file that tells librdmacm the ABI version. */
#define UCMA_VERSION_FILE "class/misc/rdma_cm/abi_version"
#define UCMA_VERSION_TEXT "4"

struct sockaddr;

/** A session with rocid, shared by the files opened during its life. */
struct ucma_session {
	struct roci_context *roci;
	unsigned users;
};

/** An open file of the device. */
struct ucma_file {
	struct list node;
	uint64_t serial; /* from 1, never reused */
	dev_t dev;	 /* of the pipe end: identifies the file together with the inode */
	ino_t ino;
	struct ucma_session *session;
	uint32_t channel;
	struct list ids;    /* ucma_id.node */
	struct list groups; /* ucma_group.node */
};

/** An id of the program. librdmacm counts the events of each id; destroying one waits until it has
 *  acknowledged as many as were reported. */
struct ucma_id {
	struct list node;
	struct list bucket;
	struct ucma_file *file;
	uint64_t uid;	   /* 0: new, not accepted yet */
	uint32_t handle;   /* rocid's */
	uint32_t reported; /* events, without those of groups */
	uint8_t qp_type;
	bool removed; /* DEVICE_REMOVAL was reported */
};

/** A membership in a multicast group. */
struct ucma_group {
	struct list node;
	uint32_t id;
	uint32_t handle;   /* unique in the process */
	uint32_t rocid;	   /* the handle for CM_LEAVE */
	uint64_t uid;	   /* the program's */
	uint32_t reported; /* events */
};

/** A command with its arguments, copied once. */
struct ucma_command {
	struct ucma_file *file;
	const uint8_t *in; /* without its header */
	uint16_t in_len;
	uint16_t out_len; /* room for the response, in bytes */
	int fd;
};

/* --- got.c ---------------------------------------------------------------------------------- */

/** A function of libc and its replacement. */
struct ucma_hook {
	const char *name;
	void *ours;
};

/** Installs the hooks in librdmacm if it is loaded and does not have them yet. Called when this
 *  library is loaded, and by whatever librdmacm calls first. */
void ucma_attach(void);

/* --- file.c --------------------------------------------------------------------------------- */

int ucma_open(const char *path, int flags, ...);
ssize_t ucma_write(int fd, const void *buf, size_t len);
int ucma_close(int fd);
int ucma_fstat(int fd, struct stat *st);
int ucma_fxstat(int version, int fd, struct stat *st);

void ucma_lock(void);
void ucma_unlock(void);

/** Under the lock: @return the file of descriptor @p fd, or NULL. */
struct ucma_file *ucma_file_of(int fd);

/* --- table.c, under the lock ------------------------------------------------------------------ */

/** @return a new id; NULL: out of memory. */
struct ucma_id *ucma_id_add(struct ucma_file *f, uint32_t handle, uint64_t uid, uint8_t qp_type);
/** @return the id with @p handle, of any file, or NULL. */
struct ucma_id *ucma_id_find(uint32_t handle);
/** @return the same if it belongs to @p f. */
struct ucma_id *ucma_id_of(const struct ucma_file *f, uint32_t handle);
/** @return 0 if @p f has the id; otherwise the kernel's errno: ENOENT: no file has it; EINVAL:
 *  another has. */
int ucma_id_missing(const struct ucma_file *f, uint32_t handle);
void ucma_id_remove(struct ucma_id *id);
void ucma_id_migrate(struct ucma_id *id, struct ucma_file *to);

struct ucma_group *ucma_group_add(struct ucma_id *id, uint64_t uid);
struct ucma_group *ucma_group_of(const struct ucma_file *f, uint32_t handle);
void ucma_group_remove(struct ucma_group *g);

/** Forgets everything in a child of fork(): it belongs to the parent. */
void ucma_tables_forget(void);

/* --- address.c ------------------------------------------------------------------------------ */

/** The kernel's struct sockaddr_ib. */
struct ucma_address_ib {
	uint16_t family;
	uint16_t pkey;
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t sid, sid_mask, scope_id;
};

/** Reads a socket address of at most, or exactly, @p len bytes.
 *  @return 0; EINVAL: invalid size or family; ENODEV: AF_IB, which no RoCE port has. */
int ucma_address_read(struct abi_cm_addr *to, const void *sockaddr, size_t len, bool exact);

/** Writes one.  @return its length; 0: no address, and @p to is zeroed. */
uint16_t ucma_address_write(struct sockaddr_in6 *to, const struct abi_cm_addr *a);

/* --- commands -------------------------------------------------------------------------------- */

/** Runs the command in @p buf (header first), under the lock.  @return 0 or an errno value. */
int ucma_command(struct ucma_file *f, int fd, const void *buf, size_t len);

/** Sends a request to the rocid of the command's session.  @return 0 or an errno value. */
int ucma_call(const struct ucma_command *c, uint32_t type, const void *body, size_t len,
	void *reply, size_t reply_len);

/** Copies the arguments to @p to, of @p size bytes.  @return 0; EINVAL: fewer than @p need bytes.
 */
int ucma_arguments(const struct ucma_command *c, void *to, size_t size, size_t need);

/** Writes the response, truncated to the program's buffer.  @return 0; ENOSPC: it has no room for
 *  @p need bytes. */
int ucma_respond(
	const struct ucma_command *c, uint64_t to, const void *resp, size_t size, size_t need);

int ucma_create_id(const struct ucma_command *c);
int ucma_destroy_id(const struct ucma_command *c);
int ucma_migrate_id(const struct ucma_command *c);
int ucma_bind_ip(const struct ucma_command *c);
int ucma_bind(const struct ucma_command *c);
int ucma_resolve_ip(const struct ucma_command *c);
int ucma_resolve_addr(const struct ucma_command *c);
int ucma_resolve_route(const struct ucma_command *c);
int ucma_query_route(const struct ucma_command *c);
int ucma_query(const struct ucma_command *c);
int ucma_listen(const struct ucma_command *c);
int ucma_connect(const struct ucma_command *c);
int ucma_accept(const struct ucma_command *c);
int ucma_reject(const struct ucma_command *c);
int ucma_disconnect(const struct ucma_command *c);
int ucma_init_qp_attr(const struct ucma_command *c);
int ucma_notify(const struct ucma_command *c);
int ucma_set_option(const struct ucma_command *c);
int ucma_join_ip_mcast(const struct ucma_command *c);
int ucma_join_mcast(const struct ucma_command *c);
int ucma_leave_mcast(const struct ucma_command *c);
int ucma_get_event(const struct ucma_command *c);

void ucma_ah_to_kern(const struct abi_ah_attr *a, struct ib_uverbs_ah_attr *to);

#endif
