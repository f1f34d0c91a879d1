// The arithmetic of docs/design.md, "Numerics": IEEE-754 as it stands.
#pragma once

#include "processors/cortex_m/system_registers.h"

namespace rlt::cortex_m {

// Round to nearest, subnormals kept, NaNs passed on; also for code in interrupts. A processor
// without a floating-point unit has the compiler's arithmetic, which is so.
inline void use_ieee_arithmetic() {
#if defined(__ARM_FP)
  __asm__ volatile("vmsr fpscr, %0" : : "r"(0));
  float_default_status() = 0;
#endif
}

}  // namespace rlt::cortex_m
