/* SPDX-License-Identifier: BSD-3-Clause */
/* rocictl [--socket PATH] [--json] [COMMAND...]: queries and controls a running rocid. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "ask.h"
#include "capture.h"
#include "complain.h"
#include "console.h"
#include "limits.h"
#include "table.h"
#include "top.h"
#include "trace.h"
#include "watch.h"

#define EXIT_USAGE 2

struct arguments {
	const char *socket;
	bool json;
	bool interactive;
	const char *file;	   /* of a capture; NULL: another command */
	char line[ADMIN_LINE_MAX]; /* the command; for a capture the words after the file */
};

static void print_help(void)
{
	printf("usage: rocictl [--socket PATH] [--json] COMMAND...\n       rocictl [--socket PATH] "
	       "[--json] watch [SECONDS] [--count N] COMMAND...\n       rocictl [--socket PATH] "
	       "top [SECONDS] [--count N]\n       rocictl [--socket PATH] "
	       "[--json] [--interactive] [< FILE]\n\nQueries and controls a running rocid; "
	       "`rocictl help` lists the commands, such as `rocictl show sessions`.\n`rocictl "
	       "capture FILE.pcapng` writes frames to a file until Ctrl-C.\nWithout a command, on "
	       "a terminal: a prompt, with TAB and history.\n  --socket PATH\n        the socket "
	       "that applications use ($" ABI_SOCKET_ENV ", or " ABI_SOCKET_DEFAULT
	       ")\n  --json\n        print rocid's JSON answer, on one line\n  -i, --interactive\n "
	       "       commands from a prompt, or from standard input, one per line\n  --help, "
	       "--version\n");
}

static int join(char line[ADMIN_LINE_MAX], int argc, char *argv[])
{
	size_t len = 0;

	line[0] = '\0';
	for (int i = 0; i < argc; i++) {
		int n = snprintf(line + len, ADMIN_LINE_MAX - len, "%s%s", i ? " " : "", argv[i]);

		len += (size_t)n;
		if (len >= ADMIN_LINE_MAX - 1 || strchr(argv[i], '\n'))
			return -1;
	}
	return 0;
}

/* @return -1 to continue, or an exit status. */
static int parse(struct arguments *a, int argc, char *argv[])
{
	static const struct option table[] = {
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"interactive", no_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int code;

	a->socket = getenv(ABI_SOCKET_ENV);
	if (!a->socket || !*a->socket)
		a->socket = ABI_SOCKET_DEFAULT;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "+:hi", table, NULL)) != -1) {
		switch (code) {
		case 's':
			a->socket = optarg;
			break;
		case 'j':
			a->json = true;
			break;
		case 'i':
			a->interactive = true;
			break;
		case 'h':
			print_help();
			return 0;
		case 'v':
			printf("rocictl %s\n", ROCINANTE_VERSION);
			return 0;
		default:
			fprintf(stderr, "rocictl: %s: see `rocictl --help`\n", argv[optind - 1]);
			return EXIT_USAGE;
		}
	}
	a->interactive |= optind == argc && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (a->interactive && optind < argc)
		return complain("rocictl",
			"--interactive reads commands from the prompt: remove COMMAND", EXIT_USAGE);
	if (a->interactive)
		return -1;
	if (optind == argc)
		return complain(
			"rocictl", "a command is missing: `rocictl help` lists them", EXIT_USAGE);
	if (!strcmp(argv[optind], "capture")) {
		if (optind + 1 == argc)
			return complain("rocictl",
				"a file is missing: rocictl capture FILE.pcapng, or - for a pipe",
				EXIT_USAGE);
		a->file = argv[optind + 1];
		optind += 2;
	}
	if (join(a->line, argc - optind, argv + optind))
		return complain(
			"rocictl", "the command is too long, or has several lines", EXIT_USAGE);
	return -1;
}

static int print(const json_t *document, bool json)
{
	const char *error = json_string_value(json_object_get(document, "error"));

	if (error)
		return complain("rocictl", error, 1);
	answer_print(document, json, stdout);
	return fflush(stdout) || ferror(stdout) ? complain("rocictl", strerror(errno), 1) : 0;
}

/* --- commands that run until they are stopped ---------------------------------------------- */

static int stop_fd = -1;

static void on_signal(int sig)
{
	static const uint64_t one = 1;
	int saved = errno;
	ssize_t n = write(stop_fd, &one, sizeof(one));

	(void)n; /* it counts to 2^64 */
	errno = saved;
}

/* Restore the terminal's mode. */
static int catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};

	stop_fd = eventfd(0, EFD_CLOEXEC);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return stop_fd;
}

static int interact(const struct arguments *a)
{
	struct console c = {
		.socket = a->socket,
		.prompt = "rocid> ",
		.in = STDIN_FILENO,
		.out = stdout,
		.json = a->json,
		.stop = catch_signals(),
		.says = -1,
	};
	char why[ASK_WHY];
	int fd = ask_connect(a->socket, why);

	if (fd < 0)
		return complain("rocictl", why, 1);
	close(fd);
	console_run(&c);
	return c.failed && !isatty(STDIN_FILENO);
}

/* "[SECONDS] [--count N]" */
static int top(const struct arguments *a, const char *rest)
{
	struct watch w = {0};
	char line[ADMIN_LINE_MAX + 16], why[ASK_WHY];

	snprintf(line, sizeof(line), "%s show traffic", rest);
	if (watch_parse(&w, line, why))
		return complain("rocictl", why, EXIT_USAGE);
	if (strcmp(w.command, "show traffic"))
		return complain(
			"rocictl", "top takes [SECONDS] [--count N] and nothing else", EXIT_USAGE);
	return top_run(a->socket, w.seconds, w.count);
}

static int watch(const struct arguments *a, const char *rest)
{
	struct watch w = {
		.socket = a->socket,
		.json = a->json,
		.out = stdout,
		.in = STDIN_FILENO,
		.stop = catch_signals(),
	};
	char why[ASK_WHY];

	if (watch_parse(&w, rest, why))
		return complain("rocictl", why, EXIT_USAGE);
	return watch_run(&w, why) ? complain("rocictl", why, 1) : 0;
}

static int stream(const struct arguments *a)
{
	char why[ASK_WHY];
	int fd = ask_connect(a->socket, why);
	int status;

	if (fd < 0)
		return complain("rocictl", why, 1);
	status = a->file ? capture(fd, a->file, a->line, a->json) : trace(fd, a->line, a->json);
	close(fd);
	return status;
}

static int ask_once(const struct arguments *a)
{
	char why[ASK_WHY];
	json_t *document;
	int fd = ask_connect(a->socket, why);
	int status;

	if (fd < 0)
		return complain("rocictl", why, 1);
	document = ask(fd, a->line, why);
	close(fd);
	if (!document)
		return complain("rocictl", why, 1);
	status = print(document, a->json);
	json_decref(document);
	return status;
}

int main(int argc, char *argv[])
{
	struct arguments a = {0};
	int status = parse(&a, argc, argv);

	if (status >= 0)
		return status;
	if (a.interactive)
		return interact(&a);
	if (!strncmp(a.line, "watch", 5) && (!a.line[5] || a.line[5] == ' '))
		return watch(&a, a.line + 5);
	if (!strncmp(a.line, "top", 3) && (!a.line[3] || a.line[3] == ' '))
		return top(&a, a.line + 3);
	if (a.file || is_trace(a.line))
		return stream(&a);
	return ask_once(&a);
}
