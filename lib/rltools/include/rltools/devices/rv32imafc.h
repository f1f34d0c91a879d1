// RISC-V of 32 bits with single-precision floating-point unit: ESP32-P4, CH32V307.
#pragma once

#include "rltools/kernels/riscv_f/dense.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct Rv32imafc : RiscvF {};
}  // namespace rlt
