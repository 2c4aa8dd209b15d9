/* SPDX-License-Identifier: BSD-3-Clause */
/* rociperf OPERATION [TEST] [options] [HOST]: measures the speed of rocid's queue pairs. */
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "end.h"
#include "message.h"
#include "oob.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "run.h"
#include "side.h"
#include "ticks.h"

#define EXIT_USAGE 2
/* A client that was started at the same moment as its server. */
#define CONNECT_PATIENCE_S 5
#define SIZES_MAX	   32

/* The ends in this process: one, or with --both two, the client's first. */
struct ends {
	struct side side[2];
	unsigned count;
};

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		errx(1, "--cpu %d: this program cannot run on that CPU: %s", cpu, strerror(errno));
}

/* --- getting together ------------------------------------------------------------------------ */

static void open_side(
	struct side *s, const struct options *o, const struct place *place, int fd, bool client)
{
	const struct plan *p = &o->plan;

	*s = (struct side){0};
	end_open(&s->end, p, place, fd, client);
	s->step = plan_test(p) == TEST_LAT ? pingpong_step : stream_step;
	s->marks = plan_test(p) == TEST_LAT && !s->end.op->receives && !op_told(s->end.op);
	if (plan_test(p) == TEST_LAT && client)
		s->measure.trip = histogram_new();
}

/* The client's address is sent first, so that the server can choose a GID that matches it. */
static void introduce_client(struct end *e)
{
	end_choose_gid(e, NULL);
	end_tell(e);
}

static void introduce_server(struct end *e)
{
	end_hear(e);
	end_choose_gid(e, &e->peer_gid);
	end_tell(e);
	end_connect(e);
}

static void connect_client(struct end *e)
{
	end_hear(e);
	end_connect(e);
}

static void open_client(struct ends *ends, const struct options *o)
{
	int fd = oob_connect(o->host, o->tcp_port, CONNECT_PATIENCE_S);

	message_send(fd, MESSAGE_PLAN, o->plan.value, PARAM_COUNT);
	message_receive(fd, MESSAGE_ACCEPT, NULL, 0);
	open_side(&ends->side[0], o, &o->own, fd, true);
	introduce_client(&ends->side[0].end);
	connect_client(&ends->side[0].end);
}

static void open_server(struct ends *ends, struct options *o)
{
	uint64_t theirs[PARAM_COUNT];
	char why[256];
	int fd;

	/* A server without rocid fails at once, not when its client arrives. */
	end_probe(&o->own);
	fd = oob_listen(o->tcp_port);
	if (!o->json) {
		printf("rociperf: waiting for a client on TCP port %s\n", o->tcp_port);
		fflush(stdout);
	}
	fd = oob_accept(fd);
	message_receive(fd, MESSAGE_PLAN, theirs, PARAM_COUNT);
	if (!plan_adopt(&o->plan, theirs, why, sizeof(why))) {
		message_refuse(fd, why);
		errx(1, "%s", why);
	}
	message_send(fd, MESSAGE_ACCEPT, NULL, 0);
	open_side(&ends->side[0], o, &o->own, fd, false);
	introduce_server(&ends->side[0].end);
}

static void open_both(struct ends *ends, struct options *o)
{
	bool same_daemon = !o->peer.socket;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		err(1, "cannot create a socket pair");
	if (same_daemon)
		o->peer.socket = o->own.socket;
	open_side(&ends->side[0], o, &o->own, fd[0], true);
	if (same_daemon && !o->peer.port)
		o->peer.port = end_other_port(&ends->side[0].end);
	open_side(&ends->side[1], o, &o->peer, fd[1], false);
	introduce_client(&ends->side[0].end);
	introduce_server(&ends->side[1].end);
	connect_client(&ends->side[0].end);
	ends->count = 2;
}

/* --- the whole ------------------------------------------------------------------------ */

static unsigned measure_all(struct ends *ends, const struct options *o, struct row row[SIZES_MAX])
{
	const struct plan *p = &o->plan;
	struct side *first = &ends->side[0];
	struct run run = {.side = {first, &ends->side[1]}, .sides = ends->count};
	unsigned rows = 0;

	run.progress = first->end.initiates && !o->json && isatty(STDOUT_FILENO);
	if (!o->json)
		report_head(stdout, first);
	for (uint32_t size = plan_first_size(p); size; size = plan_next_size(p, size)) {
		run_size(&run, size);
		row[rows] = report_row(first);
		if (!o->json)
			report_line(stdout, p, &row[rows]);
		rows++;
	}
	return rows;
}

int main(int argc, char *argv[])
{
	static struct ends ends;
	struct row row[SIZES_MAX];
	struct options o;
	unsigned rows;

	switch (options_parse(&o, argc, argv)) {
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_GO:
		break;
	}
	if (o.plot)
		plot_check();
	if (o.cpu >= 0)
		run_on(o.cpu);
	ticks_open();
	ends.count = 1;
	if (o.both)
		open_both(&ends, &o);
	else if (o.host)
		open_client(&ends, &o);
	else
		open_server(&ends, &o);
	rows = measure_all(&ends, &o, row);
	if (o.json)
		report_json(stdout, &ends.side[0], row, rows,
			rows == 1 ? ends.side[0].measure.trip : NULL);
	if (o.plot)
		plot_draw(o.plot, &ends.side[0], row, rows);
	for (unsigned i = 0; i < ends.count; i++) {
		end_close(&ends.side[i].end);
		free(ends.side[i].measure.trip);
	}
	if (fflush(stdout) || ferror(stdout))
		err(1, "standard output");
	return 0;
}
