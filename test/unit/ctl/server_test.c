/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon.h"
#include "path.h"

/* A socket file with the given owner gone. */
static void leave_socket(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(un.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
}

static void server_open__stale_socket_is_replaced(void **state)
{
	struct test_daemon *d = *state;
	struct client c;

	daemon_config(d);
	leave_socket(d->path);
	daemon_run(d);
	client_open(d, &c);
	client_close(&c);
	daemon_stop(d);
}

static void server_open__another_rocid_serves(void **state)
{
	static struct port_table ports; /* of another process */
	struct test_daemon *d = *state, second;
	struct dataplane dp = *d->dp;
	struct client c;

	daemon_config(d);
	daemon_run(d);
	second = *d;
	dp.ports = &ports;
	second.cfg.dp = &dp;
	assert_int_equal(ctl_start(&second.ctl, &second.cfg, second.why), -EADDRINUSE);
	assert_null(second.ctl);
	assert_non_null(strstr(second.why, "another rocid serves"));
	assert_non_null(strstr(second.why, d->path));
	client_open(d, &c); /* the first one is unharmed */
	client_close(&c);
	daemon_stop(d);
}

static void server_open__file_in_the_way(void **state)
{
	struct test_daemon *d = *state;
	int fd;

	daemon_config(d);
	fd = open(d->path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), -EADDRINUSE);
	assert_int_equal(access(d->path, F_OK), 0); /* not ours to remove */
	unlink(d->path);
	rmdir(d->dir);
}

static void server_open__mode(void **state)
{
	struct test_daemon *d = *state;
	struct stat st;

	daemon_config(d);
	daemon_run(d);
	assert_int_equal(stat(d->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	daemon_stop(d);
	daemon_config(d);
	d->cfg.socket_mode = 0600;
	daemon_run(d);
	assert_int_equal(stat(d->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	daemon_stop(d);
}

static void server_open__group(void **state)
{
	struct test_daemon *d = *state;
	struct stat st;

	daemon_config(d);
	d->cfg.socket_group = "no such group";
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), -EINVAL);
	assert_non_null(strstr(d->why, "no such group"));
	assert_int_equal(access(d->path, F_OK), -1);
	d->cfg.socket_group = "12345";
	if (geteuid() == 0) {
		daemon_run(d);
		assert_int_equal(stat(d->path, &st), 0);
		assert_int_equal(st.st_gid, 12345);
		daemon_stop(d);
	}
}

static void server_open__bad_paths(void **state)
{
	struct test_daemon *d = *state;
	char path[300];

	daemon_config(d);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	d->cfg.socket_path = path;
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), -ENAMETOOLONG);
	d->cfg.socket_path = "/proc/nowhere/sock";
	assert_true(ctl_start(&d->ctl, &d->cfg, d->why) < 0);
	assert_non_null(strstr(d->why, "/proc/nowhere/sock"));
	rmdir(d->dir);
}

/* A caller that cannot be accepted waits; the control thread neither spins on it nor forgets it. */
static void server_poll__accepts_after_a_shortage(void **state)
{
	struct test_daemon *d = *state;
	struct abi_hello h = {.magic = ABI_MAGIC, .version_min = 1, .version_max = ABI_VERSION};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct timespec before, after;
	struct rlimit old, tight;
	struct answer a;
	clockid_t clock;

	daemon_config(d);
	daemon_run(d);
	strcpy(un.sun_path, d->path);
	assert_int_equal(pthread_getcpuclockid(d->thread, &clock), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = (struct rlimit){.rlim_cur = 1, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	clock_gettime(clock, &before);
	assert_int_equal(connect(sock, (struct sockaddr *)&un, sizeof(un)), 0);
	usleep(300000);
	clock_gettime(clock, &after);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(
		(after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 <
		100);
	assert_int_equal(client_call(sock, ABI_HELLO, &h, sizeof(h), -1, &a), 0);
	answer_close(&a);
	close(sock);
	daemon_stop(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_poll__accepts_after_a_shortage),
		cmocka_unit_test(server_open__stale_socket_is_replaced),
		cmocka_unit_test(server_open__another_rocid_serves),
		cmocka_unit_test(server_open__file_in_the_way),
		cmocka_unit_test(server_open__mode),
		cmocka_unit_test(server_open__group),
		cmocka_unit_test(server_open__bad_paths),
	};

	return cmocka_run_group_tests_name(
		"server", tests, daemon_group_setup, daemon_group_teardown);
}
