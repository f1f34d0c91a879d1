// Bytes that arrive while nobody reads: waits until the host has sent more than the port's queue
// holds, then prints how many it has read in all and a checksum of them.
#include "rltools/core/crc32.h"
#include "terminal.h"

int main() {
  using namespace rlt;
  constexpr std::size_t kExpected = 4000;
  board::initialize();
  terminal::wait_for_host();
  terminal::print("ready\n");
  const std::uint64_t start = board::counter();
  while (board::counter() - start < 20'000'000) {
  }
  std::uint32_t checksum = 0;
  std::size_t count = 0;
  while (count < kExpected) {
    std::uint8_t bytes[100];
    const std::size_t taken = board::read(bytes, sizeof bytes);
    checksum = crc32(bytes, taken, checksum);
    count += taken;
    if (taken == 0) board::idle();
  }
  terminal::print(count);
  terminal::print(" ");
  terminal::print(std::uint64_t{checksum});
  terminal::finish();
}
