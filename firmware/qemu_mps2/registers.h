// Peripherals of QEMU's MPS2 machines: Arm DAI 0386 and 0500 (the FPGA images), DDI 0479 (CMSDK).
#pragma once

#include "processors/cortex_m/system_registers.h"

namespace rlt::mps2 {

using cortex_m::at, cortex_m::Register;

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

// FPGAIO's counters of 100 Hz and of 25 MHz.
inline Register& hundredths() { return at(0x40028014); }
inline Register& cycle_counter() { return at(0x40028018); }
constexpr std::uint32_t kCyclesAHundredth = 250'000;

}  // namespace rlt::mps2
