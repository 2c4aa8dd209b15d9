/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file news.h
 * Reacts to changes of the kernel's network and of devices. Control thread.
 */
#ifndef NEWS_H
#define NEWS_H

#include <stdint.h>
#include "loop/loop.h"

struct ctl;

struct news {
	struct watch watch; /* rtnetlink */
	struct ctl *ctl;
};

/** Watches rtnetlink, which net_open() has opened.  @return 0 or a negative errno. */
int news_open(struct news *n, struct ctl *ctl);

/** Rereads ports whose last update was incomplete, and maintains the devices.
 *  @return milliseconds until the next call is due, -1: never. */
int news_poll(struct ctl *ctl, uint64_t now_ms);

#endif
