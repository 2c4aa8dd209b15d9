/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file netns.h
 * Two network namespaces of the test's own and a veth between them: this process is in one, a
 * child holds the other. Nothing outside is touched.
 */
#ifndef NETNS_H
#define NETNS_H

#define NETNS_OURS "rt0" /* 10.9.0.1/24 */
#define NETNS_PEER "rt1" /* 10.9.0.2/24, 2001:db8:9::2/64, in the child's namespace */

/** cmocka group setup; exits 77 with a sentence if namespaces or veth cannot be created. Call
 *  it before threads start. */
int netns_setup(void **state);
int netns_teardown(void **state);

/** Runs a shell command here, or in the peer's namespace; it must succeed. */
void netns_run(const char *command);
void netns_run_peer(const char *command);

#endif
