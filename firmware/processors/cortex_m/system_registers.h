// Registers that every Cortex-M with an FPU has: Arm DDI 0403 (ARMv7-M), "System Control Space".
#pragma once

#include <cstdint>

namespace rlt::cortex_m {

using Register = volatile std::uint32_t;

inline Register& at(std::uintptr_t address) { return *reinterpret_cast<Register*>(address); }

// SysTick, NVIC.
inline Register& systick_control() { return at(0xe000e010); }
inline Register& systick_reload() { return at(0xe000e014); }
inline Register& systick_value() { return at(0xe000e018); }
inline void enable_interrupt(std::uint32_t number) {
  at(0xe000e100 + number / 32 * 4) = 1u << number % 32;
}
inline void disable_interrupt(std::uint32_t number) {
  at(0xe000e180 + number / 32 * 4) = 1u << number % 32;
}

// System control block.
inline Register& fault_enable() { return at(0xe000ed24); }
inline Register& fault_status() { return at(0xe000ed28); }
inline Register& memory_fault_address() { return at(0xe000ed34); }
inline Register& bus_fault_address() { return at(0xe000ed38); }
constexpr std::uint32_t kMemoryFaultAddressValid = 1u << 7, kBusFaultAddressValid = 1u << 15;

// Floating point.
inline Register& coprocessor_access() { return at(0xe000ed88); }
inline Register& float_default_status() { return at(0xe000ef3c); }

// Memory protection unit.
inline Register& mpu_control() { return at(0xe000ed94); }
inline Register& mpu_base() { return at(0xe000ed9c); }
inline Register& mpu_attributes() { return at(0xe000eda0); }

}  // namespace rlt::cortex_m
