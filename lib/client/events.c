/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous events: sockets that carry an object's handle. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client.h"

/* ABI_EVENT_* is 1 + the value in verbs. */
_Static_assert(ROCI_EVENT_CQ_ERR + 1u == ABI_EVENT_CQ_ERR &&
		       ROCI_EVENT_QP_FATAL + 1u == ABI_EVENT_QP_FATAL &&
		       ROCI_EVENT_SQ_DRAINED + 1u == ABI_EVENT_SQ_DRAINED &&
		       ROCI_EVENT_DEVICE_FATAL + 1u == ABI_EVENT_DEVICE_FATAL &&
		       ROCI_EVENT_PORT_ERR + 1u == ABI_EVENT_PORT_ERR &&
		       ROCI_EVENT_SRQ_ERR + 1u == ABI_EVENT_SRQ_ERR &&
		       ROCI_EVENT_SRQ_LIMIT_REACHED + 1u == ABI_EVENT_SRQ_LIMIT_REACHED &&
		       ROCI_EVENT_QP_LAST_WQE_REACHED + 1u == ABI_EVENT_QP_LAST_WQE &&
		       ROCI_EVENT_GID_CHANGE + 1u == ABI_EVENT_GID_CHANGE &&
		       ROCI_EVENT_PKEY_CHANGE + 1u == ABI_EVENT_PKEY_CHANGE,
	"event types");

static int event_error(int err)
{
	if (err == EIO)
		return fail_const(EIO, "rocid is gone: start it again, then open a new session");
	if (err == EAGAIN || err == EINTR)
		return fail_const(err, "no event is pending");
	return fail(err, "cannot receive an event: %s", strerror(err));
}

/* Reads one event.  @return 0 or an errno value; EIO: rocid is gone. */
static int read_event(struct context *ctx, int fd, struct abi_event *ev)
{
	ssize_t n;

	memset(ev, 0, sizeof(*ev));
	n = recv(fd, ev, sizeof(*ev), 0);
	if (n > 0)
		return 0;
	if (n < 0 && errno != ECONNRESET)
		return errno;
	atomic_store(&ctx->dead, true);
	return EIO;
}

/* A cancelled thread would leave the context's lock held. */
void events_wait(struct context *ctx, const struct event_count *e)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (e->acked != e->given && !ctx->abandoned) /* CQ-07, EVT-07 */
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	pthread_setcancelstate(cancel, NULL);
}

static void acknowledge(struct context *ctx, struct event_count *e, uint32_t n)
{
	pthread_mutex_lock(&ctx->lock);
	e->acked += n;
	pthread_cond_broadcast(&ctx->acked);
	pthread_mutex_unlock(&ctx->lock);
}

/* --- completion channels -------------------------------------------------------------- */

struct roci_channel *roci_create_channel(struct roci_context *c)
{
	struct context *ctx = context_of(c);
	struct channel *ch = calloc(1, sizeof(*ch));
	struct abi_handle_reply r;
	int fd;
	int err = ch ? 0
		     : fail_const(ENOMEM, "out of memory for a completion channel: free some "
					  "memory and try again");

	if (!err)
		err = call_for_fd(ctx, ABI_CREATE_CHANNEL, NULL, 0, &r, sizeof(r), &fd);
	if (err) {
		free(ch);
		errno = err;
		return NULL;
	}
	ch->pub = (struct roci_channel){.context = c, .fd = fd};
	ch->handle = r.handle;
	pthread_mutex_lock(&ctx->lock);
	ctx->channels++;
	pthread_mutex_unlock(&ctx->lock);
	return &ch->pub;
}

