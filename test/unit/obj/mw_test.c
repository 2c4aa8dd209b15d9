/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: what may be bound, who may use and invalidate it. MW-01..12, INV-03, INV-04. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "bits.h"
#include "mw.h"

#define PD   3u
#define QPN  0x11u
#define LKEY (5u << 8 | 0x77)
#define KEY  (9u << 8 | 0x10)
#define READ ABI_ACCESS_REMOTE_READ

static struct mr_table table;
static uint8_t mem[128];
static struct mr mr;
static struct mw mw;
static struct mw_bind bind;

static void prepare(enum mw_type type)
{
	memset(&table, 0, sizeof(table));
	mr = (struct mr){.key = LKEY,
		.pd = PD,
		.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_MW_BIND,
		.iova = 1000,
		.length = sizeof(mem),
		.base = mem};
	atomic_store(&table.slot[LKEY >> 8], &mr);
	mw_init(&mw, KEY, PD, type);
	atomic_store(&table.slot[KEY >> 8], &mw.entry);
	bind = (struct mw_bind){.mw = KEY,
		.lkey = LKEY,
		.new_key = KEY + 1,
		.access = READ | ABI_ACCESS_REMOTE_WRITE,
		.addr = 1032,
		.length = 64};
}

static int setup(void **state)
{
	prepare(MW_TYPE_2);
	return 0;
}

static enum mw_result do_bind(void)
{
	return mw_bind(&table, &bind, PD, QPN);
}

static enum mr_status look(uint32_t key, uint32_t qpn, uint32_t access, uint64_t va, uint64_t len)
{
	return rkey_resolve(&table, key, PD, qpn, access, va, len, NULL);
}

/* proves MR-01: windows and regions have keys of one kind, but a window's is no lkey. */
static void mw_find__takes_any_key_part(void **state)
{
	assert_ptr_equal(mw_find(&table, KEY), &mw);
	assert_ptr_equal(mw_find(&table, KEY ^ 0xFF), &mw);
	assert_null(mw_find(&table, LKEY));
	assert_null(mw_find(&table, 7 << 8));
	assert_null(mw_find(&table, UINT32_MAX));
	assert_null(mr_find(&table, KEY));
	assert_int_equal(do_bind(), MW_DONE);
	assert_null(mr_find(&table, KEY + 1));
	assert_int_equal(mr_resolve(&table, KEY + 1, PD, 0, 1032, 1, NULL), MR_NO_KEY);
}

/* proves MW-12: rights and bounds of the window, not of its region. */
static void mw_resolve__checks_everything(void **state)
{
	static const struct {
		uint32_t key, qpn, access;
		uint64_t va, len;
		enum mr_status want;
	} row[] = {
		{KEY + 1, QPN, READ, 1032, 64, MR_OK}, {KEY + 1, QPN, READ, 1095, 1, MR_OK},
		{KEY + 1, QPN, READ, 1031, 1, MR_RANGE}, {KEY + 1, QPN, READ, 1032, 65, MR_RANGE},
		{KEY + 1, QPN, READ, 1096, 1, MR_RANGE},
		{KEY + 1, QPN, READ, 1033, UINT64_MAX, MR_RANGE},
		{KEY + 1, QPN, ABI_ACCESS_REMOTE_ATOMIC, 1032, 8, MR_NO_ACCESS},
		{KEY + 1, QPN, READ | ABI_ACCESS_REMOTE_ATOMIC, 1032, 8, MR_NO_ACCESS}, /* all */
		{KEY + 1, QPN, READ | ABI_ACCESS_REMOTE_WRITE, 1032, 8, MR_OK},
		{KEY, QPN, READ, 1032, 1, MR_NO_KEY},	      /* the key before */
		{KEY + 1, QPN + 1, READ, 1032, 1, MR_NO_KEY}, /* proves MW-09 */
		{LKEY, QPN, READ, 1032, 1, MR_NO_ACCESS},     /* the region's own key */
	};
	uint8_t *ptr;

	assert_int_equal(look(KEY, QPN, READ, 1032, 1), MR_NO_KEY); /* not bound */
	assert_int_equal(do_bind(), MW_DONE);
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		assert_int_equal(look(row[i].key, row[i].qpn, row[i].access, row[i].va, row[i].len),
			row[i].want);
	assert_int_equal(rkey_resolve(&table, KEY + 1, PD, QPN, READ, 1040, 8, &ptr), MR_OK);
	assert_ptr_equal(ptr, mem + 40);
	assert_int_equal(
		rkey_resolve(&table, KEY + 1, PD + 1, QPN, READ, 1040, 8, &ptr), MR_NO_KEY);
}

