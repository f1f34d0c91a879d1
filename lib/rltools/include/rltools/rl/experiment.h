// Parts of an experiment beside its algorithm's own: its networks' widths and tiles, its run's
// hyperparameters, and its options.
#pragma once

#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/nn/mlp.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/hyperparameters.h"

namespace rlt {

// Base of an experiment with an algorithm and an environment, and with the actor and critic that
// the algorithm has for tasks, whose hidden layers have these widths. The derived struct adds
// kName, Hyperparameters and sizes.
template <class A, class E, int... Hidden>
struct TaskExperiment {
  using Scalar = typename E::Scalar;
  using Environment = E;
  using Algorithm = A;
  using Actor = typename A::template TaskActor<E, Hidden...>;
  using Critic = typename A::template TaskCritic<E, Hidden...>;
  static constexpr int kEpisodeSteps = E::kEpisodeSteps;
};

namespace detail {

template <class A, class E, class = void>
struct TaskHyperparametersOf {
  using Type = typename A::TaskHyperparameters;
};
template <class A, class E>
struct TaskHyperparametersOf<A, E, std::void_t<typename A::template HyperparametersOfTask<E>>> {
  using Type = typename A::template HyperparametersOfTask<E>;
};

}  // namespace detail

// Hyperparameters with which the algorithm A learns a task E: its TaskHyperparameters, where it has
// no HyperparametersOfTask.
template <class A, class E>
using TaskHyperparametersOf = typename detail::TaskHyperparametersOf<A, E>::Type;

// The experiment E, its batches worked through in tiles of `Rows` samples: other memory and speed,
// the same bits.
template <class E, int Rows>
struct WithTileRows : E {
  static constexpr int kTileRows = Rows;
};

// The experiment E, its actor and critic with hidden layers of these widths.
template <class E, int... Widths>
struct WithHidden : E {
  using Actor = WithHiddenWidths<typename E::Actor, Widths...>;
  using Critic = WithHiddenWidths<typename E::Critic, Widths...>;
};

// The experiment E with scratch memory of its own for the second critic, so that a device with
// threads works on both critics at once: the same bits.
struct SecondCriticScratch {};
template <class E>
struct WithSecondCriticScratch : E, SecondCriticScratch {};

// Options that an experiment may state beside its sizes. An option that its algorithm does not read
// is refused: AlgorithmContract of training.h has the sentences.
#define RLT_OPTIONS(X) X(kWindowSteps) X(kMirrored) X(kNormalized) X(kAveragedUpdates)

// Which of them an algorithm reads, and whether it learns recurrent networks: its struct Reads
// derives from this one, with its own as true.
struct ReadsNothing {
  static constexpr bool kRecurrentNetworks = false;
#define RLT_READ(Name) static constexpr bool Name = false;
  RLT_OPTIONS(RLT_READ)
#undef RLT_READ
};

namespace detail {

// States_kMirrored<E> and so on: whether E states it, as something else than 0 or false.
#define RLT_STATES(Name)                                  \
  template <class E, class = void>                        \
  struct States_##Name : std::false_type {};              \
  template <class E>                                      \
  struct States_##Name<E, std::void_t<decltype(E::Name)>> \
      : std::bool_constant<static_cast<bool>(E::Name)> {};
RLT_OPTIONS(RLT_STATES)
#undef RLT_STATES

template <class E, class = void>
struct AveragedUpdates : std::integral_constant<int, 0> {};
template <class E>
struct AveragedUpdates<E, std::void_t<decltype(E::kAveragedUpdates)>>
    : std::integral_constant<int, E::kAveragedUpdates> {
  static_assert(E::kAveragedUpdates >= 0, "the experiment's kAveragedUpdates is negative");
};

template <class E, class = void>
struct SettingsOfExperiment {
  using Type = typename E::Environment::Settings;
};
template <class E>
struct SettingsOfExperiment<E, std::void_t<typename E::EnvironmentSettings>> {
  using Type = typename E::EnvironmentSettings;
  static_assert(std::is_base_of_v<typename E::Environment::Settings, Type>,
                "the experiment's EnvironmentSettings do not derive from the environment's "
                "Settings");
};

template <class E, bool HasSettings = kHasSettings<typename E::Environment>>
struct HyperparametersOfRun {
  using Type = typename E::Hyperparameters;
};
template <class E>
struct HyperparametersOfRun<E, true> {
  using Type =
      JoinedHyperparameters<typename E::Hyperparameters, typename SettingsOfExperiment<E>::Type>;
};

}  // namespace detail

// All hyperparameters of a run: the experiment's, and its environment's settings, where it has any.
// Their defaults are those of E::EnvironmentSettings, which derives from the environment's Settings
// with a constructor that sets others, if there is such a type.
template <class E>
using RunHyperparameters = typename detail::HyperparametersOfRun<E>::Type;

// ---- Symmetric networks -------------------------------------------------------------------------
//
// An experiment that states `kMirrored = true` learns networks that are symmetric in its
// environment's mirrors, and includes rl/symmetry/symmetry.h, which learns so. The algorithms call
// it through these functions alone, which do nothing for other experiments: gradients, moments and
// the networks at the start are inside of what the algorithms compute, so they have to call it.

// True if an experiment states `kMirrored = true`.
template <class E>
constexpr bool kIsMirrored = detail::States_kMirrored<E>::value;

namespace detail {

// An experiment that is not kMirrored does not need kMirrors, which an environment without the
// defaults lacks: so that the sentence on those is the only one.
template <class E>
constexpr int mirrors_learned() {
  if constexpr (kIsMirrored<E>) return E::Environment::kMirrors;
  return 0;
}

template <class T, class = void>
constexpr bool kIsComplete = false;
template <class T>
constexpr bool kIsComplete<T, std::void_t<decltype(sizeof(T))>> = true;

}  // namespace detail

// The number of mirrors that an experiment learns with.
template <class E>
constexpr int kMirrorsLearned = detail::mirrors_learned<E>();

template <class E>
struct Symmetry;  // rl/symmetry/symmetry.h
template <class E>
struct Training;  // rl/training.h

// Make the networks that a run begins with symmetric.
template <class E, class Actor, class Critic>
void make_symmetric(const Training<E>&, [[maybe_unused]] Actor& actor,
                    [[maybe_unused]] Critic& critic) {
  if constexpr (kMirrorsLearned<E> > 0) Symmetry<E>::make_symmetric(actor, critic);
}

// Turn the gradient of a batch into that of a batch with all images of its rows: of an actor, of a
// critic.
template <class Device, class E, class Actor>
void average_actor_over_mirrors([[maybe_unused]] Device device, const Training<E>&,
                                [[maybe_unused]] Actor& gradient) {
  if constexpr (kMirrorsLearned<E> > 0) Symmetry<E>::average_actor(device, gradient);
}
template <class Device, class E, class Critic>
void average_critic_over_mirrors([[maybe_unused]] Device device, const Training<E>&,
                                 [[maybe_unused]] Critic& gradient) {
  if constexpr (kMirrorsLearned<E> > 0) Symmetry<E>::average_critic(device, gradient);
}

// The same for the gradients of actor, critic and a policy's deviations, or for the moments of a
// normalizer.
template <class Device, class E, class... Averaged>
void average_over_mirrors([[maybe_unused]] Device device, const Training<E>&,
                          [[maybe_unused]] Averaged&... averaged) {
  if constexpr (kMirrorsLearned<E> > 0) Symmetry<E>::average(device, averaged...);
}

// The contract of an experiment that is kMirrored; all others keep it.
template <class E>
struct MirrorContract {
  template <bool Asserts>
  static constexpr bool check() {
    bool kept = true;
    if constexpr (kIsMirrored<E>) {
      RLT_REQUIRE(kMirrorsLearned<E> > 0,
                  "the experiment is kMirrored, and its environment states no mirrors: kMirrors");
      RLT_REQUIRE(
          kMirrorsLearned<E> == 0 || detail::kIsComplete<Symmetry<E>>,
          "the experiment is kMirrored, and does not include rltools/rl/symmetry/symmetry.h");
      if constexpr (kMirrorsLearned<E> > 0 && detail::kIsComplete<Symmetry<E>>) {
        kept = kept && Symmetry<E>::template check<Asserts>();
      }
    }
    return kept;
  }
};

// True if an experiment of TD3, SAC or DQN learns from observations that a running normalizer
// (rl/normalizer.h) has scaled, which it says by `kNormalized = true`. PPO has one anyway.
template <class E>
constexpr bool kIsNormalized = detail::States_kNormalized<E>::value;

// Over how many updates the weights of the policy's network, TD3's and SAC's actor and DQN's
// critic, are averaged (rl/off_policy.h): of an experiment that states kAveragedUpdates. 0, as of
// all others: the policy is the network that learns.
template <class E>
constexpr int kAveragedUpdates = detail::AveragedUpdates<E>::value;

}  // namespace rlt
