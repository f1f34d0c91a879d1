// One policy for every quadrotor: a recurrent network of 1,988 parameters, which does not know its
// airframe, distilled from a teacher that does (known_quadrotor.h), over the distribution of
// airframes of any_quadrotor.h. The student acts each 10 ms. The teacher learns by actions of 20
// ms, because each of them has more of an effect, and is asked each 10 ms. It is the same in the
// drone's two mirrors. Both are simulated by 5 ms: in 10 ms airframes that turn fast turn too far.
// Requires: hosted
#pragma once

#include "rltools/rl/algorithms/distillation/distillation.h"
#include "rltools/rl/environments/foundation/known_quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/symmetry/symmetry.h"

namespace rlt {

struct FoundationQuadrotorTeacher : TaskExperiment<Ppo, KnownQuadrotor<float, 10, 4>, 64, 64> {
  static constexpr const char* kName = "foundation-quadrotor-teacher";
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 10000000;
      learning_rate = 1e-3f;
      gamma = 0.97f;
      gae_lambda = 0.975f;
      n_epochs = 1;
      vf_coef = 2.0f;
      target_kl = 0.01f;
      log_std_init = -0.6f;
      reward_scale = 0.1f;
      adam_beta2 = 0.99f;
    }
  };
  struct EnvironmentSettings : quadrotor::TrainingSettingsOf<quadrotor::AnySettings> {
    EnvironmentSettings() {
      airframe = quadrotor::kAnyAirframe;
      latency_ms = 20.0f;
      noise = 1.0f;
      gust_m_s2 = 0.4f;
      start_position = 1.2f;
      start_tilt = 110.0f;
      limit_position = 4.0f;
      limit_velocity = 9.0f;
      limit_rate = 30.0f;
      reward_alive = 3.0f;  // with 2 a fall far away costs more than it earns, and some seeds crash
      // Four meters away cost (4 * 1.1 - 3) / (1 - 0.97) = 47 until gamma forgets them: with 20 it
      // pays to end an episode, and the teacher of seed 1001 learned that.
      cost_limit = 60.0f;
      cost_change = 0.05f;
      cost_position = 1.1f;
      // Wider than what is flown: a policy is worst at the edges of what it learned.
      environment.turn_min = 24.0f;
      environment.turn_max = 2000.0f;
      environment.lag_up_max = 0.125f;
      environment.lag_down_max = 0.42f;
    }
  };
  static constexpr int kEnvironments = 512;
  static constexpr int kRolloutSteps = 16;
  static constexpr int kEpisodeSteps = 125;
  static constexpr int kBatchSize = 512;
  static constexpr int kTileRows = 256;
  static constexpr bool kMirrored = true;
};

struct FoundationQuadrotor {
  static constexpr const char* kName = "foundation-quadrotor";
  using Scalar = float;
  using Environment = WithActionHistory<AnyQuadrotor<Scalar, 5, 2>, 1>;
  using Algorithm = Distillation;
  using Teacher = FoundationQuadrotorTeacher;
  using AskedIn = KnownQuadrotor<Scalar, 5, 2>;
  using Actor = Sequential<Scalar, Environment::kObservationDim, Dense<16, Activation::tanh>,
                           Gru<16>, Dense<Environment::kActionDim, Activation::identity>>;
  using EnvironmentSettings = Teacher::EnvironmentSettings;
  struct Hyperparameters : DistillationDefaults<Teacher> {
    Hyperparameters() {
      steps = 300000000;
      eval_freq = 10000000;
      n_eval_episodes = 1000;
      report_every = 1000000;
      teacher_steps = 30000000;
      lr_end_factor = 0.1f;
      adam_beta2 = 0.999f;
      retry = 0.9f;
      student_learning_rate =
          4e-3f;  // with more of it, a long run unlearns what it can, and stays so
      student_lr_end_factor = 0.01f;
    }
  };
  static constexpr int kEnvironments = 128;
  static constexpr int kRolloutSteps = 128;
  static constexpr int kEpisodeSteps = 1000;
  static constexpr int kBatchSize = 2048;
  static constexpr int kTileRows = 1024;
  static constexpr int kWindowSteps = 128;
};

}  // namespace rlt
