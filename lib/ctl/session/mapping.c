/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "refuse.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/mapping.h"
#include "sigbus.h"
#include "worker.h"

/* --- lookup by file and place ----------------------------------------------------------- */

struct key {
	uint64_t session, ino, first, size;
};

static struct list *bucket(struct sessions *all, const struct mapping *w)
{
	const struct key k = {(uintptr_t)w->session, w->ino, w->first, w->map.size};

	_Static_assert(sizeof(k) == HASH_WORDS * sizeof(uint32_t), "the whole key");
	return &all->mapping[hash_words(&all->mapping_seed, &k, HASH_WORDS) % MAPPING_BUCKETS];
}

void mappings_init(struct sessions *all)
{
	for (uint32_t i = 0; i < MAPPING_BUCKETS; i++)
		list_init(&all->mapping[i]);
	(void)!getrandom(&all->mapping_seed, sizeof(all->mapping_seed), 0);
}

static bool is_same(const struct mapping *a, const struct mapping *b)
{
	return a->session == b->session && a->dev == b->dev && a->ino == b->ino &&
	       a->first == b->first && a->map.size == b->map.size && a->writable == b->writable;
}

static struct mapping *find(const struct mapping *like)
{
	struct list *l = bucket(like->session->ctl->sessions, like);

	for (struct list *n = l->next; n != l; n = n->next) {
		struct mapping *w = container_of(n, struct mapping, node);

		if (is_same(w, like) && !mapping_faulted(w))
			return w;
	}
	return NULL;
}

/* --- mapping ---------------------------------------------------------------------------- */

static int sum_differs(const struct mapping_spec *spec, char why[ABI_SENTENCE_MAX])
{
	return refuse(why, -EINVAL,
		"the lengths of the pieces do not add up to that of the region, %llu bytes",
		(unsigned long long)spec->length);
}

int mapping_check(
	const struct mapping_spec *spec, struct mapping_extent *out, char why[ABI_SENTENCE_MAX])
{
	uint64_t left = spec->length;

	*out = (struct mapping_extent){0};
	if (left > ABI_ARENA_SIZE) /* so that sums with offsets of files have 64 bits */
		return refuse(why, -EINVAL, "a region has at most %llu bytes: register its parts",
			(unsigned long long)ABI_ARENA_SIZE);
	for (unsigned i = 0; i < spec->npieces; i++) {
		const struct abi_piece *p = &spec->piece[i];
		struct shm_extent e;
		int err = shm_client_extent(spec->fd, p->off, p->length, spec->writable, &e, why);

		if (err)
			return err;
		if ((i && p->off % e.page) ||
			(i + 1 < spec->npieces && (p->off + p->length) % e.page))
			return refuse(why, -EINVAL,
				"piece %u of the region does not begin and end at page boundaries: "
				"see "
				"doc/abi.md",
				i);
		if (!p->length && spec->npieces > 1)
			return refuse(why, -EINVAL, "piece %u of the region is empty", i);
		if (spec->npieces > 1 && e.page > shm_rounded(1))
			return refuse(why, -EINVAL,
				"a region in huge pages must be one range of its file: register "
				"its parts");
		if (p->length > left) /* a file of 2^62 bytes may be there several times */
			return sum_differs(spec, why);
		left -= p->length;
		out->mapped += e.mapped;
		out->file = e.file;
	}
	return left ? sum_differs(spec, why) : 0;
}

static int no_room(int err, uint64_t size, char why[ABI_SENTENCE_MAX])
{
	return refuse(why, err,
		"rocid cannot map %llu bytes of application memory (%s): register less, or raise "
		"its memory limit or vm.max_map_count",
		(unsigned long long)size, strerror(-err));
}

static int map_one(struct mapping *w, int fd)
{
	int prot = w->writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *p = mmap(NULL, w->map.size, prot, MAP_SHARED, fd, (off_t)w->first);

	if (p == MAP_FAILED)
		return -errno;
	w->map.base = p;
	return 0;
}

/* Maps the pieces side by side, as the program sees them. mapping_check() has found that they fit
 * into what is reserved here. */
