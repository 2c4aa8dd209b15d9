/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_bench [TIMES]: two ranks. Prints what a ping-pong, one way, and an allreduce of doubles take
 * for each size, in us: "pingpong 8 4.2". It is the median of batches, in which one rank cannot
 * have the other's lead. TIMES: how often 8 bytes are sent.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_BYTES (4 << 20)
#define BATCH	       10
#define BATCHES_MIN    5

struct bench {
	int rank, times;
	char *out, *in;
	double *took;
};

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Batches in proportion to what is left of them when the bytes take their time. */
static int batches_of(const struct bench *b, int size)
{
	int batches = (int)(b->times / BATCH / (1 + size / 4096.0));

	return batches < BATCHES_MIN ? BATCHES_MIN : batches;
}

static void pingpong(const struct bench *b, int size)
{
	int other = !b->rank;

	if (b->rank)
		MPI_Recv(b->in, size, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Send(b->out, size, MPI_BYTE, other, 0, MPI_COMM_WORLD);
	if (!b->rank)
		MPI_Recv(b->in, size, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void allreduce(const struct bench *b, int size)
{
	MPI_Allreduce(
		b->out, b->in, size / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void measure(const struct bench *b, const char *name, int size, double share,
	void (*step)(const struct bench *b, int size))
{
	int batches = batches_of(b, size);

	for (int i = 0; i < batches; i++) /* to warm up */
		step(b, size);
	for (int i = 0; i < batches; i++) {
		double begin = MPI_Wtime();

		for (int k = 0; k < BATCH; k++)
			step(b, size);
		b->took[i] = (MPI_Wtime() - begin) / BATCH;
	}
	qsort(b->took, (size_t)batches, sizeof(*b->took), ascending);
	if (!b->rank)
		printf("%s %d %.3f\n", name, size, b->took[batches / 2] * 1e6 * share);
}

int main(int argc, char *argv[])
{
	static const int sizes[] = {8, 64, 1024, 4096, 65536, 1 << 20, SIZE_MAX_BYTES};
	struct bench b = {.times = argc > 1 ? atoi(argv[1]) : 2000};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	if (b.times < BATCH * BATCHES_MIN)
		b.times = BATCH * BATCHES_MIN;
	b.out = calloc(1, SIZE_MAX_BYTES);
	b.in = calloc(1, SIZE_MAX_BYTES);
	b.took = calloc((size_t)b.times, sizeof(*b.took));
	if (!b.out || !b.in || !b.took)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(b.out, 0, SIZE_MAX_BYTES);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		measure(&b, "pingpong", sizes[i], 0.5, pingpong);
		measure(&b, "allreduce", sizes[i], 1, allreduce);
	}
	MPI_Finalize();
	free(b.out);
	free(b.in);
	free(b.took);
	return 0;
}
