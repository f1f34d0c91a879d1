#!/bin/sh
# Runs a command, and leaves its processor seconds in a file: `rlt test` adds up those of a test.
# Usage: measured.sh DIRECTORY NAME COMMAND...
directory=$1 name=$2
shift 2
"$@"
code=$?
mkdir -p "$directory"
times >"$directory/$name.$$"
exit $code
