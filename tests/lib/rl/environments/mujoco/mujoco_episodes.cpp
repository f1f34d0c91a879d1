// Steps one of MuJoCo's tasks in double, for test_mujoco_gymnasium.py: several environments on one
// thread, one step of each in turn.
// Requires: mujoco
//   mujoco_episodes TASK ENVIRONMENTS STARTS STEPS
// Standard input has doubles: the starts (environment, start, qpos and qvel), then the actions
// (step, environment, action). Standard output has a row for each step of each environment:
// observation, reward, whether it terminated, next observation. A terminated environment goes on
// from its next start. Without other arguments than TASK it says how the task's model is.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "rltools/rl/environments/mujoco/ant.h"
#include "rltools/rl/environments/mujoco/half_cheetah.h"
#include "rltools/rl/environments/mujoco/hopper.h"
#include "rltools/rl/environments/mujoco/humanoid.h"
#include "rltools/rl/environments/mujoco/walker2d.h"

namespace {

bool read(std::vector<double>& values) {
  return std::fread(values.data(), sizeof(double), values.size(), stdin) == values.size();
}

void print_channels(const char* name, const rlt::Channel* channels, int count) {
  std::printf("\"%s\": [", name);
  for (int i = 0; i < count; i++) {
    std::printf("%s[\"%s\", \"%s\", %.9g, %.9g]", i == 0 ? "" : ", ", channels[i].name,
                channels[i].unit, static_cast<double>(channels[i].minimum),
                static_cast<double>(channels[i].maximum));
  }
  std::printf("]");
}

template <class E>
int describe() {
  std::printf("{\"name\": \"%s\", \"step_interval_us\": %u, ", E::kName, E::kStepInterval_us);
  print_channels("observations", E::kObservations, E::kObservationDim);
  std::printf(", ");
  print_channels("actions", E::kActions, E::kActionDim);
  std::printf("}\n");
  return 0;
}

template <class E>
int run(std::size_t environments, std::size_t starts, std::size_t steps) {
  using State = typename E::State;
  constexpr std::size_t kPositions = std::extent_v<decltype(State::qpos)>;
  constexpr std::size_t kStart = kPositions + std::extent_v<decltype(State::qvel)>;
  constexpr std::size_t kRow = 2 * E::kObservationDim + 2;
  const rlt::Generic device{};
  const rlt::RandomStream random{};
  const E environment{};
  const typename E::Parameters parameters{};
  if (const char* reason = unavailable(device, environment)) {
    std::fprintf(stderr, "%s\n", reason);
    return 1;
  }
  std::vector<double> begin(environments * starts * kStart);
  std::vector<double> actions(steps * environments * E::kActionDim);
  if (!read(begin) || !read(actions)) return 2;
  std::vector<State> states(environments);
  std::vector<std::size_t> next_start(environments, 0);
  const auto begin_episode = [&](std::size_t i) {
    const double* start = &begin[(i * starts + next_start[i]++ % starts) * kStart];
    rlt::mujoco::begin_episode(environment, start, start + kPositions, states[i]);
  };
  for (std::size_t i = 0; i < environments; i++) begin_episode(i);
  const double* action = actions.data();
  for (std::size_t k = 0; k < steps; k++) {
    for (std::size_t i = 0; i < environments; i++, action += E::kActionDim) {
      double row[kRow];
      observe(device, environment, parameters, states[i], row, random);
      const auto result = step(device, environment, parameters, states[i], action, random);
      row[E::kObservationDim] = result.reward;
      row[E::kObservationDim + 1] = result.terminated ? 1.0 : 0.0;
      observe(device, environment, parameters, states[i], row + E::kObservationDim + 2, random);
      std::fwrite(row, sizeof(double), kRow, stdout);
      if (result.terminated) begin_episode(i);
    }
  }
  return 0;
}

template <class E>
int run_or_describe(int count, char** arguments) {
  if (count == 2) return describe<E>();
  if (count != 5) return 2;
  const auto number = [&](int i) { return std::strtoul(arguments[i], nullptr, 10); };
  return run<E>(number(2), number(3), number(4));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
  if (is("Ant-v4")) return run_or_describe<rlt::Ant<double>>(count, arguments);
  if (is("HalfCheetah-v4")) return run_or_describe<rlt::HalfCheetah<double>>(count, arguments);
  if (is("Hopper-v4")) return run_or_describe<rlt::Hopper<double>>(count, arguments);
  if (is("Walker2d-v4")) return run_or_describe<rlt::Walker2d<double>>(count, arguments);
  if (is("Humanoid-v4")) return run_or_describe<rlt::Humanoid<double>>(count, arguments);
  return 2;
}
