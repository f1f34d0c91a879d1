// Arm Cortex-M without floating-point unit: M0, M0+, M3, M23, and M4 and M33 where it is left out.
#pragma once

#include "rltools/kernels/soft_float/dense.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct CortexM3 : SoftFloat {};
}  // namespace rlt
