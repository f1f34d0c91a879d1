// The task of quadrotor_ppo.h in steady winds of up to 5 m/s^2 from any side. A drone that a wind
// leans on holds its place only where it knows of the wind: the policy also sees the sum over time
// of each error of position, which the executor keeps (docs/gate.md, "Steady wind").
// Requires: hosted
// Gate: steady-wind
#pragma once

#include "quadrotor_ppo.h"
#include "rltools/rl/environments/windy_quadrotor.h"
#include "rltools/rl/environments/with_sums.h"

namespace rlt {

struct QuadrotorWindPpo : QuadrotorPpo {
  static constexpr const char* kName = "quadrotor-wind-ppo";
  using Environment = WithActionHistory<WithSums<WindyQuadrotor<Scalar>, 3>, 3>;
  using Actor = Ppo::TaskActor<Environment, 64, 64>;
  using Critic = Ppo::TaskCritic<Environment, 64, 64>;
  struct EnvironmentSettings : quadrotor::TrainingSettingsOf<quadrotor::WindySettings> {
    EnvironmentSettings() {
      airframe = quadrotor::kAnyCrazyflie;
      environment.wind_m_s2 = 5.0f;
    }
  };
  struct Hyperparameters : QuadrotorPpo::Hyperparameters {
    Hyperparameters() { steps = 20000000; }
  };
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
};

}  // namespace rlt
