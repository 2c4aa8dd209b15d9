/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "sysfs/changes.h"

struct change {
	struct list node;
	enum change_kind kind;
	const char *text; /* after the path */
	char path[];
};

void changes_init(struct changes *c)
{
	list_init(&c->list);
	c->lost = false;
}

void changes_add(struct changes *c, enum change_kind kind, const char *path, const char *text)
{
	size_t path_size = strlen(path) + 1, text_size = strlen(text) + 1;
	struct change *ch = malloc(sizeof(*ch) + path_size + text_size);

	if (!ch) {
		c->lost = true;
		return;
	}
	ch->kind = kind;
	ch->text = ch->path + path_size;
	memcpy(ch->path, path, path_size);
	memcpy(ch->path + path_size, text, text_size);
	list_push(&c->list, &ch->node);
}

static int apply(const struct change *ch, const struct folder *f)
{
	switch (ch->kind) {
	case CHANGE_MAKE:
		return folder_make(f, ch->path);
	case CHANGE_WRITE:
		return folder_write(f, ch->path, ch->text);
	case CHANGE_LINK:
		return folder_link(f, ch->path, ch->text);
	case CHANGE_REMOVE:
		folder_remove(f, ch->path);
	}
	return 0;
}

bool changes_apply(struct changes *c, const struct folder *f)
{
	bool ok = !c->lost;
	struct list *l;

	while ((l = list_pop(&c->list))) {
		struct change *ch = container_of(l, struct change, node);

		ok &= !apply(ch, f);
		free(ch);
	}
	c->lost = false;
	return ok;
}
