// Peripherals of the STM32F405 (ST RM0090), as far as QEMU's machine netduinoplus2 has them.
#pragma once

#include "processors/cortex_m/system_registers.h"

namespace rlt::stm32f405 {

using cortex_m::at, cortex_m::Register;

// USART 1.
inline Register& usart_status() { return at(0x40011000); }
inline Register& usart_data() { return at(0x40011004); }
inline Register& usart_control_1() { return at(0x4001100c); }
constexpr std::uint32_t kReceiveFull = 1u << 5, kTransmitEmpty = 1u << 7;  // of usart_status
constexpr std::uint32_t kReceiveEnable = 1u << 2, kTransmitEnable = 1u << 3;
constexpr std::uint32_t kReceiveInterruptEnable = 1u << 5, kUsartEnable = 1u << 13;
constexpr std::uint32_t kUsartIrq = 37;

// The timers 2 and 5 count to 2^32, a tick for each `prescaler` + 1 of the timers' clock.
struct Timer {
  std::uintptr_t base;

  Register& control_1() const { return at(base + 0x00); }
  Register& event() const { return at(base + 0x14); }
  Register& count() const { return at(base + 0x24); }
  Register& prescaler() const { return at(base + 0x28); }
  Register& reload() const { return at(base + 0x2c); }
};
constexpr Timer kTimer2{0x40000000}, kTimer5{0x40000c00};
constexpr std::uint32_t kCounterEnable = 1u << 0, kUpdateGeneration = 1u << 0;

}  // namespace rlt::stm32f405
