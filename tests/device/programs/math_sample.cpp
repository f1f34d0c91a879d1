// The checksums of tests/cpp/math_sample.h on the board's processor; prints "<name> same" or
// "<name> differs" for each function.
#include "../../cpp/math_sample.h"
#include "board_api.h"

namespace {

void print(const char* text) {
  rlt::board::write(reinterpret_cast<const std::uint8_t*>(text), __builtin_strlen(text));
}

}  // namespace

int main() {
  rlt::board::initialize();
  for (const math_sample::Sample& sample : math_sample::kSamples) {
    print(sample.name);
    print(sample.crc() == sample.expected ? " same\n" : " differs\n");
  }
  print(".");
  for (;;) __asm__ volatile("wfi");
}
