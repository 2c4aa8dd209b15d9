/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the device, each a CM channel of rocid. The descriptor is the end of a pipe that rocid
 * makes readable while events are pending, so a program can poll it, duplicate it and make it
 * non-blocking. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "bits.h"
#include "ucma.h"
#include "verbs.h"

#define NODE	"/dev/infiniband/rdma_cm"
#define BUCKETS 256u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cancel_state; /* of the thread that holds the lock */

/* A thread that changes the table holds both locks; one that looks up a file holds either. The
 * second is never held during a request to rocid. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list buckets[BUCKETS]; /* of files, by inode */
static unsigned nfiles;
static uint64_t last_serial;
static struct ucma_session *current; /* the session of new files; NULL: none */
static bool ready;

/* Disables cancellation while the lock is held: programs cancel threads that wait for events. */
void ucma_lock(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	cancel_state = state;
}

void ucma_unlock(void)
{
	int state = cancel_state;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
}

/* Files and ids belong to the parent; a child opens its own. */
static void forget(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&table_lock, NULL);
	ready = false;
	nfiles = 0;
	current = NULL;
	ucma_tables_forget();
}

static void get_ready(void)
{
	static bool forks;

	if (ready)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		list_init(&buckets[i]);
	if (!forks)
		forks = !pthread_atfork(NULL, NULL, forget);
	ready = true;
}

struct ucma_file *ucma_file_of(int fd)
{
	struct list *head;
	struct stat st;

	if (!nfiles || fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		return NULL;
	head = &buckets[st.st_ino % BUCKETS];
	for (struct list *l = head->next; l != head; l = l->next) {
		struct ucma_file *f = container_of(l, struct ucma_file, node);

		if (f->ino == st.st_ino && f->dev == st.st_dev)
			return f;
	}
	return NULL;
}

/* --- sessions --------------------------------------------------------------------------------- */

/* Opens a session with the first rocid of ROCI_SOCKET that answers. */
static struct ucma_session *session_new(void)
{
	struct ucma_session *s = calloc(1, sizeof(*s));
	int n, err = ENODEV;
	struct ibv_device **list = s ? ibv_get_device_list(&n) : NULL;

	if (list && n) {
		s->roci = roci_open(((struct device *)list[0])->socket);
		err = s->roci ? 0 : explain("librdmacm", errno);
	}
	if (list)
		ibv_free_device_list(list);
	if (!err)
		return s;
	free(s);
	errno = err;
	return NULL;
}

static void session_put(struct ucma_session *s)
{
	if (--s->users)
		return;
	if (current == s)
		current = NULL;
	roci_close(s->roci);
	free(s);
}

static int channel_open(struct ucma_session *s, uint32_t *channel, int *fd)
{
	struct abi_handle_reply made;
	int err = roci_cm_call(s->roci, ABI_CM_OPEN, NULL, 0, &made, sizeof(made), fd);

	*channel = made.handle;
	return err;
}

/* A session whose rocid has ended is replaced by a new one. */
static int session_channel(struct ucma_session **s, uint32_t *channel, int *fd)
{
	int err = EIO;

	*s = current;
	if (current)
		err = channel_open(current, channel, fd);
	if (err != EIO)
		return explain("librdmacm", err);
	*s = current = session_new();
	if (!current)
		return errno;
	current->users++;
	err = explain("librdmacm", channel_open(current, channel, fd));
	if (err)
		session_put(current);
	else
		current->users--; /* the file adds its own reference */
	return err;
}

/* --- open, close ------------------------------------------------------------------------------ */

static int file_new(void)
{
	struct ucma_file *f = calloc(1, sizeof(*f));
	struct stat st;
	int fd = -1;
	int err;

	if (!f)
		return -1;
	err = session_channel(&f->session, &f->channel, &fd);
	if (!err && fstat(fd, &st)) {
		err = errno;
		close(fd);
	}
	if (err) {
		free(f);
		errno = err;
		return -1;
	}
	f->session->users++;
	f->serial = ++last_serial;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	list_init(&f->ids);
	list_init(&f->groups);
	pthread_mutex_lock(&table_lock);
	list_push(&buckets[f->ino % BUCKETS], &f->node);
	nfiles++;
	pthread_mutex_unlock(&table_lock);
	return fd;
}

static void file_end(struct ucma_file *f)
{
	const struct abi_handle body = {.handle = f->channel};

	while (!list_empty(&f->ids))
		ucma_id_remove(container_of(f->ids.next, struct ucma_id, node));
	roci_cm_call(f->session->roci, ABI_CM_CLOSE, &body, sizeof(body), NULL, 0, NULL);
	session_put(f->session);
	pthread_mutex_lock(&table_lock);
	list_del(&f->node);
	nfiles--;
	pthread_mutex_unlock(&table_lock);
	free(f);
}

/* @return the number of the kernel's device, if this machine has one: librdmacm compares it with
 * what netlink reports. */
static dev_t number(void)
{
	char text[32];
	unsigned major, minor;

	if (ibv_read_sysfs_file("/sys/class/misc/rdma_cm", "dev", text, sizeof(text)) > 0 &&
		sscanf(text, "%u:%u", &major, &minor) == 2)
		return makedev(major, minor);
	return makedev(10, 255);
}

static bool is_device(const char *path)
{
	unsigned major, minor;

	if (!strcmp(path, NODE))
		return true;
	return sscanf(path, "/dev/char/%u:%u", &major, &minor) == 2 &&
	       makedev(major, minor) == number();
}

int ucma_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;
	int fd;

