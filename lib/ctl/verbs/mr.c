/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "refuse.h"
#include "session/failures.h"
#include "memory/arena.h"
#include "memory/huge.h"
#include "session/ids.h"
#include "session/mapping.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/command.h"
#include "verbs/mr_obj.h"
#include "verbs/objects.h"
#include "worker.h"

int cmd_alloc_pd(struct session *s, const struct request *q, struct reply *r)
{
	int err = quota_take_one(s, CTL_PDS, r->why);
	struct abi_handle_reply out;
	struct pd *pd;

	if (err)
		return err;
	pd = calloc(1, sizeof(*pd));
	err = pd ? handle_add(&s->ctl->objects->pds, pd, &pd->number) : -ENOMEM;
	if (!err) {
		err = handle_add(&s->pds, pd, &pd->handle);
		if (err)
			handle_del(&s->ctl->objects->pds, pd->number);
	}
	if (err) {
		free(pd);
		quota_give_one(s, CTL_PDS);
		return refuse(r->why, err, "no room for another protection domain: %s",
			err == -ENOMEM ? "rocid is out of memory" : "free some, or share them");
	}
	out.handle = pd->handle;
	reply_body(r, &out, sizeof(out));
	return 0;
}

void pd_release(struct session *s, struct pd *pd)
{
	handle_del(&s->pds, pd->handle);
	handle_del(&s->ctl->objects->pds, pd->number);
	quota_give_one(s, CTL_PDS);
	free(pd);
}

int cmd_dealloc_pd(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_handle in;
	struct pd *pd;

	memcpy(&in, q->body, sizeof(in));
	pd = handle_get(&s->pds, in.handle);
	if (!pd)
		return refuse(r->why, -EINVAL, "there is no protection domain %u", in.handle);
	if (pd->users)
		return refuse(r->why, -EBUSY,
			"%u objects still use the protection domain: destroy its memory regions, "
			"windows, SRQs, address handles and QPs first",
			pd->users);
	pd_release(s, pd);
	return 0;
}

void mr_unpublish(struct mr_obj *o)
{
	mr_withdraw(o->session->ctl->dp->mrs, &o->mr); /* a faulted region is withdrawn already */
	if (o->mapping)
		mapping_remove(o->mapping, &o->mr);
}

static void stop_warming(struct mr_obj *o)
{
	if (o->warming)
		huge_cancel(o->session->ctl->objects->huge, &o->job);
	o->warming = false;
}

/* Also for regions that were never published. Those on the mapping's list have been removed. */
static void drop(struct mr_obj *o)
{
	struct session *s = o->session;

	o->pd->users--;
	quota_give_one(s, CTL_KEYS);
	if (o->mapping)
		mapping_put(o->mapping, o->charged);
	free(o);
}

void mr_release(struct mr_obj *o)
{
	struct session *s = o->session;

	failures_mr_gone(s->ctl->failures, &(struct gone_mr){.key = o->mr.key,
						   .pd = o->mr.pd,
						   .iova = o->mr.iova,
						   .length = o->mr.length,
						   .session = s->number});
	handle_del(&s->mrs, o->handle);
	stop_warming(o);
	drop(o);
}

static int check_reg(const struct abi_reg_mr *in, const struct request *q, struct reply *r)
{
	if (!mr_access_valid(in->access)) /* MR-02 */
		return refuse(r->why, -EINVAL,
			"access 0x%x is invalid: remote write and remote atomic need local write, "
			"and only the flags in doc/abi.md exist",
			in->access);
	if (in->access & ABI_ACCESS_FLUSH_PERSIST)
		return refuse(r->why, -EOPNOTSUPP,
			"a memfd does not survive a power failure, so nothing can be flushed to "
			"persistence: register it without FLUSH_PERSISTENT; FLUSH_GLOBAL makes "
			"writes visible");
	if (in->length > UINT64_MAX - in->iova) /* MR-07 */
		return refuse(r->why, -EINVAL,
			"the region would wrap around the end of the address space: use a lower "
			"iova");
	if (q->fd < 0)
		return refuse(r->why, -EINVAL,
			"reg_mr came without a descriptor: send the memfd with it (SCM_RIGHTS)");
	return 0;
}

