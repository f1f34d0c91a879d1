// Loops of a known number of instructions between two readings of the board's counter; prints
// "<instructions of the loop> <counted>" for each.
#include "board_api.h"

namespace {

void print(std::uint64_t number, char end) {
  char text[24];
  std::size_t first = sizeof(text);
  text[--first] = end;
  do {
    text[--first] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  rlt::board::write(reinterpret_cast<const std::uint8_t*>(text) + first, sizeof(text) - first);
}

}  // namespace

int main() {
  using namespace rlt::board;
  initialize();
  const std::uint32_t rounds[] = {1, 10, 1000, 100000, 30000000};
  for (const std::uint32_t count : rounds) {
    std::uint32_t left = count;
    const std::uint64_t before = counter();
    __asm__ volatile(
        "1: subs %0, #1\n"
        "bne 1b\n"
        : "+r"(left)
        :
        : "cc");
    const std::uint64_t after = counter();
    print(2ull * count, ' ');
    print(after - before, '\n');
  }
  const std::uint8_t end[] = {'.'};
  write(end, 1);
  for (;;) __asm__ volatile("wfi");
}
