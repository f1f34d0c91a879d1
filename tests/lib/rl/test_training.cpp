// Test: -Og
// Training runs of each algorithm: the same bits whatever the kernel, the tile, an evaluation or a
// pause; other bits for another seed.
#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "line_experiments.h"
#include "pendulum_sac.h"
#include "pendulum_td3.h"
#include "pendulum_xqc.h"
#include "point_experiments.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

// PPO's iterations are short, with everything that may be asked for; XQC's updates are such that
// some steps have one of the actor, and some none.
void shorten(Td3Hyperparameters&) {}
void shorten(SacHyperparameters&) {}
void shorten(XqcHyperparameters& h) {
  h.learning_starts = 100;
  h.gradient_steps = 2;
  h.policy_delay = 3;
}
void shorten(PpoHyperparameters& h) {
  h.n_epochs = 2;
  h.recompute_advantage = 1;
  h.ent_coef = 0.01f;
}

template <class E>
struct ShortRun : Run<E> {
  explicit ShortRun(std::uint32_t seed) : Run<E>(seed) { shorten(this->training.hyperparameters); }

  // What stood in the memory before counts for nothing.
  void fill_with_garbage(int byte) {
    std::memset(static_cast<void*>(this->learner.get()), byte, sizeof(*this->learner));
    std::memset(static_cast<void*>(this->replay.get()), byte, sizeof(*this->replay));
    std::memset(static_cast<void*>(this->scratch.get()), byte, sizeof(*this->scratch));
  }
};

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps, std::uint32_t seed = 1) {
  ShortRun<E> run(seed);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

// Calls of train_step() in an iteration of two epochs.
template <class E>
constexpr std::uint32_t kIteration = E::kRolloutSteps + 2 * kMinibatches<E>;
static_assert(kIteration<PendulumPpo> == 272 && kIteration<RandomPointPpo> == 24);

template <class E>
void check_devices(std::uint32_t steps) {
  CAPTURE(E::kName);
  CHECK(hash_after<E>(Host{}, steps) == hash_after<E>(Generic{}, steps));
}

// What is known is the reference's, whose kernels agree with the host's (kernel_agreement.h).
template <class E>
void check_known(std::uint32_t steps, const char* known) {
  CAPTURE(E::kName);
  CHECK(hash_after<E>(Host{}, steps) == known);
}

template <class E, int... TileRows>
void check_tiles(std::uint32_t steps) {
  CAPTURE(E::kName);
  const std::string expected = hash_after<E>(Host{}, steps);
  for (const std::string& hash : {hash_after<WithTileRows<E, TileRows>>(Host{}, steps)...}) {
    CHECK(hash == expected);
  }
}

template <class E>
void check_pause(std::uint32_t steps, std::uint32_t pause, const std::string& expected) {
  CAPTURE(E::kName);
  CAPTURE(pause);
  ShortRun<E> first(3), second(3);
  initialize(Host{}, first.training);
  first.train(Host{}, pause);
  const auto before = first.state();
  first.training.hyperparameters.n_eval_episodes = 2;
  const float mean = evaluate(Host{}, first.training).mean;
  CHECK(evaluate(Host{}, first.training).mean == mean);
  policy(first.training);
  CHECK(first.state() == before);
  second.fill_with_garbage(pause % 2 ? 0xa5 : 0xff);
  second.set_state(before);
  CHECK(state_is_consistent(second.training));
  CHECK(state_is_finite(second.training));
  second.train(Host{}, steps - pause);
  CHECK(second.state_sha256() == expected);
}
template <class E>
void check_pauses(std::uint32_t steps, std::initializer_list<std::uint32_t> pauses) {
  const std::string expected = hash_after<E>(Host{}, steps, 3);
  for (const std::uint32_t pause : pauses) check_pause<E>(steps, pause, expected);
}

}  // namespace

// The same on every machine and with every compiler. A change to the core's numerics changes these,
// and the message of that commit says so.
TEST_CASE("the reference and the host's kernels end with the same bits") {
  check_known<PendulumTd3>(300, "62bb5c642657fb8d8acbf7f017097bcfa3976b430c720c73f845356fdb952d8f");
  check_known<PendulumSac>(300, "911d74e4aa447b12469518470046dab8144d5096eb0fb1ae3b9db8bafb547b80");
  check_known<PendulumPpo>(2 * kIteration<PendulumPpo> + PendulumPpo::kRolloutSteps + 2,
                           "5a0c448bea487d57b86292bdfcefa3c594fa0a14362560b903b8a55ebe00fcde");
  check_devices<RandomPointPpo>(100);
  check_devices<PendulumXqc>(160);
}

TEST_CASE("the tile size changes no bit") {
  check_tiles<PendulumTd3, 4>(200);
  check_tiles<RandomPointPpo, 2>(100);
}

TEST_CASE("a run that continues from a copy of its state ends with the same bits") {
  check_pauses<PendulumTd3>(233, {1, 101, 200});
  check_pauses<PendulumSac>(231, {1, 101, 200});
  check_pauses<PendulumXqc>(161, {1, 101, 142});
  check_pauses<PendulumPpo>(kIteration<PendulumPpo> + PendulumPpo::kRolloutSteps + 5,
                            {256, 259, 264, 272, 300});
  // In the middle of each: rollouts, epochs; before a rollout, before its first minibatch, and
  // before the epoch that computes the advantages anew.
  const std::string expected = hash_after<RandomPointPpo>(Host{}, 80, 3);
  for (std::uint32_t pause = 1; pause < 80; pause++) {
    check_pause<RandomPointPpo>(80, pause, expected);
  }
}

TEST_CASE_TEMPLATE("initialize sets the whole state, whatever the memory held", E, PendulumTd3,
                   PendulumSac, PendulumXqc, RandomPointPpo) {
  ShortRun<E> clean(4), used(5);
  clean.fill_with_garbage(0x5a);
  initialize(Host{}, clean.training);
  used.training.hyperparameters.learning_rate = 0.01f;
  initialize(Host{}, used.training);
  used.train(Host{}, 120);
  used.training.hyperparameters = clean.training.hyperparameters;
  initialize(Host{}, used.training);
  CHECK(used.state() == clean.state());
}

TEST_CASE_TEMPLATE("seeds differ", E, PendulumTd3, RandomPointPpo) {
  std::set<std::string> hashes;
  for (const std::uint32_t seed : {0u, 1u, 2u, 4294967295u}) {
    hashes.insert(hash_after<E>(Host{}, 110, seed));
  }
  CHECK(hashes.size() == 4);
}

TEST_CASE_TEMPLATE("the state's tensors have unlike names and as many bytes as state_bytes says", E,
                   PendulumTd3, PendulumSac, PendulumXqc, RandomPointPpo) {
  Run<E> run;
  const std::vector<std::string> names = run.tensor_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(state_bytes(run.training) == run.state().size());
}
