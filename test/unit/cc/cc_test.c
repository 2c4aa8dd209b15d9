/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "cc.h"

static double value_of(const struct cc_config *cfg, const char *name)
{
	int i = cc_find_param(cfg->ops, name);

	assert_true(i >= 0);
	return cfg->value[i];
}

static void cc_find__knows_each_algorithm_by_name(void **state)
{
	unsigned n = 0;

	for (; cc_algorithm(n); n++)
		assert_ptr_equal(cc_find(cc_algorithm(n)->name), cc_algorithm(n));
	assert_true(n >= 2);
	assert_null(cc_find("dcqc"));
	assert_null(cc_find("dcqcnx"));
	assert_null(cc_find(""));
	assert_int_equal(cc_find_profile(&cc_dcqcn, "paper"), 0);
	assert_int_equal(cc_find_profile(&cc_dcqcn, "pape"), -1);
	assert_int_equal(cc_find_param(&cc_dcqcn, "rp_ai"), -1);
}

/* Each row of each table is complete, and takes its own defaults. */
static void cc_param__rows_are_sound(void **state)
{
	const struct cc_ops *ops;

	for (unsigned a = 0; (ops = cc_algorithm(a)); a++) {
		assert_in_range(ops->nprofiles, 1, CC_PROFILES_MAX);
		assert_in_range(ops->nparams, 1, CC_PARAMS_MAX);
		for (unsigned i = 0; i < ops->nparams; i++) {
			const struct cc_param *p = &ops->params[i];

			assert_true(p->name && p->unit && p->help && p->min <= p->max);
			assert_int_equal(cc_find_param(ops, p->name), i);
			for (unsigned k = 0; k < ops->nprofiles; k++) {
				struct cc_config cfg;

				cc_config_init(&cfg, ops, k, 25e9);
				assert_true(cc_config_set(&cfg, i, cfg.value[i]));
				cc_config_init(&cfg, ops, k, 1e6); /* the slowest */
				assert_true(cc_config_set(&cfg, i, cfg.value[i]));
			}
		}
	}
}

static void cc_config__follows_the_line_unless_set(void **state)
{
	struct cc_config cfg;
	int hai = cc_find_param(&cc_dcqcn, "rp_hai_rate");

	cc_config_init(&cfg, &cc_dcqcn, (unsigned)cc_find_profile(&cc_dcqcn, "ns3hpcc"), 25e9);
	assert_true(value_of(&cfg, "rp_ai_rate") == 5);
	assert_true(value_of(&cfg, "rp_time_reset") == 300);
	cc_config_line(&cfg, 100e9);
	assert_true(value_of(&cfg, "rp_ai_rate") == 20);
	assert_true(value_of(&cfg, "rp_hai_rate") == 200);
	assert_true(cc_config_set(&cfg, (unsigned)hai, 7));
	cc_config_line(&cfg, 40e9);
	assert_true(value_of(&cfg, "rp_ai_rate") == 8);
	assert_true(value_of(&cfg, "rp_hai_rate") == 7);
	cc_config_init(&cfg, &cc_dcqcn, (unsigned)cc_find_profile(&cc_dcqcn, "connectx"), 100e9);
	assert_true(value_of(&cfg, "rp_ai_rate") == 5);
}

static void cc_config_set__refuses_what_the_row_does_not_allow(void **state)
{
	unsigned threshold = (unsigned)cc_find_param(&cc_dcqcn, "rp_threshold");
	unsigned reset = (unsigned)cc_find_param(&cc_dcqcn, "rp_byte_reset");
	struct cc_config cfg;

	cc_config_init(&cfg, &cc_dcqcn, 0, 25e9);
	assert_false(cc_config_set(&cfg, threshold, 0));
	assert_false(cc_config_set(&cfg, threshold, 32));
	assert_false(cc_config_set(&cfg, threshold, 1.5));
	assert_false(cc_config_set(&cfg, threshold, __builtin_nan("")));
	assert_false(cc_config_set(&cfg, reset, 4095));
	assert_true(cfg.value[threshold] == 5 && cfg.value[reset] == 10e6 && !cfg.set);
	assert_true(cc_config_set(&cfg, reset, 0));
	assert_true(cc_config_set(&cfg, threshold, 31));
	assert_true(cfg.value[threshold] == 31 && cfg.value[reset] == 0);
}

