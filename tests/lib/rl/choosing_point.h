// The point that chooses how it is pushed: two choices at once, or one of five. Observations forbid
// some of them, at times all of an action.
#pragma once

#include "point_experiments.h"
#include "rltools/rl/algorithms/dqn.h"

namespace rlt {

// The masks of three choices, by where the point is.
template <class T>
void observe_masks(const typename Point<T>::State& state, T* mask) {
  mask[0] = state.x >= T(-0.25) ? T(1) : T(0);
  mask[1] = state.y >= T(0) ? T(1) : T(0);
  mask[2] = state.x < T(0.125) ? T(1) : T(0);
}

// How far it goes in both directions, by the number of a choice.
template <class Number>
struct TwoChoicesPoint : Point<Number> {
  using T = Number;
  static constexpr const char* kName = "two-choices-point";
  static constexpr int kObservationDim = 6, kActionDim = 2;
  static constexpr Channel kObservations[] = {
      {"x", "m", -2.0f, 2.0f},     {"height", "m", 30.0f, 70.0f}, {"product", "m2", -4.0f, 4.0f},
      {"x:back", "1", 0.0f, 1.0f}, {"y:down", "1", 0.0f, 1.0f},   {"y:up", "1", 0.0f, 1.0f}};
  static constexpr Channel kActions[] = {choice("x", "back|stay|on"), choice("y", "down|up")};
};

template <class T>
StepResult<T> step(Generic device, const TwoChoicesPoint<T>& point,
                   const typename Point<T>::Parameters& parameters, typename Point<T>::State& state,
                   const T* action, RandomStream random) {
  const T push[2] = {action[0] - T(1), T(2) * action[1] - T(1)};
  return step(device, static_cast<const Point<T>&>(point), parameters, state, push, random);
}
template <class T>
void observe(Generic device, const TwoChoicesPoint<T>& point,
             const typename Point<T>::Parameters& parameters, const typename Point<T>::State& state,
             T* observation, RandomStream random) {
  observe(device, static_cast<const Point<T>&>(point), parameters, state, observation, random);
  observe_masks(state, observation + 3);
}

// One of five, and what is observed about 0.
template <class Number>
struct OneChoicePoint : Point<Number> {
  using T = Number;
  static constexpr const char* kName = "one-choice-point";
  static constexpr int kObservationDim = 6, kActionDim = 1;
  static constexpr Channel kObservations[] = {
      {"x", "m", -2.0f, 2.0f},        {"y", "m", -2.0f, 2.0f},
      {"product", "m2", -4.0f, 4.0f}, {"push:left", "1", 0.0f, 1.0f},
      {"push:down", "1", 0.0f, 1.0f}, {"push:up", "1", 0.0f, 1.0f}};
  static constexpr Channel kActions[] = {choice("push", "left|right|down|up|none")};
};

template <class T>
StepResult<T> step(Generic device, const OneChoicePoint<T>& point,
                   const typename Point<T>::Parameters& parameters, typename Point<T>::State& state,
                   const T* action, RandomStream random) {
  constexpr T kPushes[5][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}, {0, 0}};
  return step(device, static_cast<const Point<T>&>(point), parameters, state,
              kPushes[static_cast<int>(action[0])], random);
}
template <class T>
void observe(Generic device, const OneChoicePoint<T>& point,
             const typename Point<T>::Parameters& parameters, const typename Point<T>::State& state,
             T* observation, RandomStream random) {
  observe(device, static_cast<const Point<T>&>(point), parameters, state, observation, random);
  observation[1] = state.y;
  observe_masks(state, observation + 3);
}

template <class Number>
struct TwoChoicesPpoOf : PointPpoOf<Number> {
  static constexpr const char* kName = "two-choices-ppo";
  using Environment = TwoChoicesPoint<Number>;
  using Actor = Mlp<Number, Dimensions<6, 16, 8, 5>, Activation::tanh, Activation::identity>;
  using Critic = Mlp<Number, Dimensions<6, 16, 12, 1>, Activation::relu, Activation::identity>;
};

template <class Number>
struct OneChoiceDqnOf : TaskExperiment<Dqn, OneChoicePoint<Number>, 16> {
  static constexpr const char* kName = "one-choice-dqn";
  using Hyperparameters = DqnHyperparameters;
  using Critic = Mlp<Number, Dimensions<6, 16, 12, 5>, Activation::relu, Activation::identity>;
  static constexpr int kEpisodeSteps = 7, kBatchSize = 32, kTileRows = 8, kReplayCapacity = 200;
};

}  // namespace rlt
