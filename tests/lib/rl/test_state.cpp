// The training state as arrays: fields by name and type, nothing between them, and what a restored
// state may not hold.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "pendulum_ppo.h"
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

using Triple = float[3];

// Fields of every type, with room between them.
#define MIXED_STATE(X)    \
  X(std::uint8_t, phase)  \
  X(float, position)      \
  X(std::uint8_t, is_hot) \
  X(Triple, force)        \
  X(std::uint32_t, count)

struct Mixed : Pendulum<float> {
  RLT_DEFINE_FIELDS(State, MIXED_STATE)
};
void reset(Generic, const Mixed&, const Mixed::Parameters&, Mixed::State& state,
           RandomStream random) {
  // What lies between the fields differs from run to run.
  std::memset(static_cast<void*>(&state), static_cast<int>(random.step), sizeof(state));
  state.phase = 1, state.is_hot = 2, state.count = 3;
  state.position = 0.5f;
  for (int i = 0; i < 3; i++) state.force[i] = static_cast<float>(i);
}
StepResult<float> step(Generic, const Mixed&, const Mixed::Parameters&, Mixed::State&, const float*,
                       RandomStream) {
  return {0, false};
}
void observe(Generic, const Mixed&, const Mixed::Parameters&, const Mixed::State& state,
             float* observation, RandomStream) {
  for (int i = 0; i < 3; i++) observation[i] = state.force[i];
}

struct MixedTd3 : PendulumTd3 {
  using Environment = Mixed;
  static constexpr int kReplayCapacity = 100;
};

std::string full_name(const TensorInfo& info) {
  std::string name;
  write_full_name(info, [&](char c) { name += c; });
  return name;
}

// Whether a state with `value` at the beginning, in the middle or at the end of a piece of one of
// its arrays is still a finite one.
template <class E, class T>
bool is_finite_with(Run<E>& run, const TensorInfo& info, void* data, T value) {
  bool finite = false;
  for_each_piece(info, data, [&](std::uint8_t* piece, std::uint32_t bytes) {
    T* values = reinterpret_cast<T*>(piece);
    const std::uint32_t count = bytes / size_bytes(info.type);
    for (const std::uint32_t i : {0u, (count - 1) / 2, count - 1}) {
      const T before = values[i];
      values[i] = value;
      finite = state_is_finite(run.training) || finite;
      values[i] = before;
    }
  });
  return finite;
}

// The same for every array of floats or doubles, by its name.
template <class E>
std::map<std::string, bool> finite_with(Run<E>& run, float value) {
  std::map<std::string, bool> result;
  std::vector<std::pair<TensorInfo, void*>> tensors;
  for_each_state_tensor(
      run.training, [&](const TensorInfo& info, void* data) { tensors.push_back({info, data}); });
  for (const auto& [info, data] : tensors) {
    if (info.type == DataType::f32) {
      result[full_name(info)] = is_finite_with(run, info, data, value);
    }
    if (info.type == DataType::f64) {
      result[full_name(info)] = is_finite_with(run, info, data, static_cast<double>(value));
    }
  }
  return result;
}

template <class E>
void check_that_every_number_counts() {
  Run<E> run(1);
  initialize(Generic{}, run.training);
  CHECK(state_is_finite(run.training));  // before the first episode has ended: returns are NaN
  run.train(Generic{}, 3);
  for (const float value : {math::kInfinity, -math::kInfinity, math::kQuietNan}) {
    CAPTURE(value);
    const auto finite = finite_with(run, value);
    CHECK(finite.size() > 40);
    CHECK(finite.count("actor_optimizer/decay_power") == 1);  // of doubles
    for (const auto& [name, is_finite_with_it] : finite) {
      CAPTURE(name);
      const bool may_be_nan = name == "progress/last_return" || name == "progress/best_return";
      CHECK(is_finite_with_it == (may_be_nan && value != value));
    }
  }
  CHECK(state_is_finite(run.training));
}

}  // namespace

TEST_CASE("the environment's state is its fields, each with its type, and not what is between") {
  static_assert(sizeof(Mixed::State) > 1 + 4 + 1 + 12 + 4);
  Run<MixedTd3> run(1);
  initialize(Generic{}, run.training);
  std::map<std::string, std::pair<DataType, std::uint32_t>> fields;
  for_each_state_tensor(run.training, [&](const TensorInfo& info, void*) {
    if (std::strcmp(info.name, "environment_state") == 0) {
      fields[full_name(info)] = {info.type, info.rows * info.columns};
    }
  });
  const std::map<std::string, std::pair<DataType, std::uint32_t>> expected{
      {"environment_state/phase", {DataType::u8, 1}},
      {"environment_state/position", {DataType::f32, 1}},
      {"environment_state/is_hot", {DataType::u8, 1}},
      {"environment_state/force", {DataType::f32, 3}},
      {"environment_state/count", {DataType::u32, 1}},
  };
  CHECK(fields == expected);
  const std::string hash = run.state_sha256();
  auto* bytes = reinterpret_cast<std::uint8_t*>(&run.learner->environments.state[0]);
  bytes[1] ^= 0xff;  // behind `phase`
  CHECK(run.state_sha256() == hash);
  bytes[0] ^= 0xff;
  CHECK(run.state_sha256() != hash);
}

TEST_CASE("a number that is not finite is found in every array of the state") {
  check_that_every_number_counts<PendulumTd3>();
  check_that_every_number_counts<PendulumPpo>();
}
