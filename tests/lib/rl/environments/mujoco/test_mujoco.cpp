// MuJoCo's tasks as environments of the core: states are plain data that any thread may step,
// resets draw what Gymnasium's draw, and a model that is another one is not taken. That they are
// Gymnasium's tasks is in test_mujoco_gymnasium.py.
// Requires: mujoco
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/mujoco/ant.h"
#include "rltools/rl/environments/mujoco/half_cheetah.h"
#include "rltools/rl/environments/mujoco/hopper.h"
#include "rltools/rl/environments/mujoco/humanoid.h"
#include "rltools/rl/environments/mujoco/walker2d.h"
#include "rltools/rl/environments/pendulum.h"

using namespace rlt;

namespace {

constexpr Generic kDevice{};

#define RLT_ALL_TASKS \
  Ant<float>, HalfCheetah<float>, Hopper<float>, Walker2d<float>, Humanoid<float>
#define RLT_TWO_TASKS Hopper<float>, Humanoid<float>

RandomStream reset_stream(std::uint32_t episode) {
  return {7, Purpose::environment_reset, episode};
}

template <class E>
typename E::State initial(std::uint32_t episode) {
  typename E::State state;
  std::memset(&state, 0, sizeof state);
  reset(kDevice, E{}, {}, state, reset_stream(episode));
  return state;
}

template <class E>
StepResult<typename E::Scalar> random_step(typename E::State& state, std::uint32_t episode,
                                           std::uint32_t step_number) {
  using T = typename E::Scalar;
  T action[E::kActionDim];
  fill_uniform(kDevice, RandomStream{7, Purpose::warmup_action, step_number, episode}, action,
               E::kActionDim, T(-1), T(1));
  return step(kDevice, E{}, {}, state, action, RandomStream{});
}

template <class State>
bool same(const State& a, const State& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// The state after `steps` steps of an episode, on an mjData that nothing else has used.
template <class E>
typename E::State alone(std::uint32_t episode, std::uint32_t steps) {
  typename E::State state;
  std::thread thread([&] {
    state = initial<E>(episode);
    for (std::uint32_t i = 0; i < steps; i++) random_step<E>(state, episode, i);
  });
  thread.join();
  return state;
}

}  // namespace

TEST_CASE_TEMPLATE("the contract of environments is kept", E, RLT_ALL_TASKS) {
  static_assert(kIsKept<EnvironmentContract<E>>);
  static_assert(std::is_trivially_copyable_v<typename E::State>);
  static_assert(std::is_empty_v<E>);
  CHECK(unavailable_here<E>() == nullptr);
}

TEST_CASE_TEMPLATE("states may take turns on one thread, as if each had a simulator", E,
                   RLT_TWO_TASKS) {
  constexpr std::uint32_t kStates = 5, kSteps = 40;
  std::vector<typename E::State> states;
  for (std::uint32_t i = 0; i < kStates; i++) states.push_back(initial<E>(i));
  for (std::uint32_t k = 0; k < kSteps; k++) {
    for (std::uint32_t i = 0; i < kStates; i++) random_step<E>(states[i], i, k);
  }
  for (std::uint32_t i = 0; i < kStates; i++) CHECK(same(states[i], alone<E>(i, kSteps)));
  CHECK(!same(states[0], states[1]));
}

TEST_CASE_TEMPLATE("a copy of a state goes on as the state does, on any thread", E, RLT_TWO_TASKS) {
  auto state = initial<E>(3);
  for (std::uint32_t k = 0; k < 20; k++) random_step<E>(state, 3, k);
  auto copy = state;
  std::thread thread([&] {
    auto other = initial<E>(4);
    for (std::uint32_t k = 20; k < 40; k++) {
      random_step<E>(other, 4, k);
      random_step<E>(copy, 3, k);
    }
  });
  for (std::uint32_t k = 20; k < 40; k++) random_step<E>(state, 3, k);
  thread.join();
  CHECK(same(state, copy));
}

TEST_CASE_TEMPLATE("a state that has diverged does not reach the next one", E, RLT_TWO_TASKS) {
  auto diverged = initial<E>(0);
  for (double& value : diverged.qvel) value = 1e15;
  const auto result = random_step<E>(diverged, 0, 0);
  CHECK(std::isfinite(result.reward));
  auto state = initial<E>(1);
  for (std::uint32_t k = 0; k < 10; k++) random_step<E>(state, 1, k);
  CHECK(same(state, alone<E>(1, 10)));
}

TEST_CASE_TEMPLATE("every reset is another state, none of them terminal", E, RLT_ALL_TASKS) {
  const double scale = typename E::Parameters{}.reset_noise_scale;
  const mjModel& model = *mujoco::model_of<typename E::TaskType>().get();
  double lowest = 0, highest = 0;
  for (std::uint32_t episode = 0; episode < 300; episode++) {
    const auto state = initial<E>(episode);
    REQUIRE(!E::is_terminal({}, state));
    CHECK(state.time == 0);
    for (int i = 0; i < model.nq; i++) {
      const double noise = state.qpos[i] - model.qpos0[i];
      REQUIRE(std::fabs(noise) <= scale);
      CHECK(noise != state.qvel[i % model.nv]);
      lowest = std::fmin(lowest, noise);
      highest = std::fmax(highest, noise);
    }
  }
  CHECK(lowest < -0.99 * scale);
  CHECK(highest > 0.99 * scale);
  CHECK(same(initial<E>(5), initial<E>(5)));
  CHECK(!same(initial<E>(5), initial<E>(6)));
}

// Normal numbers of standard deviation 0.1, or uniform ones within the scale.
TEST_CASE_TEMPLATE("velocities are drawn as Gymnasium's are", E, RLT_ALL_TASKS) {
  constexpr bool kIsNormal = std::is_same_v<E, Ant<float>> || std::is_same_v<E, HalfCheetah<float>>;
  const double scale = typename E::Parameters{}.reset_noise_scale;
  double squares = 0, largest = 0;
  int count = 0;
  for (std::uint32_t episode = 0; episode < 300; episode++) {
    for (const double velocity : initial<E>(episode).qvel) {
      squares += velocity * velocity;
      largest = std::fmax(largest, std::fabs(velocity));
      count++;
    }
  }
  const double deviation = std::sqrt(squares / count);
  CHECK(deviation == doctest::Approx(kIsNormal ? scale : scale / std::sqrt(3.0)).epsilon(0.05));
  CHECK((largest > scale) == kIsNormal);
}

TEST_CASE_TEMPLATE("float and double are the same dynamics", E, RLT_TWO_TASKS) {
  auto state = initial<E>(0);
  random_step<E>(state, 0, 0);
  float observation[E::kObservationDim];
  double exact[E::kObservationDim];
  observe(kDevice, E{}, {}, state, observation, RandomStream{});
  E::observe(state, exact);
  for (int i = 0; i < E::kObservationDim; i++)
    CHECK(observation[i] == static_cast<float>(exact[i]));
}

TEST_CASE_TEMPLATE("an action beyond its range is taken as its bound", E, RLT_TWO_TASKS) {
  auto at_bound = initial<E>(0), beyond = at_bound;
  float action[E::kActionDim];
  for (float& value : action) value = 1.0f;
  const auto expected = step(kDevice, E{}, {}, at_bound, action, RandomStream{});
  for (float& value : action) value = 3.0f;
  CHECK(step(kDevice, E{}, {}, beyond, action, RandomStream{}).reward == expected.reward);
  CHECK(same(at_bound, beyond));
}

namespace {

// Whether a standing body is terminal once a number of its state is another one.
template <class E, class Change>
bool ends(Change&& change) {
  auto state = initial<E>(0);
  change(state);
  return E::is_terminal({}, state);
}

}  // namespace

TEST_CASE("episodes end beyond Gymnasium's bounds, and on some bounds") {
  const double nan = std::nan(""), infinity = HUGE_VAL;
  const auto ant = [](double z) { return ends<Ant<float>>([&](auto& s) { s.qpos[2] = z; }); };
  CHECK((ant(0.1999) && !ant(0.2) && !ant(1.0) && ant(1.0001) && ant(nan)));
  CHECK(ends<Ant<float>>([&](auto& s) { s.qvel[13] = infinity; }));
  CHECK(ends<Ant<float>>([&](auto& s) { s.qpos[0] = nan; }));
  CHECK(!ends<Ant<float>>([&](auto& s) { s.qvel[13] = 1e30; }));

  CHECK(!ends<HalfCheetah<float>>([&](auto& s) { s.qpos[1] = s.qpos[2] = -50; }));

  const auto hopper = [](int index, double value) {
    return ends<Hopper<float>>([&](auto& s) { s.qpos[index] = value; });
  };
  CHECK((hopper(1, 0.7) && !hopper(1, 0.7001) && !hopper(1, 200) && hopper(1, nan)));
  CHECK((hopper(2, 0.2) && !hopper(2, 0.1999) && hopper(2, -0.2) && !hopper(2, -0.1999)));
  CHECK((hopper(5, 100) && !hopper(5, -99.9) && hopper(5, nan) && !hopper(0, 1e6)));
  CHECK(ends<Hopper<float>>([&](auto& s) { s.qvel[0] = -100; }));
  CHECK(!ends<Hopper<float>>([&](auto& s) { s.qvel[0] = -99.9; }));

  const auto walker = [](int index, double value) {
    return ends<Walker2d<float>>([&](auto& s) { s.qpos[index] = value; });
  };
  CHECK((walker(1, 0.8) && !walker(1, 0.8001) && walker(1, 2.0) && !walker(1, 1.9999)));
  CHECK((walker(2, 1.0) && !walker(2, 0.9999) && walker(2, -1.0) && !walker(2, -0.9999)));
  CHECK(!walker(8, 1000));

  const auto humanoid = [](double z) {
    return ends<Humanoid<float>>([&](auto& s) { s.qpos[2] = z; });
  };
  CHECK((humanoid(1.0) && !humanoid(1.0001) && humanoid(2.0) && !humanoid(1.9999)));
}

TEST_CASE("parameters are those that a step is given") {
  using E = Ant<double>;
  const double action[E::kActionDim] = {1, -1, 0.5, 0, 0, 0, 0, 0};
  auto state = initial<E>(0);
  auto other = state;
  const auto nominal = step(kDevice, E{}, {}, state, action, RandomStream{});
  E::Parameters parameters;
  parameters.control_cost = 2;
  parameters.healthy_reward = 7;
  parameters.max_healthy_z_m = 0.1;
  const auto result = step(kDevice, E{}, parameters, other, action, RandomStream{});
  CHECK(result.reward - nominal.reward == doctest::Approx(6 - 1.5 * 2.25));
  CHECK(!nominal.terminated);
  CHECK(result.terminated);
  parameters.reset_noise_scale = 0;
  reset(kDevice, E{}, parameters, state, reset_stream(0));
  CHECK(state.qpos[2] == 0.75);
}

TEST_CASE("a model that is not the task's is not taken") {
  using Task = mujoco::HopperTask;
  const auto is_taken = [](const mujoco::ModelDescription& description) {
    return mujoco::Model(description).unavailable() == nullptr;
  };
  const mujoco::ModelDescription good = {
      Task::kName,      Task::kModelFile,      6, 6, 5, Task::kActionDim, Task::kActions,
      Task::kFrameSkip, Task::kStepInterval_us};
  static const mujoco::Model fitting(good);  // a model is there until the process ends
  CHECK(fitting.unavailable() == nullptr);
  auto bad = good;
  bad.file = "no such file.xml";
  CHECK_FALSE(is_taken(bad));
  bad = good;
  bad.body_count = 6;
  CHECK_FALSE(is_taken(bad));
  for (const bool is_lower : {true, false}) {  // one end of the last range alone
    Channel other[] = {mujoco::control("thigh"), mujoco::control("leg"), mujoco::control("foot")};
    (is_lower ? other[2].minimum : other[2].maximum) *= 0.5f;
    bad.actions = other;
    CHECK_FALSE(is_taken(bad));
  }
  bad = good;
  bad.frame_skip = 5;
  CHECK_FALSE(is_taken(bad));
}

namespace {

// A task whose model is not there.
struct Absent : mujoco::HopperTask {
  using TaskType = Absent;
  using Scalar = float;
  static constexpr const char* kModelFile = "absent.xml";
};

}  // namespace

TEST_CASE("without its model an environment gives NaN, and says why") {
  REQUIRE(unavailable_here<Absent>() != nullptr);
  CHECK(unavailable_here<Hopper<float>>() == nullptr);
  CHECK(unavailable_here<Pendulum<float>>() == nullptr);
  Absent::State state = {};
  reset(kDevice, Absent{}, {}, state, reset_stream(0));
  CHECK(std::isnan(state.qpos[0]));
  CHECK(std::isnan(state.time));
  const float action[Absent::kActionDim] = {};
  const auto result = step(kDevice, Absent{}, {}, state, action, RandomStream{});
  CHECK(std::isnan(result.reward));
  CHECK(!result.terminated);
  float observation[Absent::kObservationDim] = {};
  observe(kDevice, Absent{}, {}, state, observation, RandomStream{});
  for (const float value : observation) CHECK(std::isnan(value));
}
