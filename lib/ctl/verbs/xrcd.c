/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC domains. A domain opened with a descriptor belongs to the file: another program that opens
 * the same file gets the same domain, as in verbs. A domain exists until the last program has
 * closed it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "loop/reaper.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/command.h"
#include "verbs/objects.h"
#include "verbs/xrcd.h"

/* Uses only what the kernel has cached: a file system of the application must not make rocid wait.
 * Only files and directories have a unique number; a descriptor of anything else, such as the
 * session's own socket, must not be kept, because a peer may wait until its last copy is closed.
 *
 * The descriptor proves that its sender could open the file, in any mode. An O_PATH descriptor
 * proves nothing, because the file's permissions do not apply to it: ib_uverbs_open_xrcd() refuses
 * it, too. */
static int identify(int fd, struct xrcd *id)
{
	struct statx st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_PATH))
		return -EBADF;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, &st))
		return -errno;
	if (!S_ISREG(st.stx_mode) && !S_ISDIR(st.stx_mode))
		return -EINVAL;
	id->major = st.stx_dev_major;
	id->minor = st.stx_dev_minor;
	id->inode = st.stx_ino;
	return 0;
}

static struct xrcd *find(const struct ctl *ctl, const struct xrcd *id)
{
	struct xrcd *x;

	for (uint32_t i = 0; (x = handle_next(&ctl->objects->xrcds, &i));)
		if (x->fd >= 0 && x->inode == id->inode && x->major == id->major &&
			x->minor == id->minor)
			return x;
	return NULL;
}

/* The domain, and the file that it keeps open. */
static const struct charge domain_charge[] = {{CTL_XRCDS, 1}, {CTL_DESCRIPTORS, 1}};

static bool has_reference(const struct xrcd *x, const struct session *s)
{
	for (struct list *l = x->refs.next; l != &x->refs; l = l->next)
		if (container_of(l, struct xrcd_ref, node)->session == s)
			return true;
	return false;
}

/* @p s has dropped a reference; if it was its last one and it is the payer, another session pays
 * from now on. */
static void put(struct session *s, struct xrcd *x)
{
	struct ctl *ctl = s->ctl;

	if (!list_empty(&x->refs)) {
		struct session *next = container_of(x->refs.next, struct xrcd_ref, node)->session;

		if (x->payer != s || has_reference(x, s))
			return;
		quota_pass(s, next, domain_charge, ARRAY_SIZE(domain_charge));
		x->payer = next;
		return;
	}
	quota_give(s, domain_charge, ARRAY_SIZE(domain_charge));
	handle_del(&ctl->objects->xrcds, x->number);
	if (x->fd >= 0)
		reap_fd(ctl->sessions->closer, owner_passed(x->uid), x->fd);
	free(x);
}

/* A new domain; it keeps @p fd open so that no other file gets its inode number meanwhile. */
static struct xrcd *make(struct session *s, const struct xrcd *id, int fd, struct reply *r)
{
	struct xrcd *x = calloc(1, sizeof(*x));
	struct ctl *ctl = s->ctl;

	if (x) {
		*x = *id;
		x->uid = s->peer.uid;
		list_init(&x->refs);
		x->payer = s;
		x->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	if (!x || (fd >= 0 && x->fd < 0) || handle_add(&ctl->objects->xrcds, x, &x->number)) {
		if (x && x->fd >= 0)
			reap_fd(ctl->sessions->closer, owner_passed(x->uid), x->fd);
		free(x);
		refuse(r->why, 0, "no room for another XRC domain: close some, or share one");
		return NULL;
	}
	return x;
}

/* The domain of the passed descriptor, or a new private one.  Returns 0 or a negative errno with a
 * sentence. */
static int choose(struct session *s, const struct abi_open_xrcd *in, int fd, struct xrcd **out,
	struct reply *r)
{
	struct xrcd id = {0};
	int err = fd >= 0 ? identify(fd, &id) : 0;

	if (err == -EBADF)
		return refuse(r->why, err,
			"an XRC domain is for programs that can open its file: open it without "
			"O_PATH");
	if (err == -EINVAL)
		return refuse(r->why, err,
			"an XRC domain is identified by a file or a directory: open one and send "
			"its descriptor");
	if (err)
		return refuse(r->why, err, "the XRC domain's file cannot be examined: %s",
			strerror(-err));
	*out = fd >= 0 ? find(s->ctl, &id) : NULL;
	if (*out && (in->flags & ABI_XRCD_CREATE) && (in->flags & ABI_XRCD_EXCL))
		return refuse(r->why, -EEXIST,
			"the file already has an XRC domain: open it without O_EXCL");
	if (!*out && !(in->flags & ABI_XRCD_CREATE))
		return refuse(r->why, fd >= 0 ? -ENOENT : -EINVAL,
			"there is no such XRC domain: create it with O_CREAT");
	if (*out)
		return 0;
	err = quota_take(s, domain_charge, ARRAY_SIZE(domain_charge), r->why);
	if (err)
		return err;
	*out = make(s, &id, fd, r);
	if (*out)
		return 0;
	quota_give(s, domain_charge, ARRAY_SIZE(domain_charge));
	return -ENOSPC;
}

int cmd_open_xrcd(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_handle_reply out;
	struct abi_open_xrcd in;
	struct xrcd_ref *ref;
	struct xrcd *x;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (in.flags & ~(ABI_XRCD_CREATE | ABI_XRCD_EXCL))
		return refuse(
			r->why, -EINVAL, "an XRC domain accepts only the flags O_CREAT and O_EXCL");
	ref = calloc(1, sizeof(*ref));
	if (!ref)
		return refuse_memory(r->why);
	err = choose(s, &in, q->fd, &x, r);
	if (!err) {
		ref->xrcd = x;
		ref->session = s;
		err = handle_add(&s->xrcds, ref, &ref->handle);
		if (!err) {
			list_push(&x->refs, &ref->node);
		} else {
			put(s, x);
			refuse(r->why, err, "no room for another XRC domain: close some");
		}
	}
	if (err) {
		free(ref);
		return err;
	}
	out.handle = ref->handle;
	reply_body(r, &out, sizeof(out));
	return 0;
}

void xrcd_release(struct xrcd_ref *ref)
{
	struct session *s = ref->session;

	handle_del(&s->xrcds, ref->handle);
	list_del(&ref->node);
	put(s, ref->xrcd);
	free(ref);
}

int cmd_close_xrcd(struct session *s, const struct request *q, struct reply *r)
{
	struct xrcd_ref *ref = object_of(q, &s->xrcds, "XRC domain", r);

	if (!ref)
		return -EINVAL;
	if (ref->users)
		return refuse(r->why, -EBUSY,
			"%u SRQs and QPs still use the XRC domain: destroy them first", ref->users);
	xrcd_release(ref);
	return 0;
}
