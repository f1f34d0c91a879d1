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

Scalar run_episode(const rlt::Policy& policy, std::uint32_t seed, std::uint32_t episode,
                   float* scratch) {
  const rlt::Generic device{};
  const Environment environment{};
  const rlt::RandomStream random{seed, rlt::Purpose::evaluation_reset, episode};
  auto state = initial_state(device, environment, random);
  Scalar episode_return = Scalar(0);
  for (int i = 0; i < Experiment::kEpisodeSteps && !terminated(device, environment, state); i++) {
    Scalar observation[Environment::kObservationDim], action[Environment::kActionDim];
    observe(device, environment, state, observation);
    policy_forward(device, policy, observation, action, scratch);
    const auto next = step(device, environment, state, action);
    episode_return += reward(device, environment, state, action, next);
    state = next;
  }
  return episode_return;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    std::fprintf(stderr, "usage: simulate EPISODES SEED < policy.rltp\n");
    return 2;
  }
  const auto episodes = static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10));
  const auto seed = static_cast<std::uint32_t>(std::strtoul(arguments[2], nullptr, 10));
  const std::vector<std::uint8_t> image = read_all(stdin);
  rlt::Policy policy;
  rlt::PolicyVerdict verdict = rlt::parse_policy(image.data(), image.size(), policy);
  std::vector<float> scratch;
  if (verdict.accepted()) {
    scratch.resize(rlt::scratch_floats_to_accept(policy));
    verdict = rlt::accept_policy(rlt::Generic{}, image.data(), image.size(),
                                 rlt::policy_contract<Environment>(), scratch.data(),
                                 scratch.size(), policy);
  }
  if (!verdict.accepted()) {
    std::fprintf(stderr, "%s\n", rlt::policy_reason_text(verdict.reason));
    return 1;
  }
  std::printf("{\"environment\": \"%s\", \"returns\": [", Environment::kName);
  for (std::uint32_t episode = 0; episode < episodes; episode++) {
    const Scalar value = run_episode(policy, seed, episode, scratch.data());
    std::printf("%s%.9g", episode == 0 ? "" : ", ", static_cast<double>(value));
  }
  std::printf("]}\n");
  return 0;
}
