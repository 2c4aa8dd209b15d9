/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a program may not have, or that it passes where none belong. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"
#include "lingering.h"

/* Runs @p body in a process of user @p uid.  It ends with its process. */
static pid_t as_user(uid_t uid, void (*body)(struct arena *a, int file, const char *path),
	struct arena *a, int file, const char *path)
{
	pid_t pid = fork();

	must(pid >= 0, "no process");
	if (!pid) {
		raw_become(uid);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(a, file, path);
		_exit(0);
	}
	return pid;
}

static int open_xrcd(struct raw *s, int fd, uint32_t flags)
{
	struct abi_open_xrcd in = {.flags = flags};
	struct abi_handle_reply out;

	return raw_call(s, ABI_OPEN_XRCD, &in, sizeof(in), fd, &out, sizeof(out), NULL, 0);
}

/* The owner of the file has its domain, until its parent ends it. */
static void own_the_domain(struct arena *a, int ready, const char *path)
{
	struct raw s;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	must(fd >= 0 && !fchmod(fd, 0), "no file");
	raw_open(&s, a->socket);
	must(!open_xrcd(&s, fd, ABI_XRCD_CREATE), "the owner's own domain is refused");
	(void)!write(ready, "x", 1);
	pause();
}

/* A user who may not open the file has no way to its domain. */
static void use_the_name(struct arena *a, int ready, const char *path)
{
	static const uint32_t flags[] = {0, ABI_XRCD_CREATE, ABI_XRCD_CREATE | ABI_XRCD_EXCL};
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct raw s;

	(void)ready;
	must(fd >= 0, "the name of a file cannot be opened");
	must(geteuid() == 0 || open(path, O_RDONLY) < 0, "the file can be opened");
	raw_open(&s, a->socket);
	for (unsigned i = 0; i < ARRAY_SIZE(flags); i++) {
		int status = open_xrcd(&s, fd, flags[i]);

		if (status != -EBADF)
			errx(1, "the domain of a file that cannot be opened: status %d", status);
	}
	raw_close(&s);
}

static void foreign_domain(struct arena *a)
{
	char folder[] = "/tmp/hostile.XXXXXX", path[64], byte;
	int gate[2], status;
	pid_t owner, other;

	must(mkdtemp(folder) && !chmod(folder, 01777) && !pipe(gate), "no folder");
	strcpy(path, folder);
	strcat(path, "/domain");
	owner = as_user(USER_VICTIM, own_the_domain, a, gate[1], path);
	close(gate[1]);
	must(read(gate[0], &byte, 1) == 1, "the owner of a domain failed");
	other = as_user(USER_ATTACKER, use_the_name, a, -1, path);
	waitpid(other, &status, 0);
	must(WIFEXITED(status) && !WEXITSTATUS(status), "the domain's file is not respected");
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	unlink(path);
	rmdir(folder);
	close(gate[0]);
}

/* --- descriptors that hang when they are closed ------------------------------------------- */

enum {
	LINGERING = 24, /* more than there are threads for one user */
	FILLERS = 96,	/* connections, each with messages of 253 descriptors */
	ROUNDS = 40
};

/* Messages whose descriptors nobody else has, on connections that end: of sessions, refused, never
 * greeted. */
static void flood(struct arena *a, int unused, const char *path)
{
	static const uint32_t types[] = {ABI_REG_MR, ABI_QUERY_DEVICE, ABI_OPEN_XRCD};
	struct {
		struct abi_msg msg;
		uint8_t body[sizeof(struct abi_reg_mr)];
	} m = {0};
	int fds[253];

	(void)unused;
	(void)path;
	for (unsigned n = 0; n < LINGERING + FILLERS; n++) {
		int other, slow = n < LINGERING ? lingering(&other) : memfd_create("filler", 0);
		unsigned count = n < LINGERING ? 1 + n % 2 : 253;
		struct raw s;
		int sock;

		must(slow >= 0, "no descriptor");
		for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
			fds[i] = slow;
		sock = n % 3 || !raw_try_open(&s, a->socket) ? raw_connect(a->socket) : s.sock;
		m.msg.type = types[n % ARRAY_SIZE(types)];
		for (unsigned i = 0; sock >= 0 && i < 8; i++)
			if (raw_send(sock, &m, sizeof(m), fds, count) < 0)
				break;
		close(slow);
		/* all others stay open until this process ends, with the far ends of the sockets */
	}
	pause();
}

