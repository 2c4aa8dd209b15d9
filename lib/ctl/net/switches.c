/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/switches.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "number.h"
#include "refuse.h"
#include "switch_list.h"

#define ENTRY "fastcnp"
#define BITS  128u

static const struct {
	const char *name;
	size_t at; /* in struct switches */
	uint32_t def, min, max;
	bool hex;
} params[] = {
	{"fastcnp_opt1", offsetof(struct switches, opt1), FAST_CNP_TYPE_PLAIN, FAST_CNP_TYPE_MIN,
		FAST_CNP_TYPE_MAX, true},
	{"fastcnp_opt2", offsetof(struct switches, opt2), FAST_CNP_TYPE_TRACE, FAST_CNP_TYPE_MIN,
		FAST_CNP_TYPE_MAX, true},
	{"fastcnp_rate", offsetof(struct switches, rate), 100000, 1, 100000000, false},
	{"fastcnp_rate_all", offsetof(struct switches, rate_all), 200000, 1, 100000000, false},
	{"fastcnp_burst", offsetof(struct switches, burst), 256, 1, 65536, false},
	{"fastcnp_detour", offsetof(struct switches, detour), 0, 0, 1, false},
};

static uint32_t *value_at(struct switches *s, unsigned i)
{
	return (uint32_t *)((char *)s + params[i].at);
}

void switches_init(struct switches *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < ARRAY_SIZE(params); i++)
		*value_at(s, i) = params[i].def;
}

static bool number(const char *text, int base, uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t v;

	if (!parse_in_base(text, base, max, &v) || v < min)
		return false;
	*value = (uint32_t)v;
	return true;
}

/* Adds "2001:db8:5::1" or "2001:db8:5::/64". */
static int add(struct switches *s, const char *value, char *why, size_t why_size)
{
	char addr[INET6_ADDRSTRLEN];
	size_t len = strcspn(value, "/");
	uint32_t prefix = BITS;

	if (s->n == FAST_CNP_SWITCHES)
		return refuse_in(why, why_size, -EINVAL,
			"a port has at most %u entries for switches: use one prefix for several "
			"switches",
			FAST_CNP_SWITCHES);
	snprintf(addr, sizeof(addr), "%.*s", (int)len, value);
	if (len >= sizeof(addr) || inet_pton(AF_INET6, addr, s->entry[s->n].addr) != 1 ||
		gid_is_ip4(s->entry[s->n].addr) ||
		(value[len] && !number(value + len + 1, 10, 1, BITS, &prefix)))
		return refuse_in(why, why_size, -EINVAL,
			"%s=%s is not a switch: use an IPv6 address, or a prefix such as "
			"2001:db8:5::/64",
			ENTRY, value);
	s->entry[s->n++].prefix = (uint8_t)prefix;
	return 0;
}

int switches_set(
	struct switches *s, const char *name, const char *value, char *why, size_t why_size)
{
	unsigned i = 0;

	if (!strcmp(name, ENTRY))
		return add(s, value, why, why_size);
	while (i < ARRAY_SIZE(params) && strcmp(params[i].name, name) != 0)
		i++;
	if (i == ARRAY_SIZE(params))
		return -ENOENT;
	if (!number(value, 0, params[i].min, params[i].max, value_at(s, i)))
		return refuse_in(why, why_size, -EINVAL,
			"%s is a whole number from %u to %u, not %s", name, params[i].min,
			params[i].max, value);
	return 0;
}

int switches_check(const struct switches *s, char *why, size_t why_size)
{
	struct switches none;

	if (s->opt1 == s->opt2)
		return refuse_in(why, why_size, -EINVAL,
			"fastcnp_opt1 and fastcnp_opt2 are both 0x%02x: give them different types",
			s->opt1);
	switches_init(&none);
	if (!s->n && memcmp(s, &none, sizeof(none)) != 0)
		return refuse_in(why, why_size, -EINVAL,
			"Fast CNPs are accepted from known switches only: add "
			"fastcnp=ADDRESS[/BITS]");
	return 0;
}

size_t switches_text(const struct switches *s, char *text, size_t size)
{
	struct switches copy = *s;
	char addr[INET6_ADDRSTRLEN];
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < s->n; i++) {
		inet_ntop(AF_INET6, s->entry[i].addr, addr, sizeof(addr));
		len += (size_t)snprintf(text + len, size - len, "," ENTRY "=%s", addr);
		if (s->entry[i].prefix != BITS)
			len += (size_t)snprintf(text + len, size - len, "/%u", s->entry[i].prefix);
	}
	for (unsigned i = 0; s->n && i < ARRAY_SIZE(params); i++)
		len += (size_t)snprintf(text + len, size - len,
			params[i].hex ? ",%s=0x%02x" : ",%s=%u", params[i].name,
			*value_at(&copy, i));
	return len;
}

static struct switch_list *list_of(const struct switches *s)
{
	struct switch_list *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->type[FAST_CNP_PLAIN] = (uint8_t)s->opt1;
	l->type[FAST_CNP_TRACE] = (uint8_t)s->opt2;
	l->n = s->n;
	l->detour = s->detour;
	bucket_init(&l->all, s->rate_all, s->burst);
	for (uint32_t i = 0; i < s->n; i++) {
		memcpy(l->entry[i].addr, s->entry[i].addr, sizeof(l->entry[i].addr));
		l->entry[i].prefix = s->entry[i].prefix;
		bucket_init(&l->entry[i].bucket, s->rate, s->burst);
	}
	return l;
}

int switches_publish(const struct switches *s, struct port *shared, struct switch_list **old)
{
	struct switch_list *l = s && s->n ? list_of(s) : NULL;

	*old = NULL;
	if (s && s->n && !l)
		return -ENOMEM;
	*old = atomic_exchange(&shared->switches, l);
	return 0;
}
