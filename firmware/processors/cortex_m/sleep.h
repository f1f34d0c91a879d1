// Sleep of an idle processor.
#pragma once

#include "processors/cortex_m/system_registers.h"

namespace rlt::cortex_m {

// Sleep until an interrupt, or for so many ticks of the processor's clock; not at all where
// something waits already. SysTick runs here only, so that it never interrupts training.
template <class Waits>
void sleep(std::uint32_t ticks, Waits&& something_waits) {
  systick_reload() = ticks;
  systick_value() = 0;
  systick_control() = 7;  // processor clock, interrupt, enable
  __asm__ volatile("cpsid i" : : : "memory");
  if (!something_waits()) __asm__ volatile("wfi");  // a pending interrupt wakes it
  __asm__ volatile("cpsie i" : : : "memory");
  systick_control() = 0;
}

}  // namespace rlt::cortex_m
