// What an experiment of DQN may get wrong, and one of TD3 whose environment's action is a choice.
#pragma once

#include "cartpole_dqn.h"
#include "pendulum_td3.h"

namespace rlt {

#if defined(RLT_CHOICES_FOR_TD3)
struct DqnMistakes : PendulumTd3 {
  // variant: RLT_CHOICES_FOR_TD3
  // says: the environment's actions are choices, which DQN and PPO learn
  using Environment = CartPole<float>;
  using Actor = ReluMlp<float, Activation::tanh, 4, 8, 1>;
  using Critic = ReluMlp<float, Activation::identity, 5, 8, 1>;
};
#elif defined(RLT_MASKS_AND_NORMALIZER)
// variant: RLT_MASKS_AND_NORMALIZER
// says: the experiment is kNormalized, and the environment's observations forbid choices: PPO
struct MaskedCartPole : CartPole<float> {
  static constexpr Channel kObservations[] = {{"cart_position", "m", -2.4f, 2.4f},
                                              {"pole_angle", "rad", -0.2f, 0.2f},
                                              {"push:left", "1", 0.0f, 1.0f},
                                              {"push:right", "1", 0.0f, 1.0f}};
};
struct DqnMistakes : CartpoleDqn {
  using Environment = MaskedCartPole;
  static constexpr bool kNormalized = true;
};
#else
struct DqnMistakes : CartpoleDqn {
  // variant: RLT_ACTION_IS_A_NUMBER
  // says: DQN learns one choice: the environment's action is not one, as choice() makes it
#if defined(RLT_ACTION_IS_A_NUMBER)
  using Environment = Pendulum<float>;
  using Critic = ReluMlp<float, Activation::identity, 3, 8, 1>;
#endif
};
#endif

}  // namespace rlt
