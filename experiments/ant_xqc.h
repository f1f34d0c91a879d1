// Ant-v4 with XQC, in networks narrow enough for half an hour of one core:
// docs/experiments.md, "XQC", has the figures.
// Requires: mujoco
#pragma once

#include "rltools/rl/algorithms/xqc.h"
#include "rltools/rl/environments/mujoco/ant.h"

namespace rlt {

struct AntXqc : TaskExperiment<Xqc, Ant<float>, 256, 256, 256> {
  static constexpr const char* kName = "ant-xqc";
  using Actor = Xqc::TaskActor<Ant<float>, 128, 128, 128>;
  struct Hyperparameters : XqcHyperparameters {
    Hyperparameters() {
      steps = 250000;
      eval_freq = 25000;
      report_every = 5000;
      gradient_steps = 1;
      learning_rate = 0.0007f;
    }
  };
  static constexpr int kBatchSize = 128;
  static constexpr int kReplayCapacity = 250000;
};

}  // namespace rlt
