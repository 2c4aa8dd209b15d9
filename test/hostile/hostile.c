/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile SOCKET [--list] [--seed N] [--effort N] [ATTACK...]
 *
 * Runs the attacks, each in a process of its own, against the rocid at SOCKET, with victims
 * beside them (victim.h), and judges: rocid lives; the victims worked, without an error or a
 * byte that nobody sent, and were not stalled; what rocid holds is what it held before.
 * HOSTILE_SEED and HOSTILE_EFFORT say the same as the options.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"
#include "proc.h"

#define ATTACK_S 900 /* that an attack may take: far more than any does */
#define MESSAGES 60u /* that the victims exchange during and after each attack */
#define COMMANDS 30u
#define EVENTS	 20u
#define TRIES	 5u /* an attack that stalls others does so each time; the machine now and then */

static struct victim *victim;
static pid_t children[3];

static const struct attack *const tables[] = {attacks_words, attacks_wqe, attacks_srq, attacks_keys,
	attacks_socket, attacks_objects, attacks_memory, attacks_wire, attacks_paths,
	attacks_crowds, attacks_pieces, attacks_storms, attacks_passed_root, attacks_rounds,
	attacks_huge, attacks_open, attacks_commands, attacks_quota, attacks_cm, attacks_fuzz,
	attacks_events, attacks_root};

static pid_t start(void (*body)(struct victim *, const char *), const char *socket)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid)
		return pid;
	raw_become(USER_VICTIM);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	body(victim, socket);
	exit(0);
}

static bool ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == pid;
}

static void pause_ms(unsigned ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&ts, NULL);
}

static void check_victims(const struct proc *p)
{
	must(proc_alive(p), "rocid is dead");
	for (unsigned i = 0; i < ARRAY_SIZE(children); i++)
		must(!ended(children[i]), "a victim has ended: see what it said above");
}

/* Until the victims have done as much again as they are asked for. */
static void let_victims_work(const struct proc *p)
{
	uint64_t messages = atomic_load(&victim->message.done) + MESSAGES;
	uint64_t commands = atomic_load(&victim->command.done) + COMMANDS;
	uint64_t events = atomic_load(&victim->event.done) + EVENTS;

	for (unsigned i = 0; i < 1000 * RAW_PATIENCE_S; i++) {
		if (atomic_load(&victim->message.done) >= messages &&
			atomic_load(&victim->command.done) >= commands &&
			atomic_load(&victim->event.done) >= events)
			return;
		if (i % 64 == 0)
			check_victims(p);
		pause_ms(1);
	}
	errx(1, "the victims do not get on");
}

static bool waited(struct waits *w, const char *what, uint64_t bound)
{
	uint64_t stalls = atomic_exchange(&w->stalls, 0);

	printf("    %s: longest %.1f ms", what, (double)atomic_exchange(&w->longest_ns, 0) / 1e6);
	if (stalls)
		printf(", %llu longer than %.0f ms", (unsigned long long)stalls,
			(double)bound / 1e6);
	puts("");
	return stalls;
}

/* Returns true when a victim was kept waiting for too long. */
static bool stalled(void)
{
	bool message = waited(&victim->message, "message", MESSAGE_NS);
	bool command = waited(&victim->command, "command", COMMAND_NS);
	bool event = waited(&victim->event, "event", EVENT_NS);

	return message || command || event;
}

/* Sessions end later than their sockets: gives rocid the time to clean up. */
static void check_holdings(const struct proc *p, struct holdings before)
{
	struct holdings now = {0};

	for (unsigned i = 0; i < 100 * RAW_PATIENCE_S; i++) {
		now = proc_holdings(p);
		if (now.fds <= before.fds && now.maps <= before.maps)
			return;
		pause_ms(10);
	}
	errx(1, "rocid held %u descriptors and %u mappings before, %u and %u after", before.fds,
		before.maps, now.fds, now.maps);
}

static void attack_process(const struct attack *k, struct arena *a)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		if (!a->root)
			raw_become(USER_ATTACKER);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(ATTACK_S);
		k->run(a);
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		errx(1, "%s: ended by signal %d", k->name, WTERMSIG(status));
	if (WEXITSTATUS(status))
		errx(1, "%s: failed", k->name);
}

