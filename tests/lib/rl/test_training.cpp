// Test: -Og
// Training runs: the same bits whatever the kernel, the tile, an evaluation or a pause; other bits
// for another seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "pendulum_td3.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps, std::uint32_t seed = 1) {
  Run<E> run(seed);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

}  // namespace

TEST_CASE("the reference and the host's kernels end 300 steps with the same bits") {
  const std::string reference = hash_after<PendulumTd3>(Generic{}, 300);
  CHECK(hash_after<PendulumTd3>(Host{}, 300) == reference);
  // The same on every machine and with every compiler. A change to the core's numerics changes it,
  // and the message of that commit says so.
  CHECK(reference == "62bb5c642657fb8d8acbf7f017097bcfa3976b430c720c73f845356fdb952d8f");
}

TEST_CASE("the tile size changes no bit") {
  const std::string expected = hash_after<PendulumTd3>(Host{}, 200);
  CHECK(hash_after<WithTileRows<PendulumTd3, 100>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<PendulumTd3, 10>>(Host{}, 200) == expected);
  CHECK(hash_after<WithTileRows<PendulumTd3, 4>>(Host{}, 200) == expected);
}

TEST_CASE("an evaluation leaves the training state as it is") {
  Run<PendulumTd3> run(2);
  run.training.hyperparameters.eval_episodes = 3;
  initialize(Host{}, run.training);
  run.train(Host{}, 170);
  const std::vector<std::uint8_t> before = run.state();
  const EvaluationReport report = evaluate(Host{}, run.training);
  CHECK(run.state() == before);
  const EvaluationReport again = evaluate(Host{}, run.training);
  CHECK(report.mean == again.mean);
  // And what comes after is what would have come without it.
  run.train(Host{}, 130);
  CHECK(run.state_sha256() == hash_after<PendulumTd3>(Host{}, 300, 2));
}

TEST_CASE("a run that continues from a copy of its state ends with the same bits") {
  const std::string expected = hash_after<PendulumTd3>(Host{}, 260, 3);
  for (const std::uint32_t pause : {1u, 100u, 101u, 200u, 233u}) {
    CAPTURE(pause);
    Run<PendulumTd3> first(3), second(3);
    initialize(Host{}, first.training);
    first.train(Host{}, pause);
    // Whatever stood in the other run's memory counts for nothing.
    for_each_state_tensor(second.training, [](const TensorInfo& info, void* data) {
      std::fill_n(static_cast<std::uint8_t*>(data), info.bytes(), std::uint8_t{0xa5});
    });
    std::fill_n(reinterpret_cast<std::uint8_t*>(second.scratch.get()), sizeof(*second.scratch),
                std::uint8_t{0xff});
    second.set_state(first.state());
    REQUIRE(steps_done(second.training) == pause);
    second.train(Host{}, 260 - pause);
    CHECK(second.state_sha256() == expected);
  }
}

TEST_CASE("initialize sets the whole state, whatever the memory held") {
  Run<PendulumTd3> clean(4), used(4);
  initialize(Host{}, clean.training);
  used.training.hyperparameters.seed = 5;
  initialize(Host{}, used.training);
  used.train(Host{}, 120);
  used.training.hyperparameters.seed = 4;
  initialize(Host{}, used.training);
  CHECK(used.state() == clean.state());
}

TEST_CASE("seeds differ") {
  std::set<std::string> hashes;
  for (std::uint32_t seed = 0; seed < 5; seed++) {
    hashes.insert(hash_after<PendulumTd3>(Host{}, 110, seed));
  }
  hashes.insert(hash_after<PendulumTd3>(Host{}, 110, 4294967295u));
  CHECK(hashes.size() == 6);
}

TEST_CASE("an evaluation is the episodes that its definition says") {
  Run<PendulumTd3> run(6);
  initialize(Host{}, run.training);
  run.train(Host{}, 150);
  const std::uint32_t episodes = run.training.hyperparameters.eval_episodes = 7;
  const Pendulum<float> environment{};
  const Pendulum<float>::Parameters parameters;
  const RandomStream nothing_drawn{};
  std::vector<double> returns;
  for (std::uint32_t episode = 0; episode < episodes; episode++) {
    Pendulum<float>::State state;
    reset(Host{}, environment, parameters, state, {6, Purpose::evaluation_reset, episode});
    float sum = 0;
    for (int i = 0; i < PendulumTd3::kEpisodeSteps; i++) {
      Matrix<float, 1, 3> observation;
      Matrix<float, 1, 1> action;
      observe(Host{}, environment, parameters, state, observation.data(), nothing_drawn);
      forward(Host{}, policy(run.training), observation, action, run.scratch->exploring_buffer);
      sum += step(Host{}, environment, parameters, state, action.data(), nothing_drawn).reward;
    }
    returns.push_back(static_cast<double>(sum));
  }
  double mean = 0, variance = 0;
  for (const double value : returns) mean += value / episodes;
  for (const double value : returns) variance += (value - mean) * (value - mean) / episodes;
  const EvaluationReport report = evaluate(Host{}, run.training);
  CHECK(report.episodes == episodes);
  CHECK(report.mean == doctest::Approx(mean).epsilon(1e-6));
  CHECK(report.std == doctest::Approx(std::sqrt(variance)).epsilon(1e-5));
  CHECK(static_cast<double>(report.min) == *std::min_element(returns.begin(), returns.end()));
  CHECK(static_cast<double>(report.max) == *std::max_element(returns.begin(), returns.end()));
}

TEST_CASE("the state's tensors have unlike names and as many bytes as state_bytes says") {
  Run<PendulumTd3> run;
  const std::vector<std::string> names = run.tensor_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(state_bytes(run.training) == run.state().size());
}
