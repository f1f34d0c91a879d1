// The Crazyflie's policy controller, as the firmware builds it, on an emulated Cortex-M4: checks
// the compiled-in image, lets it fly, and prints by semihosting what its rotors are given (as
// bits), the instructions of a tick and of one that is held, and the stack that is used.
#include <cstdint>

#include "interface.h"

extern "C" {
extern std::uint32_t stack_top[], stack_bottom[];
void reset_handler();
__attribute__((section(".vectors"), used)) void* const vector_table[2] = {
    stack_top, reinterpret_cast<void*>(reset_handler)};
RltSettings rlt_settings = {1, 0, 0, 5, 20, 100, 200};
RltReport rlt_report;
}

namespace {

std::uint32_t semihosting_call(std::uint32_t operation, const void* argument) {
  register std::uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(std::uint32_t value) {
  char text[] = "00000000 ";
  for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[value >> (28 - 4 * i) & 15];
  semihosting_call(0x04, text);
}

volatile std::uint32_t& systick(int word) {
  return reinterpret_cast<volatile std::uint32_t*>(0xe000e010)[word];
}

RltSensed sensed;
RltDecision decision;

// SysTick's ticks that a millisecond of the controller takes; it counts down.
[[gnu::noinline]] std::uint32_t turn() {
  sensed.now_us += 1000;
  sensed.gyro_us = sensed.now_us - 300;
  const std::uint32_t before = systick(2);
  rlt_decide(&sensed, &decision);
  return (before - systick(2)) & 0xffffffu;
}

[[noreturn, gnu::noinline]] void fly() {
  constexpr std::uint32_t kUntouched = 0xa5a5a5a5u;
  systick(1) = 0xffffffu;
  systick(0) = 5;
  rlt_restart();
  rlt_begin();
  print(rlt_report.has_built_in);
  for (int i = 0; i < 3; i++) {
    sensed.position_m[i] = 0.0625f * static_cast<float>(i + 1);
    sensed.gyro_deg_s[i] = 10.0f;
  }
  sensed.position_m[2] += 1.0f;  // high enough to be handed over
  sensed.target_m[2] = 1.0f;
  sensed.quaternion[0] = 1.0f;
  sensed.is_position_target = true;
  turn();
  for (std::uint32_t* word = stack_bottom; word < stack_top - 64; word++) *word = kUntouched;
  turn();
  const std::uint32_t tick = turn();  // one of each: ticks are two milliseconds apart
  const std::uint32_t held = turn();
  for (int i = 0; i < 20; i++) turn();  // two steps of 10 ms, with which a hidden state moves on
  print(decision.pilot);
  for (const float thrust : decision.thrusts) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &thrust, sizeof bits);
    print(bits);
  }
  print(tick > held ? tick : held);
  print(tick > held ? held : tick);
  const std::uint32_t* lowest = stack_bottom;
  while (*lowest == kUntouched) lowest++;
  print(static_cast<std::uint32_t>(reinterpret_cast<const char*>(stack_top) -
                                   reinterpret_cast<const char*>(lowest)));
  const std::uint32_t reason_and_code[2] = {0x20026, 0};
  for (;;) semihosting_call(0x20, reason_and_code);
}

}  // namespace

extern "C" void reset_handler() {
  *reinterpret_cast<volatile std::uint32_t*>(0xe000ed88) |= 0xfu << 20;  // enables the FPU
  __asm__ volatile("dsb\n isb");
  fly();
}
