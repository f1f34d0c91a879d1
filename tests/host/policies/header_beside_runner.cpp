// The exported header beside the library on the same image. Reads rows of all the inputs that the
// network takes from standard input.
//
// Without an argument each row goes to evaluate() and to PolicyRunner; with one its contract's
// observations go to Executor, and to evaluate() behind the history that the header's comment
// asks for. Writes a byte for each row, 1 where the policy acts, and the row's action. Exit code 1
// where the two differ in a bit, or the executor in whether the policy acts.
#include <cstdio>
#include <cstring>

#include "image.h"   // rlt export RUN --to c-image
#include "policy.h"  // rlt export RUN --to c
#include "rltools/devices/generic.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/policy/executor.h"
#include "rltools/policy/runtime.h"

namespace header = HEADER;

namespace {

constexpr int kInputs = header::kObservationDim;
constexpr int kObserved = kInputs - PAST_ACTIONS;
constexpr int kActions = header::kActionDim;
constexpr int kTicks = PAST_ACTIONS / kActions;
constexpr std::size_t kScratch = 4096;

rlt::Channel observations[kInputs], actions[kActions];

rlt::PolicyContract contract_of(int observation_dim) {
  for (int i = 0; i < kInputs; i++) {
    const header::Channel& channel = header::kObservations[i];
    observations[i] = {channel.name, channel.unit, channel.minimum, channel.maximum};
  }
  for (int i = 0; i < kActions; i++) {
    const header::Channel& channel = header::kActions[i];
    actions[i] = {channel.name, channel.unit, channel.minimum, channel.maximum};
  }
  return {header::kStepInterval_us, observation_dim, kActions, observations, actions, SAFE_ACTION};
}

bool same(bool header_acts, const float* header_action, bool acts, const float* action) {
  const unsigned char byte = acts;
  std::fwrite(&byte, 1, 1, stdout);
  std::fwrite(action, sizeof(float), kActions, stdout);
  return header_acts == acts && std::memcmp(header_action, action, sizeof(float) * kActions) == 0;
}

int row_by_row() {
  const rlt::PolicyContract contract = contract_of(kInputs);
  static rlt::PolicyRunner<kScratch> runner(contract);
  if (!runner.accept(rlt::Generic{}, IMAGE, sizeof(IMAGE)).accepted()) return 2;
  bool all_same = true;
  float input[kInputs];
  while (std::fread(input, sizeof(input), 1, stdin) == 1) {
    float expected[kActions], action[kActions];
    const bool acts = runner.act(rlt::Generic{}, input, expected) == rlt::ActionSource::from_policy;
    all_same = same(header::evaluate(input, action), action, acts, expected) && all_same;
  }
  return all_same ? 0 : 1;
}

int in_time() {
  const rlt::PolicyContract contract = contract_of(kObserved);
  static rlt::PolicyRunner<kScratch, kTicks> runner(contract);
  if (!runner.accept(rlt::Generic{}, IMAGE, sizeof(IMAGE)).accepted()) return 2;
  rlt::ExecutorLimits limits;
  limits.range_margin = 1e30f;  // the header has no ranges of observations
  rlt::Executor<kActions, kTicks> executor(contract, limits);
  bool all_same = true;
  std::uint32_t now_us = 0;
  float input[kInputs];
  float given[kTicks + 1][kActions] = {};  // the latest first
  while (std::fread(input, sizeof(input), 1, stdin) == 1) {
    float expected[kActions], action[kActions];
    const rlt::ExecutorStatus status =
        executor.step(rlt::Generic{}, now_us, {input, now_us}, expected, &runner);
    now_us += header::kStepInterval_us;
    // Channels are the latest action's elements, then those of the one before.
    if (kTicks > 0) std::memcpy(input + kObserved, given, sizeof(float) * PAST_ACTIONS);
    const bool acts = header::evaluate(input, action);
    all_same = same(acts, action, !rlt::is_fault(status), expected) && all_same;
    std::memmove(given + 1, given, sizeof(float) * kTicks * kActions);
    header::evaluate_normalized(input, given[0]);
    for (float& value : given[0]) value = value < -1.0f ? -1.0f : value > 1.0f ? 1.0f : value;
  }
  return all_same ? 0 : 1;
}

}  // namespace

int main(int argument_count, char**) { return argument_count > 1 ? in_time() : row_by_row(); }
