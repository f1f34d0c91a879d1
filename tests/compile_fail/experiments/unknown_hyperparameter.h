// The experiment sets a default for a hyperparameter that TD3 does not have.
// says: learning_rte
// says: did you mean 'learning_rate'?
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct UnknownHyperparameter : PendulumTd3 {
#if defined(RLT_CORRECTED)
  struct Hyperparameters : Td3Hyperparameters {
    constexpr Hyperparameters() { learning_rate = 3e-4f; }
  };
#else
  struct Hyperparameters : Td3Hyperparameters {
    constexpr Hyperparameters() { learning_rte = 3e-4f; }
  };
#endif
};

}  // namespace rlt