	if (!is_device(path)) {
		va_start(ap, flags);
		if (flags & (O_CREAT | O_TMPFILE))
			mode = va_arg(ap, mode_t);
		va_end(ap);
		return open(path, flags, mode);
	}
	ucma_lock();
	get_ready();
	fd = file_new();
	ucma_unlock();
	if (fd >= 0 && !(flags & O_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	if (fd >= 0 && flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

int ucma_close(int fd)
{
	struct ucma_file *f;

	ucma_lock();
	f = ucma_file_of(fd);
	if (f)
		file_end(f);
	ucma_unlock();
	return close(fd);
}

static bool is_file(int fd)
{
	bool is;

	ucma_lock();
	is = ucma_file_of(fd) != NULL;
	ucma_unlock();
	return is;
}

int ucma_fstat(int fd, struct stat *st)
{
	int err = fstat(fd, st);

	if (!err && S_ISFIFO(st->st_mode) && is_file(fd)) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = number();
	}
	return err;
}

int ucma_fxstat(int version, int fd, struct stat *st)
{
	(void)version; /* of struct stat; 64-bit machines have only one */
	return ucma_fstat(fd, st);
}

/* --- write ------------------------------------------------------------------------------------ */

/* The file as ucma_write() found it; meanwhile it may wait long for another thread's command. */
struct entry {
	uint64_t serial; /* of the file; 0: not one of this device */
	bool waits;	 /* blocks until there is an event */
};

static bool is_get_event(const void *buf, size_t len)
{
	struct rdma_ucm_cmd_hdr h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, buf, sizeof(h));
	return h.cmd == RDMA_USER_CM_CMD_GET_EVENT;
}

static struct entry enter(int fd, const void *buf, size_t len)
{
	struct entry e = {0};
	const struct ucma_file *f;

	pthread_mutex_lock(&table_lock);
	f = ucma_file_of(fd);
	if (f) {
		e.serial = f->serial;
		e.waits = is_get_event(buf, len) && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	}
	pthread_mutex_unlock(&table_lock);
	return e;
}

/* Another thread has closed the file. As in the kernel, a thread that waits for an event keeps
 * waiting, and programs end regardless. One that does not wait just sees no event: its program's
 * other threads may depend on it. */
static int closed(const struct entry *e, const void *buf, size_t len)
{
	if (e->waits) {
		pause();
		return errno;
	}
	return is_get_event(buf, len) ? EAGAIN : EBADF;
}

/* A thread that is cancelled in the first close() would leave the other one. */
static void close_both(void *pair)
{
	const int *fd = pair;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	close(fd[0]);
	close(fd[1]);
	pthread_setcancelstate(cancel, NULL);
}

/* Waits until an event is pending. As in the kernel, a signal ends the wait unless its handler has
 * SA_RESTART: tee() is restarted then, poll() never is. tee() leaves the byte in place and copies
 * it to a pipe that is then thrown away. poll() waits instead if there is no such pipe, tee() is
 * denied, or the file was closed and its number reused.  @return 0, or EINTR */
static int wait_for_event(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int copy[2], err = 0;

	if (!pipe2(copy, O_CLOEXEC)) {
		pthread_cleanup_push(close_both, copy);
		err = tee(fd, copy[1], 1, 0) < 0 ? errno : 0;
		pthread_cleanup_pop(1);
		/* EAGAIN: the program has just made it non-blocking. */
		if (!err || err == EAGAIN || err == EINTR)
			return err == EINTR ? EINTR : 0;
	}
	return poll(&p, 1, -1) < 0 ? errno : 0;
}

ssize_t ucma_write(int fd, const void *buf, size_t len)
{
	const struct entry e = enter(fd, buf, len);
	struct ucma_file *f;
	int err = 0, interrupted = 0;
	bool waits;

	if (!e.serial)
		return write(fd, buf, len);
	do {
		ucma_lock();
		f = ucma_file_of(fd);
		if (f && f->serial != e.serial)
			f = NULL;
		if (f)
			err = ucma_command(f, fd, buf, len);
		waits = f && err == EAGAIN && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
		ucma_unlock();
		if (!f)
			err = closed(&e, buf, len);
		if (waits)
			interrupted = wait_for_event(fd);
	} while (waits && !interrupted);
	if (waits)
		err = interrupted;
	if (!err)
		return (ssize_t)len;
	errno = err;
	return -1;
}
