// Experiments on the line: two actions, other widths and activations than the pendulum's, episodes
// that terminate early.
#pragma once

#include "line_environment.h"
#include "pendulum_sac.h"
#include "pendulum_td3.h"
#include "pendulum_xqc.h"

namespace rlt {

struct LineSac : PendulumSac {
  static constexpr const char* kName = "line-sac";
  using Environment = Line;
  using Actor = Mlp<float, Dimensions<1, 8, 4>, Activation::tanh, Activation::identity>;
  using Critic = Mlp<float, Dimensions<3, 12, 1>, Activation::gelu, Activation::identity>;
  static constexpr int kEpisodeSteps = 20, kBatchSize = 30, kTileRows = 15, kReplayCapacity = 400;
};

struct LineTd3 : PendulumTd3 {
  static constexpr const char* kName = "line-td3";
  using Environment = Line;
  using Actor = Mlp<float, Dimensions<1, 8, 2>, Activation::tanh, Activation::tanh>;
  using Critic = LineSac::Critic;
  static constexpr int kEpisodeSteps = 20, kBatchSize = 30, kTileRows = 15, kReplayCapacity = 400;
};

struct LineXqc : PendulumXqc {
  static constexpr const char* kName = "line-xqc";
  using Environment = Line;
  using Actor = Xqc::TaskActor<Line, 8>;
  using Critic = Xqc::TaskCritic<Line, 12>;
  static constexpr int kEpisodeSteps = 20, kBatchSize = 30, kReplayCapacity = 400;
};

}  // namespace rlt
