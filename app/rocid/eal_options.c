/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "eal_options.h"

/* Those of DPDK 22.11, except for multi-process, tracing and driver debugging. */
static const struct eal_option row[] = {
	/* cores */
	{"l", true, false, "cores"},
	{"lcores", true, false, "cores"},
	{"c", true, false, "cores"},
	{"main-lcore", true, false, "main-lcore"},
	{"s", true, false, "service"},
	{"S", true, false, "service"},
	/* memory */
	{"m", true, false, "memory"},
	{"socket-mem", true, false, "memory"},
	{"socket-limit", true, false, "socket-limit"},
	{"no-huge", false, false, "no-huge"},
	{"huge-dir", true, false, "huge-dir"},
	{"huge-unlink", true, false, "huge-unlink"},
	{"single-file-segments", false, false, "single-file-segments"},
	{"in-memory", false, false, "in-memory"},
	{"legacy-mem", false, false, "legacy-mem"},
	{"match-allocations", false, false, "match-allocations"},
	{"iova-mode", true, false, "iova-mode"},
	{"base-virtaddr", true, false, "base-virtaddr"},
	{"n", true, false, "channels"},
	{"r", true, false, "ranks"},
	/* devices */
	{"a", true, true, "allow"},
	{"allow", true, true, "allow"},
	{"b", true, true, "block"},
	{"block", true, true, "block"},
	{"no-pci", false, false, "no-pci"},
	{"vdev", true, true, "vdev"},
	{"d", true, true, "driver"},
	{"vfio-intr", true, false, "vfio-intr"},
	{"vfio-vf-token", true, false, "vfio-vf-token"},
	{"create-uio-dev", false, false, "create-uio-dev"},
	/* the rest */
	{"file-prefix", true, false, "file-prefix"},
	{"log-level", true, true, "log-level"},
	{"syslog", true, false, "syslog"},
	{"telemetry", false, false, "telemetry"},
	{"no-telemetry", false, false, "telemetry"},
	{"no-shconf", false, false, "no-shconf"},
	{"no-hpet", false, false, "no-hpet"},
	{"force-max-simd-bitwidth", true, false, "force-max-simd-bitwidth"},
};

const struct eal_option *eal_option_at(unsigned i)
{
	return i < ARRAY_SIZE(row) ? &row[i] : NULL;
}

static const struct eal_option *find(const char *name, size_t len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (strlen(row[i].name) == len && !memcmp(row[i].name, name, len))
			return &row[i];
	return NULL;
}

const struct eal_option *eal_option_find(const char *name)
{
	return find(name, strlen(name));
}

const struct eal_option *eal_option_of(const char *argument)
{
	if (*argument != '-')
		return NULL;
	if (argument[1] == '-')
		return find(argument + 2, strcspn(argument + 2, "="));
	return argument[1] ? find(argument + 1, 1) : NULL;
}

const char *eal_option_value(int argc, char *const argv[], int i, const char *name)
{
	const struct eal_option *e = eal_option_of(argv[i]);
	const char *inside;

	if (!e || !e->value || strcmp(e->name, name))
		return NULL;
	inside = argv[i][1] == '-' ? strchr(argv[i], '=') : argv[i] + 1;
	if (inside && inside[1])
		return inside + 1;
	return i + 1 < argc ? argv[i + 1] : NULL;
}

bool eal_option_is_pci(const char *device)
{
	return strchr(device, ':') &&
	       strspn(device, "0123456789abcdefABCDEF:.") == strcspn(device, ",");
}
