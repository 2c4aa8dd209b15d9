/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include "capture.h"
#include "plan.h"

#define PCAP_MAGIC    0xA1B2C3D4u
#define LINK_ETHERNET 1u

struct pcap_file {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snaplen, network;
};

struct pcap_frame {
	uint32_t seconds, microseconds, captured, length;
};

int capture_write(const struct plan *p)
{
	const struct pcap_file head = {PCAP_MAGIC, 2, 4, 0, 0, PLAN_FRAME, LINK_ETHERNET};
	uint8_t frame[PLAN_FRAME];
	FILE *f = fopen(p->pcap, "wbe");
	int err = 0;

	if (!f)
		return -errno;
	fwrite(&head, sizeof(head), 1, f);
	for (uint64_t i = 0; i < p->count && !ferror(f); i++) {
		uint32_t len = (uint32_t)plan_length(p, i);
		struct pcap_frame h = {(uint32_t)(i / 1000000), (uint32_t)(i % 1000000), len, len};

		plan_frame(p, i, frame);
		fwrite(&h, sizeof(h), 1, f);
		fwrite(frame, len, 1, f);
	}
	if (ferror(f))
		err = -EIO;
	if (fclose(f))
		err = -errno;
	return err;
}
