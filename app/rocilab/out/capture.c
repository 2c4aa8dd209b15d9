/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that leave a port of a switch, with virtual time from 1970 on: Wireshark opens the file.
 */
#include <errno.h>
#include <stdlib.h>
#include "buffer.h"
#include "lab.h"
#include "out.h"
#include "pcapng.h"
#include "switch.h"
#include "wire.h"

struct capture {
	FILE *f;
	uint8_t block[PCAPNG_BLOCK_MAX + FRAME_MAX];
};

static void see(void *arg, const struct sim_buffer *b, uint64_t now)
{
	struct capture *c = arg;
	struct pcapng_packet p = {.time = now - LAB_START,
		.bytes = b->bytes,
		.kept = b->len,
		.len = b->len,
		.direction = PCAPNG_OUT};

	fwrite(c->block, 1, pcapng_packet(c->block, &p), c->f);
}

static void begin(struct capture *c, const char *name, uint64_t rate)
{
	const struct pcapng_interface i = {
		.name = name, .description = "virtual time", .speed = rate, .snap = FRAME_MAX};

	fwrite(c->block, 1, pcapng_section(c->block, "", "", "rocilab"), c->f);
	fwrite(c->block, 1, pcapng_interface(c->block, &i), c->f);
}

struct capture *capture_open(struct lab *l, const char *folder, uint32_t sw, uint32_t port)
{
	struct capture *c = calloc(1, sizeof(*c));
	struct sim_wire *w = &l->sw[sw].port[port].out;
	char name[64], path[OUT_PATH];

	if (!c)
		return NULL;
	snprintf(name, sizeof(name), "sw%u.%u.pcapng", sw, port);
	c->f = fopen(out_path(path, folder, name), "w");
	if (!c->f) {
		free(c);
		return NULL;
	}
	begin(c, name, w->cfg.rate_bps);
	w->see = see;
	w->see_arg = c;
	return c;
}

int capture_close(struct capture *c)
{
	int bad = ferror(c->f);

	bad |= fclose(c->f);
	free(c);
	return bad ? -EIO : 0;
}
