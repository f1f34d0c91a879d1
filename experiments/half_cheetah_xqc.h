// HalfCheetah-v4 with XQC, in networks narrow enough for a quarter of an hour of one core:
// docs/experiments.md, "XQC", has the figures.
// Requires: mujoco
#pragma once

#include "rltools/rl/algorithms/xqc.h"
#include "rltools/rl/environments/mujoco/half_cheetah.h"

namespace rlt {

struct HalfCheetahXqc : TaskExperiment<Xqc, HalfCheetah<float>, 128, 128, 128> {
  static constexpr const char* kName = "half-cheetah-xqc";
  using Actor = Xqc::TaskActor<HalfCheetah<float>, 64, 64, 64>;
  struct Hyperparameters : XqcHyperparameters {
    Hyperparameters() {
      steps = 250000;
      eval_freq = 25000;
      report_every = 5000;
      gradient_steps = 1;
      learning_rate = 0.001f;
    }
  };
  static constexpr int kBatchSize = 128;
  static constexpr int kReplayCapacity = 250000;
};

}  // namespace rlt
