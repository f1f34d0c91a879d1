// Registers of QEMU's machine mps2-an500: Arm DAI 0500 (the FPGA image), DDI 0403 (ARMv7-M), DDI
// 0479 (CMSDK).
#pragma once

#include <cstdint>

namespace rlt::mps2 {

using Register = volatile std::uint32_t;

inline Register& at(std::uintptr_t address) { return *reinterpret_cast<Register*>(address); }

// UART 0 of the CMSDK.
inline Register& uart_data() { return at(0x40004000); }
inline Register& uart_state() { return at(0x40004004); }
inline Register& uart_control() { return at(0x40004008); }
inline Register& uart_interrupt_clear() { return at(0x4000400c); }
inline Register& uart_baud_divisor() { return at(0x40004010); }
constexpr std::uint32_t kTransmitFull = 1u << 0, kReceiveFull = 1u << 1;
constexpr std::uint32_t kTransmitEnable = 1u << 0, kReceiveEnable = 1u << 1;
constexpr std::uint32_t kReceiveInterruptEnable = 1u << 3, kReceiveInterrupt = 1u << 1;
constexpr std::uint32_t kUartReceiveIrq = 0;

// FPGAIO's counter of 25 MHz.
inline Register& cycle_counter() { return at(0x40028018); }

// ARMv7-M: SysTick, NVIC, system control block.
inline Register& systick_control() { return at(0xe000e010); }
inline Register& systick_reload() { return at(0xe000e014); }
inline Register& systick_value() { return at(0xe000e018); }
inline Register& interrupt_set_enable() { return at(0xe000e100); }
inline Register& coprocessor_access() { return at(0xe000ed88); }
inline Register& fault_enable() { return at(0xe000ed24); }
inline Register& fault_status() { return at(0xe000ed28); }
inline Register& memory_fault_address() { return at(0xe000ed34); }
inline Register& bus_fault_address() { return at(0xe000ed38); }
constexpr std::uint32_t kMemoryFaultAddressValid = 1u << 7, kBusFaultAddressValid = 1u << 15;
inline Register& float_default_status() { return at(0xe000ef3c); }

// Memory protection unit.
inline Register& mpu_control() { return at(0xe000ed94); }
inline Register& mpu_base() { return at(0xe000ed9c); }
inline Register& mpu_attributes() { return at(0xe000eda0); }
constexpr std::uint32_t kMpuEnableWithBackground = 1u << 0 | 1u << 2;
constexpr std::uint32_t kNoAccess = 0, kReadWrite = 3u << 24, kReadOnly = 7u << 24;
constexpr std::uint32_t kNotExecutable = 1u << 28;
constexpr std::uint32_t kSize512Kilobytes = 18u << 1, kSize512Megabytes = 28u << 1;

}  // namespace rlt::mps2
