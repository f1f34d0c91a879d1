// From reset to main(): memory, floating-point unit, stacks. The symbols are the linker script's.
#include "processors/riscv/control_registers.h"
#include "processors/riscv/memory_protection.h"
#include "processors/stack_paint.h"

extern "C" {

extern std::uint32_t stack_limit[], stack_top[], handler_stack_top[];
extern std::uint32_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[];
using Initializer = void (*)();
extern const Initializer init_array_begin[], init_array_end[];

int main();
void trap_handler();

// Run on the handlers' stack, with the painted stack of main() at rest.
[[noreturn, gnu::used]] void reset_on_handler_stack() {
  using namespace rlt::riscv;
  rlt::paint_stack(stack_limit, stack_top);
  const std::uint32_t* source = data_load;
  for (std::uint32_t* word = data_begin; word < data_end; word++) *word = *source++;
  for (std::uint32_t* word = bss_begin; word < bss_end; word++) *word = 0;
  write_register<kMtvec>(reinterpret_cast<std::uintptr_t>(trap_handler));
  write_register<kMscratch>(reinterpret_cast<std::uintptr_t>(handler_stack_top));
#if defined(__riscv_flen)
  set_bits<kMstatus>(kFloatingPointUnit);
#endif
  protect_memory();
  __asm__ volatile(
      "mv sp, %0\n"  // traps then find a sound stack in mscratch
      "j run_main\n"
      :
      : "r"(stack_top)
      : "memory");
  __builtin_unreachable();
}

[[noreturn, gnu::used]] void run_main() {
  for (const Initializer* f = init_array_begin; f < init_array_end; f++) (*f)();
  main();
  for (;;) __asm__ volatile("wfi");
}

[[gnu::naked, gnu::used, gnu::section(".start")]] void reset_handler() {
  __asm__ volatile(
      ".option push\n"
      ".option norelax\n"
      "la gp, __global_pointer$\n"
      ".option pop\n"
      "la sp, handler_stack_top\n"
      "j reset_on_handler_stack\n");
}

}  // extern "C"
