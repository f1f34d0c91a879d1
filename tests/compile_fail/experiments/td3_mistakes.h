// What an experiment of TD3 may get wrong.
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct Td3Mistakes : PendulumTd3 {
  // variant: RLT_ACTOR_TAKES_LESS_THAN_THE_ENVIRONMENT_GIVES
  // says: the actor's input width differs from the environment's observation width
  // says: Size<2>::kIs<3>
#if defined(RLT_ACTOR_TAKES_LESS_THAN_THE_ENVIRONMENT_GIVES)
  using Actor = Mlp<float, Dimensions<2, 64, 64, 1>, Activation::relu, Activation::tanh>;
#endif
  // variant: RLT_ACTOR_IS_NOT_BOUNDED
  // says: the actor's last activation must be tanh, because actions lie in [-1, 1]
#if defined(RLT_ACTOR_IS_NOT_BOUNDED)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::identity>;
#endif
  // variant: RLT_WINDOWS
  // says: the experiment states kWindowSteps, which its algorithm does not read: PPO and
#if defined(RLT_WINDOWS)
  static constexpr int kWindowSteps = 4;
#endif
  // variant: RLT_OTHER_SCALAR
  // says: the environment's Scalar differs from that of the experiment
#if defined(RLT_OTHER_SCALAR)
  using Environment = Pendulum<double>;
#endif
  // variant: RLT_UNKNOWN_HYPERPARAMETER
  // says: learning_rte
  // says: did you mean 'learning_rate'?
  struct Hyperparameters : Td3Hyperparameters {
#if defined(RLT_UNKNOWN_HYPERPARAMETER)
    constexpr Hyperparameters() { learning_rte = 3e-4f; }
#else
    constexpr Hyperparameters() { learning_rate = 3e-4f; }
#endif
  };
  // variant: RLT_RECURRENT_ACTOR
  // says: a network of the experiment is recurrent, and its algorithm learns none that is: PPO does
#if defined(RLT_RECURRENT_ACTOR)
  using Actor = Sequential<float, 3, Gru<8>, Dense<1, Activation::tanh>>;
#endif
};

}  // namespace rlt
