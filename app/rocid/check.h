/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file check.h
 * `rocid --check-config`: what can be known of a start without starting: nothing is opened, bound
 * or made.
 */
#ifndef CHECK_H
#define CHECK_H

#include "eal.h"
#include "report.h"

/** What is being looked at. */
struct check {
	struct options *o;
	struct eal_arguments eal;
	struct report problems; /* rocid would not start */
	unsigned notes;		/* it would, but hardly as it is meant */
	bool no_pci;
	/** Ports as far as they are known: those of EAL's arguments, then shared netdevs, then ring
	 *  pairs. PCI devices that EAL finds by itself come before them: then `open` is set. */
	uint32_t nports;
	bool open;
	struct {
		char name[RTE_ETH_NAME_MAX_LEN]; /* of the ethdev */
		const char *netdev;		 /* whose addresses it has; NULL: none */
		bool packet;			 /* rocid makes it, a packet socket */
		bool tap;
	} port[2 * PORT_MAX];
};

/**
 * Prints what is wrong, on stderr, and what rocid would do, on stdout. `faults` of @p o were
 * printed already.
 * @param argc, argv  the command line's EAL arguments
 * @return how much is wrong.
 */
unsigned check_config(struct options *o, int argc, char *argv[]);

/** Prints a sentence about what is legal but hardly meant. */
__attribute__((format(printf, 2, 3))) void check_note(struct check *c, const char *format, ...);

/** Does this machine have what is named: cores, memory, devices, netdevs, groups, directories? */
void check_machine(struct check *c);

#endif
