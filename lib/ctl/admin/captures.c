/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <rte_ethdev.h>
#include "admin/admin.h"
#include "admin/captures.h"
#include "admin/stream.h"
#include "bits.h"
#include "capture.h"
#include "config/ctl_parts.h"
#include "list.h"
#include "loop/loop.h"
#include "loop/reaper.h"
#include "net/net.h"
#include "net/netport.h"
#include "number.h"
#include "refuse.h"
#include "row.h"
#include "session/sessions.h"
#include "verbs/objects.h"
#include "worker.h"

/* A capture, on ctl->admin->captures. */
struct running {
	struct list node;
	struct watch done;
	struct ctl *ctl;
	struct capture *capture;
	int socket;
	uint64_t since_ms;
	char text[sizeof(((struct capture_config *)0)->text)];
};

static void free_running(struct running *r)
{
	loop_unwatch(r->ctl->loop, &r->done);
	reap_fd(r->ctl->sessions->closer, OWNER_ROCID, r->socket); /* its owner made it */
	free(r);
}

static void stop(struct running *r)
{
	capture_stop(r->ctl->dp, r->capture);
	list_del(&r->node);
	r->ctl->admin->ncaptures--;
	free_running(r);
}

static void done_ready(struct watch *w)
{
	stop(container_of(w, struct running, done));
}

void admin_captures_close(struct ctl *ctl)
{
	while (!list_empty(&ctl->admin->captures))
		stop(container_of(ctl->admin->captures.next, struct running, node));
}

/* --- parsing ---------------------------------------------------------------------------- */

static int want_qp(
	struct ctl *ctl, struct capture_config *cfg, const char *word, char why[ABI_SENTENCE_MAX])
{
	uint64_t qpn;

	if (!parse_number(word, UINT32_MAX, &qpn) || !find_qp(ctl, qpn))
		return refuse(
			why, -ENOENT, "QP %.32s does not exist: \"show qps\" lists the QPs", word);
	cfg->filter.qpn = (uint32_t)qpn;
	return 0;
}

static int want_port(
	struct ctl *ctl, struct capture_config *cfg, const char *word, char why[ABI_SENTENCE_MAX])
{
	uint64_t port;

	if (!parse_number(word, ctl->net->nports, &port) || !port)
		return refuse(why, -EINVAL, "port %.32s does not exist: this rocid has 1 to %u",
			word, ctl->net->nports);
	cfg->filter.port = (uint32_t)port - 1;
	return 0;
}

static int want_count(
	struct ctl *ctl, struct capture_config *cfg, const char *word, char why[ABI_SENTENCE_MAX])
{
	(void)ctl;
	if (!parse_number(word, UINT64_MAX, &cfg->count) || !cfg->count)
		return refuse(
			why, -EINVAL, "count %.32s is not a number of frames: use 1 or more", word);
	return 0;
}

static int want_snap(
	struct ctl *ctl, struct capture_config *cfg, const char *word, char why[ABI_SENTENCE_MAX])
{
	uint64_t snap;

	(void)ctl;
	if (!parse_number(word, UINT16_MAX, &snap) || !snap)
		return refuse(why, -EINVAL,
			"snap %.32s is not a number of bytes from 1 to %u: 128 holds all headers",
			word, UINT16_MAX);
	cfg->filter.snap = (uint32_t)snap;
	return 0;
}

static const struct {
	const char *word;
	int (*take)(struct ctl *ctl, struct capture_config *cfg, const char *word,
		char why[ABI_SENTENCE_MAX]);
} wants[] = {{"qp", want_qp}, {"port", want_port}, {"count", want_count}, {"snap", want_snap}};

/* Words without a value. */
static bool want_flag(struct capture_filter *f, const char *word)
{
	if (!strcmp(word, "drops"))
		f->drops = true;
	else if (!strcmp(word, "in"))
		f->out = false;
	else if (!strcmp(word, "out"))
		f->in = false;
	else
		return false;
	return true;
}

/* @param next  the word after it, or NULL  @return 1 if @p word takes it as its value, 0 if not, or
 * a negative errno with a sentence */
static int take_word(struct ctl *ctl, struct capture_config *cfg, const char *word,
	const char *next, char why[ABI_SENTENCE_MAX])
{
	int err;

	if (want_flag(&cfg->filter, word))
		return 0;
	for (unsigned k = 0; k < ARRAY_SIZE(wants); k++) {
		if (strcmp(word, wants[k].word))
			continue;
		if (!next)
			return refuse(why, -EINVAL, "a number is missing after \"%s\"", word);
		err = wants[k].take(ctl, cfg, next, why);
		return err ? err : 1;
	}
	return refuse(why, -EINVAL,
		"\"%.32s\" is unknown: capture accepts qp QPN, port PORT, drops, in, out, "
		"count COUNT, snap BYTES",
		word);
}

