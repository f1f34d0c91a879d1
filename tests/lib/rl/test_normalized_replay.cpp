// TD3 and SAC with a running normalizer: the replay buffer keeps observations as they are, and what
// networks see of them is normalized, in a batch, while acting and in the policy image. And with
// an average of the actor, which is the policy.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "pendulum_sac.h"
#include "point_experiments.h"
#include "resumed_run.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/policy_of_training.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

constexpr int kSeen = 4, kSeenByPolicy = 3, kAction = 2, kEnvironments = 3;

struct PlainTd3 : PointTd3<SecretPoint> {};
struct PlainSac : PlainTd3 {
  using Algorithm = Sac;
  using Hyperparameters = SacHyperparameters;
  using Actor = Mlp<float, Dimensions<3, 16, 4>, Activation::relu, Activation::identity>;
};
template <class E>
struct Normalized : E {
  static constexpr bool kNormalized = true;
};
template <class E>
struct Averaged : E {
  static constexpr int kAveragedUpdates = 5;
};
// As of a task of Gymnasium's: the run says whether it normalizes.
template <class E>
struct Deciding : Normalized<E> {
  using Hyperparameters = WithNormObs<typename E::Hyperparameters>;
};
using NormalizedTd3 = Normalized<PlainTd3>;
using NormalizedSac = Normalized<PlainSac>;
using AveragedSac = Averaged<NormalizedSac>;

template <class E>
void begin(Run<E>& run) {
  run.training.hyperparameters.learning_starts = 60;
  initialize(Generic{}, run.training);
}

// So many observations taken in, of mean 0 and deviation 1, that no further ones tell.
template <class T, int D>
void make_identity(Normalizer<T, D>& normalizer) {
  normalizer.count = 1e30;
  for (int i = 0; i < D; i++) {
    normalizer.mean[i] = 0;
    normalizer.sum_of_squares[i] = (1 - kNormalizerEpsilon) * normalizer.count;
  }
  apply_moments(normalizer);
}

// As the formula says it.
template <class E>
float normalized(const Run<E>& run, const float* observation, int i) {
  const auto& normalizer = run.learner->normalizer;
  return (observation[i] - normalizer.shift[i]) * normalizer.scale[i];
}

template <class E>
std::vector<float> parameters(const Run<E>& run) {
  std::vector<float> values;
  const auto add = [&](const auto& network) {
    values.insert(values.end(), std::begin(network.values), std::end(network.values));
  };
  add(run.learner->actor);
  add(run.learner->critic_1);
  add(run.learner->critic_2);
  add(run.learner->critic_2_target);
  return values;
}

}  // namespace

TEST_CASE_TEMPLATE("each observation that an action answers is taken in once", E, NormalizedTd3,
                   NormalizedSac) {
  Run<E> run(3);
  begin(run);
  constexpr int kSteps = 150;  // fewer than the buffer holds
  run.train(Generic{}, kSteps);
  long double mean[kSeen] = {}, variance[kSeen] = {};
  int count = 0;
  const auto for_each = [&](auto&& visit) {
    for (const auto& buffer : run.replay->buffer) {
      for (std::uint32_t slot = 0; slot < buffer.size; slot++) {
        const bool is_answered = (buffer.flags[slot] & buffer.kTransition) != 0;
        if (is_answered || slot == buffer.position) visit(buffer.observation + slot * kSeen);
      }
    }
  };
  for_each([&](const float* row) {
    count++;
    for (int i = 0; i < kSeen; i++) mean[i] += static_cast<long double>(row[i]);
  });
  REQUIRE(count == (kSteps + 1) * kEnvironments);
  for (auto& value : mean) value /= count;
  for_each([&](const float* row) {
    for (int i = 0; i < kSeen; i++) {
      const long double difference = static_cast<long double>(row[i]) - mean[i];
      variance[i] += difference * difference / count;
    }
  });
  const auto& normalizer = run.learner->normalizer;
  CHECK(normalizer.count == count);
  for (int i = 0; i < kSeen; i++) {
    CAPTURE(i);
    CHECK(normalizer.mean[i] == doctest::Approx(static_cast<double>(mean[i])).epsilon(1e-12));
    CHECK(normalizer.sum_of_squares[i] / count ==
          doctest::Approx(static_cast<double>(variance[i])).epsilon(1e-12));
  }
  CHECK(normalizer.shift[1] > 40.0f);  // meters of height: what is kept is not normalized
}

