// Pendulum-v1 with XQC: 5,000 steps, in the memory of a Teensy 4.1.
#pragma once

#include "rltools/rl/algorithms/xqc.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

struct PendulumXqc : TaskExperiment<Xqc, Pendulum<float>, 64, 64> {
  static constexpr const char* kName = "pendulum-xqc";
  using Critic = BatchNormMlp<float, Dimensions<4, 64, 64, 41>>;
  struct Hyperparameters : XqcHyperparameters {
    Hyperparameters() {
      steps = 5000;
      eval_freq = 1000;
      learning_starts = 500;
      learning_rate = 0.003f;
      tau = 0.05f;
      policy_delay = 1;
    }
  };
  static constexpr int kBatchSize = 48;
  static constexpr int kReplayCapacity = 5000;
};

}  // namespace rlt
