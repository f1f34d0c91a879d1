// Shared library over policy/runtime.h for Python (ctypes): checks policy images and runs them, bit
// for bit as a board does. The caller gives all memory; pointers to images lie on four-byte
// boundaries.
#include <string>
#include <vector>

#include "describe.h"
#include "rltools/policy/contracts/acrobot.h"
#include "rltools/policy/contracts/cart_pole.h"
#include "rltools/policy/contracts/masked_pendulum.h"
#include "rltools/policy/contracts/pendulum.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/policy/runtime.h"
#if __has_include("rltools/policy/contracts/racing_car.h")
#include "rltools/policy/contracts/racing_car.h"
#define RLT_HAS_RACING_CAR
#endif

namespace {

constexpr std::uint32_t kAnyHistory = 0xffffffffu;  // a policy may see its own last actions

template <class Contract>
bool take_safe_action_of(const rlt::PolicyView& policy, float* action) {
  const rlt::PolicyContract contract = rlt::policy_contract<Contract>();
  if (!rlt::check_contract(policy, contract, kAnyHistory).accepted()) return false;
  rlt::take_safe_action(contract, action);
  return contract.safe_action != nullptr;
}

// Set action (action_dim) to the safe action of the contract of policy/contracts that the image is
// made for; where it is made for none of them, to the middle of every range, and the first choice.
// Return whether a contract states it.
bool take_safe_action(const rlt::PolicyView& policy, float* action) {
  for (int i = 0; i < policy.header->action_dim; i++) {
    const bool chooses = policy.choices != nullptr && rlt::detail::choice_count(policy.actions[i]);
    action[i] =
        chooses ? 0.0f : rlt::middle_of(policy.actions[i].minimum, policy.actions[i].maximum);
  }
  bool is_stated = take_safe_action_of<rlt::contracts::Acrobot>(policy, action);
  is_stated |= take_safe_action_of<rlt::contracts::CartPole>(policy, action);
  is_stated |= take_safe_action_of<rlt::contracts::MaskedPendulum>(policy, action);
  is_stated |= take_safe_action_of<rlt::contracts::Pendulum>(policy, action);
  is_stated |= take_safe_action_of<rlt::contracts::Quadrotor>(policy, action);
#if defined(RLT_HAS_RACING_CAR)
  is_stated |= take_safe_action_of<rlt::contracts::RacingCar>(policy, action);
#endif
  return is_stated;
}

}  // namespace

extern "C" {

// Parse an image, which must stay where it is while `policy`, of object_bytes, is used; return the
// reason, 0 when accepted.
int rlt_policy_open(const std::uint8_t* image, std::size_t count, rlt::PolicyView* policy,
                    std::uint32_t* where) {
  const rlt::PolicyVerdict verdict = rlt::parse_policy(image, count, *policy);
  *where = verdict.where;
  return static_cast<int>(verdict.reason);
}

// Return the numbers of the hidden state; 0: there is none.
std::size_t rlt_policy_state_dim(const rlt::PolicyView* policy) { return rlt::state_dim(*policy); }

// Return the floats of scratch memory that the functions below need.
std::size_t rlt_policy_scratch_floats(const rlt::PolicyView* policy) {
  return rlt::scratch_floats_to_accept(*policy);
}

// Run the image's own examples; return the reason, 0 when every bit is reproduced.
int rlt_policy_check_examples(const rlt::PolicyView* policy, float* scratch,
                              std::size_t scratch_floats, std::uint32_t* where) {
  const rlt::PolicyVerdict verdict =
      rlt::check_examples(rlt::Generic{}, *policy, scratch, scratch_floats);
  *where = verdict.where;
  return static_cast<int>(verdict.reason);
}

// Replace the elements of action (action_dim) that are NaN by those of the safe action of the
// image's contract, and set normalized (action_dim) to all of it as a board keeps it for a policy
// that sees its own last actions. Return whether a contract states a safe action.
int rlt_policy_safe_action(const rlt::PolicyView* policy, float* action, float* normalized) {
  const std::size_t action_dim = policy->header->action_dim;
  std::vector<float> contracts(action_dim);
  const bool is_stated = take_safe_action(*policy, contracts.data());
  for (std::size_t i = 0; i < action_dim; i++) {
    const rlt::PolicyImageChannel& channel = policy->actions[i];
    if (!rlt::is_finite(action[i])) action[i] = contracts[i];
    normalized[i] = rlt::normalized_action(action[i], channel.minimum, channel.maximum);
  }
  return is_stated;
}

// Compute outputs (count, output_dim) and actions (count, action_dim) for observations (count,
// observation_dim), each of a board of its own. Where an element of the observation or of the
// output is not finite, the action is safe_action (action_dim). states (count, state_dim): the
// hidden ones, which move on; null: all are zero before.
void rlt_policy_evaluate(const rlt::PolicyView* policy, const float* observations,
                         std::size_t count, float* states, const float* safe_action, float* outputs,
                         float* actions, float* scratch) {
  const std::size_t observation_dim = policy->header->observation_dim;
  const std::size_t action_dim = policy->header->action_dim;
  for (std::size_t i = 0; i < count; i++) {
    float* output = outputs + i * policy->output_dim;
    float* action = actions + i * action_dim;
    const float* observation = observations + i * observation_dim;
    float* state = states == nullptr ? nullptr : states + i * rlt::state_dim(*policy);
    rlt::policy_forward(rlt::Generic{}, *policy, observation, state, output, scratch);
    if (rlt::all_finite(observation, observation_dim) &&
        rlt::all_finite(output, policy->output_dim)) {
      rlt::scale_action(*policy, observation, output, action);
    } else {
      for (std::size_t k = 0; k < action_dim; k++) action[k] = safe_action[k];
    }
  }
}

// Set layers (layer_count) to the CRC-32 of each layer's output for one observation, as RLT_ACTION
// has it, from a hidden state of zeros.
void rlt_policy_layers(const rlt::PolicyView* policy, const float* observation,
                       std::uint32_t* layers, float* output, float* scratch) {
  rlt::policy_forward(rlt::Generic{}, *policy, observation, nullptr, output, scratch,
                      [&layers](const float* values, int count) {
                        *layers++ =
                            rlt::crc32(values, sizeof(float) * static_cast<std::size_t>(count));
                      });
}

// Return the checksum of all layers' outputs for one observation, as an example has it, and set the
// output; state (state_dim) moves on.
std::uint32_t rlt_policy_trace(const rlt::PolicyView* policy, const float* observation,
                               float* state, float* output, float* scratch) {
  return rlt::policy_trace(rlt::Generic{}, *policy, observation, state, output, scratch);
}

// Return a sum of an observation's element, a tick later, as a board keeps it.
float rlt_policy_next_sum(float sum, float value, std::uint32_t step_interval_us, float minimum,
                          float maximum) {
  return rlt::next_sum(sum, value, rlt::sum_step_s<float>(step_interval_us), minimum, maximum);
}

const char* rlt_describe() {
  static const std::string text = rlt::describe::text_of([](rlt::describe::Json& json) {
    json.list("reasons", [&] {
      for (int i = 0; i < rlt::kPolicyReasonCount; i++) {
        json.write(rlt::policy_reason_text(static_cast<rlt::PolicyReason>(i)));
      }
    });
    json.pair("object_bytes", sizeof(rlt::PolicyView));
    json.object("functions", [&] {
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_open);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_state_dim);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_scratch_floats);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_check_examples);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_safe_action);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_evaluate);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_layers);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_trace);
      RLT_DESCRIBE_FUNCTION(json, rlt_policy_next_sum);
    });
  });
  return text.c_str();
}

}  // extern "C"
