/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
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
void gnuplot_string(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++)
		fprintf(f, "%s", *text == '\'' ? "''" : (char[]){*text, '\0'});
	fputc('\'', f);
}

void gnuplot_svg(FILE *f, const char *path)
{
	/* its fifth colour is yellow, which is invisible on white */
	fputs("set terminal svg size 720,430 dynamic enhanced font 'sans,14' background 'white'\n"
	      "set linetype 5 lc rgb '#8c564b'\n"
	      "set output ",
		f);
	gnuplot_string(f, path);
	fputc('\n', f);
}

bool gnuplot_close(FILE *f)
{
	int status = pclose(f);

	return status != -1 && WIFEXITED(status) && !WEXITSTATUS(status);
}
