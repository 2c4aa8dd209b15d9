#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Run a shell command in the guest: its output (stdout and stderr), and its exit status; 125 when the
# guest does not answer.   guest-exec.sh 'COMMAND'      WORKDIR, STATE, NAME as for run-guest.sh
STATE=${STATE:-${WORKDIR:?set WORKDIR or STATE as for run-guest.sh}/run}
PORT=$(cat "$STATE/${NAME:-peer}/port") || exit 125
exec 3<>"/dev/tcp/127.0.0.1/$PORT" || exit 125
printf '%s' "$*" | base64 -w0 >&3
echo >&3
awk -v rc=125 '
/^__RC [0-9]+$/ { rc = $2; next }
{ if (NR > 1) printf "%s%s", (n++ ? "\n" : ""), prev; prev = $0; have = 1; fflush() }
END { if (have) { printf "%s%s", (n ? "\n" : ""), prev; if (prev != "") print "" } exit rc }' <&3
