/* SPDX-License-Identifier: BSD-3-Clause */
/** @file flow_file.h  Flows from a file of HPCC's simulator. */
#ifndef FLOW_FILE_H
#define FLOW_FILE_H

#include <stdint.h>

struct parser;
struct traffic_line;

#define FLOW_FILE_MAX 1000000u

/** Reads the flows of @p path into @p t. @p base, ns, is when the run begins in its time.
 *  @return 0, or -EINVAL with the reason in @p p */
int flow_file_read(struct parser *p, const char *path, uint64_t base, struct traffic_line *t);

/** Frees them; harmless if there are none. */
void flow_file_free(struct traffic_line *t);

#endif
