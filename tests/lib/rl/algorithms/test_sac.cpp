// Test: -Og
// SAC: whole updates against PyTorch (tests/goldens/generate_sac.py), the same bits whatever the
// kernel, the tile or a pause. Its rules: test_sac_rules.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "line_sac.h"
#include "pytorch_comparison.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "sac_golden_run.h"

using namespace rlt;
using training_run::Run;

namespace {

// Sums of up to 6,400 products in another order. StepReport has its losses in float.
constexpr golden::Tolerances kDouble{1e-11, 1e-7, 1e-13, 1e-12, 1e-10, true};
// Rounding is 6e-8 for each of some dozen operations, and Adam divides by small gradients. The
// targets have moved by about 1e-4 of their size, so that their rounding is 1e-3 of that. Rewards
// come from 100 steps of the pendulum.
constexpr golden::Tolerances kFloat{1e-4, 5e-5, 3e-4, 3e-4, 2e-3, false};
constexpr std::size_t kStride = 21;  // as in generate_sac.py

// The updates of a case of sac_golden_run.h, each one compared.
template <class T>
void compare_with_pytorch(const std::string& name, const golden::Tolerances& tolerances) {
  CAPTURE(name);
  golden::PyTorchComparison comparison("sac.bin", name + "/", tolerances);
  Run<sac_golden::Experiment<T>> run;
  const auto& learner = *run.learner;
  sac_golden::run(
      run, name,
      [&](const std::string& array, const golden::Array& values) {
        comparison.check_input(array, values);
      },
      [&](int update, const auto& report) {
        const std::string prefix = std::to_string(update) + "/";
        CHECK(is_known(report.metrics.critic_1_loss));
        CHECK(is_known(report.metrics.actor_loss));
        comparison.check_loss(prefix + "critic_1_loss", report.metrics.critic_1_loss);
        comparison.check_loss(prefix + "critic_2_loss", report.metrics.critic_2_loss);
        comparison.check_loss(prefix + "actor_loss", report.metrics.actor_loss);
        const auto check_step = [&](const char* network, const char* initial,
                                    const auto& parameters, double tolerance) {
          comparison.check_step(prefix + network, initial, parameters, kStride, tolerance);
        };
        check_step("actor", "actor", learner.actor, tolerances.parameters);
        check_step("critic_1", "critic_1", learner.critic_1, tolerances.parameters);
        check_step("critic_2", "critic_2", learner.critic_2, tolerances.parameters);
        check_step("critic_1_target", "critic_1", learner.critic_1_target, tolerances.targets);
        check_step("critic_2_target", "critic_2", learner.critic_2_target, tolerances.targets);
        const auto check_moments = [&](const char* optimizer, const auto& state) {
          comparison.check_moments(prefix + optimizer, state, kStride);
        };
        check_moments("actor_optimizer", learner.actor_optimizer);
        check_moments("critic_1_optimizer", learner.critic_1_optimizer);
        check_moments("critic_2_optimizer", learner.critic_2_optimizer);
        check_moments("temperature_optimizer", learner.temperature_optimizer);
        comparison.check_array(prefix + "log_temperature",
                               golden::to_array(learner.log_temperature.values, 1),
                               tolerances.parameters);
      });
}

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps, std::uint32_t seed = 1) {
  Run<E> run(seed);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

}  // namespace

TEST_CASE("two updates in double are PyTorch's") {
  for (const char* name : sac_golden::kCases) compare_with_pytorch<double>(name, kDouble);
}

TEST_CASE("two updates in float are PyTorch's in double, but for rounding") {
  for (const char* name : sac_golden::kCases) compare_with_pytorch<float>(name, kFloat);
}

