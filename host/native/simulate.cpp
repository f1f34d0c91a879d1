// simulate-<experiment> EPISODES SEED starts|steps [NAME=VALUE ...] < policy.rltp: runs a policy
// image in the experiment's own environment. The episodes are those of evaluate() in
// rl/evaluation.h with this seed and, of the run's hyperparameters that are named, those which are
// the environment's settings; others change nothing.
//
// A line of JSON says of each episode its return, its number of steps and whether it ended in a
// terminal state. Behind it are rows of floats, little-endian, of each episode's first step or of
// all its steps: the policy's observation, the action in the channels' units, the reward.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include RLT_EXPERIMENT_HEADER
#include "host/assignment.h"
#include "host/binary_streams.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/training.h"

namespace {

using Experiment = rlt::RLT_EXPERIMENT;
using Environment = Experiment::Environment;
using Scalar = Experiment::Scalar;
constexpr std::size_t kMaximumImageBytes = 64u << 20;

std::vector<std::uint8_t> read_all(std::FILE* file) {
  std::vector<std::uint8_t> bytes;
  std::uint8_t block[65536];
  while (bytes.size() < kMaximumImageBytes) {
    const std::size_t count = std::fread(block, 1, sizeof(block), file);
    if (count == 0) break;
    bytes.insert(bytes.end(), block, block + count);
  }
  return bytes;
}

struct Outcome {
  Scalar episode_return;  // NaN where an output of the network is not finite
  std::uint32_t steps;
  bool terminated;
};

void add_row(std::vector<float>& rows, const Scalar* observation, const Scalar* action,
             Scalar reward) {
  for (int i = 0; i < Environment::kObservationDim; i++) {
    rows.push_back(static_cast<float>(observation[i]));
  }
  for (int i = 0; i < Environment::kActionDim; i++) {
    const rlt::Channel& channel = Environment::kActions[i];
    const auto element = static_cast<float>(action[i]);
    rows.push_back(rlt::kIsDiscrete<Environment>
                       ? element
                       : rlt::physical_action(element, channel.minimum, channel.maximum));
  }
  rows.push_back(static_cast<float>(reward));
}

Outcome run_episode(const Environment& environment, const rlt::PolicyView& policy,
                    std::uint32_t seed, std::uint32_t episode, float* scratch, bool all_steps,
                    std::vector<float>& rows) {
  std::vector<float> hidden_state(state_dim(policy), 0.0f);
  const rlt::Generic device{};
  Environment::Parameters parameters;
  Environment::State state;
  draw_parameters(device, environment, parameters,
                  {seed, rlt::Purpose::evaluation_parameters, episode});
  reset(device, environment, parameters, state,
        rlt::RandomStream{seed, rlt::Purpose::evaluation_reset, episode});
  Outcome outcome{Scalar(0), 0, false};
  bool ended = false;
  for (std::uint32_t i = 0; i < Experiment::kEpisodeSteps && !ended; i++) {
    const auto random = [&](rlt::Purpose purpose) {
      return rlt::RandomStream{seed, purpose, i, episode};
    };
    Scalar observation[rlt::kCriticObservationDim<Environment>];  // the policy's first
    Scalar output[rlt::kOutputDim<Environment>], action[Environment::kActionDim];
    observe(device, environment, parameters, state, observation,
            random(rlt::Purpose::evaluation_observation));
    policy_forward(device, policy, observation, hidden_state.data(), output, scratch);
    rlt::take_outputs<Environment>(observation, output, action);
    if (!rlt::all_finite(action, Environment::kActionDim)) {
      outcome.episode_return = rlt::math::kQuietNan;
      return outcome;
    }
    const auto result =
        step(device, environment, parameters, state, action, random(rlt::Purpose::evaluation_step));
    if (all_steps || i == 0) add_row(rows, observation, action, result.reward);
    outcome.episode_return += result.reward;
    outcome.steps++;
    outcome.terminated = result.terminated;
    ended = result.terminated || result.truncated || result.lost;
  }
  return outcome;
}

void print(const std::vector<Outcome>& outcomes) {
  const auto list = [&](const char* name, auto&& print_one) {
    std::printf(", \"%s\": [", name);
    for (std::size_t i = 0; i < outcomes.size(); i++) {
      std::printf(i == 0 ? "" : ", ");
      print_one(outcomes[i]);
    }
    std::printf("]");
  };
  std::printf("{\"environment\": \"%s\", \"step_s\": %.9g", Environment::kName,
              Environment::kStepInterval_us * 1e-6 * Environment::kTicksPerStep);
  list("returns", [](const Outcome& outcome) {
    std::printf("%.9g", static_cast<double>(outcome.episode_return));
  });
  list("steps",
       [](const Outcome& outcome) { std::printf("%u", static_cast<unsigned>(outcome.steps)); });
  list("terminated",
       [](const Outcome& outcome) { std::printf(outcome.terminated ? "true" : "false"); });
  std::printf("}\n");
}

}  // namespace

int main(int argument_count, char** arguments) {
  rlt::use_binary_streams();
  const std::string kept = argument_count < 4 ? "" : arguments[3];
  if (kept != "starts" && kept != "steps") {
    std::fprintf(stderr,
                 "usage: simulate EPISODES SEED starts|steps [NAME=VALUE ...] < policy.rltp\n");
    return 2;
  }
  rlt::RunHyperparameters<Experiment> hyperparameters;
  for (int i = 4; i < argument_count; i++) {
    if (rlt::assign(hyperparameters, arguments[i])) continue;
    std::fprintf(stderr, "%s is not a hyperparameter of %s with a value within its bounds\n",
                 arguments[i], Experiment::kName);
    return 2;
  }
  const Environment environment = rlt::with_settings<Experiment>(hyperparameters);
  if (const char* reason = rlt::unavailable_here<Environment>()) {
    std::fprintf(stderr, "%s\n", reason);
    return 1;
  }
  const auto episodes = static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10));
  const auto seed = static_cast<std::uint32_t>(std::strtoul(arguments[2], nullptr, 10));
  const std::vector<std::uint8_t> image = read_all(stdin);
  rlt::PolicyView policy;
  rlt::PolicyVerdict verdict = rlt::parse_policy(image.data(), image.size(), policy);
  std::vector<float> scratch;
  if (verdict.accepted()) {
    verdict = rlt::check_contract(policy, rlt::policy_contract<Environment>());
  }
  if (verdict.accepted()) {
    scratch.resize(rlt::scratch_floats_to_accept(policy));
    verdict = rlt::check_examples(rlt::Generic{}, policy, scratch.data(), scratch.size());
  }
  if (!verdict.accepted()) {
    std::fprintf(stderr, "%s\n", rlt::policy_reason_text(verdict.reason));
    return 1;
  }
  std::vector<Outcome> outcomes;
  std::vector<float> rows;
  for (std::uint32_t episode = 0; episode < episodes; episode++) {
    outcomes.push_back(
        run_episode(environment, policy, seed, episode, scratch.data(), kept == "steps", rows));
    if (!rlt::is_finite(outcomes.back().episode_return)) {
      std::fprintf(stderr, "in episode %u the policy gives an action that is not a finite number\n",
                   static_cast<unsigned>(episode));
      return 1;
    }
  }
  print(outcomes);
  std::fwrite(rows.data(), sizeof(float), rows.size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
