/* SPDX-License-Identifier: BSD-3-Clause */
/* Sysfs files that programs read through the library. roci-run shows them a tree of rocid's there.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ucma.h"
#include "verbs.h"

VERBS_API const char *ibv_get_sysfs_path(void);
VERBS_API int ibv_read_ibdev_sysfs_file(char *buf, size_t size, struct ibv_device *device,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

VERBS_API const char *ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");

	return path && *path ? path : "/sys";
}

static int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = '\0';
	else if (n >= 0 && (size_t)n < size)
		buf[n] = '\0';
	else
		return -1;
	return (int)n;
}

static int copy_text(const char *text, char *buf, size_t size)
{
	size_t len = strlen(text);

	if (len >= size)
		return -1;
	memcpy(buf, text, len + 1);
	return (int)len;
}

VERBS_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX * 2];

	if (!strcmp(file, UCMA_VERSION_FILE)) { /* librdmacm reads this before anything else */
		ucma_attach();
		return copy_text(UCMA_VERSION_TEXT, buf, size);
	}
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return read_file(path, buf, size);
}

VERBS_API int ibv_read_ibdev_sysfs_file(
	char *buf, size_t size, struct ibv_device *device, const char *format, ...)
{
	char file[IBV_SYSFS_PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(file, sizeof(file), format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(file)) {
		errno = EINVAL;
		return -1;
	}
	return ibv_read_sysfs_file(device->ibdev_path, file, buf, size);
}