static void fixed__is_a_plain_limit(void **state)
{
	struct cc_config cfg;
	struct cc_view v;
	struct cc cc;

	cc_config_init(&cfg, &cc_fixed, 0, 25e9);
	cc_init(&cc, &cfg, 0);
	assert_true(cc.rate == CC_UNLIMITED);
	cc_fixed.look(&cc, &v);
	assert_true(!v.limited && v.rate == 25e9);
	assert_true(cc_config_set(&cfg, 0, 100));
	assert_true(cc_fixed.on_time(&cc, 1) == CC_NEVER);
	assert_true(cc.rate == 100e6);
	cc_fixed.on_cnp(&cc, CC_CNP_PLAIN, NULL, 2);
	cc_fixed.on_loss(&cc, CC_LOSS_TIMEOUT, 2);
	cc_fixed.on_pause(&cc, 3);
	cc_fixed.on_sent(&cc, 1u << 31, 0, true, 3);
	assert_null(cc_fixed.on_ack);
	assert_true(cc.rate == 100e6);
	cc_fixed.look(&cc, &v);
	assert_true(v.limited && v.rate == 100e6);
	assert_true(cc_config_set(&cfg, 0, 0));
	cc_fixed.on_time(&cc, 4);
	assert_true(cc.rate == CC_UNLIMITED);
}

/* Parameters of CNPs that an algorithm lacks are those of DCQCN's first profile, also where packets
 * without ACKs follow another one. */
static void cc_config_notice__is_its_own_if_it_has_any(void **state)
{
	static const struct cc_param row = {.name = "np_cnp_dscp", .max = 63, .def = {{7, false}}};
	struct cc_ops toy = cc_swift;
	struct cc_config cfg, unacked;

	cc_config_init(&cfg, &cc_dcqcn, 1, 1e9);
	assert_true(cc_config_notice(&cfg, "np_min_time_between_cnps") == 4);
	cc_config_init(&cfg, &cc_fixed, 0, 1e9);
	assert_true(cc_config_notice(&cfg, "np_min_time_between_cnps") == 50);
	toy.params = &row;
	toy.nparams = 1;
	cc_config_init(&cfg, &toy, 0, 1e9);
	cc_config_unacked(&cfg, &unacked);
	assert_true(cc_config_notice(&cfg, "np_cnp_dscp") == 7);
	assert_true(cc_config_notice(&cfg, "np_cnp_prio") == 6);
}

static void cc_config_unacked__is_dcqcn_where_acks_steer(void **state)
{
	struct cc_config cfg, unacked;

	for (unsigned i = 0; cc_algorithm(i); i++) {
		cc_config_init(&cfg, cc_algorithm(i), 0, 40e9);
		cc_config_unacked(&cfg, &unacked);
		assert_int_equal(cfg.unacked != NULL, cfg.ops->needs_acks);
		if (!cfg.unacked)
			continue;
		assert_ptr_equal(cfg.unacked, &unacked);
		assert_true(unacked.ops == &cc_dcqcn && unacked.line == 40e9);
		assert_string_equal(cc_dcqcn.profiles[unacked.profile], "paper");
		assert_null(unacked.unacked);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cc_find__knows_each_algorithm_by_name),
		cmocka_unit_test(cc_param__rows_are_sound),
		cmocka_unit_test(cc_config__follows_the_line_unless_set),
		cmocka_unit_test(cc_config_set__refuses_what_the_row_does_not_allow),
		cmocka_unit_test(fixed__is_a_plain_limit),
		cmocka_unit_test(cc_config_notice__is_its_own_if_it_has_any),
		cmocka_unit_test(cc_config_unacked__is_dcqcn_where_acks_steer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
