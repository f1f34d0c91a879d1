#!/bin/sh
# Writes a C header that defines RLT_REVISION: git's short hash, "-dirty" after local changes, empty without git.
# Usage: write_revision.sh HEADER. Leaves a header alone that already says so: nothing is rebuilt. A shell script, as
# it runs at every build: an interpreter takes longer to start than all else that an unchanged build does.
set -eu

if [ $# -ne 1 ]; then
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
fi
tree=$(dirname -- "$0")/..
revision=
if [ -e "$tree/.git" ]; then  # where it is installed, a repository around it is another's
  revision=$(git -C "$tree" describe --always --dirty --abbrev=9 '--exclude=*' 2>/dev/null) || revision=
fi
text=$(printf '#pragma once\n#define RLT_REVISION "%.15s"' "$revision")
if [ -f "$1" ] && [ "$(cat "$1")" = "$text" ]; then
  exit 0
fi
mkdir -p "$(dirname -- "$1")"
printf '%s\n' "$text" > "$1.new"
mv "$1.new" "$1"
