/* SPDX-License-Identifier: BSD-3-Clause */
#include "terminal.h"
#include <unistd.h>

void terminal_init(struct terminal *t, int fd)
{
	*t = (struct terminal){.fd = fd};
}

void terminal_raw(struct terminal *t, bool signals)
{
	struct termios mode;

	if (t->raw || tcgetattr(t->fd, &t->before))
		return;
	mode = t->before;
	mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	if (!signals)
		mode.c_lflag &= ~(tcflag_t)ISIG;
	mode.c_iflag &= ~(tcflag_t)(IXON | ICRNL); /* stopped output stops us; Enter is CR */
	mode.c_cc[VSUSP] = _POSIX_VDISABLE;	   /* we could not restore the terminal */
	mode.c_cc[VMIN] = 1;
	mode.c_cc[VTIME] = 0;
	t->raw = !tcsetattr(t->fd, TCSADRAIN, &mode);
}

void terminal_restore(struct terminal *t)
{
	if (t->raw)
		tcsetattr(t->fd, TCSADRAIN, &t->before);
	t->raw = false;
}
