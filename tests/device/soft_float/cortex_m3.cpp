// QEMU's machine mps2-an385, a Cortex-M3 without floating-point unit: CMSDK UART at 0x40004000,
// ended by semihosting.
#include "machine.h"

extern "C" {

extern std::uint32_t stack_top[];
int main();

// Memory is zero at first and the image holds the data where they belong: nothing to prepare.
[[noreturn]] void reset_handler() {
  *reinterpret_cast<volatile std::uint32_t*>(0x40004010) = 16;  // baud divisor
  *reinterpret_cast<volatile std::uint32_t*>(0x40004008) = 1;   // transmit
  main();
  machine::finish();
}

struct VectorTable {
  std::uint32_t* initial_stack;
  void (*reset)();
};
extern const VectorTable vector_table;
[[gnu::used, gnu::section(".vectors")]] const VectorTable vector_table = {stack_top, reset_handler};

}  // extern "C"

void machine::print(const char* text) {
  auto* const data = reinterpret_cast<volatile std::uint32_t*>(0x40004000);
  auto* const state = reinterpret_cast<volatile std::uint32_t*>(0x40004004);
  for (; *text != '\0'; text++) {
    while ((*state & 1u) != 0u) {
    }
    *data = static_cast<std::uint8_t>(*text);
  }
}

std::uint64_t machine::instructions() { return 0; }

void machine::finish() {
  for (;;) {
    __asm__ volatile(
        "mov r0, %0\n"
        "mov r1, %1\n"
        "bkpt #0xab\n"
        :
        : "r"(0x18), "r"(0x20026)  // SYS_EXIT, ADP_Stopped_ApplicationExit
        : "r0", "r1", "memory");
  }
}
