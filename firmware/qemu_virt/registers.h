// Peripherals of QEMU's machine virt for RISC-V: hw/riscv/virt.c names their addresses. The UART is
// a National Semiconductor 16550A, the interrupt controllers are SiFive's CLINT and the PLIC, the
// flash is of Intel's kind (hw/block/pflash_cfi01.c).
#pragma once

#include <cstdint>

namespace rlt::virt {

template <class Word>
inline volatile Word& at(std::uintptr_t address) {
  return *reinterpret_cast<volatile Word*>(address);
}

// Core-local interruptor: the timer of hart 0, with ticks of 10 MHz.
constexpr std::uint32_t kClint = 0x02000000;
inline volatile std::uint32_t& timer_compare_low() { return at<std::uint32_t>(kClint + 0x4000); }
inline volatile std::uint32_t& timer_compare_high() { return at<std::uint32_t>(kClint + 0x4004); }
inline volatile std::uint32_t& timer_low() { return at<std::uint32_t>(kClint + 0xbff8); }
inline volatile std::uint32_t& timer_high() { return at<std::uint32_t>(kClint + 0xbffc); }

// Platform-level interrupt controller: context 0 is the machine mode of hart 0.
constexpr std::uint32_t kPlic = 0x0c000000, kUartIrq = 10;
inline volatile std::uint32_t& uart_priority() { return at<std::uint32_t>(kPlic + 4 * kUartIrq); }
inline volatile std::uint32_t& interrupt_enable() { return at<std::uint32_t>(kPlic + 0x2000); }
inline volatile std::uint32_t& interrupt_claim() { return at<std::uint32_t>(kPlic + 0x200004); }

constexpr std::uint32_t kUart = 0x10000000;
inline volatile std::uint8_t& uart_data() { return at<std::uint8_t>(kUart + 0); }
inline volatile std::uint8_t& uart_interrupt_enable() { return at<std::uint8_t>(kUart + 1); }
inline volatile std::uint8_t& uart_line_status() { return at<std::uint8_t>(kUart + 5); }
constexpr std::uint8_t kReceiveInterrupt = 1u << 0;                       // of interrupt_enable
constexpr std::uint8_t kReceiveFull = 1u << 0, kTransmitEmpty = 1u << 5;  // of line_status

// The second bank of CFI flash: two chips of 16 bits, whose blocks have 128 KB each. Of its 32 MB
// the first are used.
constexpr std::uint32_t kFlash = 0x22000000;
constexpr std::uint32_t kFlashBlockBytes = 0x40000, kFlashBytes = 4 * kFlashBlockBytes;

}  // namespace rlt::virt
