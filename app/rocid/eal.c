/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include "bits.h"
#include "eal.h"
#include "eal_options.h"
#include "number.h"

#define CAPTURE_MAX 4096

static bool own_prefix;

/* EAL's messages and the remedies. */
static const struct {
	const char *says;
	const char *helps;
} hint[] = {
	{"Is another primary process running",
		"another rocid serves this socket: stop it, or use another --socket"},
	{"lcore", "use -l to choose CPUs that exist and that you may use: see `nproc`"},
	{"hugepage", "reserve hugepages (echo 128 > /proc/sys/vm/nr_hugepages) or run with "
		     "--no-huge -m 128"},
	{"memory", "ask for memory that is available: -m MB, with --no-huge if there are no "
		   "hugepages"},
	{"alloc", "ask for less memory: -m MB"},
	{"ermission denied", "run as root, or see doc/man/rocid.8 for the permissions it needs"},
	{"runtime directory", "run as root, or set XDG_RUNTIME_DIR to a directory that you own"},
	{"parse device", "check the arguments of --vdev and -a"},
	{"probe device", "check the arguments of --vdev and -a"},
	{"init VFIO", "EAL needs /sys/module: give the container read-only access to it"},
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

/* Whether the command line has an argument of @p group. */
static bool given(int argc, char *argv[], const char *group)
{
	for (int i = 1; i < argc; i++) {
		const struct eal_option *e = eal_option_of(argv[i]);

		if (e && !strcmp(e->group, group))
			return true;
	}
	return false;
}

/* EAL reads a non-number as 0, which means its default. */
int eal_check_memory(int argc, char *const argv[], char why[VALUE_MAX * 2])
{
	for (int i = 1; i < argc; i++) {
		const char *value = argv[i] + 2;
		uint64_t megabytes;

		if (strncmp(argv[i], "-m", 2))
			continue;
		if (!*value && i + 1 < argc)
			value = argv[++i];
		if (parse_in_base(value, 10, UINT64_MAX, &megabytes) && megabytes)
			continue;
		snprintf(why, VALUE_MAX * 2, "-m %.100s: it needs a number of megabytes", value);
		return -EINVAL;
	}
	return 0;
}

/* The first CPUs that this process may use, one per worker; "" leaves it to EAL. */
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

/* Uses the first line, which names the first error, and a hint. */
static int explain(char text[CAPTURE_MAX], char why[VALUE_MAX * 2])
{
	const char *helps = "rocid's own options follow --, see `rocid --help`";
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
		*line ? line : "it gave no reason", helps);
	return wrong ? -EINVAL : -EIO;
}

/* The files' arguments, except those that the command line has too. */
static int add_files(
	const struct options *o, int argc, char *argv[], char *out[EAL_ARGUMENTS_MAX], int n)
{
	for (uint32_t i = 0; i < o->neal; i++)
		if (!given(argc, argv, eal_option_of(o->eal[i])->group))
			out[n++] = (char *)o->eal[i];
	return n;
}

/* Whether @p group is among the @p n arguments @p args. */
static bool has(char *const args[], int n, const char *group)
{
	return given(n, (char **)args, group);
}

int eal_arguments(const struct options *o, int argc, char *argv[], struct eal_arguments *a)
{
	char **v = a->argv;
	int n = 1;

	if (argc > EAL_COMMAND_MAX)
		return -E2BIG;
	v[0] = argv[0];
	n = add_files(o, argc, argv, v, n);
	for (int i = 1; i < argc; i++)
		v[n++] = argv[i];
	a->quiet = !has(v, n, "log-level");
	a->own_prefix = !has(v, n, "file-prefix") && !has(v, n, "in-memory");
	a->own_cores = !has(v, n, "cores") && !has(v, n, "main-lcore") && !has(v, n, "service");
	snprintf(a->prefix, sizeof(a->prefix), "--file-prefix=rocid-%08x", hash(o->socket));
	choose_cpus(a->cpus, sizeof(a->cpus), o->workers);
	if (a->quiet)
		v[n++] = (char *)"--log-level=error";
	if (a->own_prefix)
		v[n++] = a->prefix;
	if (a->own_cores && a->cpus[0]) {
		v[n++] = (char *)"-l";
		v[n++] = a->cpus;
	}
	v[n] = NULL;
	a->argc = n;
	return 0;
}

/* The directory would stay forever, because no later daemon has its name. It has no
 * subdirectories. */
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

/* Whether an ethdev has the name of @p device, or one that begins with it. */
static bool has_port(const char *device)
{
	size_t len = strcspn(device, ",");
	bool pci = strchr(device, ':') && strchr(device, ':') == strrchr(device, ':');
	uint16_t i;

	RTE_ETH_FOREACH_DEV(i)
	{
		char name[RTE_ETH_NAME_MAX_LEN];

		if (!rte_eth_dev_get_name_by_port(i, name) &&
			!strncmp(name + (pci && !strncmp(name, "0000:", 5) ? 5 : 0), device, len))
			return true;
	}
	return false;
}

/* EAL starts even without a device that it could not create: report the missing port. */
static int check_devices(const struct eal_arguments *a, char why[VALUE_MAX * 2])
{
	static const char *const names[] = {"a", "allow", "vdev"};

	for (int i = 1; i < a->argc; i++) {
		for (unsigned k = 0; k < ARRAY_SIZE(names); k++) {
			const char *device = eal_option_value(a->argc, a->argv, i, names[k]);
			bool net = device && (k < 2 ? eal_option_is_pci(device)
						    : !strncmp(device, "net_", 4));

			if (!net || has_port(device))
				continue;
			snprintf(why, VALUE_MAX * 2,
				"EAL created no port for %.200s: %s, and read its driver's "
				"messages with --log-level=pmd:info",
				device,
				k < 2 ? "bind it with dpdk-devbind.py -b vfio-pci, without --no-pci"
				      : "check the arguments of --vdev");
			return -EINVAL;
		}
	}
	return 0;
}

int eal_start(int argc, char *argv[], const struct options *o, char why[VALUE_MAX * 2])
{
	static struct eal_arguments a;
	char text[CAPTURE_MAX];
	struct capture c = {-1, -1, -1};
	int err = eal_arguments(o, argc, argv, &a);

	if (err) {
		snprintf(why, VALUE_MAX * 2, "there are more than %d EAL arguments",
			EAL_COMMAND_MAX);
		return -EINVAL;
	}
	err = eal_check_memory(a.argc, a.argv, why);
	if (err)
		return err;
	own_prefix = a.own_prefix;
	opterr = 1; /* getopt names what is wrong: explain() */
	if (a.quiet)
		capture_begin(&c);
	err = rte_eal_init(a.argc, a.argv);
	if (a.quiet)
		capture_end(&c, text);
	else
		snprintf(text, sizeof(text), "its messages are above");
	if (err < 0)
		return explain(text, why);
	if (a.quiet) /* from here on rocid's own sentences report errors */
		rte_log_set_global_level(RTE_LOG_CRIT);
	err = check_devices(&a, why);
	if (err)
		eal_stop();
	return err;
}
