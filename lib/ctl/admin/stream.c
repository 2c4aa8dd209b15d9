/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/socket.h>
#include "admin/admin.h"
#include "admin/form.h"
#include "admin/stream.h"
#include "config/ctl_parts.h"
#include "refuse.h"

static bool has_option(int fd, int option, int wanted)
{
	int value;
	socklen_t len = sizeof(value);

	return !getsockopt(fd, SOL_SOCKET, option, &value, &len) && value == wanted;
}

int admin_stream_check(const struct ctl *ctl, char why[ABI_SENTENCE_MAX])
{
	/* Other files could block a writer even with MSG_DONTWAIT. */
	if (ctl->admin->passed_fd < 0 || !has_option(ctl->admin->passed_fd, SO_DOMAIN, AF_UNIX) ||
		!has_option(ctl->admin->passed_fd, SO_TYPE, SOCK_STREAM))
		return refuse(why, -EINVAL,
			"this command streams its output through a unix socket passed with it: run "
			"it as a rocictl command from the shell, not at a prompt");
	return 0;
}

int admin_stream_take(struct ctl *ctl, int *fd, char why[ABI_SENTENCE_MAX])
{
	int err = admin_stream_check(ctl, why);

	if (err)
		return err;
	*fd = ctl->admin->passed_fd;
	ctl->admin->passed_fd = -1;
	return 0;
}

int admin_stream_words(char *line, char *word[ADMIN_WORDS + 1], char why[ABI_SENTENCE_MAX])
{
	struct admin_words w;

	admin_words(&w, line);
	if (w.more)
		return refuse(why, -EINVAL,
			"the line has more than %u words: give each option once", ADMIN_WORDS);
	for (unsigned i = 0; i < w.n; i++) {
		word[i] = w.word[i].at;
		word[i][w.word[i].len] = '\0';
	}
	word[w.n] = NULL;
	return (int)w.n;
}
