/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "headers.h"
#include "shared.h"

#define PCAP_MAGIC	  0xA1B2C3D4u
#define PCAP_MAGIC_NS	  0xA1B23C4Du
#define PCAP_HDR	  24
#define PCAP_RECORD	  16
#define LINKTYPE_ETHERNET 1
#define LINKTYPE_SLL	  113
#define SLL_HLEN	  16

static bool shared_path(char *dst, size_t room, const char *name)
{
	const char *dir = getenv("SHARED_DIR");

	return dir && (size_t)snprintf(dst, room, "%s/%s", dir, name) < room;
}

bool shared_here(void)
{
	char path[4096];

	return shared_path(path, sizeof(path), "vectors/vectors.json") && !access(path, R_OK);
}

json_t *vectors_load(void)
{
	char path[4096];
	json_error_t err;
	json_t *root;
	FILE *f;

	if (!shared_path(path, sizeof(path), "vectors/vectors.json"))
		return NULL;
	f = fopen(path, "r");
	if (!f)
		return NULL;
	root = json_loadf(f, 0, &err);
	fclose(f);
	if (!root)
		fail_msg("%s:%d: %s", path, err.line, err.text);
	return root;
}

size_t hex_decode(const char *hex, uint8_t *dst, size_t room)
{
	size_t len = strlen(hex) / 2;

	if (len > room)
		return 0;
	for (size_t i = 0; i < len; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
		char *end;

		dst[i] = (uint8_t)strtoul(pair, &end, 16);
		if (*end)
			return 0;
	}
	return len;
}

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static size_t slurp(const char *path, uint8_t **data)
{
	FILE *f = fopen(path, "rb");
	size_t room = 1 << 20;
	size_t len;

	if (!f)
		return 0;
	*data = malloc(room);
	assert_non_null(*data);
	len = fread(*data, 1, room, f);
	assert_true(len < room); /* or it was cut */
	fclose(f);
	return len;
}

bool pcap_open(struct pcap *c, const char *name)
{
	char path[4096];
	char file[256];
	uint32_t magic;
	uint32_t link;

	memset(c, 0, sizeof(*c));
	snprintf(file, sizeof(file), "captures/%s", name);
	if (!shared_path(path, sizeof(path), file))
		return false;
	c->len = slurp(path, &c->data);
	if (!c->data)
		return false;
	assert_true(c->len >= PCAP_HDR);
	magic = le32(c->data);
	link = le32(c->data + 20) & 0xFFFF;
	assert_true(magic == PCAP_MAGIC || magic == PCAP_MAGIC_NS);
	assert_true(link == LINKTYPE_ETHERNET || link == LINKTYPE_SLL);
	c->cooked = link == LINKTYPE_SLL;
	c->at = PCAP_HDR;
	return true;
}

size_t pcap_next(struct pcap *c, uint8_t *dst, size_t room)
{
	const uint8_t *record = c->data + c->at;
	size_t cut = c->cooked ? SLL_HLEN : 0;
	size_t put = c->cooked ? ETH_HLEN : 0;
	size_t len;

	if (c->at + PCAP_RECORD > c->len)
		return 0;
	len = le32(record + 8);
	assert_int_equal(len, le32(record + 12)); /* captured whole */
	assert_true(c->at + PCAP_RECORD + len <= c->len && len >= cut && len - cut + put <= room);
	c->at += PCAP_RECORD + len;
	record += PCAP_RECORD;
	memset(dst, 0, put);
	if (c->cooked)
		memcpy(dst + ETH_TYPE, record + SLL_HLEN - 2, 2);
	memcpy(dst + put, record + cut, len - cut);
	return len - cut + put;
}

void pcap_close(struct pcap *c)
{
	free(c->data);
}