static int map_pieces(struct mapping *w, const struct mapping_spec *spec)
{
	int prot = w->writable ? PROT_READ | PROT_WRITE : PROT_READ;
	uint8_t *at = mmap(
		NULL, w->map.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	w->map.base = at;
	for (unsigned i = 0; i < spec->npieces; i++) {
		uint64_t off = spec->piece[i].off / w->map.page * w->map.page;
		size_t size = shm_rounded(spec->piece[i].off - off + spec->piece[i].length);

		if (mmap(at, size, prot, MAP_SHARED | MAP_FIXED, spec->fd, (off_t)off) ==
			MAP_FAILED) {
			int err = -errno;

			munmap(w->map.base, w->map.size);
			w->map.base = NULL;
			return err;
		}
		at += size;
	}
	return 0;
}

static int guard(struct mapping *w, char why[ABI_SENTENCE_MAX])
{
	const struct sigbus_area a = {
		.kind = SIGBUS_PAYLOAD,
		.owner = w,
		.list = &w->regions,
		.mrs = w->session->ctl->dp->mrs,
	};

	return shm_guard(&w->map, &a, why);
}

/* Charges, maps and guards @p w.  @return 0, or a negative errno with a sentence and everything
 * undone. */
static int make(struct mapping *w, const struct mapping_spec *spec, char why[ABI_SENTENCE_MAX])
{
	const struct charge c = {CTL_MAPPINGS, w->mappings};
	int err = quota_take(w->session, &c, 1, why);

	if (err)
		return err;
	err = spec->npieces > 1 ? map_pieces(w, spec) : map_one(w, spec->fd);
	if (err) {
		no_room(err, w->map.size, why);
	} else {
		err = guard(w, why);
		if (err)
			munmap(w->map.base, w->map.size);
	}
	if (err)
		quota_give(w->session, &c, 1);
	return err;
}

/* Fills in what a new mapping would be like.  @return whether others may share it. */
static bool plan(struct mapping *w, const struct mapping_spec *spec, const struct stat *st)
{
	const struct abi_piece *p = spec->piece;
	bool huge = w->map.page > shm_rounded(1);
	uint64_t block = huge || spec->npieces > 1 ? w->map.page : MAPPING_BLOCK;
	uint64_t end;

	w->dev = st->st_dev;
	w->ino = st->st_ino;
	w->writable = spec->writable;
	w->mappings = spec->npieces;
	w->first = p->off / block * block;
	end = (p->off + spec->length + block - 1) / block * block;
	w->map.size = end - w->first;
	return !huge && spec->npieces == 1;
}

int mapping_get(struct session *s, const struct mapping_spec *spec, struct mapping **out,
	uint8_t **first, char why[ABI_SENTENCE_MAX])
{
	struct mapping like = {.session = s}, *w;
	struct stat st;
	bool shared;
	int err;

	if (fstat(spec->fd, &st))
		return refuse(why, -errno, "the file cannot be examined: %s", strerror(errno));
	err = shm_check_client(&like.map, spec->fd, spec->writable, why);
	if (err)
		return err;
	shared = plan(&like, spec, &st);
	w = shared ? find(&like) : NULL;
	if (!w) {
		w = malloc(sizeof(*w));
		if (!w)
			return refuse_memory(why);
		*w = like;
		list_init(&w->node);
		err = make(w, spec, why);
		if (err) {
			free(w);
			return err;
		}
		if (shared)
			list_push(bucket(s->ctl->sessions, w), &w->node);
	}
	w->users++;
	*first = w->map.base + (spec->piece->off - w->first);
	*out = w;
	return 0;
}

void mapping_put(struct mapping *w, uint64_t bytes)
{
	struct session *s = w->session;

	if (--w->users) {
		quota_give(s, &(struct charge){CTL_MEMORY, bytes}, 1);
		return;
	}
	list_del(&w->node);
	s->faulted -= w->counted;
	quota_give(s, &(struct charge){CTL_MAPPINGS, w->mappings - 1}, 1);
	shm_retire(&w->map, bytes, s->ctl->sessions->unmapper, quota_retire(s, CTL_MEMORY, bytes));
	free(w);
}

void mapping_add(struct mapping *w, struct mr *mr)
{
	mr_list_add(&w->regions, mr);
}

void mapping_remove(struct mapping *w, struct mr *mr)
{
	mr_list_remove(&w->regions, mr);
}

bool mapping_faulted(const struct mapping *w)
{
	return atomic_load_explicit(&w->regions.faulted, memory_order_acquire);
}
