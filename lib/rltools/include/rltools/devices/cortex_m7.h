// Arm Cortex-M7 with double-precision FPU: i.MX RT1062 (Teensy 4.1), STM32H743 (Pixhawk 6C),
// emulated AN500.
#pragma once

#include "rltools/kernels/cortex_m/dense.h"
#include "rltools/kernels/cortex_m/dense_at_run_time.h"
#include "rltools/kernels/cortex_m/optimizer.h"

namespace rlt {
struct CortexM7 : CortexM {};
}  // namespace rlt
