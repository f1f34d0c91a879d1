// The vector table of a Cortex-M (Arm DDI 0403, B1.5.2). A board defines one as `vector_table` in
// the section .vectors, with its own interrupts; startup.cpp and fault.cpp have the handlers.
#pragma once

#include <cstdint>

extern "C" {
extern std::uint32_t handler_stack_top[];
void reset_handler();
void fault_handler();
void systick_handler();
}

namespace rlt::cortex_m {

using Handler = void (*)();

struct ExceptionVectors {
  std::uint32_t* initial_stack = handler_stack_top;
  Handler reset = reset_handler;
  Handler faults[13] = {fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
                        fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
                        fault_handler, fault_handler, fault_handler};
  Handler systick = systick_handler;
};

template <int InterruptCount>
struct VectorTable {
  ExceptionVectors exceptions;
  Handler interrupts[InterruptCount];
};

// Return the table of a program with one interrupt: the others are faults.
template <int InterruptCount>
constexpr VectorTable<InterruptCount> vector_table_with(int interrupt, Handler handler) {
  VectorTable<InterruptCount> table{};
  for (Handler& entry : table.interrupts) entry = fault_handler;
  table.interrupts[interrupt] = handler;
  return table;
}

}  // namespace rlt::cortex_m
