/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mistakes that programs on the verbs API make most: each has its errno, and with ROCI_VERBOSE=1 a
 * sentence on stderr, once, that says what to do.
 *
 *   verbs_errors SOCKET ROCICTL
 *
 * `rocictl show errors` lists them as well.
 */
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fixture.h"

#define NOBODY 65534

static FILE *heard; /* what is said on stderr */
static int own_stderr;

static void listen_to_stderr(void)
{
	heard = tmpfile();
	own_stderr = dup(2);
	CHECK(heard && own_stderr >= 0);
	CHECK(dup2(fileno(heard), 2) == 2);
}

/* The last call failed with @p err, and all of @p words were said in one line since the last time.
 */
static void said(const char *what, int got, int err, const char *word, const char *other)
{
	static long from;
	char line[2048] = "";
	bool found = false;

	fflush(stderr);
	fseek(heard, from, SEEK_SET);
	while (!found && fgets(line, sizeof(line), heard))
		found = strstr(line, word) && strstr(line, other) &&
			!strncmp(line, "rocinante: ", 11);
	fseek(heard, 0, SEEK_END);
	from = ftell(heard);
	if (got == err && found)
		return;
	dprintf(own_stderr, "%s: errno %d (%s), expected %d (%s); said: %s\n", what, got,
		strerror(got), err, strerror(err), line);
	exit(1);
}

static void silent(const char *what)
{
	long before = ftell(heard);

	fflush(stderr);
	fseek(heard, 0, SEEK_END);
	if (ftell(heard) == before)
		return;
	dprintf(own_stderr, "%s: said a second time\n", what);
	exit(1);
}

/* --- the daemon ------------------------------------------------------------------------- */

static void no_daemon(const char *socket)
{
	int n = 1;

	setenv("ROCI_SOCKET", "/nowhere/rocid.sock", 1);
	ibv_free_device_list(ibv_get_device_list(&n));
	CHECK(n == 0);
	said("no daemon", ENOENT, ENOENT, "/nowhere/rocid.sock", "start rocid");
	ibv_free_device_list(ibv_get_device_list(&n));
	silent("no daemon");
	setenv("ROCI_SOCKET", socket, 1);
}

