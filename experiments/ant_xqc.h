// Ant-v4 with XQC.
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
    }
  };
  static constexpr int kBatchSize = 256;
  static constexpr int kReplayCapacity = 250000;
};

}  // namespace rlt
