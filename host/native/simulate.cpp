// simulate-<experiment> EPISODES SEED [NAME=VALUE ...] < policy.rltp: runs a policy image in the
// experiment's own environment and prints the returns as JSON. The episodes are those of evaluate()
// in rl/evaluation.h with this seed and, of the run's hyperparameters that are named, those which
// are the environment's settings; others change nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include RLT_EXPERIMENT_HEADER
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

// Takes NAME=VALUE into the hyperparameters; false where it has no such form or is out of bounds.
bool set(rlt::RunHyperparameters<Experiment>& hyperparameters, const char* argument) {
  using Hyperparameters = rlt::RunHyperparameters<Experiment>;
  const char* equals = std::strchr(argument, '=');
  if (equals == nullptr) return false;
  const std::string name(argument, equals);
  for (int i = 0; i < Hyperparameters::kCount; i++) {
    if (name != Hyperparameters::info(i).name) continue;
    char* end = nullptr;
    const double value = std::strtod(equals + 1, &end);
    const bool is_integer = Hyperparameters::info(i).type == rlt::DataType::u32;
    const std::uint32_t bits = is_integer ? static_cast<std::uint32_t>(value)
                                          : rlt::detail::to_bits(static_cast<float>(value));
    return *end == '\0' && hyperparameters.set_bits(i, bits);
  }
  return false;
}

// NaN where an output of the network is not finite.
Scalar run_episode(const Environment& environment, const rlt::PolicyView& policy,
                   std::uint32_t seed, std::uint32_t episode, float* scratch) {
  const rlt::Generic device{};
  Environment::Parameters parameters;
  Environment::State state;
  draw_parameters(device, environment, parameters,
                  {seed, rlt::Purpose::evaluation_parameters, episode});
  reset(device, environment, parameters, state,
        rlt::RandomStream{seed, rlt::Purpose::evaluation_reset, episode});
  Scalar episode_return = Scalar(0);
  bool ended = false;
  for (std::uint32_t i = 0; i < Experiment::kEpisodeSteps && !ended; i++) {
    const auto random = [&](rlt::Purpose purpose) {
      return rlt::RandomStream{seed, purpose, i, episode};
    };
    Scalar observation[rlt::kCriticObservationDim<Environment>];  // the policy's first
    Scalar action[Environment::kActionDim];
    observe(device, environment, parameters, state, observation,
            random(rlt::Purpose::evaluation_observation));
    policy_forward(device, policy, observation, action, scratch);
    if (!rlt::all_finite(action, Environment::kActionDim)) return rlt::math::kQuietNan;
    for (Scalar& element : action) element = rlt::math::clamp(element, Scalar(-1), Scalar(1));
    const auto result =
        step(device, environment, parameters, state, action, random(rlt::Purpose::evaluation_step));
    episode_return += result.reward;
    ended = result.terminated || result.truncated || result.lost;
  }
  return episode_return;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 3) {
    std::fprintf(stderr, "usage: simulate EPISODES SEED [NAME=VALUE ...] < policy.rltp\n");
    return 2;
  }
  rlt::RunHyperparameters<Experiment> hyperparameters;
  for (int i = 3; i < argument_count; i++) {
    if (set(hyperparameters, arguments[i])) continue;
    std::fprintf(stderr, "%s is no hyperparameter of %s with a value within its bounds\n",
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
  std::vector<Scalar> returns;
  for (std::uint32_t episode = 0; episode < episodes; episode++) {
    returns.push_back(run_episode(environment, policy, seed, episode, scratch.data()));
    if (!rlt::is_finite(returns.back())) {
      std::fprintf(stderr, "in episode %u the policy gives an action that is not a finite number\n",
                   static_cast<unsigned>(episode));
      return 1;
    }
  }
  std::printf("{\"environment\": \"%s\", \"returns\": [", Environment::kName);
  for (std::size_t i = 0; i < returns.size(); i++) {
    std::printf("%s%.9g", i == 0 ? "" : ", ", static_cast<double>(returns[i]));
  }
  std::printf("]}\n");
  return 0;
}