/* proves MW-12: a region that was withdrawn because its memory faulted takes its windows along. */
static void mw_resolve__needs_the_region(void **state)
{
	static struct mr other;

	assert_int_equal(do_bind(), MW_DONE);
	atomic_store(&table.slot[LKEY >> 8], NULL);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_NO_KEY);
	other = mr; /* another one with the same key */
	atomic_store(&table.slot[LKEY >> 8], &other);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_NO_KEY);
}

/* proves MW-09: type 1 is for all QPs of the protection domain. */
static void mw_resolve__type_1_is_for_all(void **state)
{
	prepare(MW_TYPE_1);
	assert_int_equal(do_bind(), MW_DONE);
	assert_int_equal(look(KEY + 1, QPN + 1, READ, 1032, 64), MR_OK);
	assert_int_equal(
		rkey_resolve(&table, KEY + 1, PD + 1, QPN, READ, 1032, 64, NULL), MR_NO_KEY);
}

/* Zero-based: addresses are offsets. */
static void mw_resolve__zero_based(void **state)
{
	uint8_t *ptr;

	bind.access |= ABI_ACCESS_ZERO_BASED;
	assert_int_equal(do_bind(), MW_DONE);
	assert_int_equal(rkey_resolve(&table, KEY + 1, PD, QPN, READ, 0, 64, &ptr), MR_OK);
	assert_ptr_equal(ptr, mem + 32);
	assert_int_equal(look(KEY + 1, QPN, READ, 0, 65), MR_RANGE);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_RANGE);
}

struct refused {
	enum mw_type type;
	uint32_t pd;
	uint32_t mr_access;
	struct mw_bind change; /* what is not 0 */
	enum mw_result want;
};

/* Each rule of binding, alone. */
static void mw_bind__refuses(void **state)
{
	static const struct refused row[] = {
		{.pd = PD + 1, .want = MW_NO_WINDOW}, /* proves MW-02 */
		{.change.mw = LKEY, .want = MW_NO_WINDOW},
		{.change.new_key = KEY + 0x100, .want = MW_BAD_KEY},
		{.change.access = 1u << 20, .want = MW_BAD_ACCESS},
		{.change.access = ABI_ACCESS_LOCAL_WRITE, .want = MW_BAD_ACCESS},
		{.type = MW_TYPE_1,
			.change.access = READ | ABI_ACCESS_ZERO_BASED,
			.want = MW_ZERO_BASED}, /* proves MW-01 */
		{.change.lkey = LKEY + 1, .want = MW_NO_REGION},
		{.change.lkey = KEY, .want = MW_NO_REGION}, /* no window on a window */
		{.mr_access = ABI_ACCESS_LOCAL_WRITE, .want = MW_NO_MW_BIND}, /* proves MW-06 */
		{.mr_access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | READ,
			.change.access = READ,
			.want = MW_NO_MW_BIND},
		{.type = MW_TYPE_1, .mr_access = ABI_ACCESS_LOCAL_WRITE, .want = MW_NO_MW_BIND},
		{.mr_access = ABI_ACCESS_MW_BIND, .want = MW_NO_RIGHT}, /* proves MW-07 */
		{.type = MW_TYPE_1, .mr_access = ABI_ACCESS_MW_BIND, .want = MW_NO_RIGHT},
		{.mr_access = ABI_ACCESS_MW_BIND,
			.change.access = ABI_ACCESS_REMOTE_ATOMIC,
			.want = MW_NO_RIGHT},
		{.change.access = ABI_ACCESS_FLUSH_GLOBAL, .want = MW_NO_RIGHT},
		{.change.addr = 999, .want = MW_OUTSIDE}, /* proves MW-08 */
		{.change.addr = 1065, .want = MW_OUTSIDE},
		{.change.length = 97, .want = MW_OUTSIDE},
		{.change.length = UINT64_MAX, .want = MW_OUTSIDE},
		{.change.addr = UINT64_MAX, .want = MW_OUTSIDE},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		const struct mw_bind *d = &row[i].change;

		prepare(row[i].type ? row[i].type : MW_TYPE_2);
		if (row[i].mr_access)
			mr.access = row[i].mr_access;
		bind.mw = d->mw ? d->mw : bind.mw;
		bind.lkey = d->lkey ? d->lkey : bind.lkey;
		bind.new_key = d->new_key ? d->new_key : bind.new_key;
		bind.access = d->access ? d->access : bind.access;
		bind.addr = d->addr ? d->addr : bind.addr;
		bind.length = d->length ? d->length : bind.length;
		assert_int_equal(
			mw_bind(&table, &bind, row[i].pd ? row[i].pd : PD, QPN), row[i].want);
		assert_int_equal(mr.windows, 0);
		assert_false(atomic_load(&mw.version) & MW_BOUND);
	}
}

