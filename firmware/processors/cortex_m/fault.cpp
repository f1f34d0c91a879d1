// Report a fault of the processor to the host, and end the program.
#include "board_api.h"
#include "processors/cortex_m/system_registers.h"
#include "processors/cortex_m/vector_table.h"
#include "processors/fault_text.h"

extern "C" {

extern std::uint32_t stack_limit[];

// Report a fault. `frame` is what the processor pushed: r0 r1 r2 r3 r12 lr pc xpsr.
[[noreturn, gnu::used]] void report_fault_frame(const std::uint32_t* frame) {
  using namespace rlt::cortex_m;
  const bool readable = frame >= stack_limit && frame + 8 <= handler_stack_top;
  char text[] = "fault at 00000000, CFSR 00000000, address 00000000";
  rlt::put_hexadecimal(text + 17, readable ? frame[6] : 0);
  const std::uint32_t status = fault_status();
  rlt::put_hexadecimal(text + 32, status);
  rlt::put_hexadecimal(text + 50, status & kMemoryFaultAddressValid ? memory_fault_address()
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

}  // extern "C"
