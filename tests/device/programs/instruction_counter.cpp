// Loops of a known number of instructions between two readings of the board's counter; prints
// "<instructions of the loop> <counted>" for each.
#include "terminal.h"

int main() {
  using namespace rlt::board;
  initialize();
  terminal::wait_for_host();
  const std::uint32_t rounds[] = {1, 10, 1000, 100000, 30000000};
  for (const std::uint32_t count : rounds) {
    std::uint32_t left = count;
    const std::uint64_t before = counter();
#if defined(__riscv)
    __asm__ volatile(
        "1: addi %0, %0, -1\n"
        "bnez %0, 1b\n"
        : "+r"(left));
#else
    __asm__ volatile(
        "1: subs %0, #1\n"
        "bne 1b\n"
        : "+r"(left)
        :
        : "cc");
#endif
    const std::uint64_t after = counter();
    terminal::print(2ull * count);
    terminal::print(" ");
    terminal::print(after - before);
    terminal::print("\n");
  }
  terminal::finish();
}
