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
#else
struct DqnMistakes : CartpoleDqn {
  // variant: RLT_ACTION_IS_A_NUMBER
  // says: DQN learns one choice: the environment's action is not one, as choice() makes it
#if defined(RLT_ACTION_IS_A_NUMBER)
  using Environment = Pendulum<float>;
  using Critic = ReluMlp<float, Activation::identity, 3, 8, 1>;
#endif
  // variant: RLT_CRITIC_GIVES_ONE_VALUE
  // says: the critic's output width differs from the number of choices
  // says: Size<1>::kIs<2>
#if defined(RLT_CRITIC_GIVES_ONE_VALUE)
  using Critic = ReluMlp<float, Activation::identity, 4, 8, 1>;
#endif
  // variant: RLT_VALUES_ARE_BOUNDED
  // says: the critic's last activation must be identity, because values have no bounds
#if defined(RLT_VALUES_ARE_BOUNDED)
  using Critic = ReluMlp<float, Activation::tanh, 4, 8, 2>;
#endif
  // variant: RLT_HYPERPARAMETERS_OF_TD3
  // says: the experiment's Hyperparameters are not DqnHyperparameters nor derived from it
#if defined(RLT_HYPERPARAMETERS_OF_TD3)
  using Hyperparameters = Td3Hyperparameters;
#endif
  // variant: RLT_NORMALIZED_ALGORITHM
  // says: the experiment states kNormalized, which its algorithm does not read: TD3 and SAC do
#if defined(RLT_NORMALIZED_ALGORITHM)
  static constexpr bool kNormalized = true;
#endif
  // variant: RLT_MIRRORED_ALGORITHM
  // says: the experiment states kMirrored, which its algorithm does not read: TD3, SAC and PPO do
#if defined(RLT_MIRRORED_ALGORITHM)
  static constexpr bool kMirrored = true;
#endif
  // variant: RLT_AVERAGED_ALGORITHM
  // says: the experiment states kAveragedUpdates, which its algorithm does not read: TD3 and SAC do
#if defined(RLT_AVERAGED_ALGORITHM)
  static constexpr int kAveragedUpdates = 100;
#endif
};
#endif

}  // namespace rlt