/* proves MW-07: a window that only reads needs no right to write. */
static void mw_bind__reads_what_is_read_only(void **state)
{
	mr.access = ABI_ACCESS_MW_BIND;
	bind.access = READ;
	assert_int_equal(do_bind(), MW_DONE);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 64), MR_OK);
}

/* proves MW-03, MW-04. */
static void mw_bind__type_2_once(void **state)
{
	bind.length = 0;
	assert_int_equal(do_bind(), MW_EMPTY);
	bind.length = 64;
	assert_int_equal(do_bind(), MW_DONE);
	bind.new_key++;
	assert_int_equal(do_bind(), MW_NOT_FREE);
	bind.length = 0;
	assert_int_equal(do_bind(), MW_NOT_FREE);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 64), MR_OK);
	assert_int_equal(mw_invalidate(&table, KEY + 1, PD, QPN), MW_DONE);
	bind.length = 8;
	assert_int_equal(mw_bind(&table, &bind, PD, QPN + 1), MW_DONE); /* any QP's turn */
	assert_int_equal(look(KEY + 2, QPN + 1, READ, 1032, 8), MR_OK);
	assert_int_equal(look(KEY + 2, QPN, READ, 1032, 8), MR_NO_KEY);
	assert_int_equal(mr.windows, 1);
}

/* proves MW-05; a bind that ends another one says so. */
static void mw_bind__type_1_again(void **state)
{
	prepare(MW_TYPE_1);
	assert_int_equal(do_bind(), MW_DONE);
	bind.new_key = KEY + 2;
	bind.addr = 1000;
	assert_int_equal(do_bind(), MW_RETIRED);
	assert_int_equal(mr.windows, 1);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_NO_KEY);
	assert_int_equal(look(KEY + 2, QPN, READ, 1000, 64), MR_OK);
	bind.new_key = KEY + 3;
	bind.length = 0;
	bind.lkey = 0;
	assert_int_equal(do_bind(), MW_RETIRED); /* unbound */
	assert_int_equal(mr.windows, 0);
	assert_int_equal(look(KEY + 2, QPN, READ, 1000, 1), MR_NO_KEY);
	assert_int_equal(look(KEY + 3, QPN, READ, 1000, 0), MR_NO_KEY);
	assert_int_equal(do_bind(), MW_DONE); /* nothing was bound */
}

/* proves INV-03, INV-04, MW-10. */
static void mw_invalidate__only_what_may_be(void **state)
{
	assert_int_equal(mw_invalidate(&table, KEY, PD, QPN), MW_NOT_BOUND);
	assert_int_equal(do_bind(), MW_DONE);
	assert_int_equal(mw_invalidate(&table, LKEY, PD, QPN), MW_NO_WINDOW);
	assert_int_equal(mw_invalidate(&table, KEY + 1, PD + 1, QPN), MW_NO_WINDOW);
	assert_int_equal(mw_invalidate(&table, KEY + 1, PD, QPN + 1), MW_OTHER_QP);
	assert_int_equal(mw_invalidate(&table, KEY, PD, QPN), MW_NOT_BOUND);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_OK);
	assert_int_equal(mw_invalidate(&table, KEY + 1, PD, QPN), MW_DONE);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_NO_KEY);
	assert_int_equal(mw_invalidate(&table, KEY + 1, PD, QPN), MW_NOT_BOUND);
	assert_int_equal(mr.windows, 0);
	prepare(MW_TYPE_1);
	assert_int_equal(do_bind(), MW_DONE);
	assert_int_equal(mw_invalidate(&table, KEY + 1, PD, QPN), MW_TYPE_1_STAYS);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_OK);
}