/* Lets workers find @p o, which has its key. */
static void show_mr(struct mr_obj *o)
{
	struct mr_table *mrs = o->session->ctl->dp->mrs;

	if (o->mapping)
		mapping_add(o->mapping, &o->mr);
	atomic_store_explicit(&mrs->slot[o->mr.key >> 8], &o->mr, memory_order_release);
	/* A handler that ran before @p o was on the list could not withdraw it: do so now. */
	if (o->mapping && mapping_faulted(o->mapping))
		mr_withdraw(mrs, &o->mr);
}

/* Publishes @p o, whose memory is mapped and ready for workers. */
static int publish_mr(struct mr_obj *o, struct reply *r)
{
	struct session *s = o->session;
	struct ctl *ctl = s->ctl;
	struct abi_reg_mr_reply out;
	int err;

	err = key_choose(&ctl->objects->keys, ctl->dp->mrs, &o->mr.key);
	if (!err)
		err = handle_add(&s->mrs, o, &o->handle);
	if (err)
		return refuse(r->why, err,
			"no room for another memory region: deregister some, or register larger "
			"ones");
	show_mr(o);
	out = (struct abi_reg_mr_reply){.handle = o->handle, .lkey = o->mr.key, .rkey = o->mr.key};
	reply_body(r, &out, sizeof(out));
	return 0;
}

/* --- huge pages ----------------------------------------------------------------------- */

static int why_not_populated(int err, char why[ABI_SENTENCE_MAX])
{
	if (err == -ENOMEM)
		return refuse(why, err,
			"there are not enough huge pages for all of the region: reserve more "
			"(vm.nr_hugepages), or register ordinary memory");
	return refuse(why, err,
		"rocid cannot manage huge pages here (%s): let it use userfaultfd(2) "
		"(Linux 5.14, seccomp), or register ordinary memory",
		strerror(-err));
}

/* The pages of @p o, for its job. */
static void set_pages(struct mr_obj *o)
{
	uintptr_t page = o->mapping->map.page;
	uintptr_t first = (uintptr_t)o->mr.base & ~(page - 1);
	uintptr_t end = ((uintptr_t)o->mr.base + o->mr.length + page - 1) & ~(page - 1);

	o->job.base = (uint8_t *)first;
	o->job.size = end - first;
}

/* Returns DEFERRED, or a negative errno. */
static int populate(struct mr_obj *o, const struct request *q, char why[ABI_SENTENCE_MAX])
{
	struct session *s = o->session;
	int err;

	if (s->populating)
		return refuse(why, -EBUSY,
			"another region in huge pages is being registered: wait for the reply");
	o->request = q->msg;
	o->job = (struct huge_job){
		.page = o->mapping->map.page,
		.uid = s->peer.uid,
		.writable = o->mr.access & ABI_ACCESS_LOCAL_WRITE,
		.whole = o->mapping->map.whole,
	};
	set_pages(o);
	err = huge_start(s->ctl->objects->huge, &o->job);
	if (err)
		return why_not_populated(err, why);
	s->populating = o;
	return DEFERRED;
}

/* So that workers do not take the first fault of each page. */
static void warm(struct mr_obj *o)
{
	if (o->mr.length < WARM_LEAST || shm_is_huge(&o->mapping->map))
		return;
	o->job = (struct huge_job){
		.page = WARM_STEP,
		.uid = o->session->peer.uid,
		.writable = o->mr.access & ABI_ACCESS_LOCAL_WRITE,
		.warm = true,
	};
	set_pages(o);
	o->warming = !huge_start(o->session->ctl->objects->huge, &o->job);
}

static void populated(struct mr_obj *o)
{
	struct session *s = o->session;
	struct reply r = {0};
	int err = o->job.err;

	s->populating = NULL;
	err = err ? why_not_populated(err, r.why) : publish_mr(o, &r);
	session_reply(s, &o->request, err, &r);
	if (err)
		drop(o);
}

void mrs_populated(struct watch *w)
{
	struct objects *all = container_of(w, struct objects, populated);
	struct huge_job *job;

	while ((job = huge_take(all->huge))) {
		struct mr_obj *o = container_of(job, struct mr_obj, job);

		if (o->warming)
			o->warming = false;
		else
			populated(o);
	}
}

void mr_give_up(struct session *s)
{
	if (!s->populating)
		return;
	huge_cancel(s->ctl->objects->huge, &s->populating->job);
	drop(s->populating);
	s->populating = NULL;
}

