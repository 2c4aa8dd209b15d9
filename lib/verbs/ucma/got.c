/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces open, write, close and fstat of libc by ours, in librdmacm alone, by changing its global
 * offset table. Both libraries have been relocated when this one's constructor runs. If the loader
 * made the table read-only, it is made so again. */
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ucma.h"
#include "verbs.h"

#define LIBRDMACM "librdmacm.so.1"

#if defined(__x86_64__)
#define SLOT_TYPE   R_X86_64_JUMP_SLOT
#define GLOBAL_TYPE R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define SLOT_TYPE   R_AARCH64_JUMP_SLOT
#define GLOBAL_TYPE R_AARCH64_GLOB_DAT
#else
#error "which relocations are of the global offset table?"
#endif

struct search {
	const char *soname;
	const struct ucma_hook *hooks;
	unsigned n;
	unsigned replaced;
};

/* The relevant entries of the dynamic section. */
struct dynamic {
	const char *strings;
	const ElfW(Sym) * symbols;
	const ElfW(Rela) * rela[2]; /* of the procedure linkage table, and the others */
	size_t nrela[2];
	size_t soname;
};

/* The loader has relocated the pointers, except in the kernel's vDSO. */
static const void *address(const struct dl_phdr_info *o, const ElfW(Dyn) * d)
{
	uintptr_t at = d->d_un.d_ptr;

	return (const void *)(at < o->dlpi_addr ? o->dlpi_addr + at : at);
}

static void read_dynamic(const struct dl_phdr_info *o, const ElfW(Dyn) * d, struct dynamic *to)
{
	*to = (struct dynamic){0};
	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_STRTAB:
			to->strings = address(o, d);
			break;
		case DT_SYMTAB:
			to->symbols = address(o, d);
			break;
		case DT_JMPREL:
			to->rela[0] = address(o, d);
			break;
		case DT_PLTRELSZ:
			to->nrela[0] = d->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_RELA:
			to->rela[1] = address(o, d);
			break;
		case DT_RELASZ:
			to->nrela[1] = d->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_SONAME:
			to->soname = d->d_un.d_val;
			break;
		default:
			break;
		}
	}
}

static bool write_slot(void **slot, void *value, bool relro)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)slot & ~(page - 1));

	if (relro && mprotect(start, page, PROT_READ | PROT_WRITE))
		return false;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (relro)
		mprotect(start, page, PROT_READ);
	return true;
}

static bool in_relro(const struct dl_phdr_info *o, uintptr_t address)
{
	for (int i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t start = o->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_RELRO && address >= start && address < start + p->p_memsz)
			return true;
	}
	return false;
}

static void try_relocation(struct search *s, const struct dl_phdr_info *o, const struct dynamic *d,
	const ElfW(Rela) * r)
{
	void **slot = (void **)(o->dlpi_addr + r->r_offset);
	const char *name;

	if (ELF64_R_TYPE(r->r_info) != SLOT_TYPE && ELF64_R_TYPE(r->r_info) != GLOBAL_TYPE)
		return;
	name = d->strings + d->symbols[ELF64_R_SYM(r->r_info)].st_name;
	for (unsigned i = 0; i < s->n; i++) {
		if (strcmp(name, s->hooks[i].name) != 0)
			continue;
		s->replaced += *slot == s->hooks[i].ours ||
			       write_slot(slot, s->hooks[i].ours, in_relro(o, (uintptr_t)slot));
	}
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *o)
{
	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static int look_at(struct dl_phdr_info *o, size_t size, void *arg)
{
	const ElfW(Dyn) *dyn = dynamic_of(o);
	struct search *s = arg;
	struct dynamic d;

	(void)size;
	if (!dyn || !o->dlpi_name || !*o->dlpi_name)
		return 0;
	read_dynamic(o, dyn, &d);
	if (!d.strings || !d.soname || strcmp(d.strings + d.soname, s->soname) != 0)
		return 0;
	for (unsigned k = 0; k < 2; k++)
		for (size_t i = 0; i < d.nrela[k]; i++)
			try_relocation(s, o, &d, &d.rela[k][i]);
	return 1;
}

/* Replaces the imports of @p hooks by the object @p soname. @return the number replaced. */
static unsigned ucma_replace(const char *soname, const struct ucma_hook *hooks, unsigned n)
{
	struct search s = {.soname = soname, .hooks = hooks, .n = n};

	if (!dl_iterate_phdr(look_at, &s))
		return n; /* not loaded: nothing to replace */
	return s.replaced;
}

void ucma_attach(void)
{
	static const struct ucma_hook hooks[] = {{"open", (void *)ucma_open},
		{"open64", (void *)ucma_open}, {"write", (void *)ucma_write},
		{"close", (void *)ucma_close}, {"fstat", (void *)ucma_fstat},
		{"fstat64", (void *)ucma_fstat}, {"__fxstat", (void *)ucma_fxstat},
		{"__fxstat64", (void *)ucma_fxstat}};

	/* open, write, close, and whichever name of fstat it imports */
	if (ucma_replace(LIBRDMACM, hooks, sizeof(hooks) / sizeof(*hooks)) < 4)
		explain_as("librdmacm", EPROTONOSUPPORT,
			"this " LIBRDMACM " opens rdma_cm in an unknown way, so RDMA CM "
			"does not reach rocid: use the librdmacm of the distribution");
}

__attribute__((constructor)) static void attach_when_loaded(void)
{
	ucma_attach();
}
