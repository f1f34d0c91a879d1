// The environment contract. An environment E is a type with `State`, `Parameters`, a member
// `parameters`, the constants `kName`, `kObservationDim`, `kActionDim`, `kStepInterval_us`,
// `kObservations[]`, `kActions[]`, and these functions in namespace rlt (T is E::Scalar; actions
// are normalised to [-1, 1]):
//   State initial_state(device, environment, RandomStream)
//   State step(device, environment, state, const T* action)
//   void  observe(device, environment, state, T* observation)
//   T     reward(device, environment, state, const T* action, next_state)
//   bool  terminated(device, environment, state)
// State lists its fields, and Parameters the constants of physics and reward, each once
// (core/fields.h): the fields are what a checkpoint stores, and the constants what tells one
// environment from another of the same name. It may state `kSolvedReturn`, the mean return from
// which on it counts as solved, and `kSafeAction[]` (policy/contract.h).
#pragma once

#include <type_traits>
#include <utility>

#include "rltools/core/device.h"
#include "rltools/core/fields.h"
#include "rltools/core/random.h"
#include "rltools/policy/contract.h"

namespace rlt {

namespace detail {

template <class...>
using VoidType = void;

template <class E>
using StateOf = typename E::State;
template <class E>
using ScalarOf = typename E::Scalar;

template <class E, class = void>
struct HasInitialState : std::false_type {};
template <class E>
struct HasInitialState<E, VoidType<decltype(initial_state(Generic{}, std::declval<const E&>(),
                                                          std::declval<RandomStream>()))>>
    : std::true_type {};

template <class E, class = void>
struct HasStep : std::false_type {};
template <class E>
struct HasStep<E, VoidType<decltype(step(Generic{}, std::declval<const E&>(),
                                         std::declval<const StateOf<E>&>(),
                                         std::declval<const ScalarOf<E>*>()))>> : std::true_type {};

template <class E, class = void>
struct HasObserve : std::false_type {};
template <class E>
struct HasObserve<
    E, VoidType<decltype(observe(Generic{}, std::declval<const E&>(),
                                 std::declval<const StateOf<E>&>(), std::declval<ScalarOf<E>*>()))>>
    : std::true_type {};

template <class E, class = void>
struct HasReward : std::false_type {};
template <class E>
struct HasReward<E, VoidType<decltype(reward(
                        Generic{}, std::declval<const E&>(), std::declval<const StateOf<E>&>(),
                        std::declval<const ScalarOf<E>*>(), std::declval<const StateOf<E>&>()))>>
    : std::true_type {};

template <class E, class = void>
struct HasTerminated : std::false_type {};
template <class E>
struct HasTerminated<E, VoidType<decltype(terminated(Generic{}, std::declval<const E&>(),
                                                     std::declval<const StateOf<E>&>()))>>
    : std::true_type {};

struct AnyFieldVisitor {
  template <class Field>
  constexpr void operator()(const char*, Field&) const {}
};

template <class E, class = void>
struct HasStateFields : std::false_type {};
template <class E>
struct HasStateFields<
    E, VoidType<decltype(std::declval<StateOf<E>&>().for_each_field(AnyFieldVisitor{}))>>
    : std::true_type {};

template <class E, class = void>
struct HasConstants : std::false_type {};
template <class E>
struct HasConstants<
    E, VoidType<decltype(std::declval<const E&>().parameters.for_each_field(AnyFieldVisitor{}))>>
    : std::true_type {};

}  // namespace detail

// The mean return from which on an environment counts as solved; it need not say.
template <class E, class = void>
struct SolvedReturn {
  static constexpr bool kIsKnown = false;
  static constexpr double kValue = 0;
};
template <class E>
struct SolvedReturn<E, detail::VoidType<decltype(E::kSolvedReturn)>> {
  static constexpr bool kIsKnown = true;
  static constexpr double kValue = E::kSolvedReturn;
};

// True where E keeps the contract. Instantiating EnvironmentContract<E> says in one sentence what
// is missing.
template <class E>
struct EnvironmentContract {
  static_assert(
      detail::HasInitialState<E>::value,
      "the environment has no function initial_state(device, environment, random_stream)");
  static_assert(detail::HasStep<E>::value,
                "the environment has no function step(device, environment, state, action)");
  static_assert(detail::HasObserve<E>::value,
                "the environment has no function observe(device, environment, state, observation)");
  static_assert(detail::HasReward<E>::value,
                "the environment has no function reward(device, environment, state, action, "
                "next_state)");
  static_assert(detail::HasTerminated<E>::value,
                "the environment has no function terminated(device, environment, state)");
  static_assert(detail::HasStateFields<E>::value,
                "the environment's State does not list its fields: RLT_DEFINE_FIELDS(State, ...) "
                "of core/fields.h");
  static_assert(detail::HasConstants<E>::value,
                "the environment does not list its constants: RLT_DEFINE_CONSTANTS(Parameters, "
                "...) of core/fields.h, and a member `parameters`");
  static constexpr bool kKept = detail::HasInitialState<E>::value && detail::HasStep<E>::value &&
                                detail::HasObserve<E>::value && detail::HasReward<E>::value &&
                                detail::HasTerminated<E>::value &&
                                detail::HasStateFields<E>::value && detail::HasConstants<E>::value;
  static constexpr bool kChecked = true;
};

}  // namespace rlt
