/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child created by fork() has a copy of memory that its parent registered, but no session: if it
 * kept the sockets, the parent's session would outlive the parent.
 */
#include <unistd.h>
#include "arena.h"
#include "client.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *first; /* of all contexts; guarded by lock */

void context_list(struct context *ctx)
{
	pthread_mutex_lock(&lock);
	ctx->prev = NULL;
	ctx->next = first;
	if (first)
		first->prev = ctx;
	first = ctx;
	pthread_mutex_unlock(&lock);
}

void context_unlist(struct context *ctx)
{
	pthread_mutex_lock(&lock);
	if (ctx->prev)
		ctx->prev->next = ctx->next;
	else if (first == ctx)
		first = ctx->next;
	if (ctx->next)
		ctx->next->prev = ctx->prev;
	pthread_mutex_unlock(&lock);
}

static void close_it(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void prepare(void)
{
	pthread_mutex_lock(&lock);
	arena_fork_prepare();
}

static void parent(void)
{
	arena_fork_parent();
	pthread_mutex_unlock(&lock);
}

static void child(void)
{
	arena_fork_child(); /* first: from here on, memory is our own */
	for (struct context *c = first; c; c = c->next) {
		atomic_store(&c->dead, true);
		close_it(&c->pub.cmd_fd);
		close_it(&c->pub.async_fd);
		for (uint32_t i = 0; c->wake && i < c->workers; i++)
			close_it(&c->wake[i]);
		pthread_mutex_init(&c->call_lock, NULL); /* another thread may have held it */
		pthread_mutex_init(&c->lock, NULL);
	}
	pthread_mutex_init(&lock, NULL);
}

/* As early as possible: handlers of others must not write to shared memory in the child. */
__attribute__((constructor)) static void on_load(void)
{
	pthread_atfork(prepare, parent, child);
}
