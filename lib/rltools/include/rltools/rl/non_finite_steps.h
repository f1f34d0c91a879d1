// Steps of an environment that give a number that is not finite: what finds them where environments
// are stepped (vector_environment.h), and what a run's report says of the first one (training.h).
#pragma once

#include <utility>

#include "rltools/core/finite.h"
#include "rltools/rl/environment.h"

namespace rlt {

// The step, or the first observation, in which an environment E returned a number that is not
// finite.
template <class E>
struct NonFiniteTransition {
  static constexpr int kNone = -1;
  int environment = kNone;  // its state is the one before the step
  bool is_reward = false;   // else an observation is not finite
  bool is_first = false;    // the first observation of an episode: no action was taken
  typename E::Scalar action[E::kActionDim];
};

namespace detail {

template <class Store>
using NotesNonFinite = decltype(std::declval<Store&>().non_finite(0));

// A copy of a state, where it may be asked for.
template <class E, bool Kept>
struct StateBefore {
  explicit StateBefore(const typename E::State& present) : state(present) {}
  typename E::State state;
};
template <class E>
struct StateBefore<E, false> {
  explicit StateBefore(const typename E::State&) {}
};

// Return whether a step's reward, or the observation reached (CriticObservationDim), is not finite.
template <class E>
bool is_non_finite(typename E::Scalar reward, const typename E::Scalar* observation) {
  return !is_finite(reward) || !all_finite(observation, kCriticObservationDim<E>);
}

// Return whether none of `count` steps is.
template <class E>
bool are_finite(const typename E::Scalar* rewards, const typename E::Scalar* observations,
                int count) {
  return all_finite_at_once(rewards, count) &&
         all_finite_at_once(observations, count * kCriticObservationDim<E>);
}

}  // namespace detail

// True if steps that are not finite are looked for: those of a Store with store.non_finite(index),
// which is called on the worker that has the environment. The state is then as before the step, for
// somebody to say which one it was, and no episode begins. What plays episodes elsewhere looks for
// itself.
template <class E, class Store>
constexpr bool kLooksForNonFinite =
    !kIsExternal<E> && detail::kIsValid<detail::NotesNonFinite, Store>;

}  // namespace rlt
