/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a program may not have, or that it passes where none belong. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

/* Whoever may not open the file has no way to its domain. */
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

const struct attack attacks_passed_root[] = {
	{"the XRC domain of a file that it may not open", foreign_domain},
	{"another user's descriptors that hang", hanging_of_another},
	{NULL, NULL},
};