/* proves MR-05: what is bound keeps its region; a region that goes takes no more windows. */
static void mr_close__while_bound(void **state)
{
	assert_int_equal(do_bind(), MW_DONE);
	assert_false(mr_close(&mr));
	assert_int_equal(mw_invalidate(&table, KEY + 1, PD, QPN), MW_DONE);
	assert_true(mr_close(&mr));
	assert_int_equal(do_bind(), MW_NO_REGION);
	assert_false(mr_close(&mr));
}

static void mw_release__lets_the_region_go(void **state)
{
	assert_int_equal(do_bind(), MW_DONE);
	mw_release(&mw);
	assert_int_equal(mr.windows, 0);
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_NO_KEY);
	mw_release(&mw); /* there is nothing */
	assert_int_equal(mr.windows, 0);
}

/* A window that another worker is just changing is not read, and not changed. */
static void mw_view__of_one_that_changes(void **state)
{
	struct mw_view v;

	prepare(MW_TYPE_1);
	assert_int_equal(do_bind(), MW_DONE);
	atomic_fetch_or(&mw.version, MW_BUSY);
	assert_false(mw_view(&mw, &v));
	assert_int_equal(look(KEY + 1, QPN, READ, 1032, 1), MR_NO_KEY);
	assert_int_equal(do_bind(), MW_AGAIN);
	assert_int_equal(mr.windows, 1);
}

#define ROUNDS 20000u
static _Atomic unsigned binders;

/* Binds the window to the piece whose number its key has. */
static void *binder(void *arg)
{
	struct mw_bind b = bind;
	unsigned n = 0;

	while (n < ROUNDS) {
		unsigned piece = n & 7;

		b.new_key = (KEY & ~0xFFu) | piece;
		b.addr = 1000 + piece * 16;
		b.length = 8 + piece;
		n += mw_bind(&table, &b, PD, QPN) != MW_AGAIN;
	}
	binders--;
	return NULL;
}

/* Two workers bind, one reads: what it sees is one binding, whole. */
static void mw_view__is_never_torn(void **state)
{
	pthread_t t[2];
	struct mw_view v;
	unsigned seen = 0;

	prepare(MW_TYPE_1);
	binders = 2;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, binder, NULL), 0);
	while (binders || !seen) {
		unsigned piece;

		if (!mw_view(&mw, &v))
			continue;
		piece = v.key & 0xFF;
		seen++;
		assert_true(piece < 8);
		assert_int_equal(v.iova, 1000 + piece * 16);
		assert_int_equal(v.length, 8 + piece);
		assert_ptr_equal(v.base, mem + (size_t)piece * 16);
		assert_ptr_equal(v.mr, &mr);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(mr.windows, 1);
}

/* FLU-05, MW-12: also of the window in slot 0 whose R_Key is 0. */
static void mw_range__key_0(void **state)
{
	uint64_t va, len;

	mw_init(&mw, 0, PD, MW_TYPE_2);
	atomic_store(&table.slot[0], &mw.entry);
	assert_null(mr_find(&table, 0));
	assert_false(mw_range(&table, 0, &va, &len));
	bind.mw = bind.new_key = 0;
	assert_int_equal(do_bind(), MW_DONE);
	assert_true(mw_range(&table, 0, &va, &len));
	assert_int_equal(va, 1032);
	assert_int_equal(len, 64);
	assert_int_equal(look(0, QPN, READ, va, len), MR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mw_find__takes_any_key_part, setup),
		cmocka_unit_test_setup(mw_resolve__checks_everything, setup),
		cmocka_unit_test_setup(mw_resolve__needs_the_region, setup),
		cmocka_unit_test_setup(mw_resolve__type_1_is_for_all, setup),
		cmocka_unit_test_setup(mw_resolve__zero_based, setup),
		cmocka_unit_test_setup(mw_bind__refuses, setup),
		cmocka_unit_test_setup(mw_bind__reads_what_is_read_only, setup),
		cmocka_unit_test_setup(mw_bind__type_2_once, setup),
		cmocka_unit_test_setup(mw_bind__type_1_again, setup),
		cmocka_unit_test_setup(mw_invalidate__only_what_may_be, setup),
		cmocka_unit_test_setup(mr_close__while_bound, setup),
		cmocka_unit_test_setup(mw_release__lets_the_region_go, setup),
		cmocka_unit_test_setup(mw_view__of_one_that_changes, setup),
		cmocka_unit_test_setup(mw_view__is_never_torn, setup),
		cmocka_unit_test_setup(mw_range__key_0, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
