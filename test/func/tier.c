/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tier SOCKET [nobody] [container] [preload LIBRARY] PROGRAM ARGUMENT...: runs PROGRAM SOCKET
 * ARGUMENT... with fewer rights. nobody: another user, without capabilities. container: a seccomp
 * filter that denies what that of Docker denies to a program without capabilities, as far as moving
 * memory could meet it.
 */
#include <err.h>
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		setresuid(NOBODY, NOBODY, NOBODY))
		err(1, "nobody");
}

static void deny(void)
{
	static const unsigned calls[] = {SYS_userfaultfd, SYS_mbind, SYS_get_mempolicy,
		SYS_set_mempolicy, SYS_move_pages, SYS_kcmp, SYS_process_vm_readv,
		SYS_process_vm_writev, SYS_ptrace, SYS_bpf, SYS_perf_event_open};
	enum {
		N = sizeof(calls) / sizeof(calls[0])
	};
	struct sock_filter f[1 + 2 * N + 1];
	struct sock_fprog prog = {.len = 1 + 2 * N + 1, .filter = f};

	f[0] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < N; i++) {
		f[1 + 2 * i] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		f[2 + 2 * i] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	f[1 + 2 * N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		err(1, "seccomp");
	if (syscall(SYS_userfaultfd, 0) >= 0 || errno != EPERM)
		errx(1, "userfaultfd(2) is not denied");
}

int main(int argc, char **argv)
{
	char *socket = argc > 1 ? argv[1] : NULL;
	int i = 2;

	if (i < argc && !strcmp(argv[i], "nobody")) {
		become_nobody();
		i++;
	}
	if (i < argc && !strcmp(argv[i], "container")) {
		deny();
		/* A sanitized program looks for leaks by ptrace(2), and fails where it may not. */
		if (setenv("ASAN_OPTIONS", "detect_leaks=0", 1))
			err(1, "setenv");
		i++;
	}
	if (i + 1 < argc && !strcmp(argv[i], "preload")) {
		if (setenv("LD_PRELOAD", argv[i + 1], 1))
			err(1, "setenv");
		i += 2;
	}
	if (i >= argc)
		errx(1, "no program");
	argv[i - 1] = argv[i];
	argv[i] = socket;
	execv(argv[i - 1], argv + i - 1);
	err(1, "%s", argv[i - 1]);
}
