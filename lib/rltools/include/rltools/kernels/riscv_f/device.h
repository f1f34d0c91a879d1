// 32-bit RISC-V with a single-precision floating-point unit: the extension F, which has fused
// multiply-add and 32 registers.
#pragma once

#include "rltools/core/device.h"

namespace rlt {
struct RiscvF : Generic {};
}  // namespace rlt
