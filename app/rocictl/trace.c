/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "limits.h"
#include "stream.h"
#include "trace.h"

bool is_trace(const char *line)
{
	const char *last = strrchr(line, ' ');

	return !strncmp(line, "trace ", 6) && strcmp(last, " off");
}

/* Line-buffered, because a user may be watching. */
static int copy(int stream)
{
	char buffer[1 << 16];
	ssize_t n;

	while ((n = stream_read(stream, buffer, sizeof(buffer))) > 0)
		if (fwrite(buffer, 1, (size_t)n, stdout) != (size_t)n || fflush(stdout))
			break;
	if (!ferror(stdout) || errno == EPIPE)
		return 0;
	fprintf(stderr, "rocictl: the trace has ended: %s\n", strerror(errno));
	return 1;
}

int trace(int fd, const char *line, bool json)
{
	char words[ADMIN_LINE_MAX + 8];
	int stream, status;

	snprintf(words, sizeof(words), "%s%s", line, json ? " json" : "");
	stream = stream_begin(fd, words);
	if (stream < 0)
		return 1;
	stream_end_by_signal(stream);
	status = copy(stream);
	close(stream);
	return status;
}
