#!/bin/sh
# usage: no_switch.sh HOLT_SPAWN none|switch: does the program know the tests' environment variable?
if grep -q HOLT_OMIT "$1"; then found=switch; else found=none; fi
[ "$found" = "$2" ] || { echo "HOLT_OMIT in $1: $found, not $2" >&2; exit 1; }
