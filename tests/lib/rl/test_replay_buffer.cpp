// Test: address
// Replay buffer: against a model that keeps every observation of the last slots in a list.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "rltools/devices/generic.h"
#include "rltools/rl/replay_buffer.h"

using namespace rlt;

namespace {

constexpr int kObservationDim = 3, kActionDim = 2;
template <int Slots>
using Buffer = ReplayBuffer<float, Slots, kObservationDim, kActionDim>;

// Each observation of a test is recognized by its number, which stands in all of its elements.
void write_observation(float* observation, int number) {
  for (int i = 0; i < kObservationDim; i++) observation[i] = static_cast<float>(4 * number + i);
}
bool is_observation(const float* observation, int number) {
  for (int i = 0; i < kObservationDim; i++) {
    if (observation[i] != static_cast<float>(4 * number + i)) return false;
  }
  return true;
}

struct ModelSlot {
  int observation;
  bool is_transition = false;
  bool terminated = false;
  int action = 0;
};

template <int Slots>
struct Model {
  std::vector<ModelSlot> history;  // all observations ever stored, the present one last

  // The slots that are still held, oldest first.
  std::size_t first_held() const { return history.size() > Slots ? history.size() - Slots : 0; }
  std::size_t slot_of(std::size_t index) const { return index % Slots; }
};

template <int Slots>
struct Pair {
  std::unique_ptr<Buffer<Slots>> buffer = std::make_unique<Buffer<Slots>>();
  Model<Slots> model;

  Pair() { clear(*buffer); }
  void observe() {
    const int number = static_cast<int>(model.history.size());
    write_observation(advance(*buffer), number);
    model.history.push_back({number});
  }
  void act(bool terminated) {
    const int number = static_cast<int>(model.history.size());
    const float action[kActionDim] = {static_cast<float>(-number), static_cast<float>(number)};
    record(*buffer, action, static_cast<float>(number) / 2, terminated);
    ModelSlot& slot = model.history.back();
    slot.is_transition = true;
    slot.terminated = terminated;
    slot.action = number;
    observe();
  }
  std::size_t transitions() const {
    std::size_t count = 0;
    for (std::size_t i = model.first_held(); i < model.history.size(); i++) {
      count += model.history[i].is_transition;
    }
    return count;
  }

  // One assertion for the whole buffer: a million would take their time.
  bool agrees() const {
    const auto& history = model.history;
    bool same = buffer->size == history.size() - model.first_held() &&
                buffer->position == model.slot_of(history.size() - 1);
    std::size_t flagged = 0;
    for (std::size_t i = model.first_held(); i < history.size(); i++) {
      const std::size_t slot = model.slot_of(i);
      const ModelSlot& expected = history[i];
      same = same &&
             is_observation(buffer->observation + slot * kObservationDim, expected.observation);
      const std::uint8_t flags = buffer->flags[slot];
      flagged += (flags & Buffer<Slots>::kTransition) != 0;
      same = same && ((flags & Buffer<Slots>::kTransition) != 0) == expected.is_transition;
      same = same && ((flags & Buffer<Slots>::kTerminated) != 0) == expected.terminated;
      if (!expected.is_transition) continue;
      const auto action = static_cast<float>(expected.action);
      same = same && buffer->action[slot * kActionDim] == -action;
      same = same && buffer->action[slot * kActionDim + 1] == action;
      same = same && buffer->reward[slot] == action / 2;
      // Never the last of the history: a transition has led to a next observation, whatever wrapped
      // around.
      same = same && i + 1 < history.size();
      same = same && is_observation(next_observation(*buffer, static_cast<std::uint32_t>(slot)),
                                    expected.observation + 1);
    }
    const auto held = static_cast<std::uint32_t>(transitions());
    return same && flagged == held && is_consistent(*buffer, held);
  }
};

template <int Slots>
void compare_with_model(std::uint32_t seed, int mean_episode_steps) {
  CAPTURE(Slots);
  CAPTURE(seed);
  Pair<Slots> pair;
  std::mt19937 random(seed);
  int disagreements = 0, wrong_samples = 0;
  pair.observe();
  for (std::uint32_t step = 0; step < 4 * Slots + 20; step++) {
    const bool ends = random() % static_cast<unsigned>(mean_episode_steps) == 0;
    const bool terminated = ends && random() % 2 == 0;
    pair.act(terminated);
    if (ends) pair.observe();  // the next episode's first observation
    disagreements += !pair.agrees();
    if (pair.transitions() == 0) continue;
    const RandomStream stream{seed, Purpose::replay_sample, step};
    std::uint32_t batch[11];
    sample_slots(Generic{}, *pair.buffer, stream, batch, 11);
    for (std::uint32_t index = 0; index < 11; index++) {
      const std::uint32_t slot = sample_slot(*pair.buffer, stream, index);
      wrong_samples +=
          slot >= pair.buffer->size || !(pair.buffer->flags[slot] & Buffer<Slots>::kTransition);
      wrong_samples += batch[index] != slot;
    }
  }
  CHECK(disagreements == 0);
  CHECK(wrong_samples == 0);
}

// Chi-square of `draws` samples over the transitions held: about its degrees of freedom,
// transitions - 1, +- sqrt(2 of them); six standard deviations are passed by chance once in 10^8
// for as many degrees of freedom as here.
template <int Slots>
void check_uniform(const Pair<Slots>& pair, std::uint32_t draws) {
  std::vector<double> count(Slots, 0.0);
  constexpr std::uint32_t kBatch = 100;
  for (std::uint32_t i = 0; i < draws; i++) {
    const RandomStream random{3, Purpose::replay_sample, i / kBatch};
    count[sample_slot(*pair.buffer, random, i % kBatch)] += 1;
  }
  const auto transitions = static_cast<double>(pair.transitions());
  const double expected = draws / transitions;
  double chi_square = 0;
  for (std::size_t slot = 0; slot < Slots; slot++) {
    if (pair.buffer->flags[slot] & Buffer<Slots>::kTransition) {
      chi_square += std::pow(count[slot] - expected, 2) / expected;
    } else {
      CHECK(count[slot] == 0);
    }
  }
  const double freedom = transitions - 1;
  CHECK(std::abs(chi_square - freedom) <= 6 * std::sqrt(2 * freedom));
}

}  // namespace

