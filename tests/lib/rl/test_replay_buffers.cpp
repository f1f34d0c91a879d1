// The replay buffers of many environments: each is filled by its own, and all are sampled as one.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "rltools/devices/generic.h"
#include "rltools/rl/replay_buffer.h"

using namespace rlt;

namespace {

constexpr int kCount = 3, kSlots = 8;
using Buffer = ReplayBuffer<float, kSlots, 1, 1>;
using Buffers = ReplayBuffers<Buffer, kCount>;

// Buffer i has taken `steps` steps, of which every (i + 2)-th ended an episode by termination. The
// first observation of buffer i is 100 i, and each one after it one more.
std::unique_ptr<Buffers> filled(int steps) {
  auto replay = std::make_unique<Buffers>();
  clear(*replay);
  for (int i = 0; i < kCount; i++) {
    auto& buffer = buffer_of(*replay, i);
    float number = static_cast<float>(100 * i);
    *advance(buffer) = number;
    for (int step = 1; step <= steps; step++) {
      const float action = number + 0.5f;
      const bool ends = step % (i + 2) == 0;
      record(buffer, &action, -number, ends);
      *advance(buffer) = ++number;
      if (ends) *advance(buffer) = ++number;
    }
  }
  return replay;
}

// Numbers of all transitions that are held.
std::vector<std::uint32_t> transitions(const Buffers& replay) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 0; number < kCount * kSlots; number++) {
    const auto [buffer, slot] = slot_of(replay, number);
    if (slot < buffer.size && (buffer.flags[slot] & Buffer::kTransition)) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

TEST_CASE("samples are uniform over the transitions of all buffers, filled or not") {
  for (const int steps : {1, 3, 20}) {
    const auto replay = filled(steps);
    const auto expected = transitions(*replay);
    constexpr int kBatch = 64, kUpdates = 500;
    std::vector<int> drawn(kCount * kSlots);
    for (std::uint32_t update = 0; update < kUpdates; update++) {
      std::uint32_t numbers[kBatch];
      sample_slots(Generic{}, *replay, {1, Purpose::replay_sample, update}, numbers, kBatch);
      for (const std::uint32_t number : numbers) drawn[number]++;
    }
    const double mean =
        static_cast<double>(kBatch * kUpdates) / static_cast<double>(expected.size());
    int sum = 0;
    for (const std::uint32_t number : expected) {
      CHECK(std::abs(drawn[number] - mean) < 6 * std::sqrt(mean));
      sum += drawn[number];
    }
    CHECK(sum == kBatch * kUpdates);  // and nothing else
  }
}

TEST_CASE("buffers with one transition among many ends are sampled all the same") {
  auto replay = filled(20);
  for (Buffer& buffer : replay->buffer) {
    for (auto& flags : buffer.flags) flags = 0;
  }
  replay->buffer[1].flags[3] = Buffer::kTransition;
  std::uint32_t numbers[200];
  sample_slots(Generic{}, *replay, {1, Purpose::replay_sample, 5}, numbers, 200);
  for (const std::uint32_t number : numbers) CHECK(number == kSlots + 3);
}

TEST_CASE("contents that no run can have are found in each buffer") {
  const auto replay = filled(2);
  CHECK(is_consistent(*replay, 2 * kCount));
  CHECK_FALSE(is_consistent(*replay, 2 * kCount + 1));  // the environments step together
  CHECK_FALSE(is_consistent(*replay, 3 * kCount));
  CHECK_FALSE(is_consistent(*replay, 2));
  for (int i = 0; i < kCount; i++) {
    Buffers bad = *replay;
    bad.buffer[i].position++;
    CHECK_FALSE(is_consistent(bad, 2 * kCount));
  }
}
