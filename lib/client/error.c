/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "client.h"

static _Thread_local const char *last_error = "";
static _Thread_local char last_error_text[ABI_SENTENCE_MAX + 128];

const char *roci_last_error(void)
{
	return last_error;
}

int fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error_text, sizeof(last_error_text), fmt, ap);
	va_end(ap);
	last_error = last_error_text;
	return err;
}

int fail_const(int err, const char *sentence)
{
	last_error = sentence;
	return err;
}

static int opts_size(const void *opts, size_t *size, const char *name)
{
	memcpy(size, opts, sizeof(*size));
	if (*size < sizeof(*size))
		return fail(EINVAL, "set .size = sizeof(struct %s) before the call", name);
	return 0;
}

int opts_read(void *dst, size_t dst_size, const void *src, const char *name)
{
	size_t size;
	int err = opts_size(src, &size, name);

	if (err)
		return err;
	for (size_t i = dst_size; i < size; i++)
		if (((const char *)src)[i])
			return fail(EINVAL,
				"struct %s has options that this libroci does not support: "
				"install the libroci that the program was built for",
				name);
	memset(dst, 0, dst_size);
	memcpy(dst, src, size < dst_size ? size : dst_size);
	return 0;
}

int opts_write(void *dst, const void *src, size_t src_size, const char *name)
{
	size_t size;
	int err = opts_size(dst, &size, name);

	if (err)
		return err;
	memset(dst, 0, size);
	memcpy(dst, src, size < src_size ? size : src_size);
	memcpy(dst, &size, sizeof(size));
	return 0;
}