TEST_CASE("the golden's second case goes beyond both bounds of log_std") {
  using E = sac_golden::Experiment<double>;
  Run<E> run;
  sac_golden::configure("bounded", run.training);
  run.train(Generic{}, run.training.hyperparameters.learning_starts);
  int below = 0, above = 0;
  for (std::uint32_t slot = 0; slot < run.replay->size; slot++) {
    const MatrixView<const double, 1, 3> observation{run.replay->observation + slot * 3};
    Matrix<double, 1, 2> output;
    forward(Generic{}, run.learner->actor, observation, output, run.scratch->exploring_buffer);
    below += output(0, 1) < -20;
    above += output(0, 1) > 2;
  }
  CHECK(below >= 10);
  CHECK(above >= 10);
  CHECK(below + above <= 80);
}

TEST_CASE("the reference and the host's kernels end 300 steps with the same bits") {
  const std::string reference = hash_after<PendulumSac>(Generic{}, 300);
  CHECK(hash_after<PendulumSac>(Host{}, 300) == reference);
  // The same on every machine and with every compiler. A change to the core's numerics changes it,
  // and the message of that commit says so.
  CHECK(reference == "911d74e4aa447b12469518470046dab8144d5096eb0fb1ae3b9db8bafb547b80");
  CHECK(hash_after<LineSac>(Host{}, 300) == hash_after<LineSac>(Generic{}, 300));
}

TEST_CASE("the tile size changes no bit") {
  const std::string expected = hash_after<PendulumSac>(Host{}, 200);
  CHECK(hash_after<WithTileRows<PendulumSac, 100>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<PendulumSac, 10>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<PendulumSac, 4>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<LineSac, 5>>(Host{}, 300) == hash_after<LineSac>(Host{}, 300));
}

TEST_CASE("a run that continues from a copy of its state ends with the same bits") {
  const std::string expected = hash_after<PendulumSac>(Host{}, 260, 3);
  for (const std::uint32_t pause : {1u, 100u, 101u, 199u, 200u, 231u}) {
    CAPTURE(pause);
    Run<PendulumSac> first(3), second(3);
    initialize(Host{}, first.training);
    first.train(Host{}, pause);
    evaluate(Host{}, first.training);
    policy(first.training);
    std::memset(static_cast<void*>(second.learner.get()), 0xa5, sizeof(*second.learner));
    std::memset(static_cast<void*>(second.scratch.get()), 0xff, sizeof(*second.scratch));
    second.set_state(first.state());
    REQUIRE(steps_done(second.training) == pause);
    second.train(Host{}, 260 - pause);
    CHECK(second.state_sha256() == expected);
  }
}

TEST_CASE("the report says so when a number is not finite") {
  Run<PendulumSac> run(6);
  run.training.hyperparameters.learning_starts = 20;
  initialize(Host{}, run.training);
  run.train(Host{}, 40);
  REQUIRE(run.step(Host{}).finite);
  const std::vector<std::uint8_t> state = run.state();
  for (const float poison : {math::kQuietNan, math::kInfinity, -math::kInfinity}) {
    CAPTURE(poison);
    const auto stays_finite = [&](float& value) {
      value = poison;
      bool finite = true;
      for (int i = 0; i < 4; i++) finite = finite && run.step(Host{}).finite;
      run.set_state(state);
      return finite;
    };
    CHECK_FALSE(stays_finite(run.learner->critic_1.bias(2)[0]));
    CHECK_FALSE(stays_finite(run.learner->critic_2.bias(2)[0]));
    CHECK_FALSE(stays_finite(run.learner->actor.bias(2)[0]));
    CHECK_FALSE(stays_finite(run.learner->environments.state[0].velocity_rad_s));
    if (poison > 0 || poison != poison) {  // log_temperature = -infinity is a temperature of zero
      CHECK_FALSE(stays_finite(run.learner->log_temperature.values[0]));
    }
  }
}

TEST_CASE("the state's tensors have unlike names and as many bytes as state_bytes says") {
  Run<PendulumSac> run;
  const std::vector<std::string> names = run.tensor_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(state_bytes(run.training) == run.state().size());
}