/* In a child, which is another user. */
static void no_rights(void)
{
	int n = 1, status;
	pid_t pid;

	if (geteuid())
		return;
	pid = fork();
	if (!pid) {
		CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
		ibv_free_device_list(ibv_get_device_list(&n));
		CHECK(n == 0);
		said("no rights", EACCES, EACCES, "no permission", "group");
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	fseek(heard, 0, SEEK_END);
}

/* --- addresses -------------------------------------------------------------------------- */

static struct ibv_qp *qp_in_init(struct end *e)
{
	struct ibv_qp_init_attr a = {.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &a);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	CHECK(qp);
	CHECK(!ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

static int to_rtr(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	a->qp_state = IBV_QPS_RTR;
	a->dest_qp_num = 1;
	a->max_dest_rd_atomic = 1;
	a->ah_attr.port_num = 1;
	return ibv_modify_qp(qp, a,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* A path that is right. */
static struct ibv_qp_attr path(struct end *e)
{
	struct ibv_qp_attr a = {.path_mtu = IBV_MTU_1024, .ah_attr = {.is_global = 1}};

	CHECK(!ibv_query_gid(e->context, 2, 0, &a.ah_attr.grh.dgid));
	a.ah_attr.grh.hop_limit = 64;
	return a;
}

static void wrong_paths(struct end *e)
{
	struct ibv_qp *qp = qp_in_init(e);
	struct ibv_qp_attr a = path(e);

	a.ah_attr.is_global = 0;
	said("is_global 0", to_rtr(qp, &a), EINVAL, "ibv_modify_qp", "is_global");
	CHECK(!ibv_create_ah(e->pd, &a.ah_attr));
	said("is_global 0, AH", errno, EINVAL, "ibv_create_ah", "is_global");
	a = path(e);
	a.ah_attr.grh.sgid_index = 100;
	said("GID index", to_rtr(qp, &a), EINVAL, "ibv_modify_qp", "GID");
	a = path(e);
	memset(&a.ah_attr.grh.dgid, 0, 16);
	a.ah_attr.grh.dgid.raw[0] = 0xFE;
	a.ah_attr.grh.dgid.raw[1] = 0x80;
	a.ah_attr.grh.dgid.raw[15] = 1;
	said("link-local peer of an IPv4 GID", to_rtr(qp, &a), EINVAL, "ibv_modify_qp", "GID");
	a = path(e);
	a.path_mtu = IBV_MTU_4096;
	said("MTU", to_rtr(qp, &a), EINVAL, "ibv_modify_qp", "MTU");
	a = path(e);
	CHECK(!to_rtr(qp, &a));
	CHECK(!ibv_destroy_qp(qp));
}

/* --- memory ----------------------------------------------------------------------------- */

static void refused(const char *what, struct end *e, void *p, size_t len, int err, const char *word,
	const char *other)
{
	errno = 0;
	CHECK(!ibv_reg_mr(e->pd, p, len, ALL_ACCESS));
	said(what, errno, err, word, other);
}

static void wrong_memory(struct end *e)
{
	char name[] = "/var/tmp/verbs-errors-XXXXXX";
	int fd = mkstemp(name);
	uint8_t *p = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *q;

	munmap(p + 4096, 4096);
	refused("a hole", e, p, 12288, EFAULT, "ibv_reg_mr", "nothing is mapped");
	mprotect(p, 4096, PROT_READ);
	refused("read-only", e, p, 4096, EFAULT, "not writable", "without local write");
	mprotect(p, 4096, PROT_NONE);
	refused("no access", e, p, 4096, EFAULT, "ibv_reg_mr", "PROT_NONE");
	CHECK(fd >= 0 && !unlink(name) && !ftruncate(fd, 4096));
	q = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	refused("a file", e, q, 4096, EOPNOTSUPP, "shared mapping of a file", "copy it");
	munmap(q, 4096);
	close(fd);
	q = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (getenv("NO_MAP_FILES"))
		refused("shared anonymous", e, q, 4096, EOPNOTSUPP, "MAP_SHARED", "memfd_create");
	munmap(q, 4096);
	munmap(p, 4096);
	munmap(p + 8192, 4096);
}

/* --- objects ---------------------------------------------------------------------------- */

static void wrong_objects(struct end *e)
{
	struct ibv_qp_init_attr a = {.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.cap.max_send_wr = 1 << 30};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

	CHECK(!ibv_create_qp(e->pd, &a));
	said("too many WRs", errno, EINVAL, "ibv_create_qp", "maximum");
	a.cap.max_send_wr = 1;
	a.qp_type = IBV_QPT_RAW_PACKET;
	CHECK(!ibv_create_qp(e->pd, &a));
	said("raw packets", errno, EOPNOTSUPP, "ibv_create_qp", "not supported");
	CHECK(!ibv_create_cq(e->context, 16, NULL, NULL, 1));
	said("vector", errno, EINVAL, "ibv_create_cq", "vector");
	CHECK(!ibv_create_cq(e->context, 1 << 30, NULL, NULL, 0));
	said("entries", errno, EINVAL, "ibv_create_cq", "entries");
	CHECK(!ibv_open_xrcd(e->context, &(struct ibv_xrcd_init_attr){.comp_mask = 1}));
	said("XRC domain", errno, EINVAL, "ibv_open_xrcd", "IBV_XRCD_INIT_ATTR_FD");
	a.qp_type = IBV_QPT_RC;
	e->qp = ibv_create_qp(e->pd, &a);
	CHECK(e->qp);
	said("ECE", ibv_set_ece(e->qp, &(struct ibv_ece){.vendor_id = 1}), EOPNOTSUPP,
		"ibv_set_ece", "without ECE");
	said("dealloc_pd", ibv_dealloc_pd(e->pd), EBUSY, "ibv_dealloc_pd", "use");
	said("post in RESET", ibv_post_send(e->qp, &wr, &bad), EINVAL, "ibv_post_send", "RTS");
	said("destroy_cq", ibv_destroy_cq(e->cq), EBUSY, "ibv_destroy_cq", "destroy");
	CHECK(!ibv_destroy_qp(e->qp));
}

/* --- an administrator ------------------------------------------------------------------- */

static void listed(const char *rocictl, const char *socket)
{
	static char all[1 << 18];
	char command[1024];
	FILE *f;

	snprintf(command, sizeof(command), "%s --socket %s --json show errors", rocictl, socket);
	f = popen(command, "r");
	CHECK(f);
	all[fread(all, 1, sizeof(all) - 1, f)] = 0;
	CHECK(!pclose(f));
	CHECK(strstr(all, "\"refused\"") && strstr(all, "\"verbs_errors\""));
	CHECK(strstr(all, "ibv_modify_qp: ") && strstr(all, "is_global"));
	CHECK(strstr(all, "ibv_create_ah: ") && strstr(all, "ibv_create_cq: "));
	CHECK(strstr(all, "nothing is mapped") && strstr(all, "copy it"));
	CHECK(strstr(all, "QPs of type 8 are not supported"));
}

int main(int argc, char **argv)
{
	struct end e = {0};
	struct ibv_device **list;

	CHECK(argc > 2);
	setenv("ROCI_VERBOSE", "1", 1);
	listen_to_stderr();
	no_daemon(argv[1]);
	no_rights();
	list = ibv_get_device_list(NULL);
	e.context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	e.pd = ibv_alloc_pd(e.context);
	e.cq = ibv_create_cq(e.context, 16, NULL, NULL, 0);
	CHECK(e.pd && e.cq);
	wrong_paths(&e);
	wrong_memory(&e);
	wrong_objects(&e);
	listed(argv[2], argv[1]);
	CHECK(!ibv_destroy_cq(e.cq) && !ibv_dealloc_pd(e.pd) && !ibv_close_device(e.context));
	return 0;
}
