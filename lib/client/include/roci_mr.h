/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci_mr.h
 * Protection domains and memory regions; a part of roci.h, which includes it.
 */
#ifndef ROCI_MR_H
#define ROCI_MR_H

#ifndef ROCI_H
#error "include roci.h"
#endif

struct roci_context;

/** A protection domain: MRs and QPs must be in the same one to work together (MR-06). */
struct roci_pd {
	struct roci_context *context; /**< its session */
};

/**
 * Allocates a protection domain.
 * @param ctx  the session
 * @return the PD, or NULL with errno ENOMEM, EDQUOT or ENOSPC (too many).
 */
ROCI_API struct roci_pd *roci_alloc_pd(struct roci_context *ctx);

/**
 * Deallocates a protection domain.
 * @param pd  the PD; its MRs and QPs must have been destroyed
 * @return 0, or EBUSY: MRs or QPs still use it.
 */
ROCI_API int roci_dealloc_pd(struct roci_pd *pd);

/** Access rights of an MR, and of a QP's peer. The program's own SGEs may always read. */
enum roci_access_flags {
	ROCI_ACCESS_LOCAL_WRITE = 1 << 0,   /**< receives and READs may write there */
	ROCI_ACCESS_REMOTE_WRITE = 1 << 1,  /**< the peer may WRITE; needs LOCAL_WRITE too */
	ROCI_ACCESS_REMOTE_READ = 1 << 2,   /**< the peer may READ */
	ROCI_ACCESS_REMOTE_ATOMIC = 1 << 3, /**< the peer may do atomics; needs LOCAL_WRITE */
	ROCI_ACCESS_MW_BIND = 1 << 4,	    /**< windows may be bound to it (MW-06); MRs only */
	ROCI_ACCESS_ZERO_BASED = 1 << 5,    /**< addresses start at 0 (MR-03); not for QPs */
	ROCI_ACCESS_FLUSH_GLOBAL = 1 << 8,  /**< the peer may FLUSH for visibility (FLU-04) */
	/** The peer may FLUSH for persistence. rocid refuses such MRs: its memory is not
	 *  persistent. */
	ROCI_ACCESS_FLUSH_PERSISTENT = 1 << 9,
};

/** A memory region. The members are read-only. */
struct roci_mr {
	struct roci_context *context; /**< its session */
	struct roci_pd *pd;	      /**< its PD; QPs that use it must be in the same one */
	void *addr;		      /**< its address in the program */
	size_t length;		      /**< bytes */
	uint32_t lkey;		      /**< for struct roci_sge */
	uint32_t rkey;		      /**< for the peer */
};

/**
 * Allocates zeroed memory that can be registered: whole pages of a memfd, page-aligned, and aligned
 * to 2 MiB from 2 MiB on so that huge pages can back it.
 * @param ctx     the session; the memory lives as long as it
 * @param length  bytes, 1 or more
 * @return its address, or NULL with errno EINVAL (@p length is 0), ENOMEM, EMFILE.
 */
ROCI_API void *roci_alloc_mem(struct roci_context *ctx, size_t length);

/**
 * Frees memory of roci_alloc_mem().
 * @param ctx   the session that it was allocated in
 * @param addr  the address that roci_alloc_mem() returned
 * @return 0; EINVAL: @p addr is not such memory; EBUSY: MRs still use it; deregister them first.
 */
ROCI_API int roci_free_mem(struct roci_context *ctx, void *addr);

/**
 * Registers [@p addr, @p addr + @p length), memory of any kind: of malloc(), of mmap(), a stack, a
 * file in /dev/shm. Several MRs may overlap, with different rights. Private memory is replaced in
 * place by pages that rocid can reach, with the same bytes, and stays so; doc/arena.md says what
 * that changes for a program. Memory of roci_alloc_mem() need not be replaced.
 * @param pd      its QPs may use the MR
 * @param addr    of the first byte; any alignment
 * @param length  bytes
 * @param access  enum roci_access_flags; remote write needs local write too (MR-02). With
 *                ROCI_ACCESS_ZERO_BASED the first byte has address 0 in SGEs and on the wire
 *                (MR-03).
 * @return the MR, or NULL with errno EFAULT (not mapped, or not for this access), EPERM (sealed
 * memory), EOPNOTSUPP (a shared mapping whose file rocid cannot reach, such as one on a disk),
 * EBUSY (other threads could not be kept from writing to it), EINVAL, ENOMEM, EDQUOT (too many MRs,
 * or too much memory).
 */
ROCI_API struct roci_mr *roci_reg_mr(struct roci_pd *pd, void *addr, size_t length, int access);

/**
 * Like roci_reg_mr(), but with a different address of the first byte in SGEs and on the wire
 * (MR-04).
 * @param pd      its QPs may use the MR
 * @param addr    of the first byte; any alignment
 * @param length  bytes
 * @param iova    the address of the first byte in SGEs and on the wire
 * @param access  enum roci_access_flags
 * @return the MR, or NULL with errno as for roci_reg_mr(); EINVAL also if the range wraps (MR-07).
 */
ROCI_API struct roci_mr *roci_reg_mr_iova(
	struct roci_pd *pd, void *addr, size_t length, uint64_t iova, int access);

/**
 * Allocates memory (see roci_alloc_mem()) and registers it; roci_dereg_mr() frees both.
 * @param pd      its QPs may use the MR
 * @param length  bytes, 1 or more
 * @param access  enum roci_access_flags
 * @return the MR, or NULL with errno as for roci_alloc_mem() and roci_reg_mr().
 */
ROCI_API struct roci_mr *roci_alloc_mr(struct roci_pd *pd, size_t length, int access);

/** The properties that roci_rereg_mr() changes. */
enum roci_rereg_mr_flags {
	ROCI_REREG_MR_CHANGE_TRANSLATION = 1 << 0, /**< the memory */
	ROCI_REREG_MR_CHANGE_PD = 1 << 1,	   /**< the protection domain */
	ROCI_REREG_MR_CHANGE_ACCESS = 1 << 2,	   /**< the rights */
};

/**
 * Changes an MR; its keys stay. Requests that use it meanwhile fail.
 * @param mr      from roci_reg_mr() or roci_reg_mr_iova(), not roci_alloc_mr()
 * @param flags   enum roci_rereg_mr_flags; parameters of others are ignored
 * @param pd      the new PD
 * @param addr    of the first byte of the new memory, also in SGEs and on the wire
 * @param length  bytes
 * @param access  enum roci_access_flags
 * @return 0, or an errno value as for roci_reg_mr(), the MR being unchanged; EBUSY: memory windows
 * are bound to it.
 */
ROCI_API int roci_rereg_mr(
	struct roci_mr *mr, int flags, struct roci_pd *pd, void *addr, size_t length, int access);

/**
 * Deregisters an MR. When it returns, nothing accesses the memory through this MR any more: work
 * requests and peers that still name it get protection errors.
 * @param mr  from roci_reg_mr(), roci_reg_mr_iova() or roci_alloc_mr()
 * @return 0; or an errno value, the MR being unchanged; EBUSY: memory windows are bound to it
 * (MR-05).
 */
ROCI_API int roci_dereg_mr(struct roci_mr *mr);

#endif
