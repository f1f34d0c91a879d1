// The arithmetic of docs/design.md, "Numerics": IEEE-754 as it stands. RISC-V has no other but the
// direction of rounding.
#pragma once

#include "processors/riscv/control_registers.h"

namespace rlt::riscv {

// Round to nearest, ties to even; flags cleared.
inline void use_ieee_arithmetic() {
#if defined(__riscv_flen)
  write_register<kFloatStatus>(0);
#endif
}

}  // namespace rlt::riscv
