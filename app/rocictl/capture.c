/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "capture.h"
#include "limits.h"
#include "row.h"
#include "stream.h"

/* Several of the longest blocks. */
#define BUFFER (1u << 20)

#define BLOCK_STATISTICS 5u
#define BLOCK_PACKET	 6u
#define BLOCK_MIN	 12u
#define OPT_END		 0u
#define ISB_HEAD	 20u
#define ISB_IFDROP	 5u

struct file {
	const char *name;
	int fd;
	uint64_t written; /* bytes of whole blocks */
	uint64_t frames;
	uint64_t lost;
	bool complete; /* the statistics arrived, which are the last block */
};

static int complain(const char *why, const char *detail)
{
	fprintf(stderr, "rocictl: %s%s\n", why, detail);
	return 1;
}

static int complain_of(const struct file *f)
{
	fprintf(stderr, "rocictl: %s: %s\n", f->name, strerror(errno));
	return 1;
}

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void read_statistics(struct file *f, const uint8_t *block, uint32_t len)
{
	uint32_t at = ISB_HEAD;

	f->complete = true;
	while (at + 4 <= len - 4) {
		uint32_t code = word(block + at) & 0xFFFF;
		uint32_t size = word(block + at) >> 16;
		uint64_t value;

		at += 4;
		if (code == OPT_END || at + size > len - 4)
			return;
		if (code == ISB_IFDROP && size == sizeof(value)) {
			memcpy(&value, block + at, sizeof(value));
			f->lost += value;
		}
		at += (size + 3) & ~3u;
	}
}

/* @return the bytes of whole blocks at the beginning of @p bytes; -1: it is not pcapng. */
static ssize_t take_blocks(struct file *f, const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (len - at >= BLOCK_MIN) {
		uint32_t type = word(bytes + at);
		uint32_t size = word(bytes + at + 4);

		if (size < BLOCK_MIN || size & 3 || size > BUFFER)
			return -1;
		if (size > len - at)
			break;
		f->frames += type == BLOCK_PACKET;
		if (type == BLOCK_STATISTICS)
			read_statistics(f, bytes + at, size);
		at += size;
	}
	return (ssize_t)at;
}

/* @return how much was written; less than all, and errno, if the file accepts no more. */
static size_t write_blocks(struct file *f, const uint8_t *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(f->fd, bytes + done, len - done);

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			done += (size_t)n;
	}
	return done;
}

/* The file accepted only the first @p done bytes of the blocks at @p bytes. Truncate it after a
 * whole block. */
static int give_up(struct file *f, const uint8_t *bytes, size_t done, int err)
{
	if (err == EPIPE)
		return 0; /* its reader has closed it */
	f->written += (uint64_t)take_blocks(f, bytes, done);
	if (ftruncate(f->fd, (off_t)f->written) && errno != EINVAL)
		complain("the file ends with an incomplete block: ", strerror(errno));
	fprintf(stderr,
		"rocictl: %s: %s: the capture has ended, %" PRIu64 " frames are in the file\n",
		f->name, strerror(err), f->frames);
	return 1;
}

static int copy(struct file *f, int stream, uint8_t *buffer)
{
	size_t have = 0;

	for (;;) {
		ssize_t n = stream_read(stream, buffer + have, BUFFER - have);
		struct file before = *f;
		ssize_t whole;
		size_t done;

		if (n <= 0)
			break;
		have += (size_t)n;
		whole = take_blocks(f, buffer, have);
		if (whole < 0)
			return complain("rocid does not send pcapng: it is of another version", "");
		done = write_blocks(f, buffer, (size_t)whole);
		if (done < (size_t)whole)
			return give_up(&before, buffer, done, errno);
		f->written += done;
		have -= (size_t)whole;
		memmove(buffer, buffer + whole, have);
	}
	if (!f->complete)
		return complain(
			"rocid stopped: the file has everything that it sent until then", "");
	return 0;
}

/* Frames show what applications send each other: only the owner may read them. */
static int open_file(struct file *f)
{
	if (strcmp(f->name, "-")) {
		f->fd = open(f->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		return f->fd < 0 ? complain_of(f) : 0;
	}
	if (isatty(STDOUT_FILENO))
		return complain("a terminal cannot show frames: give a file name, or pipe to | "
				"wireshark -k -i -",
			"");
	f->fd = STDOUT_FILENO;
	return 0;
}

static void print_json(const struct file *f)
{
	struct row r;
	json_t *end;

	row_begin(&r);
	put_text(&r, "file", f->name);
	put_int(&r, "frames", (int64_t)f->frames);
	put_int(&r, "lost", (int64_t)f->lost);
	end = row_end(&r);
	json_dumpf(end, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(end);
}

static void tell(const struct file *f, bool json)
{
	if (json && f->fd != STDOUT_FILENO)
		print_json(f);
	else
		fprintf(stderr, "rocictl: %" PRIu64 " frames captured, %" PRIu64 " lost\n",
			f->frames, f->lost);
}

static int run(struct file *f, int stream, bool json)
{
	uint8_t *buffer = malloc(BUFFER);
	int status;

	if (!buffer)
		return complain("out of memory", "");
	stream_end_by_signal(stream);
	fprintf(stderr, "rocictl: capturing to %s, Ctrl-C ends it\n", f->name);
	status = copy(f, stream, buffer);
	free(buffer);
	if (!status)
		tell(f, json);
	if (f->fd != STDOUT_FILENO && close(f->fd) && !status)
		status = complain_of(f);
	return status;
}

int capture(int fd, const char *file, const char *what, bool json)
{
	struct file f = {.name = file};
	char line[ADMIN_LINE_MAX + 16];
	int stream, status;

	snprintf(line, sizeof(line), "capture %s", what);
	stream = stream_begin(fd, line);
	if (stream < 0)
		return 1;
	status = open_file(&f);
	if (!status)
		status = run(&f, stream, json);
	close(stream);
	return status;
}