static int take_words(
	struct ctl *ctl, struct capture_config *cfg, const char *line, char why[ABI_SENTENCE_MAX])
{
	char text[ADMIN_LINE_MAX];
	char *word[ADMIN_WORDS + 1] = {NULL};
	int took = 0;
	int n;

	snprintf(text, sizeof(text), "%s", line);
	n = admin_stream_words(text, word, why);
	if (n < 0)
		return n;
	for (int i = 0; i < n && took >= 0; i += 1 + took)
		took = take_word(ctl, cfg, word[i], word[i + 1], why);
	if (took < 0)
		return took;
	if (!cfg->filter.in && !cfg->filter.out)
		return refuse(why, -EINVAL,
			"\"in\" and \"out\" exclude each other: remove both to capture both");
	if (cfg->filter.drops && !cfg->filter.in)
		return refuse(why, -EINVAL,
			"sent packets are never dropped: remove \"out\" or \"drops\"");
	snprintf(cfg->text, sizeof(cfg->text), "%s", line);
	return 0;
}

/* --- starting --------------------------------------------------------------------------- */

static void describe_port(const struct ctl *ctl, uint32_t i, struct capture_interface *f)
{
	const struct netport *p = &ctl->net->port[i];
	char device[RTE_ETH_NAME_MAX_LEN];

	if (rte_eth_dev_get_name_by_port(ctl->dp->ethdev[i], device))
		snprintf(device, sizeof(device), "?");
	snprintf(f->name, sizeof(f->name), "%.60s", p->netdev[0] ? p->netdev : device);
	snprintf(f->description, sizeof(f->description), "rocid port %u (%.64s)", i + 1, device);
	memcpy(f->mac, p->mac, 6);
	f->has_mac = true;
	f->speed = p->speed_mbps * 1000000ull;
}

static void describe(const struct ctl *ctl, struct capture_config *cfg)
{
	struct capture_interface *inside = &cfg->interface[ctl->net->nports];

	for (uint32_t i = 0; i < ctl->net->nports; i++)
		describe_port(ctl, i, &cfg->interface[i]);
	snprintf(inside->name, sizeof(inside->name), "local");
	snprintf(inside->description, sizeof(inside->description),
		"between queue pairs of this rocid");
	cfg->ninterfaces = ctl->net->nports + 1;
}

static int begin(struct running *r, struct capture_config *cfg, char why[ABI_SENTENCE_MAX])
{
	int err;

	r->done.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->done.ready = done_ready;
	if (r->done.fd < 0)
		return refuse(why, -errno, "rocid has no descriptor left: %s", strerror(errno));
	cfg->done = r->done.fd;
	cfg->socket = r->socket;
	err = loop_watch(r->ctl->loop, &r->done);
	if (!err)
		err = capture_start(&r->capture, r->ctl->dp, cfg);
	if (err)
		return refuse(why, err,
			"rocid cannot capture (%s): it needs %u MB of memory for each of its %u "
			"workers",
			strerror(-err), CAPTURE_RING >> 20, r->ctl->dp->nworkers);
	snprintf(r->text, sizeof(r->text), "%s", cfg->text);
	r->since_ms = loop_now_ms();
	list_push(&r->ctl->admin->captures, &r->node);
	r->ctl->admin->ncaptures++;
	return 0;
}

int admin_capture(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct capture_config cfg = {
		.filter = {.qpn = CAPTURE_ANY,
			.port = CAPTURE_ANY,
			.snap = UINT16_MAX,
			.in = true,
			.out = true},
		.application = "rocid " ROCINANTE_VERSION,
	};
	struct running *r;
	int err = admin_stream_check(ctl, why); /* at a prompt, the first word is a FILE */

	if (!err)
		err = take_words(ctl, &cfg, arg[0].word, why);
	if (err)
		return err;
	if (ctl->admin->ncaptures == CAPTURES_MAX)
		return refuse(why, -EBUSY,
			"%u captures are already running: end one (\"show captures\" lists them)",
			CAPTURES_MAX);
	r = calloc(1, sizeof(*r));
	if (!r)
		return refuse_memory(why);
	r->ctl = ctl;
	r->done.fd = -1;
	err = admin_stream_take(ctl, &r->socket, why);
	if (err) {
		free(r);
		return err;
	}
	describe(ctl, &cfg);
	err = begin(r, &cfg, why);
	if (err)
		free_running(r);
	return err;
}

/* --- show captures ---------------------------------------------------------------------- */

static bool next_capture(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	const struct list *l = list_at(&ctl->admin->captures, at->index++);
	const struct running *r;
	uint64_t sent, lost;

	(void)arg;
	if (!l)
		return false;
	r = container_of(l, struct running, node);
	sent = capture_counts(r->capture, &lost);
	row_begin(&row);
	put_text(&row, "filter", r->text);
	put_int(&row, "seconds", (loop_now_ms() - r->since_ms) / 1000);
	put_int(&row, "frames", sent);
	put_int(&row, "lost", lost);
	*element = row_end(&row);
	return true;
}

const struct document_section show_captures = {.name = "captures", .next = next_capture};
