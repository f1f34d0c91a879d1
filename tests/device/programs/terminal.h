// Text between a test's program and the host, without a protocol.
#pragma once

#include "board_api.h"

namespace terminal {

// Returns when the host has sent a byte. What is sent before it has opened the terminal is lost.
inline void wait_for_host() {
  std::uint8_t byte;
  while (rlt::board::read(&byte, 1) == 0) rlt::board::idle();
}

inline void print(const char* text) {
  rlt::board::write(reinterpret_cast<const std::uint8_t*>(text), __builtin_strlen(text));
}

inline void print(std::uint64_t number) {
  char text[24];
  char* first = text + sizeof text;
  *--first = 0;
  do {
    *--first = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  print(first);
}

// Ends the output.
[[noreturn]] inline void finish() {
  print(".");
  for (;;) __asm__ volatile("wfi");
}

}  // namespace terminal