/* A user's own session, all the while: each of its commands is answered. */
static void hanging_of_another(struct arena *a)
{
	pid_t pid = as_user(USER_ATTACKER, flood, a, -1, NULL);
	struct abi_device_attr attr;
	struct raw s;

	for (unsigned i = 0; i < ROUNDS * a->effort; i++) {
		raw_open(&s, a->socket);
		raw_must(&s, ABI_QUERY_DEVICE, NULL, 0, &attr, sizeof(attr));
		raw_close(&s);
		usleep(20000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- a file system whose files cannot be closed --------------------------------------------- */

#define FILES 80u /* more than may wait to be closed of one user */

static void answer(
	int dev, const struct fuse_in_header *in, int error, const void *body, size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + len), .error = error, .unique = in->unique};
	struct iovec iov[] = {{&out, sizeof(out)}, {(void *)body, len}};

	(void)!writev(dev, iov, len ? 2 : 1);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node, .nlink = 1, .mode = node == 1 ? S_IFDIR | 0777 : S_IFREG | 0666};
}

/* One file in one directory. FLUSH, which each close() asks for, is never answered. */
static void serve_files(struct arena *a, int dev, const char *path)
{
	static uint8_t bytes[1 << 17];
	const struct fuse_in_header *in = (const struct fuse_in_header *)bytes;

	(void)a;
	(void)path;
	while (read(dev, bytes, sizeof(bytes)) > 0) {
		struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = 4096};
		struct fuse_entry_out entry = {.nodeid = 2,
			.generation = 1,
			.entry_valid = 3600,
			.attr_valid = 3600,
			.attr = attributes(2)};
		struct fuse_attr_out attr = {.attr_valid = 3600, .attr = attributes(in->nodeid)};
		struct fuse_open_out file = {.fh = 1};

		if (in->opcode == FUSE_INIT)
			answer(dev, in, 0, &init, sizeof(init));
		else if (in->opcode == FUSE_LOOKUP)
			answer(dev, in, 0, &entry, sizeof(entry));
		else if (in->opcode == FUSE_GETATTR)
			answer(dev, in, 0, &attr, sizeof(attr));
		else if (in->opcode == FUSE_OPEN)
			answer(dev, in, 0, &file, sizeof(file));
		else if (in->opcode != FUSE_FLUSH && in->opcode != FUSE_FORGET &&
			 in->opcode != FUSE_BATCH_FORGET)
			answer(dev, in, -ENOSYS, NULL, 0);
	}
}

/* Each in a message that takes one, of some sessions. */
static void pass_files(struct arena *a, int ready, const char *path)
{
	struct {
		struct abi_msg msg;
		struct abi_reg_mr mr;
	} m = {.msg.type = ABI_REG_MR, .mr = {.length = 4096}};

	for (unsigned i = 0; i < FILES; i++) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		struct raw s;

		must(fd >= 0, "no file");
		raw_open(&s, a->socket);
		must(raw_send(s.sock, &m, sizeof(m), &fd, 1) > 0, "a request is not taken");
	}
	(void)!write(ready, "x", 1);
	pause();
}

/* The descriptors of another are closed: as many as may wait, one after the other. */
static void pass_beside(struct arena *a)
{
	struct raw s;

	raw_open(&s, a->socket);
	for (unsigned i = 0; i < 2 * FILES; i++) {
		struct abi_reg_mr in = {.pd = s.pd, .access = 1, .length = 4096};
		struct abi_reg_mr_reply out;
		struct pollfd p = {.events = POLLIN};
		int pair[2];

		must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "no sockets");
		must(raw_call(&s, ABI_REG_MR, &in, sizeof(in), pair[0], &out, sizeof(out), NULL,
			     0) == -EPERM,
			"a socket is no memory");
		close(pair[0]);
		p.fd = pair[1];
		must(poll(&p, 1, 1000 * RAW_PATIENCE_S) == 1, "what another passed stays open");
		close(pair[1]);
	}
	raw_close(&s);
}

static void files_that_stay_open(struct arena *a)
{
	char folder[] = "/tmp/hostile.XXXXXX", path[64], option[64], byte;
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC), gate[2];
	pid_t server, other;

	must(mkdtemp(folder) && !pipe(gate), "no folder");
	strcpy(path, folder);
	strcat(path, "/file");
	snprintf(option, sizeof(option), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		dev);
	if (dev < 0 || mount("hostile", folder, "fuse", MS_NOSUID | MS_NODEV, option)) {
		rmdir(folder);
		puts("    skipped: no FUSE on this machine");
		return;
	}
	server = as_user(0, serve_files, a, dev, NULL);
	close(dev);
	other = as_user(USER_ATTACKER, pass_files, a, gate[1], path);
	close(gate[1]);
	must(read(gate[0], &byte, 1) == 1, "the program of the files failed");
	pass_beside(a);
	kill(server, SIGKILL); /* all that hangs ends */
	waitpid(server, NULL, 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	close(gate[0]);
}

const struct attack attacks_passed_root[] = {
	{"the XRC domain of a file that it may not open", foreign_domain},
	{"another user's descriptors that hang", hanging_of_another},
	{"another user's files that stay open", files_that_stay_open},
	{NULL, NULL},
};
