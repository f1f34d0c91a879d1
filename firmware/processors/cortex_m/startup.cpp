// From reset to main(): memory, floating-point unit, stacks. The symbols are the linker script's.
#include "processors/cortex_m/memory_protection.h"
#include "processors/cortex_m/system_registers.h"
#include "processors/cortex_m/vector_table.h"
#include "processors/stack_paint.h"

extern "C" {

extern std::uint32_t stack_limit[], stack_top[];
extern std::uint32_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[];
using Initializer = void (*)();
extern const Initializer init_array_begin[], init_array_end[];

int main();

// Run on the handlers' stack, with the painted stack of main() at rest.
[[noreturn]] static void reset_on_handler_stack() {
  using namespace rlt::cortex_m;
  coprocessor_access() = coprocessor_access() | 0xfu << 20;  // FPU: full access
  rlt::paint_stack(stack_limit, stack_top);
  const std::uint32_t* source = data_load;
  for (std::uint32_t* word = data_begin; word < data_end; word++) *word = *source++;
  for (std::uint32_t* word = bss_begin; word < bss_end; word++) *word = 0;
  fault_enable() = 0x7u << 16;  // memory, bus and usage faults
  protect_memory();
  __asm__ volatile(
      "msr psp, %0\n"
      "movs r0, #2\n"
      "msr control, r0\n"  // thread mode uses the process stack; faults then find a sound stack
      "isb\n"
      "b run_main\n"
      :
      : "r"(stack_top)
      : "r0", "memory");
  __builtin_unreachable();
}

[[noreturn, gnu::used]] void run_main() {
  for (const Initializer* f = init_array_begin; f < init_array_end; f++) (*f)();
  main();
  for (;;) __asm__ volatile("wfi");
}

void reset_handler() { reset_on_handler_stack(); }

void systick_handler() {}  // its purpose is to wake the processor

}  // extern "C"
