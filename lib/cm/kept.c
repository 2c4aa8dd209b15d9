/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections without a user, which are kept for their peers. When the table is full they give way
 * to new connections, oldest first: answers, because a peer can have any number of requests
 * rejected, then TIMEWAIT, and last unanswered DREQs, without which peers do not learn that their
 * connection has ended. */
#include "cm_impl.h"

static bool is_answer(const struct cm_conn *c)
{
	return c->state == CM_REJECTED || c->state == CM_SIDR_DONE;
}

static struct list *list_of(struct cm *cm, const struct cm_conn *c)
{
	if (is_answer(c))
		return &cm->answers[cm_peer(cm, &c->path)];
	return c->state == CM_TIMEWAIT ? &cm->timewait : &cm->dreqs;
}

void cm_kept_init(struct cm *cm)
{
	for (unsigned i = 0; i < CM_PEERS; i++)
		list_init(&cm->answers[i]);
	list_init(&cm->timewait);
	list_init(&cm->dreqs);
}

void cm_keep(struct cm *cm, struct cm_conn *c)
{
	list_del(&c->node);
	list_push(list_of(cm, c), &c->node);
	if (is_answer(c))
		cm->nanswers[cm_peer(cm, &c->path)]++;
}

void cm_keep_no_more(struct cm *cm, struct cm_conn *c)
{
	list_del(&c->node);
	if (!c->owned && is_answer(c))
		cm->nanswers[cm_peer(cm, &c->path)]--;
}

/* SEC-03: the answers of the peer that has the most, so that a flood evicts none of other peers. */
static struct list *most_answers(struct cm *cm)
{
	unsigned most = 0;

	for (unsigned i = 1; i < CM_PEERS; i++)
		if (cm->nanswers[i] > cm->nanswers[most])
			most = i;
	return &cm->answers[most];
}

struct cm_conn *cm_least_kept(struct cm *cm)
{
	struct list *const lists[] = {most_answers(cm), &cm->timewait, &cm->dreqs};

	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
		if (!list_empty(lists[i]))
			return container_of(lists[i]->next, struct cm_conn, node);
	return NULL;
}
