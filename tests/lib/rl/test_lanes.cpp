// Test: also-as-firmware
// Environments stepped in lanes have the bits of one at a time; with --all also compiled as
// firmware is, with the compiler's vector instructions.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "environment_alone.h"
#include "line_environment.h"
#include "point_environment.h"
#include "rltools/devices/host.h"
#include "rltools/rl/environments/pendulum.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/vector_environment.h"
#include "tumbling_environment.h"

using namespace rlt;

namespace {

// Where step_all() and begin_all() put what they find, for environments without an algorithm.
template <class E, int N>
struct Seen {
  using T = typename E::Scalar;
  std::vector<T> reached = std::vector<T>(N * kCriticObservationDim<E>);
  std::vector<T> present = std::vector<T>(N * kCriticObservationDim<E>);
  std::vector<Transition<T>> transitions = std::vector<Transition<T>>(N);
};
template <class E, int N>
struct IntoSeen {
  using T = typename E::Scalar;
  Seen<E, N>& seen;
  T* reached(int index, const Transition<T>& transition) const {
    seen.transitions[index] = transition;
    return &seen.reached[index * kCriticObservationDim<E>];
  }
  T* begun(int index) const { return &seen.present[index * kCriticObservationDim<E>]; }
};

template <class E, int N, class Device = Generic>
void check_many(std::uint32_t seed, std::uint32_t episode_steps, int steps,
                const E& environment = {}) {
  constexpr int kObservation = kCriticObservationDim<E>;
  auto environments = std::make_unique<VectorEnvironment<E, N>>();
  Seen<E, N> seen;
  const IntoSeen<E, N> store{seen};
  begin_all(Device{}, environment, *environments, seed,
            [&](int index) { return store.begun(index); });
  std::vector<Alone<E>> alone;
  for (int i = 0; i < N; i++) alone.emplace_back(seed, i, episode_steps, environment);
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
    step_all(Device{}, environment, *environments, seed, number, episode_steps, action.data(),
             store);
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
  check_many<RandomPoint, 70>(43, 7, 30);  // a block, and part of one
}

TEST_CASE("quadrotors in lanes have the bits of one at a time, whatever disturbs them") {
  Quadrotor<float> environment;
  auto& settings = environment.settings;
  settings.airframe = quadrotor::kAnyAirframe;
  settings.spread = 0.2f;
  settings.rotor_spread = 0.1f;
  settings.latency_ms = 20.0f;
  settings.loss = 0.1f;
  settings.noise = 1.0f;
  settings.gust_m_s2 = 2.0f;
  settings.push_m_s = 1.0f;
  settings.start_tilt = 180.0f;
  for (std::uint32_t task = 0; task < 3; task++) {
    settings.task = task;
    settings.target_s = 0.1f;
    check_many<Quadrotor<float>, 70, Host>(50 + task, 40, 60, environment);
  }
}

TEST_CASE("an environment with its past actions has the bits of one at a time, too") {
  using Longer = WithActionHistory<Quadrotor<float>, 3>;
  static_assert(detail::kIsTransposed<Host, Longer> == (kernels::kLanes > 1));
  Longer environment;
  environment.settings.airframe = quadrotor::kAnyAirframe;
  environment.settings.latency_ms = 20.0f;
  environment.settings.gust_m_s2 = 1.0f;
  check_many<Longer, 70, Host>(54, 20, 60, environment);
}

TEST_CASE("environments of many fields, which a host transposes, have the bits of one at a time") {
  static_assert(detail::kIsTransposed<Host, Tumbling> == (kernels::kLanes > 1));
  static_assert(!detail::kIsTransposed<Generic, Tumbling>);
  static_assert(!detail::kIsTransposed<Host, RandomPoint>);  // of two numbers
  static_assert(!detail::kIsTransposed<Host, Pendulum<double>>);
  check_many<Tumbling, 90, Host>(49, 30, 100);  // a block, a group of lanes, and part of one
  check_many<Pendulum<float>, 200, Host>(52, 150, 400);
}
