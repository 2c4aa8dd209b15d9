/* SPDX-License-Identifier: BSD-3-Clause */
/* rocictl [--socket PATH] [--json] COMMAND...: asks a running rocid. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "ask.h"
#include "limits.h"
#include "table.h"

#define EXIT_USAGE 2

struct arguments {
	const char *socket;
	bool json;
	char line[ADMIN_LINE_MAX]; /* the command */
};

static int complain(const char *why, int code)
{
	fprintf(stderr, "rocictl: %s\n", why);
	return code;
}

static void print_help(void)
{
	printf("usage: rocictl [--socket PATH] [--json] COMMAND...\n\n"
	       "Asks a running rocid; `rocictl help` lists its commands, `rocictl show sessions` "
	       "is "
	       "one.\n"
	       "  --socket PATH\n        the socket that applications use ($" ABI_SOCKET_ENV
	       ", else " ABI_SOCKET_DEFAULT ")\n"
	       "  --json\n        print rocid's answer as it is, on one line\n"
	       "  --help, --version\n");
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

/* @return -1 to go on, or an exit status. */
static int parse(struct arguments *a, int argc, char *argv[])
{
	static const struct option table[] = {
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int code;

	a->socket = getenv(ABI_SOCKET_ENV);
	if (!a->socket || !*a->socket)
		a->socket = ABI_SOCKET_DEFAULT;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "+:h", table, NULL)) != -1) {
		switch (code) {
		case 's':
			a->socket = optarg;
			break;
		case 'j':
			a->json = true;
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
	if (optind == argc)
		return complain("a command is missing: `rocictl help` lists them", EXIT_USAGE);
	if (join(a->line, argc - optind, argv + optind))
		return complain("the command is too long, or has several lines", EXIT_USAGE);
	return -1;
}

static int print(const json_t *document, bool json)
{
	const char *error = json_string_value(json_object_get(document, "error"));

	if (error)
		return complain(error, 1);
	if (json) {
		json_dumpf(document, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		table_print(document, stdout);
	}
	return fflush(stdout) || ferror(stdout) ? complain(strerror(errno), 1) : 0;
}

int main(int argc, char *argv[])
{
	struct arguments a = {0};
	char why[ASK_WHY];
	json_t *document;
	int fd, status = parse(&a, argc, argv);

	if (status >= 0)
		return status;
	fd = ask_connect(a.socket, why);
	if (fd < 0)
		return complain(why, 1);
	document = ask(fd, a.line, why);
	close(fd);
	if (!document)
		return complain(why, 1);
	status = print(document, a.json);
	json_decref(document);
	return status;
}
