// The checksums of tests/lib/core/math_sample.h on the board's processor; prints "<name> same" or
// "<name> differs" for each function.
#include "../../lib/core/math_sample.h"
#include "terminal.h"

int main() {
  rlt::board::initialize();
  terminal::wait_for_host();
  for (const math_sample::Sample& sample : math_sample::kSamples) {
    terminal::print(sample.name);
    terminal::print(sample.crc() == sample.expected ? " same\n" : " differs\n");
  }
  terminal::finish();
}
