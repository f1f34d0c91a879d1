// Environments stepped in lanes have the bits of one at a time. Compiled as firmware is, with the
// compiler's vector instructions.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "environment_alone.h"
#include "line_environment.h"
#include "point_environment.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/environments/pendulum.h"
#include "rltools/rl/vector_environment.h"

using namespace rlt;

namespace {

// Where step_all() and begin_all() put what they find, for environments without an algorithm.
template <class E, int N>
struct Seen {
  using T = typename E::Scalar;
  std::vector<T> reached = std::vector<T>(N * E::kObservationDim);
  std::vector<T> present = std::vector<T>(N * E::kObservationDim);
  std::vector<Transition<T>> transitions = std::vector<Transition<T>>(N);
};
template <class E, int N>
struct IntoSeen {
  using T = typename E::Scalar;
  Seen<E, N>& seen;
  T* reached(int index, const Transition<T>& transition) const {
    seen.transitions[index] = transition;
    return &seen.reached[index * E::kObservationDim];
  }
  T* begun(int index) const { return &seen.present[index * E::kObservationDim]; }
};

template <class E, int N>
void check_many(std::uint32_t seed, std::uint32_t episode_steps, int steps) {
  constexpr int kObservation = E::kObservationDim;
  auto environments = std::make_unique<VectorEnvironment<E, N>>();
  Seen<E, N> seen;
  const IntoSeen<E, N> store{seen};
  begin_all(Generic{}, E{}, *environments, seed, [&](int index) { return store.begun(index); });
  std::vector<Alone<E>> alone;
  for (int i = 0; i < N; i++) alone.emplace_back(seed, i, episode_steps);
  const auto row = [](const std::vector<float>& array, int index) {
    return Observation(&array[index * kObservation], &array[index * kObservation] + kObservation);
  };
  int ended = 0;
  for (int step = 0; step < steps; step++) {
    const auto number = static_cast<std::uint32_t>(step * N);
    std::vector<float> action(N * E::kActionDim);
    for (int k = 0; k < N * E::kActionDim; k++) {
      action[k] = uniform<float>({seed, Purpose::warmup_action, number}, k, -1.5f, 1.5f);
    }
    step_all(Generic{}, E{}, *environments, seed, number, episode_steps, action.data(), store);
    for (int i = 0; i < N; i++) {
      const auto expected = alone[i].take(number, &action[i * E::kActionDim]);
      const auto& transition = seen.transitions[i];
      REQUIRE(transition.reward == expected.reward);
      REQUIRE(transition.terminated == expected.terminated);
      REQUIRE(transition.truncated == expected.truncated);
      REQUIRE(row(seen.reached, i) == expected.reached);
      if (!expected.ended()) continue;
      ended++;
      REQUIRE(transition.episode_return == alone[i].returns.back());
      REQUIRE(row(seen.present, i) == alone[i].present());
    }
  }
  CHECK(ended > N);
}

}  // namespace

TEST_CASE("environments that are stepped in lanes have the bits of one at a time") {
  static_assert(!detail::kStepsInLanes<RandomPoint, 3>);
  static_assert(detail::kStepsInLanes<RandomPoint, 70>);
  check_many<RandomPoint, 3>(41, 7, 30);
  check_many<RandomPoint, 16>(42, 7, 30);
  check_many<RandomPoint, 70>(43, 7, 30);  // a block, and part of one
  check_many<Line, 33>(44, 20, 60);
  check_many<Pendulum<float>, 5>(45, 10, 40);
  check_many<Pendulum<float>, 200>(46, 150, 400);
}
