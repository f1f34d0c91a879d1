// The floating-point unit's mode: round to nearest, no exception enabled. FreeRTOS does not give a
// new task a mode of its own. Nothing where a processor has no such unit, or is no Xtensa.
#pragma once

namespace rlt::xtensa {

inline void use_ieee_arithmetic() {
#if defined(__XTENSA__) && !defined(__XTENSA_SOFT_FLOAT__)
  __asm__ volatile("wur.fcr %0" : : "r"(0));
#endif
}

}  // namespace rlt::xtensa
