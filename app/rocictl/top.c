/* SPDX-License-Identifier: BSD-3-Clause */
/* The screen of `rocictl top`. */
#include "top.h"
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "complain.h"

#define HEAD_LINES 2

/* Widths of a row's parts: the columns up to the rates, those from the limit to the CNPs, the
 * peer's QPN, the peer. */
#define LEFT	 44
#define RIGHT	 16
#define PEER_QPN 10
#define PEER	 16

/* 80 columns have no room for the QPNs of the peers, or for long sparklines. */
#define SPARK_MIN 4

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* 1234567 -> 1.23M */
static const char *scaled(double x, char out[16])
{
	static const char units[] = {0, 'k', 'M', 'G'};
	unsigned u = 0;

	for (; x >= 999.5 && u < sizeof(units) - 1; u++)
		x /= 1000;
	if (u)
		snprintf(out, 16, "%.3g%c", x, units[u]);
	else
		snprintf(out, 16, "%.0f", x);
	return out;
}

static const char *limit(const struct top_qp *q, char out[16])
{
	return q->limit_mbps > 0 ? scaled(q->limit_mbps * 1e6, out) : "-";
}

/* Prints as much of @p text as fits on the line: ncurses would continue on the next. */
static void put(int line, int column, const char *text)
{
	if (column < COLS)
		mvaddnstr(line, column, text, COLS - column);
}

struct layout {
	int spark; /* columns */
	bool peer_qpn;
	bool utf8;
};

static struct layout layout(void)
{
	int most = (int)TOP_HISTORY, room = COLS - LEFT - RIGHT - PEER;
	struct layout l = {.peer_qpn = room >= most + PEER_QPN,
		.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8")};

	l.spark = room > most ? most : room < SPARK_MIN ? SPARK_MIN : room;
	return l;
}

static void draw_qp(int line, const struct top_qp *q, const struct layout *l)
{
	char spark[TOP_HISTORY * 3 + 1], text[160], peer_qpn[16] = "";
	char tx[16], rx[16], cnps[16], most[16];

	snprintf(text, sizeof(text), "%-10.10s %8u %-5.5s %8s %8s ", q->program, q->qpn, q->state,
		scaled(q->tx, tx), scaled(q->rx, rx));
	put(line, 0, text);
	if (LEFT + l->spark <= COLS) {
		top_sparkline(q, (unsigned)l->spark, l->utf8, spark);
		mvaddstr(line, LEFT, spark);
	}
	if (l->peer_qpn)
		snprintf(peer_qpn, sizeof(peer_qpn), "  %8u", q->peer_qpn);
	snprintf(text, sizeof(text), " %7s %7s%s %s", limit(q, most), scaled(q->cnps_s, cnps),
		peer_qpn, q->peer);
	put(line, LEFT + l->spark, text);
}

static void draw(const struct top *t)
{
	double packets = 0, cnps = 0;
	char a[16], b[16], text[160];
	struct layout l = layout();

	for (size_t i = 0; i < t->n; i++) {
		packets += t->qp[i].tx + t->qp[i].rx;
		cnps += t->qp[i].cnps_s;
	}
	erase();
	snprintf(text, sizeof(text), "%zu queue pairs, %s packets/s, %s CNPs/s   (q ends)", t->n,
		scaled(packets, a), scaled(cnps, b));
	put(0, 0, text);
	attron(A_REVERSE);
	snprintf(text, sizeof(text), "%-10s %8s %-5s %8s %8s %-*s %7s %7s%s PEER", "PROGRAM", "QPN",
		"STATE", "TX PKT/S", "RX PKT/S", l.spark, "BOTH", "BIT/S", "CNP/S",
		l.peer_qpn ? "  PEER QPN" : "");
	put(1, 0, text);
	attroff(A_REVERSE);
	for (size_t i = 0; i < t->n && HEAD_LINES + (int)i < LINES; i++)
		draw_qp(HEAD_LINES + (int)i, &t->qp[i], &l);
	refresh();
}

static bool look(struct top *t, const char *socket, char why[ASK_WHY])
{
	const char *error;
	json_t *document;
	bool ok;
	int fd = ask_connect(socket, why);

	if (fd < 0)
		return false;
	document = ask(fd, "show traffic", why);
	close(fd);
	if (!document)
		return false;
	error = json_string_value(json_object_get(document, "error"));
	if (error)
		snprintf(why, ASK_WHY, "%s", error);
	else if (!top_look(t, document, now_s()))
		snprintf(why, ASK_WHY,
			"out of memory: show fewer queue pairs with `rocictl show traffic`");
	else
		why[0] = '\0';
	ok = !why[0];
	json_decref(document);
	return ok;
}

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = 1;
}

/* Waits for q, or the next refresh. @return whether to continue */
static bool wait_for_key(const struct top *t, double seconds)
{
	double due = now_s() + seconds;

	for (;;) {
		double left = due - now_s();
		int key;

		if (stopped)
			return false;
		if (left <= 0)
			return true;
		timeout((int)ceil(left * 1000));
		key = getch();
		if (key == 'q' || key == 'Q' || key == 27)
			return false;
		if (key == KEY_RESIZE)
			draw(t);
	}
}

int top_run(const char *socket, double seconds, unsigned looks)
{
	const struct sigaction action = {.sa_handler = on_signal};
	char why[ASK_WHY] = "";
	struct top t = {0};

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return complain(
			"rocictl", "top needs a terminal: use `rocictl watch show traffic`", 2);
	if (!look(&t, socket, why)) /* before the screen is cleared */
		return complain("rocictl", why, 1);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	setlocale(LC_CTYPE, "");
	if (!newterm(NULL, stdout, stdin)) {
		top_free(&t);
		return complain(
			"rocictl", "the terminal is unknown: set TERM, for example to xterm", 1);
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	for (unsigned i = 1;; i++) {
		draw(&t);
		if ((looks && i > looks) || !wait_for_key(&t, seconds) || !look(&t, socket, why))
			break;
	}
	endwin();
	top_free(&t);
	return why[0] ? complain("rocictl", why, 1) : 0;
}
