// Text between a test's program and the host, without a protocol.
#pragma once

#include "board_api.h"

namespace terminal {

inline void print(const char* text) {
  rlt::board::write(reinterpret_cast<const std::uint8_t*>(text), __builtin_strlen(text));
}

// Asks for a byte, and returns when the host has sent it. What either side sends before the other
// listens is lost.
inline void wait_for_host() {
  std::uint8_t byte;
  while (rlt::board::read(&byte, 1) == 0) {
    print("?");
    rlt::board::idle();
  }
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
