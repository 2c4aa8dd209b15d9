/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ask.h"
#include "complain.h"
#include "stream.h"

/* The handler's. */
static int ends = -1;

int stream_begin(int fd, const char *line)
{
	char why[ASK_WHY];
	int stream;
	json_t *document = ask_stream(fd, line, &stream, why);
	const char *error = document ? json_string_value(json_object_get(document, "error")) : why;

	if (error) {
		complain("rocictl", error, 0);
		if (document)
			close(stream);
		stream = -1;
	}
	json_decref(document);
	return stream;
}

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	shutdown(ends, SHUT_WR);
	errno = saved;
}

void stream_end_by_signal(int stream)
{
	struct sigaction end = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	ends = stream;
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

ssize_t stream_read(int stream, void *buffer, size_t size)
{
	ssize_t n;

	do
		n = read(stream, buffer, size);
	while (n < 0 && errno == EINTR);
	return n;
}