TEST_CASE("the buffer holds what the model holds, through wrap-around and episode ends") {
  for (std::uint32_t seed = 0; seed < 20; seed++) {
    compare_with_model<2>(seed, 3);
    compare_with_model<9>(seed, 1);  // every episode has one step
    compare_with_model<7>(seed, 2);
    compare_with_model<16>(seed, 5);
    compare_with_model<101>(seed, 20);
    compare_with_model<256>(seed, 1000);
  }
}

TEST_CASE("samples are uniform over the transitions") {
  constexpr int kSlots = 301;
  Pair<kSlots> pair;
  pair.observe();
  SUBCASE("partly filled") {
    for (int i = 0; i < 120; i++) {
      pair.act(false);
      if (i % 10 == 9) pair.observe();
    }
  }
  SUBCASE("full, wrapped around, with an end in every third slot") {
    for (int i = 0; i < 700; i++) {
      pair.act(i % 4 == 0);
      if (i % 2 == 1) pair.observe();
    }
  }
  REQUIRE(pair.agrees());
  check_uniform(pair, 200000);
}

TEST_CASE("a sample is a transition even where nearly every slot is none") {
  Pair<500> pair;
  for (int i = 0; i < 400; i++) pair.observe();
  pair.act(false);
  for (int i = 0; i < 90; i++) pair.observe();
  REQUIRE(pair.transitions() == 1);
  for (std::uint32_t index = 0; index < 2000; index++) {
    REQUIRE(sample_slot(*pair.buffer, {1, Purpose::replay_sample, 0}, index) == 399);
  }
}

TEST_CASE("contents that no run can have are found") {
  Pair<8> pair;
  pair.observe();
  CHECK(is_consistent(*pair.buffer, 0));
  CHECK_FALSE(is_consistent(*pair.buffer, 1));  // a step, but no transition
  for (int i = 0; i < 3; i++) pair.act(false);
  CHECK(is_consistent(*pair.buffer, 3));
  CHECK_FALSE(is_consistent(*pair.buffer, 2));  // more transitions than steps
  CHECK_FALSE(is_consistent(*pair.buffer, 4));  // fewer, though nothing has been overwritten
  const auto good = *pair.buffer;
  const auto check_bad = [&](auto&& change) {
    auto bad = good;
    change(bad);
    CHECK_FALSE(is_consistent(bad, 3));
  };
  check_bad([](auto& replay) { replay.size = 0; });
  check_bad([](auto& replay) { replay.size = 9; });
  check_bad([](auto& replay) { replay.position = replay.size; });
  check_bad([](auto& replay) { replay.position = 0; });  // a transition already
  check_bad([](auto& replay) { replay.size = 5; });      // one more than was written
  check_bad([](auto& replay) { replay.position = 3, replay.flags[3] = 2; });
  check_bad([](auto& replay) { replay.flags[1] = 4; });
  check_bad([](auto& replay) { replay.flags[1] = 2; });  // terminated, but no transition
  check_bad([](auto& replay) { replay.flags[0] = replay.flags[1] = replay.flags[2] = 0; });
}

TEST_CASE("contents that no full buffer can have are found") {
  Pair<7> pair;
  pair.observe();
  for (int i = 0; i < 12; i++) pair.act(false);
  REQUIRE(pair.buffer->size == 7);
  REQUIRE(is_consistent(*pair.buffer, 12));
  CHECK_FALSE(is_consistent(*pair.buffer, 5));  // six transitions
  auto bad = *pair.buffer;
  bad.position = 7;  // beyond the slots; what follows them in memory is zero
  CHECK_FALSE(is_consistent(bad, 12));
  bad = *pair.buffer;
  bad.flags[bad.position] = Buffer<7>::kTransition;
  CHECK_FALSE(is_consistent(bad, 12));
}

TEST_CASE("a full buffer may hold fewer transitions than there were steps") {
  Pair<8> pair;
  pair.observe();
  for (std::uint32_t step = 1; step <= 40; step++) {
    pair.act(step % 3 == 0);
    CHECK(is_consistent(*pair.buffer, step));
    auto bad = *pair.buffer;
    for (auto& flags : bad.flags) flags = 0;
    CHECK_FALSE(is_consistent(bad, step));
  }
}
