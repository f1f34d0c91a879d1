// The action that is taken where there is no finite one is none that the channel allows.
// says: the environment's kSafeAction lies outside the range of its channel
#include "rltools/policy/contract.h"

struct Valve {
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr int kObservationDim = 1, kActionDim = 1;
  static constexpr rlt::Channel kObservations[] = {{"height", "m", 0.0f, 1.0f}};
  static constexpr rlt::Channel kActions[] = {{"opening", "1", 0.0f, 1.0f}};
#if defined(RLT_CORRECTED)
  static constexpr float kSafeAction[] = {0.0f};
#else
  static constexpr float kSafeAction[] = {-1.0f};
#endif
};

int main() { return rlt::policy_contract<Valve>().action_dim - 1; }
