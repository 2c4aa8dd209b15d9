/* SPDX-License-Identifier: BSD-3-Clause */
/* roci-run [options] PROGRAM [ARGUMENT...]: runs an unmodified verbs program over rocid. */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bits.h"
#include "classes.h"
#include "libraries.h"
#include "namespace.h"
#include "nodes.h"
#include "program.h"

/* As for env(1) and nice(1). */
#define EXIT_OURS     NAMESPACE_EXIT
#define EXIT_NO_EXEC  126
#define EXIT_NO_ENTRY 127

#define LIBRARY_PATH "LD_LIBRARY_PATH"
#define PRELOAD	     "LD_PRELOAD"

/* By default UCX first allocates System V shared memory, for windows and, where huge pages are
 * free, for the buffers of its transports. Registering that needs the right to open mappings of
 * others: decision 0151. */
static const char *const ucx_alloc[] = {"UCX_ALLOC_PRIO", "UCX_IB_ALLOC"};
#define UCX_ALLOC_VALUE "thp,mmap,heap"

struct options {
	const char *socket;
	bool print, bare;
};

static const char usage[] =
	"usage: roci-run [options] PROGRAM [ARGUMENT...]\n"
	"Runs PROGRAM, which uses libibverbs or librdmacm, over rocid instead of an RDMA adapter.\n"
	"Its children run this way, too. roci-run exits with PROGRAM's status.\n"
	"\n"
	"  --socket PATH   rocid's socket; several, separated by :, are several devices\n"
	"  --libraries     only set up the libraries; do not touch /dev and /sys\n"
	"  --print         print what would be done, and do nothing\n"
	"  --help          this text\n"
	"  --version       the version of Rocinante\n";

static void parse(struct options *o, int argc, char *argv[])
{
	static const struct option known[] = {{"socket", required_argument, NULL, 's'},
		{"libraries", no_argument, NULL, 'l'}, {"print", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		switch (c) {
		case 's':
			o->socket = optarg;
			break;
		case 'l':
			o->bare = true;
			break;
		case 'p':
			o->print = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'v':
			puts("roci-run " ROCINANTE_VERSION);
			exit(0);
		default:
			errx(EXIT_OURS, "see `roci-run --help`");
		}
	}
	if (optind == argc && !o->print)
		errx(EXIT_OURS, "name the program to run, for instance `roci-run ibv_devinfo`");
}

/* One socket per device. */
static unsigned count_devices(const char *sockets)
{
	unsigned n = 1;

	for (const char *s = sockets; s && *s; s++)
		n += *s == ':';
	return n;
}

static void choose_libraries(char *path, size_t size)
{
	int err = libraries_path(path, size);

	if (err == -ENOENT)
		errx(EXIT_OURS,
			"%s does not exist: install the package rocinante-verbs, or build with "
			"-Dverbs=enabled",
			path);
	if (err)
		errx(EXIT_OURS, LIBRARY_PATH " is too long: shorten it");
}

static void choose_preload(char *value, size_t size, bool verbs)
{
	int err = libraries_preload(value, size, verbs);

	if (err == -ENOENT)
		errx(EXIT_OURS, "%s does not exist: install the package rocinante-verbs", value);
	if (err)
		errx(EXIT_OURS, PRELOAD " is too long: shorten it");
}

/* The files that the program finds. */
static void describe(char *text, size_t size, unsigned devices, const struct class_devices *shown)
{
	FILE *f = fmemopen(text, size, "w");

	if (!f)
		err(EXIT_OURS, "fmemopen");
	fputs("/dev/infiniband/rdma_cm", f);
	for (unsigned i = 0; i < devices; i++)
		fprintf(f, ", /dev/infiniband/uverbs%u", i);
	for (unsigned i = 0; i < shown->n; i++)
		fprintf(f, ", /sys/class/infiniband/%s -> %s", shown->at[i].name,
			shown->at[i].folder);
	fclose(f);
}

static void print(const struct options *o, const char *path, const char *preload, const char *found)
{
	printf(LIBRARY_PATH "=%s\n" PRELOAD "=%s\n", path, preload);
	if (o->socket)
		printf("ROCI_SOCKET=%s\n", o->socket);
	for (size_t i = 0; i < ARRAY_SIZE(ucx_alloc); i++)
		if (!getenv(ucx_alloc[i]))
			printf("%s=" UCX_ALLOC_VALUE "\n", ucx_alloc[i]);
	if (!o->bare)
		printf("mount namespace: %s\n", found);
}

/* The files of a machine with an adapter, as far as they can be created: the program runs anyway.
 */
static void show_devices(
	const struct class_devices *shown, const char *missing, unsigned devices, const char *found)
{
	char why[WHY_MAX];
	int entered = namespace_enter(found, why);
	bool complete;

	if (entered < 0) {
		warnx("%s. Programs that look for /dev/infiniband, as UCX does, or "
		      "/sys/class/infiniband, as ibstat does, will not find a device",
			why);
		return;
	}
	if (*missing)
		warnx("%s. Programs that look for it in /sys/class/infiniband, as ibstat does, "
		      "will not find it",
			missing);
	if (entered)
		return;
	complete = !nodes_make(devices, why);
	if (!complete)
		warnx("%s. Programs that look for /dev/infiniband, as UCX does, will not find a "
		      "device",
			why);
	if (classes_make(shown, why)) {
		complete = false;
		warnx("%s. Programs that look for /sys/class/infiniband, as ibstat does, will not "
		      "find a device",
			why);
	}
	if (complete)
		namespace_complete();
}

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		err(EXIT_OURS, "%s", name);
}

int main(int argc, char *argv[])
{
	struct options o = {.socket = getenv("ROCI_SOCKET")};
	char path[4 * PATH_MAX], preload[4 * PATH_MAX], missing[WHY_MAX] = "";
	static struct class_devices shown;
	static char found[CLASSES_MAX * 2 * PATH_MAX];
	unsigned devices;
	struct needs needs;

	parse(&o, argc, argv);
	choose_libraries(path, sizeof(path));
	choose_preload(preload, sizeof(preload), false);
	devices = count_devices(o.socket);
	if (!o.bare)
		classes_find(&shown, o.socket, missing);
	describe(found, sizeof(found), devices, &shown);
	if (o.print) {
		print(&o, path, preload, found);
		return 0;
	}
	program_check(argv[optind], &needs);
	/* A library that is loaded already is not searched for. */
	choose_preload(preload, sizeof(preload), *needs.verbs);
	if (!o.bare)
		show_devices(&shown, missing, devices, found);
	set(LIBRARY_PATH, path);
	if (!needs.asan)
		set(PRELOAD, preload);
	if (o.socket)
		set("ROCI_SOCKET", o.socket);
	for (size_t i = 0; i < ARRAY_SIZE(ucx_alloc); i++)
		if (!getenv(ucx_alloc[i]))
			set(ucx_alloc[i], UCX_ALLOC_VALUE);
	execvp(argv[optind], argv + optind);
	err(errno == ENOENT ? EXIT_NO_ENTRY : EXIT_NO_EXEC, "%s", argv[optind]);
}
