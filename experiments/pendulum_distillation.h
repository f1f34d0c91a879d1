// Pendulum-v1 by a policy that sees no velocity (masked_pendulum.h), distilled from one that does,
// which pendulum_ppo.h learns first.
#pragma once

#include "pendulum_ppo.h"
#include "rltools/rl/algorithms/distillation/distillation.h"
#include "rltools/rl/environments/masked_pendulum.h"

namespace rlt {

struct PendulumDistillation {
  static constexpr const char* kName = "pendulum-distillation";
  using Scalar = float;
  using Environment = MaskedPendulum<Scalar>;
  using Algorithm = Distillation;
  using Teacher = PendulumPpo;
  using Actor = Sequential<Scalar, Environment::kObservationDim, Dense<16, Activation::relu>,
                           Gru<16>, Dense<Environment::kActionDim, Activation::identity>>;
  struct Hyperparameters : DistillationDefaults<Teacher> {
    Hyperparameters() {
      steps = 400000;
      eval_freq = 30000;
      student_learning_rate = 3e-3f;
      student_epochs = 4;
    }
  };
  static constexpr int kEnvironments = 16;
  static constexpr int kRolloutSteps = 40;
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 160;
  static constexpr int kTileRows = 40;
  static constexpr int kWindowSteps = 40;
};

}  // namespace rlt
