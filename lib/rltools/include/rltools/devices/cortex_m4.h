// Arm Cortex-M4 with its single-precision floating-point unit: STM32F405 (Crazyflie, many flight
// controllers), nRF52840, emulated AN386. `double` is the library's there: Adam multiplies two a
// step.
#pragma once

#include "rltools/kernels/cortex_m/dense.h"
#include "rltools/kernels/cortex_m/dense_at_run_time.h"
#include "rltools/kernels/cortex_m/optimizer.h"

namespace rlt {
struct CortexM4 : CortexM {};
}  // namespace rlt
