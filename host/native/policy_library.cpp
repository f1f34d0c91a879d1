// Shared library over policy/runtime.h for Python (ctypes): checks policy images and runs them, bit
// for bit as a board does. The caller gives all memory; pointers to images lie on four-byte
// boundaries.
#include "rltools/policy/runtime.h"

extern "C" {

int rlt_policy_reason_count() { return rlt::kPolicyReasonCount; }

const char* rlt_policy_reason_text(int reason) {
  return rlt::policy_reason_text(static_cast<rlt::PolicyReason>(reason));
}

// Bytes of the object that rlt_policy_open() fills.
std::size_t rlt_policy_object_bytes() { return sizeof(rlt::Policy); }

// Parses an image, which must stay where it is while `policy` is used; returns the reason, 0 when
// accepted.
int rlt_policy_open(const std::uint8_t* image, std::size_t count, rlt::Policy* policy,
                    std::uint32_t* where) {
  const rlt::PolicyVerdict verdict = rlt::parse_policy(image, count, *policy);
  *where = verdict.where;
  return static_cast<int>(verdict.reason);
}

// Floats of scratch memory that the functions below need.
std::size_t rlt_policy_scratch_floats(const rlt::Policy* policy) {
  return rlt::scratch_floats_to_accept(*policy);
}

// Runs the image's own examples; returns the reason, 0 when every bit is reproduced.
int rlt_policy_check_examples(const rlt::Policy* policy, float* scratch, std::size_t scratch_floats,
                              std::uint32_t* where) {
  const rlt::PolicyVerdict verdict =
      rlt::check_examples(rlt::Generic{}, *policy, scratch, scratch_floats);
  *where = verdict.where;
  return static_cast<int>(verdict.reason);
}

// outputs and actions (count, action_dim) for observations (count, observation_dim).
void rlt_policy_evaluate(const rlt::Policy* policy, const float* observations, std::size_t count,
                         float* outputs, float* actions, float* scratch) {
  const std::size_t observation_dim = policy->header->observation_dim;
  const std::size_t action_dim = policy->header->action_dim;
  for (std::size_t i = 0; i < count; i++) {
    const float* observation = observations + i * observation_dim;
    rlt::policy_forward(rlt::Generic{}, *policy, observation, outputs + i * action_dim, scratch);
    rlt::scale_action(*policy, outputs + i * action_dim, actions + i * action_dim);
  }
}

}  // extern "C"
