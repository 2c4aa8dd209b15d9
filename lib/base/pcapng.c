/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "pcapng.h"

#define MAGIC		  0x1A2B3C4Du
#define LINKTYPE_ETHERNET 1u

enum block {
	BLOCK_SECTION = 0x0A0D0D0A,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
};

/* Except for the first two, a number means something different in each kind of block. */
enum option {
	OPT_END = 0,
	OPT_COMMENT = 1,
	SHB_HARDWARE = 2,
	SHB_OS = 3,
	SHB_USERAPPL = 4,
	IF_NAME = 2,
	IF_DESCRIPTION = 3,
	IF_MACADDR = 6,
	IF_SPEED = 8,
	IF_TSRESOL = 9,
	IF_FILTER = 11,
	EPB_FLAGS = 2,
	EPB_DROPCOUNT = 4,
	EPB_QUEUE = 6,
	ISB_STARTTIME = 2,
	ISB_ENDTIME = 3,
	ISB_IFRECV = 4,
	ISB_IFDROP = 5,
};

/* A block being written. */
struct writer {
	uint8_t *start;
	uint8_t *at;
};

static void put(struct writer *w, const void *bytes, size_t len)
{
	memcpy(w->at, bytes, len);
	w->at += len;
}

static void put16(struct writer *w, uint16_t v)
{
	put(w, &v, sizeof(v));
}

static void put32(struct writer *w, uint32_t v)
{
	put(w, &v, sizeof(v));
}

/* A time is two words, the high one first, in either byte order. */
static void put_time(struct writer *w, uint64_t ns)
{
	put32(w, (uint32_t)(ns >> 32));
	put32(w, (uint32_t)ns);
}

static void pad(struct writer *w)
{
	while ((w->at - w->start) & 3)
		*w->at++ = 0;
}

static struct writer begin(uint8_t *to, enum block type)
{
	struct writer w = {to, to};

	put32(&w, (uint32_t)type);
	put32(&w, 0); /* finish() fills it in */
	return w;
}

static void option(struct writer *w, enum option code, const void *value, size_t len)
{
	put16(w, (uint16_t)code);
	put16(w, (uint16_t)len);
	put(w, value, len);
	pad(w);
}

static size_t text_len(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	return len < PCAPNG_STRING_MAX ? len : PCAPNG_STRING_MAX;
}

static void option_text(struct writer *w, enum option code, const char *text)
{
	if (text_len(text))
		option(w, code, text, text_len(text));
}

static void option_time(struct writer *w, enum option code, uint64_t ns)
{
	put16(w, (uint16_t)code);
	put16(w, sizeof(ns));
	put_time(w, ns);
}

static size_t finish(struct writer *w)
{
	uint32_t len;

	put32(w, OPT_END);
	len = (uint32_t)(w->at - w->start) + (uint32_t)sizeof(len);
	put32(w, len);
	memcpy(w->start + 4, &len, sizeof(len));
	return len;
}

size_t pcapng_section(uint8_t *to, const char *hardware, const char *os, const char *application)
{
	const int64_t unknown = -1;
	struct writer w = begin(to, BLOCK_SECTION);

	put32(&w, MAGIC);
	put16(&w, 1); /* version 1.0 */
	put16(&w, 0);
	put(&w, &unknown, sizeof(unknown)); /* section length */
	option_text(&w, SHB_HARDWARE, hardware);
	option_text(&w, SHB_OS, os);
	option_text(&w, SHB_USERAPPL, application);
	return finish(&w);
}

/* if_filter: a kind, then its content; 0 is a string. */
static void option_filter(struct writer *w, const char *filter)
{
	size_t len = text_len(filter);

	if (!len)
		return;
	put16(w, IF_FILTER);
	put16(w, (uint16_t)(len + 1));
	*w->at++ = 0;
	put(w, filter, len);
	pad(w);
}

size_t pcapng_interface(uint8_t *to, const struct pcapng_interface *i)
{
	const uint8_t nanoseconds = 9;
	struct writer w = begin(to, BLOCK_INTERFACE);

	put16(&w, LINKTYPE_ETHERNET);
	put16(&w, 0);
	put32(&w, i->snap);
	option_text(&w, IF_NAME, i->name);
	option_text(&w, IF_DESCRIPTION, i->description);
	if (i->mac)
		option(&w, IF_MACADDR, i->mac, 6);
	if (i->speed)
		option(&w, IF_SPEED, &i->speed, sizeof(i->speed));
	option(&w, IF_TSRESOL, &nanoseconds, 1);
	option_filter(&w, i->filter);
	return finish(&w);
}

size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *p)
{
	const uint32_t flags = p->direction;
	struct writer w = begin(to, BLOCK_PACKET);

	put32(&w, p->interface);
	put_time(&w, p->time);
	put32(&w, p->kept);
	put32(&w, p->len);
	put(&w, p->bytes, p->kept);
	pad(&w);
	option_text(&w, OPT_COMMENT, p->comment);
	option(&w, EPB_FLAGS, &flags, sizeof(flags));
	if (p->lost)
		option(&w, EPB_DROPCOUNT, &p->lost, sizeof(p->lost));
	option(&w, EPB_QUEUE, &p->queue, sizeof(p->queue));
	return finish(&w);
}

size_t pcapng_statistics(uint8_t *to, const struct pcapng_statistics *s)
{
	struct writer w = begin(to, BLOCK_STATISTICS);

	put32(&w, s->interface);
	put_time(&w, s->end);
	option_time(&w, ISB_STARTTIME, s->start);
	option_time(&w, ISB_ENDTIME, s->end);
	option(&w, ISB_IFRECV, &s->received, sizeof(s->received));
	option(&w, ISB_IFDROP, &s->dropped, sizeof(s->dropped));
	return finish(&w);
}
