/* SPDX-License-Identifier: BSD-3-Clause */
/** @file option_links.h  The values of --cc, --impair and --ring-pair. */
#ifndef OPTION_LINKS_H
#define OPTION_LINKS_H

#include "limits.h"
#include "linkemu.h"
#include "net/congestion.h"
#include "options.h"

struct option_links {
	struct congestion congestion[PORT_SLOTS];
	struct linkemu_config impair[PORT_SLOTS];
	struct linkemu_config pair[PORT_MAX / 2];
};

#endif
