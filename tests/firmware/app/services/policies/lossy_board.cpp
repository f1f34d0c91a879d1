// The world of lossy_world.h for a host that is another program (tests/fakes/lossy_board.py), which
// speaks on standard input and output: a letter and its arguments, little-endian, and an answer.
//   S u64       a world with this seed               -> its answer
//   W u32 bytes the host writes                      -> its answer
//   R u64       the host reads, for so long (us)     -> its answer, u32, the bytes
//   C           nothing goes wrong any more          -> its answer
//   I u8        the image 1 or 2                     -> u32, the bytes
// Its answer: u64 time (us), u8 flags (1: the port is gone, 2: the second policy is active), u32
// resets, u32 length of the sentence that says what must not be, the sentence.
#include <cstdio>

#include "lossy_world.h"

namespace {

using namespace lossy_world;

std::unique_ptr<World> world;
std::string violation;

template <class Number>
Number take() {
  Number value;
  if (std::fread(&value, sizeof(value), 1, stdin) != 1) std::exit(0);
  return value;
}
template <class Number>
void give(Number value) {
  std::fwrite(&value, sizeof(value), 1, stdout);
}
void give_bytes(const void* bytes, std::size_t count) {
  give(static_cast<std::uint32_t>(count));
  std::fwrite(bytes, 1, count, stdout);
}

template <class Work>
void answer(Work&& work) {
  try {
    work();
  } catch (const std::logic_error& error) {
    if (violation.empty()) violation = error.what();
  }
  give(world->now_us());
  give(static_cast<std::uint8_t>((world->is_unplugged() ? 1 : 0) |
                                 (world->is_second_active() ? 2 : 0)));
  give(static_cast<std::uint32_t>(world->resets));
  give_bytes(violation.data(), violation.size());
}

}  // namespace

int main() {
  for (;;) {
    switch (take<char>()) {
      case 'S': {
        const auto seed = take<std::uint64_t>();
        violation.clear();
        world = std::make_unique<World>(seed);
        answer([] {});
        break;
      }
      case 'W': {
        Bytes bytes(take<std::uint32_t>());
        if (std::fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size()) return 1;
        answer([&] { world->write(bytes.data(), bytes.size()); });
        break;
      }
      case 'R': {
        const auto timeout_us = take<std::uint64_t>();
        Bytes bytes;
        answer([&] { bytes = world->read(timeout_us); });
        give_bytes(bytes.data(), bytes.size());
        break;
      }
      case 'C': answer([] { world->calm(); }); break;
      case 'I': {
        const Bytes image = image_of(take<std::uint8_t>());
        give_bytes(image.data(), image.size());
        break;
      }
      default: return 1;
    }
    std::fflush(stdout);
  }
}
