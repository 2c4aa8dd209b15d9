/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_check [-d RANK] [ROUNDS]: what parallel programs do, with every element checked: the halos
 * of a grid, sums over all ranks, all to all with blocks of different sizes, and one-sided sums,
 * which no rank takes part in but the one that adds. Rank 0 prints a digest of all that was
 * received: it depends on the number of ranks and rounds alone. With -d a rank kills itself with
 * SIGKILL half way, with messages under way.
 */
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HALO_MAX  (1 << 17) /* elements of 8 bytes: messages up to 1 MiB */
#define SUM_MAX	  (1 << 15)
#define BLOCK_MAX (1 << 12)
#define CELLS	  512
#define NEXT	  4 /* neighbours of a rank in a grid of two dimensions */

struct check {
	int rank, ranks;
	MPI_Comm grid;
	int next[NEXT];
	uint64_t digest;
	uint64_t *out[NEXT], *in[NEXT]; /* halos */
	int64_t *mine, *sums;
	uint64_t *blocks, *got;
	MPI_Win window;
	int64_t *cells;
};

/* --- values, and those that differ ------------------------------------------------------------ */

/* The value at @p index of what @p from sends to @p to: splitmix64's finaliser. */
static uint64_t value(int from, int to, int round, uint64_t index)
{
	uint64_t x = ((uint64_t)from << 56) ^ ((uint64_t)to << 48) ^ ((uint64_t)round << 32) ^ index;

	x = (x + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

static void expect(
	struct check *c, const char *part, int round, uint64_t index, uint64_t got, uint64_t want)
{
	c->digest = (c->digest ^ got) * 0x100000001B3;
	if (got == want)
		return;
	fprintf(stderr,
		"mpi_check: rank %d, round %d, %s: element %" PRIu64 " is %" PRIx64 ", not %" PRIx64
		"\n",
		c->rank, round, part, index, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *make(size_t count)
{
	void *p = calloc(count, sizeof(uint64_t));

	if (!p) {
		fputs("mpi_check: no memory\n", stderr);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* --- the parts -------------------------------------------------------------------------------- */

/* Sizes from one element to the largest, eager ones and those that take a rendezvous. */
static int halo_count(int round)
{
	int count = 1 << (round % 18);

	return count + (count < HALO_MAX ? round % 7 : 0);
}

static void halo(struct check *c, int round)
{
	int count = halo_count(round);
	MPI_Request requests[2 * NEXT];

	for (int i = 0; i < NEXT; i++) {
		/* What goes to one side arrives from the opposite one: i ^ 1. */
		MPI_Irecv(c->in[i], count, MPI_UINT64_T, c->next[i], i ^ 1, c->grid, &requests[i]);
	}
	for (int i = 0; i < NEXT; i++) {
		for (int k = 0; k < count; k++)
			c->out[i][k] = value(c->rank, i, round, (uint64_t)k);
		MPI_Isend(c->out[i], count, MPI_UINT64_T, c->next[i], i, c->grid,
			&requests[NEXT + i]);
	}
	MPI_Waitall(2 * NEXT, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < NEXT; i++)
		for (int k = 0; k < count; k++)
			expect(c, "halo", round, (uint64_t)k, c->in[i][k],
				value(c->next[i], i ^ 1, round, (uint64_t)k));
}

static int64_t term(int rank, int round, int index)
{
	return (int64_t)(value(rank, 0, round, (uint64_t)index) >> 16);
}

static void sum(struct check *c, int round)
{
	int count = 1 + (round * 1237) % SUM_MAX;

	for (int k = 0; k < count; k++)
		c->mine[k] = term(c->rank, round, k);
	MPI_Allreduce(c->mine, c->sums, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int k = 0; k < count; k++) {
		int64_t want = 0;

		for (int r = 0; r < c->ranks; r++)
			want += term(r, round, k);
		expect(c, "allreduce", round, (uint64_t)k, (uint64_t)c->sums[k], (uint64_t)want);
	}
}

static int block_count(int from, int to, int round)
{
	return 1 + (from * 389 + to * 617 + round * 211) % BLOCK_MAX;
}

static void all_to_all(struct check *c, int round)
{
	int n = c->ranks;
	int counts[4][n]; /* sent, where; received, where */

	for (int r = 0; r < n; r++) {
		counts[0][r] = block_count(c->rank, r, round);
		counts[2][r] = block_count(r, c->rank, round);
		counts[1][r] = counts[3][r] = r * BLOCK_MAX;
		for (int k = 0; k < counts[0][r]; k++)
			c->blocks[counts[1][r] + k] = value(c->rank, r, round, (uint64_t)k);
	}
	MPI_Alltoallv(c->blocks, counts[0], counts[1], MPI_UINT64_T, c->got, counts[2], counts[3],
		MPI_UINT64_T, MPI_COMM_WORLD);
	for (int r = 0; r < n; r++)
		for (int k = 0; k < counts[2][r]; k++)
			expect(c, "alltoall", round, (uint64_t)k, c->got[counts[3][r] + k],
				value(r, c->rank, round, (uint64_t)k));
}

/* All ranks add to all cells of all ranks at once, under shared locks. */
static void accumulate(struct check *c, int round)
{
	int64_t had, one = 1;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, c->rank, 0, c->window);
	memset(c->cells, 0, CELLS * sizeof(*c->cells));
	MPI_Win_unlock(c->rank, c->window);
	for (int k = 1; k < CELLS; k++)
		c->mine[k] = term(c->rank, round, k) >> 8;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, c->window);
	for (int i = 0; i < c->ranks; i++) {
		int to = (c->rank + i) % c->ranks;

		MPI_Accumulate(c->mine + 1, CELLS - 1, MPI_INT64_T, to, 1, CELLS - 1, MPI_INT64_T,
			MPI_SUM, c->window);
		MPI_Fetch_and_op(&one, &had, MPI_INT64_T, to, 0, MPI_SUM, c->window);
		MPI_Win_flush(to, c->window);
		if (had < 0 || had >= c->ranks)
			expect(c, "fetch and add", round, 0, (uint64_t)had, 0);
	}
	MPI_Win_unlock_all(c->window);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, c->rank, 0, c->window);
	expect(c, "fetch and add", round, 0, (uint64_t)c->cells[0], (uint64_t)c->ranks);
	for (int k = 1; k < CELLS; k++) {
		int64_t want = 0;

		for (int r = 0; r < c->ranks; r++)
			want += term(r, round, k) >> 8;
		expect(c, "accumulate", round, (uint64_t)k, (uint64_t)c->cells[k], (uint64_t)want);
	}
	MPI_Win_unlock(c->rank, c->window);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Kills this rank with the others' messages, and its own, under way. */
static void die(struct check *c)
{
	MPI_Request requests[NEXT];

	for (int i = 0; i < NEXT; i++)
		MPI_Isend(c->out[i], HALO_MAX, MPI_UINT64_T, c->next[i], i, c->grid, &requests[i]);
	raise(SIGKILL);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void begin(struct check *c)
{
	int dims[2] = {0}, periodic[2] = {1, 1};

	MPI_Comm_rank(MPI_COMM_WORLD, &c->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &c->ranks);
	MPI_Dims_create(c->ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &c->grid);
	MPI_Cart_shift(c->grid, 0, 1, &c->next[0], &c->next[1]);
	MPI_Cart_shift(c->grid, 1, 1, &c->next[2], &c->next[3]);
	for (int i = 0; i < NEXT; i++) {
		c->out[i] = make(HALO_MAX);
		c->in[i] = make(HALO_MAX);
	}
	c->mine = make(SUM_MAX);
	c->sums = make(SUM_MAX);
	c->blocks = make((size_t)c->ranks * BLOCK_MAX);
	c->got = make((size_t)c->ranks * BLOCK_MAX);
	MPI_Win_allocate(CELLS * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
		&c->cells, &c->window);
}

static void end(struct check *c)
{
	uint64_t all = 0;

	MPI_Reduce(&c->digest, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
	if (!c->rank)
		printf("mpi_check: %d ranks agree, digest %016" PRIx64 "\n", c->ranks, all);
	MPI_Win_free(&c->window);
	for (int i = 0; i < NEXT; i++) {
		free(c->out[i]);
		free(c->in[i]);
	}
	free(c->mine);
	free(c->sums);
	free(c->blocks);
	free(c->got);
}

int main(int argc, char *argv[])
{
	struct check c = {0};
	int victim = -1, rounds = 20, opt;

	MPI_Init(&argc, &argv);
	while ((opt = getopt(argc, argv, "d:")) != -1) {
		if (opt != 'd') {
			fputs("usage: mpi_check [-d RANK] [ROUNDS]\n", stderr);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		victim = atoi(optarg);
	}
	if (optind < argc)
		rounds = atoi(argv[optind]);
	begin(&c);
	for (int i = 0; i < rounds; i++) {
		if (c.rank == victim && i == rounds / 2)
			die(&c);
		halo(&c, i);
		sum(&c, i);
		all_to_all(&c, i);
		accumulate(&c, i);
	}
	end(&c);
	MPI_Finalize();
	return 0;
}