/* Returns false when the victims were stalled. */
static bool try(const struct attack *k, struct arena *a, const struct proc *p)
{
	struct holdings before = proc_holdings(p);
	uint64_t messages = atomic_load(&victim->message.done);
	bool ok;

	printf("%s\n", k->name);
	fflush(stdout);
	atomic_store(&victim->starved, a->starves);
	attack_process(k, a);
	let_victims_work(p);
	printf("    %llu messages beside it\n",
		(unsigned long long)(atomic_load(&victim->message.done) - messages));
	ok = !stalled();
	check_holdings(p, before);
	check_victims(p);
	atomic_store(&victim->starved, 0);
	return ok;
}

static void run(const struct attack *k, const struct arena *a, const struct proc *p)
{
	for (unsigned i = 0; i < TRIES; i++) {
		struct arena again = *a;

		if (try(k, &again, p))
			return;
	}
	errx(1, "%s: others are stalled, each time", k->name);
}

static bool chosen(const char *name, char *const *names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strstr(name, *names))
			return true;
	return false;
}

static bool keeps_root(const struct attack *table)
{
	return table == attacks_root || table == attacks_passed_root || table == attacks_quota ||
	       table == attacks_cm;
}

static void run_all(struct arena *a, const struct proc *p, char *const *names, uint64_t seed)
{
	unsigned n = 0;

	for (unsigned t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct attack *k = tables[t]; k->name; k++) {
			if (!chosen(k->name, names) || (tables[t] == attacks_open && !*names))
				continue;
			/* the same, whichever others run */
			a->random = (struct random){
				seed * 1000003 + t * 100 + (uint64_t)(k - tables[t]) + 1};
			a->root = keeps_root(tables[t]);
			a->starves = tables[t] == attacks_root;
			run(k, a, p);
			n++;
		}
	must(n, "there is no such attack: --list names them");
}

static void list(void)
{
	for (unsigned t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct attack *k = tables[t]; k->name; k++)
			puts(k->name);
}

static uint64_t setting(const char *variable, uint64_t otherwise)
{
	const char *v = getenv(variable);

	return v ? strtoull(v, NULL, 0) : otherwise;
}

static void end_victims(void)
{
	atomic_store(&victim->stop, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(children); i++) {
		int status = 0;

		waitpid(children[i], &status, 0);
		must(!status, "a victim failed at its end");
	}
}

static void make_victim(struct random r)
{
	victim = mmap(
		NULL, sizeof(*victim), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(victim != MAP_FAILED, "no memory");
	random_fill(&r, victim->secret, SECRET_LEN);
}

int main(int argc, char **argv)
{
	uint64_t seed = setting("HOSTILE_SEED", (uint64_t)time(NULL) ^ (uint64_t)getpid() << 20);
	struct arena a = {.effort = (unsigned)setting("HOSTILE_EFFORT", 1)};
	struct proc p;
	int i = 2;

	if (argc < 2)
		errx(2, "use: hostile SOCKET [--list] [--seed N] [--effort N] [ATTACK...]");
	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--list"))
			return list(), 0;
		if (i + 1 < argc && !strcmp(argv[i], "--seed"))
			seed = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && !strcmp(argv[i], "--effort"))
			a.effort = (unsigned)strtoul(argv[++i], NULL, 0);
		else
			errx(2, "unknown option %s", argv[i]);
	}
	printf("seed %llu, effort %u\n", (unsigned long long)seed, a.effort);
	fflush(stdout);
	make_victim((struct random){seed | 1});
	proc_open(&p, argv[1]);
	a.socket = argv[1];
	a.victim = victim;
	a.rocid = p.pid;
	children[0] = start(victim_data, a.socket);
	children[1] = start(victim_commands, a.socket);
	children[2] = start(victim_events, a.socket);
	while (atomic_load(&victim->ready) < ARRAY_SIZE(children)) {
		check_victims(&p);
		pause_ms(10);
	}
	run_all(&a, &p, argv + i, seed);
	end_victims();
	return 0;
}
