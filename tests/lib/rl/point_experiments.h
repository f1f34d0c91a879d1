// Experiments on the point: two actions, and several environments.
#pragma once

#include "pendulum_ppo.h"
#include "pendulum_td3.h"
#include "point_environment.h"

namespace rlt {

// The critics see the episode's strength, too.
struct SecretPoint : RandomPoint {
  static constexpr const char* kName = "secret-point";
  static constexpr int kPrivilegedDim = 1;
};
inline void observe(Generic device, const SecretPoint&, const RandomPoint::Parameters& parameters,
                    const RandomPoint::State& state, float* observation, RandomStream random) {
  observe(device, RandomPoint{}, parameters, state, observation, random);
  observation[3] = parameters.strength;
}

// Three environments whose episodes end after seven steps at the most.
template <class Place>
struct PointTd3 : PendulumTd3 {
  static constexpr const char* kName = "point-td3";
  using Environment = Place;
  using Actor = Mlp<float, Dimensions<3, 16, 2>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<kCriticObservationDim<Place> + 2, 16, 1>, Activation::relu,
                     Activation::identity>;
  static constexpr int kEnvironments = 3, kEpisodeSteps = 7;
  static constexpr int kBatchSize = 30, kTileRows = 15, kReplayCapacity = 600;
};

// Four environments whose episodes terminate or are truncated after five steps, up to four times in
// a rollout. In numbers of type Number; the random numbers are the same.
template <class Number>
struct PointPpoOf : PendulumPpo {
  static constexpr const char* kName = "point-ppo";
  using Scalar = Number;
  using Environment = Point<Number>;
  using Actor = Mlp<Number, Dimensions<3, 16, 8, 2>, Activation::tanh, Activation::identity>;
  using Critic = Mlp<Number, Dimensions<3, 16, 12, 1>, Activation::relu, Activation::identity>;
  using Hyperparameters = PpoHyperparameters;
  static constexpr int kEnvironments = 4, kRolloutSteps = 16, kEpisodeSteps = 5;
  static constexpr int kBatchSize = 16, kTileRows = 8;
};

using PointPpo = PointPpoOf<float>;

// With other dynamics in each episode.
struct RandomPointPpo : PointPpo {
  static constexpr const char* kName = "random-point-ppo";
  using Environment = RandomPoint;
};

}  // namespace rlt
