#!/bin/sh
# usage: no_switch.sh none|switch VARIABLE PROGRAM...: do the programs know the tests' environment variable?
want=$1 variable=$2
shift 2
for program; do
    if grep -q "$variable" "$program"; then found=switch; else found=none; fi
    [ "$found" = "$want" ] || { echo "$variable in $program: $found, not $want" >&2; exit 1; }
done
