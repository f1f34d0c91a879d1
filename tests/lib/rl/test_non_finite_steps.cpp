// A step whose reward or observation is not finite is found where it is, in every way that
// environments are stepped; the report has its environment, which is in the state before, and the
// action.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "line_experiments.h"
#include "point_experiments.h"
#include "rltools/devices/host.h"
#include "rltools/rl/environments/pendulum.h"
#include "rltools/rl/vector_environment.h"
#include "training_run.h"
#include "tumbling_environment.h"

using namespace rlt;
using training_run::Run;

namespace {

// Where step_all() puts what it finds.
template <class E, int N>
struct Found {
  using T = typename E::Scalar;
  static constexpr int kObservation = kCriticObservationDim<E>;
  std::vector<T> observation = std::vector<T>(N * kObservation);
  std::vector<T> reward = std::vector<T>(N);
  std::vector<int> non_finite = std::vector<int>(N);

  T* begun(int index) { return &observation[index * kObservation]; }
  T* reached(int index, const Transition<T>& transition) {
    reward[index] = transition.reward;
    return begun(index);
  }
};
template <class E, int N>
struct Looking : Found<E, N> {
  void non_finite(int index) { Found<E, N>::non_finite[index]++; }
};

template <class State>
bool same(const State& a, const State& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Environments 3, 20 and N - 1 of N are made to break; of all others no bit changes.
template <class Device, class E, int N, class Spoil>
void check_found(Spoil&& spoil) {
  static_assert(kLooksForNonFinite<E, Looking<E, N>> && !kLooksForNonFinite<E, Found<E, N>>);
  auto looked = std::make_unique<VectorEnvironment<E, N>>();
  Looking<E, N> looking;
  Found<E, N> found;
  begin_all(Device{}, E{}, *looked, 5, [&](int index) { return looking.begun(index); });
  for (const int index : {3, 20, N - 1}) {
    if (index < N) spoil(looked->state[index]);
  }
  const auto before = std::make_unique<VectorEnvironment<E, N>>(*looked);
  auto others = std::make_unique<VectorEnvironment<E, N>>(*looked);
  std::vector<typename E::Scalar> action(N * E::kActionDim);
  for (int k = 0; k < N * E::kActionDim; k++) {
    action[k] = uniform<typename E::Scalar>({5, Purpose::warmup_action, 0}, k, -1, 1);
  }
  step_all(Device{}, E{}, *looked, 5, 0, 200, action.data(), looking);
  step_all(Device{}, E{}, *others, 5, 0, 200, action.data(), found);
  for (int index = 0; index < N; index++) {
    CAPTURE(index);
    const bool is_spoiled = index == 3 || index == 20 || index == N - 1;
    CHECK(looking.Found<E, N>::non_finite[index] == (is_spoiled ? 1 : 0));
    const auto& expected = is_spoiled ? *before : *others;
    CHECK(same(looked->state[index], expected.state[index]));
    if (!is_spoiled) CHECK(looking.reward[index] == found.reward[index]);
  }
}

}  // namespace

TEST_CASE(
    "of many environments those whose step is not finite stay as they were, and no other does") {
  const auto far = [](auto& state) { state.angle_rad = 1e38f; };  // finite; its square is not
  check_found<Generic, Pendulum<float>, 4>(far);                  // one at a time
  check_found<Generic, Pendulum<float>, 70>(far);  // in lanes: a block, and part of one
  check_found<Host, Pendulum<float>, 70>(far);
  const auto fast = [](auto& state) { state.angular_velocity_rad_s[1] = 3e38f; };
  check_found<Generic, Tumbling, 21>(fast);
  check_found<Host, Tumbling, 5>(fast);
  check_found<Host, Tumbling, 90>(fast);  // transposed: a block, a group of lanes, part of one
}

TEST_CASE_TEMPLATE("the report names the environment and the action", E, LineTd3, LineSac, LineXqc,
                   PointPpo) {
  Run<E> run(3);
  run.training.hyperparameters.steps = 1000;
  initialize(Generic{}, run.training);
  const auto sound = run.step(Generic{});
  REQUIRE(sound.finite);
  CHECK(sound.non_finite.environment == sound.non_finite.kNone);
  constexpr int kLast = kEnvironmentCount<E> - 1;
  auto& state = run.learner->environments.state[kLast];
  std::memcpy(&state, &math::kInfinity, sizeof(float));  // a position
  const auto progress = run.learner->progress;
  const auto report = run.step(Generic{});
  CHECK_FALSE(report.finite);
  REQUIRE(report.non_finite.environment == kLast);
  CHECK_FALSE(report.non_finite.is_first);
  CHECK(report.non_finite.is_reward);
  CHECK(std::memcmp(&state, &math::kInfinity, sizeof(float)) == 0);
  for (const auto action : report.non_finite.action) CHECK(std::abs(action) <= 1.0f);
  CHECK(report.episodes_ended == 0);
  CHECK(same(run.learner->progress.last_return, progress.last_return));
  if constexpr (std::is_same_v<E, LineXqc>) CHECK(run.learner->return_scale.count == 1);
}

TEST_CASE("a first observation that is not finite shows in the action that would answer it") {
  Run<PointPpo> run(3);
  initialize(Generic{}, run.training);
  run.replay->current_observation[2 * 3 + 1] = math::kQuietNan;
  const auto report = run.step(Generic{});
  CHECK_FALSE(report.finite);
  CHECK(report.non_finite.environment == 2);
  CHECK(report.non_finite.is_first);
  Run<LineTd3> off_policy(3);
  off_policy.training.hyperparameters.learning_starts = 0;
  initialize(Generic{}, off_policy.training);
  off_policy.replay->observation[0] = math::kQuietNan;
  CHECK(off_policy.step(Generic{}).non_finite.is_first);
}

TEST_CASE("an action that is not finite is no environment's fault") {
  Run<PointPpo> run(3);
  initialize(Generic{}, run.training);
  run.learner->actor.values[0] = math::kQuietNan;
  const auto report = run.step(Generic{});
  CHECK_FALSE(report.finite);
  CHECK(report.non_finite.environment == report.non_finite.kNone);
}
