/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file check.h
 * `rocid --check-config`: everything that can be checked without starting: nothing is opened, bound
 * or created.
 */
#ifndef CHECK_H
#define CHECK_H

#include "eal.h"
#include "report.h"

/** The state of a check. */
struct check {
	struct options *o;
	struct eal_arguments eal;
	struct report problems; /* errors: rocid would not start */
	unsigned notes;		/* notes: it would, but hardly as intended */
	bool no_pci;
	/** The known ports: those of EAL's arguments, then shared netdevs, then ring pairs. `open`
	 * is set if EAL also probes PCI devices, which precede them. */
	uint32_t nports;
	bool open;
	struct {
		char name[RTE_ETH_NAME_MAX_LEN]; /* of the ethdev */
		const char *netdev;		 /* the netdev that gives it addresses; NULL:
						  * none */
		bool packet;			 /* rocid makes it, a packet socket */
		bool tap;
	} port[2 * PORT_MAX];
};

/**
 * Prints errors on stderr, and what rocid would do on stdout. `faults` of @p o were already
 * printed.
 * @param argc, argv  the command line's EAL arguments
 * @return the number of errors.
 */
unsigned check_config(struct options *o, int argc, char *argv[]);

/** Prints a sentence about a setting that is valid but hardly intended. */
__attribute__((format(printf, 2, 3))) void check_note(struct check *c, const char *format, ...);

/** Checks whether this machine has the named cores, memory, devices, netdevs, groups and
 * directories. */
void check_machine(struct check *c);

#endif
