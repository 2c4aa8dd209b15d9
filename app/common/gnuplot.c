/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bits.h"
#include "gnuplot.h"

#define PROGRAM "gnuplot"

bool gnuplot_found(void)
{
	const char *path = getenv("PATH");
	char *copy = strdup(path ? path : ""), *save = NULL;
	bool found = false;

	for (char *dir = copy ? strtok_r(copy, ":", &save) : NULL; dir && !found;
		dir = strtok_r(NULL, ":", &save)) {
		char *file;

		if (asprintf(&file, "%s/" PROGRAM, dir) < 0)
			break;
		found = access(file, X_OK) == 0;
		free(file);
	}
	free(copy);
	return found;
}

FILE *gnuplot_open(void)
{
	fflush(stdout);
	signal(SIGPIPE, SIG_IGN);   /* its exit status says more */
	return popen(PROGRAM, "w"); /* the command line contains no user input */
}

/* In single quotes. */
static void gnuplot_string(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++)
		fprintf(f, "%s", *text == '\'' ? "''" : (char[]){*text, '\0'});
	fputc('\'', f);
}

/* The colours alternate between dark and light, and each curve has its own point shape, so that
 * curves differ in grey, too. test/bench/plots.py has the same list. */
static void put_linetypes(FILE *f)
{
	static const char *const colour[] = {"000000", "e69f00", "0050a0", "56b4e9", "8b1a1a",
		"3cb371", "6a3d9a", "cc79a7", "005f4b", "b8860b", "7f7f7f", "d55e00"};
	static const unsigned shape[ARRAY_SIZE(colour)] = {7, 4, 9, 6, 5, 8, 13, 10, 11, 12, 2, 1};
	static const unsigned dash[] = {1, 2, 4};

	for (unsigned i = 0; i < ARRAY_SIZE(colour); i++)
		fprintf(f, "set linetype %u lw 2 lc rgb '#%s' pt %u ps 0.6 dt %u\n", i + 1,
			colour[i], shape[i], dash[i % ARRAY_SIZE(dash)]);
	fprintf(f, "set linetype cycle %zu\n", ARRAY_SIZE(colour));
}

void gnuplot_svg(FILE *f, const char *path)
{
	fputs("set terminal svg size 720,430 dynamic enhanced font 'sans,14' background 'white'\n",
		f);
	put_linetypes(f);
	fputs("set output ", f);
	gnuplot_string(f, path);
	fputc('\n', f);
}

bool gnuplot_close(FILE *f)
{
	int status = pclose(f);

	return status != -1 && WIFEXITED(status) && !WEXITSTATUS(status);
}
