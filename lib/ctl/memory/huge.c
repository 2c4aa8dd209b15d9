/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "memory/huge.h"

/* linux/mman.h of Linux 5.14 and later. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct huge {
	pthread_mutex_t lock;
	pthread_cond_t work;	  /* a job is queued, or `stop` is set */
	pthread_cond_t rest;	  /* the thread has returned its job */
	struct list queue, ended; /* struct huge_job */
	struct huge_job *current; /* the thread is touching a page of it; on no list */
	uid_t last;		  /* user of the last turn */
	pthread_t thread;
	bool running;
	bool stop;
	int uffd;
	int event;
};

/* --- the thread ----------------------------------------------------------------------- */

/* Makes every access to a missing page fault. */
static int hold(const struct huge *h, const struct huge_job *job)
{
	struct uffdio_register r = {
		.range = {.start = (uintptr_t)job->base, .len = job->size},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (job->whole)
		return 0;
	return ioctl(h->uffd, UFFDIO_REGISTER, &r) ? -errno : 0;
}

/* Maps existing pages; holes remain holes. */
static void warm(struct huge_job *job)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t left = job->size - job->done, len = left < job->page ? left : job->page;
	uint8_t *at = job->base + job->done;
	unsigned char there[WARM_STEP / 4096];
	size_t n = len / page;

	if (!mincore(at, len, there))
		for (size_t i = 0, end; i < n; i = end + 1) {
			for (end = i; end < n && there[end] & 1; end++)
				;
			if (end > i)
				madvise(at + i * page, (end - i) * page,
					job->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
		}
	job->done += len;
}

/* Populates only one page, because the kernel meanwhile holds the mapping's lock, for which workers
 * may wait. */
static void step(const struct huge *h, struct huge_job *job)
{
	int advice = job->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (job->warm) {
		warm(job);
		return;
	}
	if (!madvise(job->base + job->done, job->page, advice))
		job->done += job->page;
	else
		job->err = errno == EINVAL ? -ENOSYS : -ENOMEM;
	if (!job->err && job->done == job->size)
		job->err = hold(h, job);
}

/* @return the first job whose user did not have the last turn, or else the first. */
static struct huge_job *choose(struct huge *h)
{
	struct list *l = h->queue.next;
	struct huge_job *job;

	for (; l != &h->queue; l = l->next)
		if (container_of(l, struct huge_job, node)->uid != h->last)
			break;
	if (l == &h->queue)
		l = h->queue.next;
	list_del(l);
	job = container_of(l, struct huge_job, node);
	h->last = job->uid;
	return job;
}

static void put_back(struct huge *h, struct huge_job *job)
{
	uint64_t one = 1;

	if (!job->err && job->done < job->size) {
		list_push(&h->queue, &job->node);
		return;
	}
	list_push(&h->ended, &job->node);
	if (write(h->event, &one, sizeof(one)) < 0) { /* already readable */
	}
}

static void *work(void *arg)
{
	struct huge *h = arg;

	pthread_setname_np(pthread_self(), "roci-huge");
	pthread_mutex_lock(&h->lock);
	while (!h->stop) {
		if (list_empty(&h->queue)) {
			pthread_cond_wait(&h->work, &h->lock);
			continue;
		}
		h->current = choose(h);
		pthread_mutex_unlock(&h->lock);
		step(h, h->current);
		pthread_mutex_lock(&h->lock);
		put_back(h, h->current);
		h->current = NULL;
		pthread_cond_signal(&h->rest);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* --- the control thread --------------------------------------------------------------- */

/* Handles only faults in user mode, which needs no privilege (Linux 5.11). */
static int open_uffd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_HUGETLBFS |
			    UFFD_FEATURE_MISSING_SHMEM,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -1;
	}
	return fd;
}

struct huge *huge_create(int event)
{
	struct huge *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->work, NULL);
	pthread_cond_init(&h->rest, NULL);
	list_init(&h->queue);
	list_init(&h->ended);
	h->uffd = open_uffd();
	h->event = event;
	return h;
}

void huge_destroy(struct huge *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_signal(&h->work);
	pthread_mutex_unlock(&h->lock);
	if (h->running)
		pthread_join(h->thread, NULL);
	if (h->uffd >= 0)
		close(h->uffd);
	pthread_cond_destroy(&h->work);
	pthread_cond_destroy(&h->rest);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Called for the first job: most daemons never have one. */
static int start_thread(struct huge *h)
{
	sigset_t all, old;
	int err;

	if (h->running)
		return 0;
	sigfillset(&all); /* another thread waits for signals */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&h->thread, NULL, work, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	h->running = !err;
	return -err;
}

int huge_start(struct huge *h, struct huge_job *job)
{
	int err = h->uffd < 0 && !job->warm ? -ENOSYS : start_thread(h);

	if (err)
		return err;
	job->done = 0;
	job->err = 0;
	pthread_mutex_lock(&h->lock);
	list_push(&h->queue, &job->node);
	pthread_cond_signal(&h->work);
	pthread_mutex_unlock(&h->lock);
	return 0;
}

void huge_cancel(struct huge *h, struct huge_job *job)
{
	pthread_mutex_lock(&h->lock);
	while (h->current == job)
		pthread_cond_wait(&h->rest, &h->lock);
	list_del(&job->node);
	pthread_mutex_unlock(&h->lock);
}

struct huge_job *huge_take(struct huge *h)
{
	struct list *l;
	uint64_t count;

	if (read(h->event, &count, sizeof(count)) < 0) { /* nothing new; older jobs may remain */
	}
	pthread_mutex_lock(&h->lock);
	l = list_pop(&h->ended);
	pthread_mutex_unlock(&h->lock);
	return l ? container_of(l, struct huge_job, node) : NULL;
}
