// Names and defaults in the lists of hyperparameters and channels.
#include "rltools/policy/contract.h"
#include "rltools/rl/hyperparameters.h"

// MAVLink has the first 16 characters of a name.
// variant: RLT_TWO_NAMES_BEGIN_ALIKE
// says: two of MyHyperparameters begin with the same 16 characters, MAVLink's limit
#if defined(RLT_TWO_NAMES_BEGIN_ALIKE)
#define RLT_MY_RATE(X)                                                           \
  X(float, target_learning_rate, 1e-3, 0, 1, "", "Learning rate of the target.") \
  X(float, target_learning_rule, 1e-3, 0, 1, "", "Another one.")
#else
#define RLT_MY_RATE(X) \
  X(float, target_learning_rate, 1e-3, 0, 1, "", "Learning rate of the target.")
#endif

#define RLT_MY_HYPERPARAMETERS(X) \
  RLT_RUN_HYPERPARAMETERS(X) RLT_MY_RATE(X) X(float, gamma, 0.99, 0, 1, "", "Discount of rewards.")

RLT_DEFINE_HYPERPARAMETERS(MyHyperparameters, RLT_MY_HYPERPARAMETERS)

// The action that is taken where there is no finite one is none that the channel allows.
// variant: RLT_SAFE_ACTION_OUT_OF_RANGE
// says: the environment's kSafeAction lies outside the range of its channel
struct Valve {
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr int kObservationDim = 1, kActionDim = 1;
  static constexpr rlt::Channel kObservations[] = {{"height", "m", 0.0f, 1.0f}};
  static constexpr rlt::Channel kActions[] = {{"opening", "1", 0.0f, 1.0f}};
#if defined(RLT_SAFE_ACTION_OUT_OF_RANGE)
  static constexpr float kSafeAction[] = {-1.0f};
#else
  static constexpr float kSafeAction[] = {0.0f};
#endif
};

int main() { return MyHyperparameters::kCount + rlt::policy_contract<Valve>().action_dim; }