int roci_destroy_channel(struct roci_channel *channel)
{
	struct channel *ch = (struct channel *)channel;
	struct context *ctx = context_of(channel->context);
	uint32_t users;
	int err;

	pthread_mutex_lock(&ctx->lock);
	users = ch->users;
	pthread_mutex_unlock(&ctx->lock);
	if (users)
		return fail(EBUSY, "%u completion queues still use the channel: destroy them first",
			users);
	err = call_destroy(ctx, ABI_DESTROY_CHANNEL, ch->handle);
	if (err)
		return err;
	pthread_mutex_lock(&ctx->lock);
	ctx->channels--;
	pthread_mutex_unlock(&ctx->lock);
	close(channel->fd);
	free(ch);
	return 0;
}

static bool not_reported(struct map_node *n, void *channel)
{
	struct cq *cq = map_entry(n, struct cq, by_handle);

	return cq->pub.channel == channel && !cq->death_reported;
}

/* Takes an event of the CQ and counts it as returned; NULL: the CQ was destroyed meanwhile. */
static struct cq *take_cq(struct context *ctx, uint32_t handle)
{
	struct map_node *n;
	struct cq *cq = NULL;

	pthread_mutex_lock(&ctx->lock);
	n = map_get(&ctx->cqs, handle);
	if (n) {
		cq = map_entry(n, struct cq, by_handle);
		cq_give_event(cq);
	}
	pthread_mutex_unlock(&ctx->lock);
	return cq;
}

static struct cq *take_unreported_cq(struct context *ctx, struct roci_channel *channel)
{
	struct map_node *n;
	struct cq *cq = NULL;

	pthread_mutex_lock(&ctx->lock);
	n = map_find(&ctx->cqs, not_reported, channel);
	if (n) {
		cq = map_entry(n, struct cq, by_handle);
		cq->death_reported = true;
		cq->events.given++;
	}
	pthread_mutex_unlock(&ctx->lock);
	return cq;
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static bool has_left(struct map_node *n, void *channel)
{
	struct cq *cq = map_entry(n, struct cq, by_handle);

	return cq->pub.channel == channel && atomic_load(&cq->left);
}

/* Returns the event of a CQ that was armed while it held completions, unless these have been taken.
 * Being counted as returned keeps the CQ alive. */
static struct cq *take_left_cq(struct context *ctx, struct roci_channel *channel)
{
	struct cq *cq = NULL;