/* --- commands ------------------------------------------------------------------------- */

/* Otherwise peers could fill a file that exceeds the limit of registered memory piece by piece,
 * each registered in turn, and rocid would be charged for its pages. */
static int check_file(const struct session *s, const struct mapping_extent *e, struct reply *r)
{
	uint32_t most = quota_most(s, CTL_MEMORY);

	if (most == UINT32_MAX || e->file >> 20 <= most)
		return 0;
	return refuse(r->why, -EDQUOT,
		"the memfd has %llu MB, but the application may register at most %u MB: make it "
		"smaller, or raise rocid's --max-memory and --max-user-memory",
		(unsigned long long)(e->file >> 20), most);
}

/* Reads the pieces of the region, at offset @p at of the body.  @return 0 or a negative errno with
 * a sentence. */
static int read_pieces(const struct abi_reg_mr *in, const struct request *q, size_t at,
	struct mapping_spec *spec, struct abi_piece piece[ABI_PIECES_MAX], struct reply *r)
{
	*spec = (struct mapping_spec){
		.fd = q->fd,
		.writable = in->access & ABI_ACCESS_LOCAL_WRITE,
		.piece = piece,
		.npieces = in->npieces ? in->npieces : 1,
		.length = in->length,
	};
	if (!in->npieces) {
		piece[0] = (struct abi_piece){in->fd_off, in->length};
		return 0;
	}
	if (in->npieces > ABI_PIECES_MAX || at + in->npieces * sizeof(piece[0]) > q->body_len)
		return refuse(r->why, -EINVAL,
			"reg_mr announces %u pieces, but its body has fewer: see doc/abi.md",
			in->npieces);
	memcpy(piece, q->body + at, in->npieces * sizeof(piece[0]));
	return 0;
}

/* Makes the object of @p in. */
static struct mr_obj *make_mr(struct session *s, struct pd *pd, const struct abi_reg_mr *in)
{
	struct mr_obj *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->session = s;
	o->pd = pd;
	o->mr.pd = pd->number;
	o->mr.session = s->number;
	o->mr.access = in->access;
	o->mr.iova = in->iova;
	o->mr.length = in->length;
	pd->users++;
	return o;
}

/* Checks, charges and maps the memory of @p o. */
static int map_mr(struct mr_obj *o, const struct abi_reg_mr *in, const struct request *q, size_t at,
	struct reply *r)
{
	struct abi_piece piece[ABI_PIECES_MAX];
	struct session *s = o->session;
	struct mapping_extent e;
	struct mapping_spec spec;
	struct charge c[2];
	int err = read_pieces(in, q, at, &spec, piece, r);

	if (!err)
		err = mapping_check(&spec, &e, r->why);
	if (!err)
		err = check_file(s, &e, r);
	if (err)
		return err;
	c[0] = (struct charge){CTL_KEYS, 1};
	c[1] = (struct charge){CTL_MEMORY, e.mapped};
	err = quota_take(s, c, ARRAY_SIZE(c), r->why);
	if (err || !in->length) /* never accessed: every range check refuses a byte */
		return err;
	o->charged = e.mapped;
	err = mapping_get(s, &spec, &o->mapping, &o->mr.base, r->why);
	if (err)
		quota_give(s, c, ARRAY_SIZE(c));
	return err;
}

static void note_writers(struct session *s, const struct abi_reg_mr *in)
{
	if (in->writers > s->writers && in->writers <= ABI_WRITERS_SIGNALS)
		s->writers = in->writers;
}

int cmd_reg_mr(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_reg_mr in;
	struct mr_obj *o;
	struct pd *pd;
	int err;

	memcpy(&in, q->body, sizeof(in));
	pd = handle_get(&s->pds, in.pd);
	if (!pd)
		return refuse(r->why, -EINVAL, "there is no protection domain %u", in.pd);
	err = check_reg(&in, q, r);
	if (err)
		return err;
	o = make_mr(s, pd, &in);
	if (!o)
		return refuse_memory(r->why);
	err = map_mr(o, &in, q, sizeof(in), r);
	if (err) {
		pd->users--;
		free(o);
		return err;
	}
	note_writers(s, &in);
	err = o->mapping && shm_is_huge(&o->mapping->map) ? populate(o, q, r->why)
							  : publish_mr(o, r);
	if (err < 0)
		drop(o);
	else if (!err)
		warm(o);
	return err;
}