TEST_CASE_TEMPLATE("a batch is normalized when it is drawn, by what is known then", E,
                   NormalizedTd3, NormalizedSac) {
  Run<E> run(4);
  begin(run);
  run.train(Generic{}, 100);
  for (const int steps : {0, 20}) {
    run.train(Generic{}, static_cast<std::uint32_t>(steps));
    const RandomStream random{4, Purpose::replay_sample, run.learner->progress.updates};
    std::uint32_t numbers[E::kBatchSize];
    sample_slots(Generic{}, *run.replay, random, numbers, E::kBatchSize);
    gather_batch(Generic{}, run.training);
    const auto& scratch = *run.scratch;
    for (int row = 0; row < E::kBatchSize; row++) {
      const auto [buffer, slot] = slot_of(*run.replay, numbers[row]);
      const float* observation = buffer.observation + slot * kSeen;
      const float* next = next_observation(buffer, slot);
      for (int i = 0; i < kSeen; i++) {
        REQUIRE(scratch.observation(row, i) == normalized(run, observation, i));
        REQUIRE(scratch.next_observation(row, i) == normalized(run, next, i));
        REQUIRE(scratch.observation_action(row, i) == scratch.observation(row, i));
      }
      for (int i = 0; i < kAction; i++) {
        REQUIRE(scratch.observation_action(row, kSeen + i) == buffer.action[slot * kAction + i]);
      }
    }
    CHECK(std::abs(scratch.observation(0, 1)) < 5.0f);
  }
}

TEST_CASE("exploration is the actor's action for the normalized observation") {
  Run<NormalizedTd3> run(5);
  begin(run);
  run.training.hyperparameters.action_noise = 0;
  run.train(Generic{}, 40);
  for (int step = 0; step < 30; step++) {
    Matrix<float, kEnvironments, kSeenByPolicy> seen;
    Matrix<float, kEnvironments, kAction> action;
    std::uint32_t slots[kEnvironments];
    for (int i = 0; i < kEnvironments; i++) {
      const auto& buffer = buffer_of(*run.replay, i);
      slots[i] = buffer.position;
      const float* present = buffer.observation + buffer.position * kSeen;
      for (int k = 0; k < kSeenByPolicy; k++) seen(i, k) = normalized(run, present, k);
    }
    MlpBuffer<NormalizedTd3::Actor, kEnvironments> buffer;
    forward(Generic{}, run.learner->actor, seen, action, buffer);
    run.step(Generic{});
    for (int i = 0; i < kEnvironments; i++) {
      for (int k = 0; k < kAction; k++) {
        CHECK(buffer_of(*run.replay, i).action[slots[i] * kAction + k] == action(i, k));
      }
    }
  }
}

TEST_CASE("a normalizer that changes no observation changes nothing that is learned") {
  using E = PlainTd3;
  Run<E> plain(6);
  Run<Normalized<E>> identity(6), run(6);
  begin(plain);
  begin(identity);
  begin(run);
  make_identity(identity.learner->normalizer);
  plain.train(Generic{}, 100);
  identity.train(Generic{}, 100);
  run.train(Generic{}, 100);
  CHECK(identity.learner->normalizer.scale[1] == 1.0f);
  CHECK(plain.learner->progress.updates > 20);
  CHECK(parameters(plain) == parameters(identity));
  CHECK(parameters(plain) != parameters(run));
}

