// Pendulum-v1 with PPO and a policy that sees no velocity (masked_pendulum.h), and is recurrent for
// that. The critic sees it, and is pendulum_ppo.h's.
#pragma once

#include "pendulum_ppo.h"
#include "rltools/rl/environments/masked_pendulum.h"

namespace rlt {

struct PendulumPpoMasked : PendulumPpo {
  static constexpr const char* kName = "pendulum-ppo-masked";
  using Environment = MaskedPendulum<Scalar>;
  using Actor = Sequential<Scalar, Environment::kObservationDim, Dense<32, Activation::relu>,
                           Gru<32>, Dense<Environment::kActionDim, Activation::identity>>;
  struct Hyperparameters : PendulumPpo::Hyperparameters {
    Hyperparameters() {
      steps = 600000;
      eval_freq = 60000;
      lr_end_factor = 0.3f;
    }
  };
  static constexpr int kEnvironments = 16;
  static constexpr int kBatchSize = 512;
  static constexpr int kTileRows = 32;
  static constexpr int kWindowSteps = 32;
};

}  // namespace rlt
