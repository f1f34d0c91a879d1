// Control and status registers of the machine mode: The RISC-V Instruction Set Manual, volume II.
#pragma once

#include <cstdint>

namespace rlt::riscv {

// The instructions are an extension of their own since 2019, Zicsr. It is named here and not in
// -march, of which compilers of that time know rv32imc and link other libraries for another name.
#define RLT_WITH_ZICSR(text) ".option push\n.option arch, +zicsr\n" text "\n.option pop"

template <int Number>
inline std::uint32_t read_register() {
  std::uint32_t value;
  __asm__ volatile(RLT_WITH_ZICSR("csrr %0, %1") : "=r"(value) : "i"(Number));
  return value;
}
template <int Number>
inline void write_register(std::uint32_t value) {
  __asm__ volatile(RLT_WITH_ZICSR("csrw %0, %1") : : "i"(Number), "r"(value) : "memory");
}
template <int Number>
inline void set_bits(std::uint32_t bits) {
  __asm__ volatile(RLT_WITH_ZICSR("csrs %0, %1") : : "i"(Number), "r"(bits) : "memory");
}
template <int Number>
inline void clear_bits(std::uint32_t bits) {
  __asm__ volatile(RLT_WITH_ZICSR("csrc %0, %1") : : "i"(Number), "r"(bits) : "memory");
}

constexpr int kMstatus = 0x300, kMie = 0x304, kMtvec = 0x305, kMscratch = 0x340;
constexpr int kMepc = 0x341, kMcause = 0x342, kMtval = 0x343;
constexpr int kInstret = 0xc02, kInstretHigh = 0xc82;
constexpr int kFloatStatus = 0x003;

constexpr std::uint32_t kInterruptsEnabled = 1u << 3;   // of mstatus
constexpr std::uint32_t kFloatingPointUnit = 1u << 13;  // of mstatus: its state is `initial`
constexpr std::uint32_t kTimer = 1u << 7, kExternal = 1u << 11;  // of mie
constexpr std::uint32_t kInterruptCause = 1u << 31;              // of mcause

inline void enable_interrupts() { set_bits<kMstatus>(kInterruptsEnabled); }
inline void disable_interrupts() { clear_bits<kMstatus>(kInterruptsEnabled); }

// Return the number of instructions executed so far.
inline std::uint64_t executed_instructions() {
  std::uint32_t high, low;
  do {
    high = read_register<kInstretHigh>();
    low = read_register<kInstret>();
  } while (high != read_register<kInstretHigh>());
  return static_cast<std::uint64_t>(high) << 32 | low;
}

// Handle an interrupt, with others off. Boards define it; trap.cpp calls it.
void handle_interrupt();

}  // namespace rlt::riscv
