/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "library.h"
#include "parse.h"
#include "scenario.h"
#include "suggest.h"

#define SUFFIX	 ".lab"
#define TEXT_MAX (1u << 20)

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text;
	size_t n;

	if (!f)
		return NULL;
	text = malloc(TEXT_MAX);
	n = text ? fread(text, 1, TEXT_MAX - 1, f) : 0;
	if (text)
		text[n] = '\0';
	if (ferror(f)) { /* a folder */
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

static int not_found(const char *folder, const char *name, char *why, size_t size)
{
	struct suggestion s;
	char **names = NULL;
	int n = library_list(folder, &names);

	suggest_begin(&s, name);
	for (int i = 0; i < n; i++)
		suggest_try(&s, names[i]);
	if (n < 0)
		snprintf(why, size,
			"'%s' is not a file, and there is no library in %s (%s): name its folder "
			"with "
			"--library",
			name, folder, strerror(-n));
	else if (s.best)
		snprintf(why, size, "'%s' is neither a file nor in %s; did you mean '%s'?", name,
			folder, s.best);
	else
		snprintf(why, size, "'%s' is neither a file nor in %s: see 'rocilab list'", name,
			folder);
	library_free(names, n);
	return -EINVAL;
}

int library_read(struct scenario *s, const char *folder, const char *name, struct setting *settings,
	unsigned n, char *why, size_t size)
{
	char path[4096];
	char *text = NULL;
	const char *base = strrchr(name, '/');
	int err;

	if (strchr(name, '/') || strstr(name, SUFFIX))
		text = read_file(name);
	if (!text && !base) {
		snprintf(path, sizeof(path), "%s/%s%s", folder, name, SUFFIX);
		text = read_file(path);
	}
	if (!text)
		return not_found(folder, name, why, size);
	err = parse_scenario(s, name, text, settings, n, why, size);
	base = base ? base + 1 : name;
	snprintf(s->name, sizeof(s->name), "%s", base);
	free(text);
	return err;
}

static int is_scenario(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return len > strlen(SUFFIX) && !strcmp(e->d_name + len - strlen(SUFFIX), SUFFIX);
}

/* Independent of the locale: every machine lists them in the same order. */
static int in_order(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int library_list(const char *folder, char ***names)
{
	struct dirent **found;
	int n = scandir(folder, &found, is_scenario, in_order);

	if (n < 0)
		return -errno;
	*names = calloc((size_t)n + 1, sizeof(**names));
	for (int i = 0; i < n; i++) {
		if (*names)
			(*names)[i] = strndup(
				found[i]->d_name, strlen(found[i]->d_name) - strlen(SUFFIX));
		free(found[i]);
	}
	free(found);
	return *names ? n : -ENOMEM;
}

void library_free(char **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	if (n >= 0)
		free(names);
}
