// From reset to main(): vector table, memory, floating-point unit; and the handlers of faults.
#include <cstddef>

#include "board_api.h"
#include "qemu_cortex_m7/registers.h"
#include "qemu_cortex_m7/stack_paint.h"

extern "C" {

extern std::uint32_t stack_limit[], stack_top[], handler_stack_top[];
extern std::uint32_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[];
using Initializer = void (*)();
extern const Initializer init_array_begin[], init_array_end[];

int main();
void uart_receive_handler();

// Only what a Teensy 4.1 has of the first gigabyte can be accessed: QEMU's machine has more memory,
// and swallows stores where it has none. The stack ends at the bottom of DTCM, so an overflow is a
// fault. Of overlapping regions the later one holds.
static void protect_memory() {
  using namespace rlt::mps2;
  const std::uint32_t regions[][2] = {
      {0x00000000, kNoAccess | kNotExecutable | kSize512Megabytes},
      {0x20000000, kNoAccess | kNotExecutable | kSize512Megabytes},
      {0x00000000, kReadOnly | kSize512Kilobytes},                    // ITCM
      {0x20000000, kReadWrite | kNotExecutable | kSize512Kilobytes},  // DTCM
      {0x20200000, kReadWrite | kNotExecutable | kSize512Kilobytes},  // RAM2
  };
  std::uint32_t number = 0;
  for (const auto& [base, attributes] : regions) {
    mpu_base() = base | 1u << 4 | number++;  // bit 4: the number is valid
    mpu_attributes() = attributes | 1u;
  }
  mpu_control() = kMpuEnableWithBackground;
  __asm__ volatile("dsb\n isb" : : : "memory");
}

// Runs on the handlers' stack, with the painted stack of main() at rest.
[[noreturn]] void reset_on_handler_stack() {
  using namespace rlt::mps2;
  coprocessor_access() = coprocessor_access() | 0xfu << 20;  // FPU: full access
  for (std::uint32_t* word = stack_limit; word < stack_top; word++) *word = rlt::kStackPaint;
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

[[noreturn]] void reset_handler() { reset_on_handler_stack(); }

// `frame` is what the processor pushed: r0 r1 r2 r3 r12 lr pc xpsr.
[[noreturn, gnu::used]] void report_fault_frame(const std::uint32_t* frame) {
  using namespace rlt::mps2;
  const bool readable = frame >= stack_limit && frame + 8 <= handler_stack_top;
  char text[] = "fault at 00000000, CFSR 00000000, address 00000000";
  const auto put = [&text](std::size_t end, std::uint32_t value) {
    for (int digit = 0; digit < 8; digit++, value >>= 4) {
      text[end - 1 - static_cast<std::size_t>(digit)] = "0123456789abcdef"[value & 15];
    }
  };
  put(17, readable ? frame[6] : 0);
  const std::uint32_t status = fault_status();
  put(32, status);
  put(50, status & kMemoryFaultAddressValid ? memory_fault_address()
          : status & kBusFaultAddressValid  ? bus_fault_address()
                                            : 0);
  rlt::report_fault(text);
  for (;;) __asm__ volatile("wfi");
}

[[gnu::naked]] void fault_handler() {
  __asm__ volatile(
      "cpsid i\n"
      "tst lr, #4\n"
      "ite eq\n"
      "mrseq r0, msp\n"
      "mrsne r0, psp\n"
      "b report_fault_frame\n");
}

void systick_handler() {}  // its purpose is to wake the processor

using Handler = void (*)();
struct VectorTable {
  std::uint32_t* initial_stack;
  Handler exceptions[15];
  Handler interrupts[32];
};

extern const VectorTable vector_table;
[[gnu::used, gnu::section(".vectors")]] const VectorTable vector_table = {
    handler_stack_top,
    {reset_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, fault_handler, systick_handler},
    {uart_receive_handler, fault_handler}};

}  // extern "C"
