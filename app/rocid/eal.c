/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_log.h>
#include "bits.h"
#include "eal.h"

#define CAPTURE_MAX 4096
#define ADDED_MAX   4

static bool own_prefix;

/* What EAL says and what helps. */
static const struct {
	const char *says;
	const char *helps;
} hint[] = {
	{"Is another primary process running",
		"another rocid serves this socket: stop it, or give this one another --socket"},
	{"lcore", "choose CPUs that are there, and that you may use, with -l: see `nproc`"},
	{"hugepage", "reserve hugepages (echo 128 > /proc/sys/vm/nr_hugepages) or run with "
		     "--no-huge -m 128"},
	{"memory",
		"give EAL memory it can have: -m MB, with --no-huge where there are no hugepages"},
	{"alloc", "give EAL memory that this machine has: -m MB"},
	{"ermission denied", "run as root, or see doc/man/rocid.8 for the permissions it needs"},
	{"runtime directory", "run as root, or set XDG_RUNTIME_DIR to a directory of yours"},
	{"parse device", "check the arguments of --vdev and -a"},
	{"probe device", "check the arguments of --vdev and -a"},
	{"parse device", "check the arguments of --vdev and -a"},
	{"vdev", "check the arguments of --vdev"},
};

struct capture {
	int fd;
	int out;
	int err;
};

/* EAL prints its usage to stdout, getopt and the log go to stderr. */
static void capture_begin(struct capture *c)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fflush(stdout);
	c->fd = memfd_create("eal", MFD_CLOEXEC);
	c->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	c->err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (null >= 0)
		dup2(null, STDOUT_FILENO);
	if (c->fd >= 0)
		dup2(c->fd, STDERR_FILENO);
	if (null >= 0)
		close(null);
}

static void capture_end(struct capture *c, char text[CAPTURE_MAX])
{
	ssize_t n = -1;

	fflush(stdout);
	fflush(stderr);
	if (c->out >= 0)
		dup2(c->out, STDOUT_FILENO);
	if (c->err >= 0)
		dup2(c->err, STDERR_FILENO);
	if (c->fd >= 0)
		n = pread(c->fd, text, CAPTURE_MAX - 1, 0);
	text[n < 0 ? 0 : n] = '\0';
	close(c->fd);
	close(c->out);
	close(c->err);
}

static bool given(int argc, char *argv[], const char *const names[])
{
	for (int i = 1; i < argc; i++)
		for (unsigned k = 0; names[k]; k++)
			if (!strncmp(argv[i], names[k], strlen(names[k])))
				return true;
	return false;
}

/* EAL takes what is no number for 0, which it takes for its default. */
static int check_memory(int argc, char *argv[], char why[VALUE_MAX * 2])
{
	for (int i = 1; i < argc; i++) {
		const char *value = argv[i] + 2;
		char *end;

		if (strncmp(argv[i], "-m", 2))
			continue;
		if (!*value && i + 1 < argc)
			value = argv[++i];
		if (strtoul(value, &end, 10) && !*end && *value != '-')
			continue;
		snprintf(why, VALUE_MAX * 2, "-m %.100s: it wants a number of megabytes", value);
		return -EINVAL;
	}
	return 0;
}

/* The first CPUs that this process may use, one a worker; "" leaves it to EAL. */
static void choose_cpus(char *list, size_t size, uint32_t workers)
{
	cpu_set_t set;
	size_t len = 0;

	list[0] = '\0';
	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < (int)workers)
		return;
	for (unsigned cpu = 0; workers && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		len += (size_t)snprintf(list + len, size - len, "%s%u", len ? "," : "", cpu);
		workers--;
	}
}

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

/* Takes the first line, which says what came first, and a hint. */
static int explain(char text[CAPTURE_MAX], char why[VALUE_MAX * 2])
{
	const char *helps = "own options go behind --, see `rocid --help`";
	bool wrong = strstr(text, "Invalid 'command line'") || strstr(text, "option") ||
		     strstr(text, "parse device") || strstr(text, "lcore");
	char *line = text;

	for (unsigned i = 0; i < ARRAY_SIZE(hint); i++) {
		if (strstr(text, hint[i].says)) {
			helps = hint[i].helps;
			break;
		}
	}
	while (*line == '\n')
		line++;
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "EAL: ", 5))
		line += 5;
	else if (strstr(line, ": ")) /* getopt's "PROGRAM: " */
		line = strstr(line, ": ") + 2;
	snprintf(why, VALUE_MAX * 2, "EAL does not start (%.200s): %s",
		*line ? line : "it says nothing", helps);
	return wrong ? -EINVAL : -EIO;
}

int eal_start(int argc, char *argv[], const struct options *o, char why[VALUE_MAX * 2])
{
	static const char *const cores[] = {
		"-l", "-c", "-S", "--lcores", "--main-lcore", "-s", NULL};
	static const char *const prefix[] = {"--file-prefix", "--in-memory", NULL};
	static const char *const level[] = {"--log-level", NULL};
	char **args = calloc((size_t)argc + ADDED_MAX + 1, sizeof(*args));
	char file_prefix[64];
	char cpus[128];
	char text[CAPTURE_MAX];
	struct capture c;
	bool quiet = !given(argc, argv, level);
	int n = 0;
	int err = check_memory(argc, argv, why);

	if (err || !args) {
		free(args);
		return err ? err : -ENOMEM;
	}
	args[n++] = argv[0];
	if (quiet)
		args[n++] = (char *)"--log-level=error";
	snprintf(file_prefix, sizeof(file_prefix), "--file-prefix=rocid-%08x", hash(o->socket));
	own_prefix = !given(argc, argv, prefix);
	if (own_prefix)
		args[n++] = file_prefix;
	choose_cpus(cpus, sizeof(cpus), o->workers);
	if (!given(argc, argv, cores) && cpus[0]) {
		args[n++] = (char *)"-l";
		args[n++] = cpus;
	}
	for (int i = 1; i < argc; i++)
		args[n++] = argv[i];
	opterr = 1; /* getopt names what is wrong: explain() */
	if (quiet)
		capture_begin(&c);
	err = rte_eal_init(n, args);
	if (quiet)
		capture_end(&c, text);
	else
		snprintf(text, sizeof(text), "its messages are above");
	free(args);
	if (err < 0)
		return explain(text, why);
	if (quiet) /* from here on rocid's own sentences say it */
		rte_log_set_global_level(RTE_LOG_CRIT);
	return 0;
}

/* A name that no later daemon has would stay for ever. The directory is flat. */
static void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir)
		return;
	while ((e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	rmdir(path);
}

void eal_stop(void)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	if (own_prefix)
		remove_dir(dir);
}
