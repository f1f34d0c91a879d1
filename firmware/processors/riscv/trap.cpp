// Interrupts and faults, which RISC-V enters at one address: an interrupt goes to the board, a
// fault of the processor is reported to the host, and ends the program.
#include "board_api.h"
#include "processors/fault_text.h"
#include "processors/riscv/control_registers.h"

extern "C" {

[[gnu::used]] void handle_trap() {
  using namespace rlt::riscv;
  const std::uint32_t cause = read_register<kMcause>();
  if (cause & kInterruptCause) return handle_interrupt();
  char text[] = "fault at 00000000, mcause 00000000, mtval 00000000";
  rlt::put_hexadecimal(text + 17, read_register<kMepc>());
  rlt::put_hexadecimal(text + 34, cause);
  rlt::put_hexadecimal(text + 50, read_register<kMtval>());
  rlt::report_fault(text);
  for (;;) __asm__ volatile("wfi");
}

// Save what a call may change, on the handlers' stack: an overflow of the other one is a fault.
[[gnu::naked, gnu::aligned(4)]] void trap_handler() {
  __asm__ volatile(
      ".macro each_integer do\n"
      "\\do ra, 0(sp)\n \\do t0, 4(sp)\n \\do t1, 8(sp)\n \\do t2, 12(sp)\n"
      "\\do t3, 16(sp)\n \\do t4, 20(sp)\n \\do t5, 24(sp)\n \\do t6, 28(sp)\n"
      "\\do a0, 32(sp)\n \\do a1, 36(sp)\n \\do a2, 40(sp)\n \\do a3, 44(sp)\n"
      "\\do a4, 48(sp)\n \\do a5, 52(sp)\n \\do a6, 56(sp)\n \\do a7, 60(sp)\n"
      ".endm\n"
      ".macro each_float do\n"
#if defined(__riscv_flen)
      "\\do ft0, 64(sp)\n \\do ft1, 68(sp)\n \\do ft2, 72(sp)\n \\do ft3, 76(sp)\n"
      "\\do ft4, 80(sp)\n \\do ft5, 84(sp)\n \\do ft6, 88(sp)\n \\do ft7, 92(sp)\n"
      "\\do fa0, 96(sp)\n \\do fa1, 100(sp)\n \\do fa2, 104(sp)\n \\do fa3, 108(sp)\n"
      "\\do fa4, 112(sp)\n \\do fa5, 116(sp)\n \\do fa6, 120(sp)\n \\do fa7, 124(sp)\n"
      "\\do ft8, 128(sp)\n \\do ft9, 132(sp)\n \\do ft10, 136(sp)\n \\do ft11, 140(sp)\n"
#endif
      ".endm\n"
      RLT_WITH_ZICSR("csrrw sp, mscratch, sp") "\n"
      "addi sp, sp, -144\n"
      "each_integer sw\n"
      "each_float fsw\n"
      "call handle_trap\n"
      "each_float flw\n"
      "each_integer lw\n"
      "addi sp, sp, 144\n"
      RLT_WITH_ZICSR("csrrw sp, mscratch, sp") "\n"
      "mret\n");
}

}  // extern "C"
