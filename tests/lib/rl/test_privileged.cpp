// What critics see and a policy does not: learning keeps it behind the policy's observation. Where
// it is nothing but zeros, and the critics begin with equal weights, everything learns as without
// it, bit for bit.
#include <doctest/doctest.h>

#include <vector>

#include "point_experiments.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/policy_of_training.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace rlt {

// Critics see zeros in place of what SecretPoint tells them.
struct ZeroPoint : RandomPoint {
  static constexpr int kPrivilegedDim = 2;
};
inline void observe(Generic device, const ZeroPoint&, const RandomPoint::Parameters& parameters,
                    const RandomPoint::State& state, float* observation, RandomStream random) {
  observe(device, RandomPoint{}, parameters, state, observation, random);
  observation[3] = observation[4] = 0.0f;
}

}  // namespace rlt

namespace {

template <class Place>
struct PlacePpo : PointPpo {
  using Environment = Place;
  using Critic = Mlp<float, Dimensions<kCriticObservationDim<Place>, 16, 12, 1>, Activation::relu,
                     Activation::identity>;
};

// `wide` is `narrow` with zeros for its inputs 3 and 4.
template <class Wide, class Narrow>
void widen(const Narrow& narrow, Wide& wide) {
  constexpr int kInserted = Wide::kInputDim - Narrow::kInputDim;
  const int width = Narrow::output_dim(0);
  for (int input = 0; input < Wide::kInputDim; input++) {
    const int from = input < 3 ? input : input - kInserted;
    const bool is_new = input >= 3 && input < 3 + kInserted;
    for (int i = 0; i < width; i++) {
      wide.weights(0)[input * width + i] = is_new ? 0.0f : narrow.weights(0)[from * width + i];
    }
  }
  const float* rest = narrow.bias(0);
  for (int i = 0; i < Narrow::kParameterCount - Narrow::bias_offset(0); i++) {
    wide.bias(0)[i] = rest[i];
  }
}

template <class Narrow, class Wide>
void widen_critics(OffPolicy, const Narrow& narrow, Wide& wide) {
  widen(narrow.critic_1, wide.critic_1);
  widen(narrow.critic_2, wide.critic_2);
  wide.critic_1_target = wide.critic_1;
  wide.critic_2_target = wide.critic_2;
}

void shorten(Td3Hyperparameters& hyper) { hyper.learning_starts = 60; }

template <class Narrow, class Wide>
void check_zeros_change_nothing() {
  Run<Narrow> narrow(31);
  Run<Wide> wide(31);
  shorten(narrow.training.hyperparameters);
  shorten(wide.training.hyperparameters);
  initialize(Generic{}, narrow.training);
  initialize(Generic{}, wide.training);
  widen_critics(typename Narrow::Algorithm{}, *narrow.learner, *wide.learner);
  const std::vector<float> before(narrow.learner->actor.values,
                                  narrow.learner->actor.values + Narrow::Actor::kParameterCount);
  narrow.train(Generic{}, 120);
  wide.train(Generic{}, 120);
  CHECK(narrow.learner->progress.updates > 20);
  int changed = 0;
  for (int i = 0; i < Narrow::Actor::kParameterCount; i++) {
    REQUIRE(narrow.learner->actor.values[i] == wide.learner->actor.values[i]);
    changed += narrow.learner->actor.values[i] != before[i];
  }
  CHECK(changed > Narrow::Actor::kParameterCount / 2);
  const auto report = evaluate(Generic{}, narrow.training),
             same = evaluate(Generic{}, wide.training);
  CHECK(report.mean == same.mean);
  CHECK(fingerprint(narrow.training) != fingerprint(wide.training));
}

}  // namespace

TEST_CASE("zeros behind the observation change no bit of what is learned") {
  check_zeros_change_nothing<PointTd3<RandomPoint>, PointTd3<ZeroPoint>>();
}

TEST_CASE("a replay buffer keeps what critics see, and they learn from it") {
  using E = PointTd3<SecretPoint>;
  Run<E> run(32);
  run.training.hyperparameters.learning_starts = 60;
  initialize(Generic{}, run.training);
  const std::vector<float> before(run.learner->critic_1.weights(0) + 3 * 16,
                                  run.learner->critic_1.weights(0) + 4 * 16);
  run.train(Generic{}, 120);
  for (int i = 0; i < 3; i++) {
    const auto& buffer = buffer_of(*run.replay, i);
    CHECK(buffer.observation[buffer.position * 4 + 3] ==
          run.learner->environments.values[i].strength);
  }
  int changed = 0;
  for (int i = 0; i < 16; i++) changed += run.learner->critic_1.weights(0)[3 * 16 + i] != before[i];
  CHECK(changed >= 4);  // ReLU units that are not dead
}

TEST_CASE("a rollout keeps what critics see, and the policy image has the policy's part") {
  using E = PlacePpo<SecretPoint>;
  Run<E> run(33);
  initialize(Generic{}, run.training);
  run.train(Generic{}, 150);
  CHECK(run.learner->iteration > 0);
  for (int i = 0; i < E::kEnvironments; i++) {
    CHECK(run.replay->current_observation[i * 4 + 3] ==
          run.learner->environments.values[i].strength);
  }
  CHECK(run.learner->normalizer.mean[3] > 0.25);
  static std::uint8_t image[kPolicyImageBytes<E>];
  build_policy_image(Generic{}, run.training, {}, image);
  PolicyView view;
  REQUIRE(parse_policy(image, sizeof(image), view).accepted());
  CHECK(view.header->observation_dim == 3);
  std::vector<float> scratch(scratch_floats_to_accept(view));
  const float observation[] = {0.25f, 55.0f, -0.125f};
  float output[2];
  policy_forward(Generic{}, view, observation, nullptr, output, scratch.data());
  Matrix<float, 1, 2> action;
  act(Generic{}, run.training, MatrixView<const float, 1, 3>{observation}, action);
  CHECK(output[0] == action(0, 0));
  CHECK(output[1] == action(0, 1));
}
