# SPDX-License-Identifier: BSD-3-Clause
# For readme_test.sh: installs into $dir/root and looks at what is there. Sets rocid, cflags, libs, static.

# `ninja uninstall` takes away what the last installation wrote down: that one shall stay the user's.
log=$build/meson-logs/install-log.txt
[ ! -e "$log" ] || cp "$log" "$dir/saved"
install_there() {
	meson install -C "$build" --no-rebuild --destdir "$dir/root" >"$dir/install.log" 2>&1
	local status=$?
	if [ -e "$dir/saved" ]; then cp "$dir/saved" "$log"; else rm -f "$log"; fi
	return $status
}
install_there || fail "meson install fails"

option() { # NAME: of the build
	meson introspect "$build" --buildoptions |
		python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"
}
prefix=$(option prefix)
there=$dir/root$prefix
lib=$there/$(option libdir)
conf=$dir/root$(python3 -c 'import os, sys; print(os.path.join(*sys.argv[1:]))' "$prefix" "$(option sysconfdir)")/rocid/rocid.conf
rocid=$there/$(option sbindir)/rocid
static=$lib/libroci.a

for f in "$rocid" "$there/bin/rocictl" "$there/bin/roci-pingpong" "$there/include/roci.h" "$static" "$lib/libroci.so" \
	"$lib/libroci.so.0" "$lib/pkgconfig/libroci.pc" "$conf" "$there/lib/sysusers.d/rocid.conf" \
	"$there/share/bash-completion/completions/rocid" "$there/share/doc/rocinante/tuning.md" \
	"$there/share/doc/rocinante/decisions/README.md" "$there/share/doc/rocinante/examples/pingpong.c" \
	"$there"/share/man/man{1/rocictl.1,7/roci.7,8/rocid.8}; do
	[ -e "$f" ] || fail "${f#"$dir/root"} is not installed"
done

# Programs find each other where they are said to be.
unit=$there/lib/systemd/system/rocid.service
[ "$(option unitdir)" = "" ] || unit=$dir/root$(option unitdir)/rocid.service
started=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
[ -x "$dir/root$started" ] || fail "rocid.service starts $started, which is not installed"
grep -q -- "--config ${conf#"$dir/root"}\$" "$unit" || fail "rocid.service does not read ${conf#"$dir/root"}"
for f in share tap af_xdp nic; do
	[ -e "$there/share/rocinante/rocid.service.d/$f.conf" ] || fail "rocid.service.d/$f.conf is not installed"
done
grep -q "in $prefix/share/rocinante/rocid.service.d" "$unit" || fail "rocid.service names another place of its drop-ins"
user=$(sed -n 's/^User=//p' "$unit")
grep -q "^u $user " "$there/lib/sysusers.d/rocid.conf" || fail "nobody makes the user of rocid.service"
if command -v systemd-sysusers >/dev/null; then
	mkdir -p "$dir/root/etc"
	systemd-sysusers --root="$dir/root" "$there/lib/sysusers.d/rocid.conf" >"$dir/sysusers.log" 2>&1 &&
		grep -q "^$user:" "$dir/root/etc/passwd" || fail "systemd-sysusers does not make its user"
fi

readelf -d "$lib/libroci.so" | grep -q 'SONAME.*\[libroci.so.0\]' || fail "the soname is not libroci.so.0"
readelf -d "$rocid" "$lib/libroci.so" "$there"/bin/* | grep -qE 'R(UN)?PATH' && fail "a RUNPATH was left"

# An administrator's file stays.
echo '# mine' >"$conf"
install_there || fail "meson install fails the second time"
[ "$(cat "$conf")" = '# mine' ] || fail "meson install wrote over an rocid.conf that was there"

export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/root LD_LIBRARY_PATH=$lib
cflags=$(pkg-config --cflags libroci) && libs=$(pkg-config --libs libroci) || fail "pkg-config does not know libroci"
[ "$("$there/bin/rocictl" --version | sed 's/.* //')" = "$(pkg-config --modversion libroci)" ] ||
	fail "rocictl and libroci.pc differ in their version"
