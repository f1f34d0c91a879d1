// simulate-<experiment> EPISODES SEED < policy.rltp: runs a policy image in the experiment's own
// environment and prints the returns as JSON. The episodes are those of evaluate() in
// rl/evaluation.h with this seed.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include RLT_EXPERIMENT_HEADER
#include "rltools/policy/runtime.h"

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

// NaN where an output of the network is not finite.
Scalar run_episode(const rlt::PolicyView& policy, std::uint32_t seed, std::uint32_t episode,
                   float* scratch) {
  const rlt::Generic device{};
  const Environment environment{};
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
  if (argument_count != 3) {
    std::fprintf(stderr, "usage: simulate EPISODES SEED < policy.rltp\n");
    return 2;
  }
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
    returns.push_back(run_episode(policy, seed, episode, scratch.data()));
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
