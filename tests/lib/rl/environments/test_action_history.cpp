// WithActionHistory: the environment within is as it was, and the last actions follow its
// observation; learning, fingerprint, checkpoint and policy contract take it like any other.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pendulum_td3.h"
#include "point_environment.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/fingerprint.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

using Remembering = WithActionHistory<Point<float>, 3>;
using RememberingRandom = WithActionHistory<RandomPoint, 2>;

template <int Actions>
struct RememberingTd3 : PendulumTd3 {
  static constexpr const char* kName = "remembering-td3";
  using Environment = WithActionHistory<Pendulum<float>, Actions>;
  using Actor = Mlp<float, Dimensions<3 + Actions, 16, 1>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<4 + Actions, 16, 1>, Activation::relu, Activation::identity>;
  static constexpr int kReplayCapacity = 600;
};

}  // namespace

TEST_CASE("the last actions follow the observation, the latest first") {
  static_assert(kIsKept<EnvironmentContract<Remembering>>);
  const Remembering environment{};
  const Point<float> within{};
  Remembering::State state;
  Point<float>::State state_within;
  const Remembering::Parameters parameters;
  const auto random = [](std::uint32_t step) {
    return RandomStream{3, Purpose::environment_step, step};
  };
  reset(Generic{}, environment, parameters, state, random(100));
  reset(Generic{}, within, parameters, state_within, random(100));
  std::vector<float> history(6, 0.0f);
  for (std::uint32_t number = 0; number < 7; number++) {
    float observation[9], expected[3];
    observe(Generic{}, environment, parameters, state, observation, random(200 + number));
    observe(Generic{}, within, parameters, state_within, expected, random(200 + number));
    CHECK(std::vector<float>(observation, observation + 3) ==
          std::vector<float>(expected, expected + 3));
    CHECK(std::vector<float>(observation + 3, observation + 9) == history);
    const float action[] = {0.125f * static_cast<float>(number), -3.0f};
    const auto result = step(Generic{}, environment, parameters, state, action, random(number));
    const auto same = step(Generic{}, within, parameters, state_within, action, random(number));
    CHECK(result.reward == same.reward);
    CHECK(result.terminated == same.terminated);
    history.insert(history.begin(), {action[0], -1.0f});  // as the actuator was given it
    history.resize(6);
  }
  // Another episode knows nothing of this one.
  reset(Generic{}, environment, parameters, state, random(101));
  float observation[9];
  observe(Generic{}, environment, parameters, state, observation, random(300));
  CHECK(std::vector<float>(observation + 3, observation + 9) == std::vector<float>(6, 0.0f));
}

TEST_CASE("a channel of the history is named after its action and its age") {
  CHECK(std::string(Remembering::kName) == "point +3 actions");
  static_assert(Remembering::kObservationDim == 9);
  const Channel* channels = Remembering::kObservations;
  CHECK(std::string(channels[1].name) == "height");
  CHECK(channels[1].maximum == 70.0f);
  CHECK(std::string(channels[3].name) == "right_t-1");
  CHECK(std::string(channels[4].name) == "up_t-1");
  CHECK(std::string(channels[8].name) == "up_t-3");
  CHECK(std::string(channels[8].unit) == "1");
  CHECK(channels[8].minimum == -1.0f);
  CHECK(channels[8].maximum == 1.0f);
  using Long = WithActionHistory<Point<float>, 12>;
  CHECK(std::string(Long::kObservations[Long::kObservationDim - 1].name) == "up_t-12");
}

TEST_CASE("learning stores the history, and tells it apart") {
  Run<RememberingTd3<1>> one(6);
  Run<RememberingTd3<2>> two(6);
  CHECK(fingerprint(one.training) != fingerprint(two.training));
  auto run = [](auto& from) {
    from.training.hyperparameters.learning_starts = 110;
    initialize(Generic{}, from.training);
    from.train(Generic{}, 150);
    CHECK(from.learner->progress.updates > 0);
  };
  run(two);
  const auto& replay = *two.replay;
  for (int slot = 3; slot < 140; slot++) {
    const float* observation = replay.observation + slot * 5;
    CHECK(observation[3] == replay.action[slot - 1]);
    CHECK(observation[4] == replay.action[slot - 2]);
  }
  std::string names;
  for_each_state_tensor(two.training, [&](const TensorInfo& info, void*) {
    write_full_name(info, [&](char c) { names += c; });
    names += ' ';
  });
  CHECK(names.find("environment_state/velocity_rad_s environment_state/last_actions ") !=
        std::string::npos);
}

namespace {

// A step of it lasts five ticks of the contract.
struct SlowPoint : Point<float> {
  static constexpr const char* kName = "slow-point";
  static constexpr int kTicksPerStep = 5;
};

}  // namespace
