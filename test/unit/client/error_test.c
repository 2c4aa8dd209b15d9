/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#undef fail /* the library has its own */
#include "client.h"

/* A structure as an older program, this library and a newer program know it. */
struct old {
	size_t size;
	uint32_t a;
	uint32_t b;
};
struct now {
	size_t size;
	uint32_t a;
	uint32_t b;
	uint64_t c;
};
struct later {
	size_t size;
	uint32_t a;
	uint32_t b;
	uint64_t c;
	uint64_t d;
};

static void opts_read__older_program(void **state)
{
	struct old o = {.size = sizeof(o), .a = 1, .b = 2};
	struct now n;

	memset(&n, 0xff, sizeof(n));
	assert_int_equal(opts_read(&n, sizeof(n), &o, "now"), 0);
	assert_int_equal(n.b, 2);
	assert_true(n.c == 0);
}

static void opts_read__newer_program(void **state)
{
	struct later l = {.size = sizeof(l), .a = 1, .c = 3};
	struct now n;

	assert_int_equal(opts_read(&n, sizeof(n), &l, "now"), 0);
	assert_true(n.c == 3);
	l.d = 1; /* an option that would be ignored */
	assert_int_equal(opts_read(&n, sizeof(n), &l, "now"), EINVAL);
	assert_non_null(strstr(roci_last_error(), "struct now"));
}

static void opts_read__no_size(void **state)
{
	struct now n = {.size = 0}, out;

	assert_int_equal(opts_read(&out, sizeof(out), &n, "now"), EINVAL);
	assert_non_null(strstr(roci_last_error(), "sizeof(struct now)"));
}

static void opts_write__older_program(void **state)
{
	struct now n = {.a = 1, .b = 2, .c = 3};
	struct {
		struct old o;
		uint8_t guard[32];
	} to;

	memset(&to, 0xee, sizeof(to));
	to.o.size = sizeof(to.o);
	assert_int_equal(opts_write(&to.o, &n, sizeof(n), "now"), 0);
	assert_int_equal(to.o.size, sizeof(to.o));
	assert_int_equal(to.o.b, 2);
	for (unsigned i = 0; i < sizeof(to.guard); i++)
		assert_int_equal(to.guard[i], 0xee);
}

static void opts_write__newer_program(void **state)
{
	struct now n = {.a = 1, .b = 2, .c = 3};
	struct later l;

	memset(&l, 0xee, sizeof(l));
	l.size = sizeof(l);
	assert_int_equal(opts_write(&l, &n, sizeof(n), "now"), 0);
	assert_int_equal(l.size, sizeof(l));
	assert_true(l.c == 3);
	assert_true(l.d == 0);
}

static void *fail_elsewhere(void *arg)
{
	fail(EINVAL, "elsewhere");
	return NULL;
}

static void last_error__of_this_thread(void **state)
{
	pthread_t t;

	assert_int_equal(fail(EBUSY, "here %d", 5), EBUSY);
	pthread_create(&t, NULL, fail_elsewhere, NULL);
	pthread_join(t, NULL);
	assert_string_equal(roci_last_error(), "here 5");
	assert_int_equal(fail_const(EIO, "constant"), EIO);
	assert_string_equal(roci_last_error(), "constant");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opts_read__older_program),
		cmocka_unit_test(opts_read__newer_program),
		cmocka_unit_test(opts_read__no_size),
		cmocka_unit_test(opts_write__older_program),
		cmocka_unit_test(opts_write__newer_program),
		cmocka_unit_test(last_error__of_this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
