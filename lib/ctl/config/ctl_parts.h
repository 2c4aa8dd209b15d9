/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file config/ctl_parts.h
 * Connects the parts of the control thread. A library includes the headers of its own part and of
 * those below; from those above it knows only names. Control thread.
 */
#ifndef CONFIG_CTL_PARTS_H
#define CONFIG_CTL_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct admin;
struct connections;
struct core_counters;
struct ctl_devices;
struct dataplane;
struct failures;
struct loop;
struct net;
struct objects;
struct sessions;
struct sysfs;

struct ctl {
	struct dataplane *dp;
	const struct ctl_devices *devices; /* may be NULL */
	struct loop *loop;
	struct net *net;
	struct sessions *sessions;
	struct failures *failures;
	struct objects *objects;
	struct admin *admin;
	struct connections *connections;
	struct sysfs *sysfs;	       /* NULL: it could not be created */
	struct core_counters *counted; /* totals at the administrator's last reset */
	uint64_t since_ms;	       /* when rocid started to serve */
	uint32_t window;
	bool plain_label;	 /* ctl_config */
	bool application_faults; /* programs may inject faults into their own QPs */
	bool application_macs;	 /* programs may choose a destination MAC */
	char device[16];	 /* its name */
	bool cm;		 /* ctl_config, as the next three */
	bool cm_rocev1;		 /* likewise */
	uint8_t cm_timeout;	 /* likewise */
	uint8_t cm_retries;	 /* likewise */
	bool no_userfaultfd;	 /* programs get no descriptor of /dev/userfaultfd */
};

#endif
