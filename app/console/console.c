/* SPDX-License-Identifier: BSD-3-Clause */
#include "console.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "complete.h"
#include "editor.h"

/* --- a terminal ------------------------------------------------------------------------- */

static bool on_line(void *arg, const char *line)
{
	struct console *c = arg;

	console_execute(c, line);
	return !c->quit;
}

static bool on_complete(void *arg, const char *line, bool help, char *text, size_t size)
{
	struct console *c = arg;
	json_t *offers = complete_ask(c->socket, line);
	size_t typed = strlen(line) - complete_word(line);
	bool found = !help && complete_text(offers, typed, text, size);

	if (!found) {
		fputc('\n', c->out);
		complete_print(offers, c->out);
	}
	json_decref(offers);
	return found;
}

/* Output of the process, as whole lines. */
static void say(struct console *c, struct editor *e)
{
	char text[4096];
	ssize_t n = read(c->says, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	if (text[n - 1] != '\n') /* the prompt follows it */
		text[n++] = '\n';
	editor_print(e, text, (size_t)n);
}

static bool input_ended(const struct pollfd *p)
{
	return p->revents & (POLLHUP | POLLERR | POLLNVAL) && !(p->revents & POLLIN);
}

static void run_terminal(struct console *c)
{
	const struct editor_calls calls = {on_line, on_complete, c};
	struct editor *e = editor_open(c->in, c->out, c->prompt, c->signals, &calls);
	struct pollfd fds[] = {
		{.fd = c->in, .events = POLLIN},
		{.fd = c->stop, .events = POLLIN},
		{.fd = c->says, .events = POLLIN},
	};
	bool more = e != NULL;

	while (more) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			break;
		if (fds[2].revents & POLLIN)
			say(c, e);
		if (fds[1].revents || input_ended(&fds[0]))
			break;
		if (fds[0].revents & POLLIN)
			more = editor_input(e);
	}
	editor_close(e);
	if (!c->quit) /* the prompt's line is unfinished */
		fputc('\n', c->out);
	fflush(c->out);
}

/* --- a file or a pipe ------------------------------------------------------------------- */

/* @return false if it is time to end. */
static bool wait_for(const struct console *c, int fd)
{
	struct pollfd fds[] = {
		{.fd = fd, .events = POLLIN},
		{.fd = c->stop, .events = POLLIN},
	};
	int n;

	do
		n = poll(fds, 2, -1);
	while (n < 0 && errno == EINTR);
	return n > 0 && !fds[1].revents;
}

static void run_line(struct console *c, const char *line)
{
	if (!c->json)
		fprintf(c->out, "%s%s\n", c->prompt, line);
	console_execute(c, line);
}

/* Runs the complete lines of @p text. @return their bytes. */
static size_t run_lines(struct console *c, char *text, size_t len)
{
	size_t done = 0;
	char *end;

	while (!c->quit && (end = memchr(text + done, '\n', len - done))) {
		*end = '\0';
		run_line(c, text + done);
		done = (size_t)(end - text) + 1;
	}
	return done;
}

static void run_stream(struct console *c, int fd)
{
	char text[4096];
	size_t len = 0;

	while (!c->quit && wait_for(c, fd)) {
		ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
		size_t done;

		if (n <= 0)
			break;
		len += (size_t)n;
		done = run_lines(c, text, len);
		if (!done && len == sizeof(text) - 1) { /* rocid reports that it is too long */
			text[len] = '\0';
			run_line(c, text);
			done = len;
		}
		len -= done;
		memmove(text, text + done, len);
	}
	text[len] = '\0';
	if (len && !c->quit)
		run_line(c, text);
}

int console_file(struct console *c, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe: wait_for() waits */

	if (fd < 0)
		return -errno;
	run_stream(c, fd);
	close(fd);
	return 0;
}

void console_run(struct console *c)
{
	if (isatty(c->in))
		run_terminal(c);
	else
		run_stream(c, c->in);
}
