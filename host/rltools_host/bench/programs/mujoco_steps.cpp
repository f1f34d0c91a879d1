// mujoco_steps ROUNDS: steps a second of MuJoCo's tasks on one thread, as environments of the core
// and as MuJoCo's own loop, as JSON. The environment copies its state into MuJoCo's, steps, copies
// it back, rewards and observes; the loop sets the controls and steps. Both take the same 1,000
// actions of a round from the same state, 50 in turn, and must come to the same positions. Seconds
// are those of the processor, so that what else the machine does counts little.
// Requires: mujoco
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "measuring.h"
#include "rltools/devices/host.h"
#include "rltools/rl/environments/mujoco/ant.h"
#include "rltools/rl/environments/mujoco/half_cheetah.h"
#include "rltools/rl/environments/mujoco/hopper.h"
#include "rltools/rl/environments/mujoco/humanoid.h"
#include "rltools/rl/environments/mujoco/walker2d.h"

namespace {

using rlt::median, rlt::processor_seconds;

constexpr int kSteps = 1000, kTurn = 50;

template <class E>
struct Comparison {
  const rlt::Host device{};
  const E environment{};
  const typename E::Parameters parameters{};
  const rlt::RandomStream random{};
  const mjModel* model = rlt::mujoco::model_of<typename E::TaskType>().get();
  mjData* data = mj_makeData(model);
  typename E::State initial, state;
  std::vector<float> actions = std::vector<float>(kSteps * E::kActionDim);
  std::vector<double> controls = std::vector<double>(kSteps * E::kActionDim);
  double sum = 0;  // of what was computed, so that it is

  explicit Comparison(std::uint32_t round) {
    rlt::fill_uniform(device, rlt::RandomStream{0, rlt::Purpose::warmup_action, round},
                      actions.data(), kSteps * E::kActionDim, -1.0f, 1.0f);
    for (int i = 0; i < kSteps * E::kActionDim; i++) {
      const mjtNum* range = model->actuator_ctrlrange + 2 * (i % E::kActionDim);
      controls[i] = 0.5 * (range[1] + range[0]) +
                    static_cast<double>(actions[i]) * (0.5 * (range[1] - range[0]));
    }
    reset(device, environment, parameters, initial,
          rlt::RandomStream{0, rlt::Purpose::environment_reset, round});
  }
  ~Comparison() { mj_deleteData(data); }

  void begin() {
    state = initial;
    mj_resetData(model, data);
    std::memcpy(data->qpos, initial.qpos, sizeof initial.qpos);
    std::memcpy(data->qvel, initial.qvel, sizeof initial.qvel);
    std::memcpy(data->qacc_warmstart, initial.qacc_warmstart, sizeof initial.qacc_warmstart);
  }

  double time_environment(int first) {
    float observation[E::kObservationDim];
    const double started = processor_seconds();
    for (int i = first; i < first + kTurn; i++) {
      const auto result =
          step(device, environment, parameters, state, actions.data() + i * E::kActionDim, random);
      observe(device, environment, parameters, state, observation, random);
      sum += static_cast<double>(result.reward + observation[0]);
    }
    return processor_seconds() - started;
  }

  double time_loop(int first) {
    const double started = processor_seconds();
    for (int i = first; i < first + kTurn; i++) {
      std::memcpy(data->ctrl, controls.data() + i * E::kActionDim, sizeof(double) * E::kActionDim);
      for (int k = 0; k < E::kFrameSkip; k++) mj_step(model, data);
    }
    return processor_seconds() - started;
  }

  bool agree() const { return std::memcmp(state.qpos, data->qpos, sizeof state.qpos) == 0; }
};

template <class E>
bool compare(int rounds, const char* separator) {
  if (const char* reason = rlt::unavailable_here<E>()) {
    std::fprintf(stderr, "%s\n", reason);
    return false;
  }
  std::vector<double> environment_s, loop_s, ratios;
  bool agree = true;
  double sum = 0;
  for (int round = 0; round < rounds; round++) {
    Comparison<E> comparison(static_cast<std::uint32_t>(round));
    double environment = 0, loop = 0;
    comparison.begin();
    for (int first = 0; first < kSteps; first += 2 * kTurn) {
      environment += comparison.time_environment(first);
      loop += comparison.time_loop(first) + comparison.time_loop(first + kTurn);
      environment += comparison.time_environment(first + kTurn);
    }
    environment_s.push_back(environment);
    loop_s.push_back(loop);
    ratios.push_back(loop / environment);
    agree = agree && comparison.agree();
    sum += comparison.sum;
  }
  std::printf(
      "%s\n  \"%s\": {\"environment_steps_s\": %.0f, \"loop_steps_s\": %.0f, \"ratio\": %.4f, "
      "\"same_positions\": %s, \"sum\": %.9g}",
      separator, E::kName, kSteps / median(environment_s), kSteps / median(loop_s), median(ratios),
      agree ? "true" : "false", sum);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count == 2 ? std::atoi(arguments[1]) : 0;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: mujoco_steps ROUNDS\n");
    return 2;
  }
  std::printf("{");
  const bool all =
      compare<rlt::Ant<float>>(rounds, "") && compare<rlt::HalfCheetah<float>>(rounds, ",") &&
      compare<rlt::Hopper<float>>(rounds, ",") && compare<rlt::Walker2d<float>>(rounds, ",") &&
      compare<rlt::Humanoid<float>>(rounds, ",");
  std::printf("\n}\n");
  return all ? 0 : 1;
}
