// Provokes the fault that the build names: a store where there is no memory or only code, an
// undefined instruction, a stack that grows beyond its end.
#include "terminal.h"

namespace {

volatile int depth_limit = 1 << 30;  // which the stack does not reach

[[gnu::noinline, gnu::unused]] int descend(int depth) {
  volatile int frame[32];
  frame[depth & 31] = depth;
  if (depth == depth_limit) return 0;
  return descend(depth + 1) + frame[(depth + 1) & 31];
}

}  // namespace

int main() {
  rlt::board::initialize();
  terminal::wait_for_host();
#if defined(UNMAPPED_STORE)
  *reinterpret_cast<volatile int*>(UNMAPPED_STORE) = 1;
#elif defined(STORE_TO_CODE)
  *reinterpret_cast<volatile int*>(STORE_TO_CODE) = 1;
#elif defined(UNDEFINED_INSTRUCTION)
#if defined(__riscv)
  __asm__ volatile("unimp");
#else
  __asm__ volatile("udf #0");
#endif
#elif defined(STACK_OVERFLOW)
  return descend(0);
#endif
  return 0;
}