/* Exchanges the contents of @p o, which no worker finds now, and of @p with. */
static void exchange(struct mr_obj *o, struct mr_obj *with)
{
	struct mr_obj was = *o;

	o->mapping = with->mapping;
	o->charged = with->charged;
	o->pd = with->pd;
	o->mr.pd = with->mr.pd;
	o->mr.access = with->mr.access;
	o->mr.iova = with->mr.iova;
	o->mr.length = with->mr.length;
	o->mr.base = with->mr.base;
	with->mapping = was.mapping;
	with->charged = was.charged;
	with->pd = was.pd;
}

int cmd_rereg_mr(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_reg_mr_reply out;
	struct abi_rereg_mr in;
	struct mr_obj *o, *n;
	struct pd *pd;
	int err;

	memcpy(&in, q->body, sizeof(in));
	o = handle_get(&s->mrs, in.handle);
	if (!o)
		return refuse(r->why, -EINVAL, "there is no memory region %u", in.handle);
	pd = handle_get(&s->pds, in.reg.pd);
	if (!pd)
		return refuse(r->why, -EINVAL, "there is no protection domain %u", in.reg.pd);
	err = check_reg(&in.reg, q, r);
	if (err)
		return err;
	n = make_mr(s, pd, &in.reg);
	if (!n)
		return refuse_memory(r->why);
	err = map_mr(n, &in.reg, q, sizeof(in), r);
	if (err) {
		pd->users--;
		free(n);
		return err;
	}
	if (n->mapping && shm_is_huge(&n->mapping->map))
		err = refuse(r->why, -EOPNOTSUPP,
			"a region cannot be changed to one in huge pages, which takes time: "
			"register a new one");
	else if (!mr_close(&o->mr)) /* MR-05 */
		err = refuse(r->why, -EBUSY,
			"%u memory windows are bound to the region: invalidate, unbind or free "
			"them first",
			o->mr.windows);
	if (!err) {
		mr_unpublish(o);
		worker_grace(s->ctl->dp);
		stop_warming(o);
		exchange(o, n);
		atomic_store(&o->mr.windows, 0);
		show_mr(o);
		warm(o);
		note_writers(s, &in.reg);
		out = (struct abi_reg_mr_reply){o->handle, o->mr.key, o->mr.key};
		reply_body(r, &out, sizeof(out));
	}
	drop(n); /* or its former contents */
	return err;
}

int cmd_dereg_mr(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_handle in;
	struct mr_obj *o;

	memcpy(&in, q->body, sizeof(in));
	o = handle_get(&s->mrs, in.handle);
	if (!o)
		return refuse(r->why, -EINVAL, "there is no memory region %u", in.handle);
	if (!mr_close(&o->mr)) /* MR-05 */
		return refuse(r->why, -EBUSY,
			"%u memory windows are bound to the region: invalidate, unbind or free "
			"them first",
			o->mr.windows);
	/* After the grace period no worker writes to the pages, and the application may use them
	 * again (decision 0000.4). */
	mr_unpublish(o);
	worker_grace(s->ctl->dp);
	mr_release(o);
	return 0;
}

/* The SIGBUS handler has withdrawn its regions. */
struct session *mr_faulted(void *mapping)
{
	struct mapping *w = mapping;

	w->session->faulted += !w->counted;
	w->counted = true;
	return w->session->faulted > SESSION_FAULTED_MAX ? w->session : NULL;
}

/* --- any memory ---------------------------------------------------------------------------- */

static int reply_made(struct reply *r, int fd)
{
	if (fd < 0)
		return fd;
	reply_fd(r, fd);
	return 0;
}

int cmd_get_arena(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_get_arena in = {0};

	(void)s;
	if (q->body_len >= sizeof(in))
		memcpy(&in, q->body, sizeof(in));
	return reply_made(r, arena_file(in.page, r->why));
}

int cmd_get_userfaultfd(struct session *s, const struct request *q, struct reply *r)
{
	(void)q;
	if (s->ctl->no_userfaultfd)
		return refuse(r->why, -EOPNOTSUPP,
			"this rocid passes no userfaultfd to programs (--userfaultfd no)");
	return reply_made(r, arena_userfaultfd(r->why));
}
