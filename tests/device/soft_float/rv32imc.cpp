// QEMU's machine virt with a 32-bit RISC-V that has no floating-point unit: UART 16550 at
// 0x10000000, SiFive's test device at 0x100000 ends it.
#include "machine.h"

extern "C" {

int main();

// Memory is zero at first, so there is nothing to clear.
[[gnu::naked, gnu::section(".start"), noreturn]] void reset_handler() {
  __asm__ volatile(
      ".option push\n"
      ".option norelax\n"
      "la gp, __global_pointer$\n"
      ".option pop\n"
      "la sp, stack_top\n"
      "call main\n"
      "1: j 1b\n");
}

}  // extern "C"

void machine::print(const char* text) {
  auto* const data = reinterpret_cast<volatile std::uint8_t*>(0x10000000);
  for (; *text != '\0'; text++) *data = static_cast<std::uint8_t>(*text);
}

std::uint64_t machine::instructions() {
  std::uint32_t high, low, high_after;
  do {
    __asm__ volatile(
        ".option push\n"
        ".option arch, +zicsr\n"
        "rdinstreth %0\n"
        "rdinstret %1\n"
        "rdinstreth %2\n"
        ".option pop"
        : "=r"(high), "=r"(low), "=r"(high_after));
  } while (high != high_after);
  return static_cast<std::uint64_t>(high) << 32 | low;
}

void machine::finish() {
  for (;;) *reinterpret_cast<volatile std::uint32_t*>(0x100000) = 0x5555;
}
