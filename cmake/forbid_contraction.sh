#!/bin/sh
# Fails where a program has vfmaddsub or vfmsubadd. GCC 12 and 13 make them for a*b - c*d beside a*b + c*d, whatever
# -ffp-contract=off says, and then this machine's bits are not a board's. Kernels that want FMA have other instructions.
# Usage: forbid_contraction.sh OBJDUMP PROGRAM SOURCE
if "$1" -d --no-show-raw-insn "$2" | grep -qE 'vfm(addsub|subadd)'; then
  rm -f "$2"
  echo "$3:1:1: error: the compiler joins products and sums here, so that the bits are not a board's: write a*b - c*d" \
    "as a*b + minus_c*d, or compile with GCC 14 or RLT_CXX=zig" >&2
  exit 1
fi
