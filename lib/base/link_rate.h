/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link_rate.h
 * The speed of an Ethernet link in InfiniBand terms: the number of lanes and the speed of each.
 * Verbs use codes (active_width, active_speed), sysfs uses text.
 */
#ifndef LINK_RATE_H
#define LINK_RATE_H

#include <stdint.h>

/** Codes of active_width. */
enum link_width {
	LINK_1X = 1,
	LINK_4X = 2,
	LINK_8X = 4
};

/** Codes of active_speed. */
enum link_speed {
	LINK_SDR = 1,
	LINK_DDR = 2,
	LINK_FDR10 = 8,
	LINK_EDR = 32,
	LINK_HDR = 64,
	LINK_NDR = 128
};

struct link_rate {
	uint32_t mbps; /* the highest speed of a netdev that has this rate */
	enum link_width width;
	enum link_speed speed;
	const char *text; /* as Linux writes it to ports/N/rate */
};

/** Converts the speed of a netdev as Linux does; 0, unknown, gives the lowest. */
static inline const struct link_rate *link_rate_of(uint32_t mbps)
{
	static const struct link_rate rates[] = {
		{1000, LINK_1X, LINK_SDR, "2.5 Gb/sec (1X SDR)"},
		{10000, LINK_1X, LINK_FDR10, "10 Gb/sec (1X FDR10)"},
		{20000, LINK_4X, LINK_DDR, "20 Gb/sec (4X DDR)"},
		{25000, LINK_1X, LINK_EDR, "25 Gb/sec (1X EDR)"},
		{40000, LINK_4X, LINK_FDR10, "40 Gb/sec (4X FDR10)"},
		{50000, LINK_1X, LINK_HDR, "50 Gb/sec (1X HDR)"},
		{100000, LINK_4X, LINK_EDR, "100 Gb/sec (4X EDR)"},
		{200000, LINK_4X, LINK_HDR, "200 Gb/sec (4X HDR)"},
		{400000, LINK_4X, LINK_NDR, "400 Gb/sec (4X NDR)"},
		{UINT32_MAX, LINK_8X, LINK_NDR, "800 Gb/sec (8X NDR)"},
	};
	const struct link_rate *r = rates;

	while (mbps > r->mbps)
		r++;
	return r;
}

#endif
