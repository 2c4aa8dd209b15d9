# SPDX-License-Identifier: BSD-3-Clause
# Completion for bash. Options are those that `--help` lists; the daemon, if it can be reached, completes
# the commands of rocictl.
_roci_options() {
	"$1" --help 2>/dev/null | grep -oE '^ +--[a-z0-9-]+|, --[a-z0-9-]+' | grep -oE '\-\-[a-z0-9-]+' | sort -u
}

_rocictl() {
	local cur prev words cword
	_init_completion -n = || return
	local i=1 options=() line=()

	case $prev in
	--socket) _filedir; return ;;
	esac
	while [ "$i" -lt "$cword" ]; do
		case ${words[i]} in
		--socket) options+=("${words[i]}" "${words[i + 1]}"); i=$((i + 1)) ;;
		--count) i=$((i + 1)) ;;
		--*) ;;
		help | watch) [ ${#line[@]} = 0 ] || line+=("${words[i]}") ;; # another command follows
		*) line+=("${words[i]}") ;;
		esac
		i=$((i + 1))
	done
	[[ ${line[0]-} =~ ^[0-9.]+$ ]] && line=("${line[@]:1}") # the seconds of watch
	if [[ ${#line[@]} = 0 && $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_roci_options "$1")" -- "$cur")
		return
	fi
	mapfile -t COMPREPLY < <("$1" "${options[@]}" --json complete "${line[*]} $cur" 2>/dev/null |
		grep -oE '"word":"[^"]*"' | sed 's/.*:"//;s/"$//')
	if [[ ${#line[@]} = 0 && watch == "$cur"* ]]; then COMPREPLY+=(watch); fi
}

_rocid() {
	local cur prev words cword
	_init_completion -n = || return
	local own=

	case " ${words[*]:1:cword-1} " in
	*" -- "*) own=yes ;;
	esac
	case $prev in
	--share) mapfile -t COMPREPLY < <(compgen -W "$(ls /sys/class/net)" -- "$cur"); return ;;
	--socket | --config | --check-config | --cmdline-file) _filedir; return ;;
	--idle) mapfile -t COMPREPLY < <(compgen -W 'poll yield adaptive' -- "$cur"); return ;;
	esac
	[[ $cur == -* ]] || return
	if [ -n "$own" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_roci_options "$1")" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -W \
			'-- --help --version --config --check-config -l -m -a --no-huge --no-pci --vdev --lcores --file-prefix' -- "$cur")
	fi
}

_rociperf() {
	local cur prev words cword
	_init_completion -n = || return
	mapfile -t COMPREPLY < <(compgen -W "$(_roci_options "$1")" -- "$cur")
}

# The program and its own arguments are completed as if they stood alone.
_roci_run() {
	local cur prev words cword i=1
	_init_completion || return
	while [ $i -lt "$cword" ] && [[ ${words[i]} == -* ]]; do
		[ "${words[i]}" = --socket ] && ((i++))
		((i++))
	done
	if [ $i -lt "$cword" ] || { [ $i = "$cword" ] && [[ $cur != -* ]]; }; then
		_command_offset $i
	else
		mapfile -t COMPREPLY < <(compgen -W "$(_roci_options "$1")" -- "$cur")
	fi
}

complete -F _rocictl rocictl
complete -F _rocid rocid
complete -F _rociperf rociperf
complete -F _roci_run roci-run