	/* After events that rocid has sent, which keep the descriptor readable. */
	while (!cq && atomic_load(&((struct channel *)channel)->left) &&
		!is_readable(channel->fd)) {
		struct map_node *n;

		pthread_mutex_lock(&ctx->lock);
		n = map_find(&ctx->cqs, has_left, channel);
		if (n) {
			cq = map_entry(n, struct cq, by_handle);
			cq_give_event(cq);
		}
		pthread_mutex_unlock(&ctx->lock);
		if (!cq)
			break;
		if (!cq_has_completions(cq)) {
			acknowledge(ctx, &cq->events, 1);
			cq = NULL;
		}
	}
	return cq;
}

int roci_get_cq_event(struct roci_channel *channel, struct roci_cq **out, void **user_data)
{
	struct context *ctx = context_of(channel->context);
	struct cq *cq;

	while (!(cq = take_left_cq(ctx, channel))) {
		struct abi_event ev;
		int err = read_event(ctx, channel->fd, &ev);

		if (err == EIO) {
			cq = take_unreported_cq(ctx, channel);
			if (cq)
				break;
		}
		if (err)
			return event_error(err);
		if (ev.type == ABI_EVENT_COMPLETION && (cq = take_cq(ctx, ev.handle)))
			break;
	}
	*out = &cq->pub;
	if (user_data)
		*user_data = cq->pub.user_data;
	return 0;
}

void roci_ack_cq_events(struct roci_cq *cq, unsigned int nevents)
{
	acknowledge(context_of(cq->context), &((struct cq *)cq)->events, nevents);
}

/* --- asynchronous events -------------------------------------------------------------- */

/* Fills in the element and counts the event.  @return false: the object is gone, or unknown
 * type. */
static bool resolve(struct context *ctx, const struct abi_event *ev, struct roci_async_event *out)
{
	struct map_node *n;
	bool ok = true;

	out->event_type = (enum roci_event_type)(ev->type - 1);
	pthread_mutex_lock(&ctx->lock);
	switch (ev->type) {
	case ABI_EVENT_CQ_ERR:
		n = map_get(&ctx->cqs, ev->handle);
		ok = n;
		if (n) {
			struct cq *cq = map_entry(n, struct cq, by_handle);

			cq->events.given++;
			out->element.cq = &cq->pub;
		}
		break;
	case ABI_EVENT_QP_FATAL:
	case ABI_EVENT_QP_REQ_ERR:
	case ABI_EVENT_QP_ACCESS_ERR:
	case ABI_EVENT_COMM_EST:
	case ABI_EVENT_SQ_DRAINED:
	case ABI_EVENT_QP_LAST_WQE:
		n = map_get(&ctx->qps, ev->handle);
		ok = n;
		if (n) {
			struct qp *qp = map_entry(n, struct qp, by_handle);

			qp->events.given++;
			out->element.qp = &qp->pub;
		}
		break;
	case ABI_EVENT_SRQ_ERR: /* EVT-04 */
	case ABI_EVENT_SRQ_LIMIT_REACHED:
		n = map_get(&ctx->srqs, ev->handle);
		ok = n;
		if (n) {
			struct srq *srq = map_entry(n, struct srq, by_handle);

			srq->events.given++;
			out->element.srq = &srq->pub;
		}
		break;
	case ABI_EVENT_PORT_ACTIVE: /* EVT-05 */
	case ABI_EVENT_PORT_ERR:
	case ABI_EVENT_GID_CHANGE:
	case ABI_EVENT_PKEY_CHANGE:
		out->element.port_num = ev->handle;
		break;
	case ABI_EVENT_DEVICE_FATAL:
		break;
	default:
		ok = false;
	}
	pthread_mutex_unlock(&ctx->lock);
	return ok;
}

static bool first_to_report(struct context *ctx)
{
	bool first;

	pthread_mutex_lock(&ctx->lock);
	first = !ctx->death_reported;
	ctx->death_reported = true;
	pthread_mutex_unlock(&ctx->lock);
	return first;
}

int roci_get_async_event(struct roci_context *c, struct roci_async_event *event)
{
	struct context *ctx = context_of(c);
	struct roci_async_event out = {0};
	struct abi_event ev;
	int err;

	/* Checked before an event is taken, which would then be lost. */
	err = opts_write(event, &out, sizeof(out), "roci_async_event");
	if (err)
		return err;
	do {
		err = read_event(ctx, c->async_fd, &ev);
		if (err == EIO && first_to_report(ctx)) {
			err = 0;
			ev.type = ABI_EVENT_DEVICE_FATAL;
		}
		if (err)
			return event_error(err);
	} while (!resolve(ctx, &ev, &out));
	return opts_write(event, &out, sizeof(out), "roci_async_event");
}

void roci_ack_async_event(struct roci_async_event *event)
{
	switch (event->event_type) {
	case ROCI_EVENT_CQ_ERR:
		acknowledge(context_of(event->element.cq->context),
			&((struct cq *)event->element.cq)->events, 1);
		break;
	case ROCI_EVENT_QP_FATAL:
	case ROCI_EVENT_QP_REQ_ERR:
	case ROCI_EVENT_QP_ACCESS_ERR:
	case ROCI_EVENT_COMM_EST:
	case ROCI_EVENT_SQ_DRAINED:
	case ROCI_EVENT_QP_LAST_WQE_REACHED:
		acknowledge(context_of(event->element.qp->context),
			&((struct qp *)event->element.qp)->events, 1);
		break;
	case ROCI_EVENT_SRQ_ERR:
	case ROCI_EVENT_SRQ_LIMIT_REACHED:
		acknowledge(context_of(event->element.srq->context),
			&((struct srq *)event->element.srq)->events, 1);
		break;
	default:
		break; /* ports and the device are never destroyed */
	}
}
