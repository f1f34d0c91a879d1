// Runs all of policy/runtime.h's checks on the emulated Cortex-M7: reads the image that the
// emulator's loader has put at 0x60000000, prints the verdict by semihosting and ends with the
// reason's number.
#include "rltools/devices/cortex_m7.h"
#include "rltools/policy/runtime.h"

extern "C" {
extern std::uint32_t stack_top[];
void reset_handler();
__attribute__((section(".vectors"), used)) void* const vector_table[2] = {
    stack_top, reinterpret_cast<void*>(reset_handler)};
}

namespace {

constexpr std::size_t kScratchFloats = 4096;
float scratch[kScratchFloats];

std::uint32_t semihosting_call(std::uint32_t operation, const void* argument) {
  register std::uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char* text) { semihosting_call(0x04, text); }

[[noreturn]] void leave(std::uint32_t exit_code) {
  const std::uint32_t reason_and_code[2] = {0x20026, exit_code};
  for (;;) semihosting_call(0x20, reason_and_code);
}

// Not inlined, as its first instructions use the FPU.
[[noreturn, gnu::noinline]] void check() {
  const auto* image = reinterpret_cast<const std::uint8_t*>(0x60000000);
  const std::uint32_t bytes = *reinterpret_cast<const volatile std::uint32_t*>(image + 8);
  rlt::PolicyView policy;
  rlt::PolicyVerdict verdict = rlt::parse_policy(image, bytes, policy);
  if (verdict.accepted()) {
    verdict = rlt::check_examples(rlt::CortexM7{}, policy, scratch, kScratchFloats);
  }
  print(rlt::policy_reason_text(verdict.reason));
  leave(static_cast<std::uint32_t>(verdict.reason));
}

}  // namespace

extern "C" void reset_handler() {
  *reinterpret_cast<volatile std::uint32_t*>(0xe000ed88) |= 0xfu << 20;  // enables the FPU
  __asm__ volatile("dsb\n isb");
  check();
}