TEST_CASE_TEMPLATE("norm_obs says whether a run normalizes", E, PlainTd3, PlainSac) {
  Run<E> plain(6);
  Run<Normalized<E>> normalized(6);
  Run<Deciding<E>> on(6), off(6);
  begin(plain);
  begin(normalized);
  constexpr int kLast = Deciding<E>::Hyperparameters::kCount - 1;
  REQUIRE(std::string_view(off.training.hyperparameters.info(kLast).name) == "norm_obs");
  REQUIRE(on.training.hyperparameters.norm_obs());
  REQUIRE(off.training.hyperparameters.set_bits(kLast, 0));
  REQUIRE(!off.training.hyperparameters.norm_obs());
  begin(on);
  begin(off);
  for (const std::uint32_t steps : {100u, 40u}) {
    plain.train(Generic{}, steps);
    normalized.train(Generic{}, steps);
    on.train(Generic{}, steps);
    off.train(Generic{}, steps);
    CHECK(parameters(on) == parameters(normalized));
    CHECK(parameters(off) == parameters(plain));
    CHECK(parameters(off) != parameters(on));
  }
  CHECK(plain.learner->progress.updates > 20);
  CHECK(off.learner->normalizer.count == 0);
}

TEST_CASE("the policy is the actor's average, and learning does not know of it") {
  using E = AveragedSac;
  using Plain = NormalizedSac;
  Run<E> run(9);
  Run<Plain> plain(9);
  begin(run);
  begin(plain);
  const auto& actor = run.learner->actor.values;
  const auto& average = run.learner->average.values;
  std::vector<float> before(std::begin(actor), std::end(actor));
  std::vector<double> expected(before.begin(), before.end());
  int updates = 0;
  for (int step = 0; step < 60; step++) {
    run.step(Generic{});
    plain.step(Generic{});
    const std::vector<float> after(std::begin(actor), std::end(actor));
    if (after != before) {
      updates++;
      for (std::size_t i = 0; i < after.size(); i++) {
        expected[i] += (static_cast<double>(after[i]) - expected[i]) / std::min(updates, 5);
      }
      before = after;
    }
    for (std::size_t i = 0; i < expected.size(); i++) {
      REQUIRE(average[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
  }
  CHECK(updates > 10);
  CHECK(parameters(run) == parameters(plain));
  CHECK(&policy_actor(plain.training) == &plain.learner->actor);
  CHECK(fingerprint(plain.training) != fingerprint(run.training));
  CHECK(run.tensor_names().size() == plain.tensor_names().size() + 2 * E::Actor::kLayerCount);
  run.learner->actor = {};  // what acts when training is over does not ask it
  Run<E> other(10);
  begin(other);
  other.learner->average = run.learner->average;
  other.learner->normalizer = run.learner->normalizer;
  const Matrix<float, 1, kSeenByPolicy> observation{{0.3f, 52.0f, -0.2f}};
  Matrix<float, 1, kAction> action, of_other;
  act(Generic{}, run.training, observation, action);
  act(Generic{}, other.training, observation, of_other);
  for (int i = 0; i < kAction; i++) CHECK(action(0, i) == of_other(0, i));
}

TEST_CASE_TEMPLATE("the deployed policy normalizes as the one that was trained, bit by bit", E,
                   NormalizedTd3, AveragedSac) {
  Run<E> run(8);
  begin(run);
  run.train(Generic{}, 100);
  alignas(4) static std::uint8_t image[kPolicyImageBytes<E>];
  build_policy_image(Generic{}, run.training, {}, image);
  static PolicyRunner<64, 0, kPolicyImageBytes<E>> deployed(policy_contract<SecretPoint>());
  REQUIRE(deployed.accept(Generic{}, image, sizeof(image)).accepted());
  for (int k = 0; k < 30; k++) {
    const float x = -1.0f + 0.06f * static_cast<float>(k);
    const Matrix<float, 1, kSeenByPolicy> observation{{x, 50.0f + 10.0f * x, 0.5f * x}};
    Matrix<float, 1, kAction> action;
    float of_image[kAction];
    act(Generic{}, run.training, observation, action);
    REQUIRE(deployed.act(Generic{}, observation.values, of_image) == ActionSource::from_policy);
    for (int i = 0; i < kAction; i++) CHECK(of_image[i] == action(0, i));
  }
}

TEST_CASE_TEMPLATE("a run goes on from any of its states, on any device", E, NormalizedTd3,
                   AveragedSac, Deciding<PlainSac>) {
  training_run::check_goes_on<E>(Generic{}, 60);
}
