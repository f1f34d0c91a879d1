// The environment contract. An environment E derives from EnvironmentDefaults and is a type with
// `Scalar` (T), `State`, `Parameters`, the constants `kName`, `kObservationDim`, `kActionDim`,
// `kStepInterval_us`, `kObservations[]`, `kActions[]`, and these functions in namespace rlt
// (actions are normalized to [-1, 1]; a choice is its number, from 0):
//   void          reset(device, environment, parameters, State&, RandomStream)
//   StepResult<T> step(device, environment, parameters, State&, const T* action, RandomStream)
//   void          observe(device, environment, parameters, state, T* observation, RandomStream)
// reset() draws an initial state, which is never a terminal one. step() moves the state on by one
// step interval. Each call has its own random stream, and draws from no other.
//
// `State` lists its fields, and `Parameters` the constants of physics and reward, each once
// (core/fields.h). A checkpoint stores the fields. The constants' values in `Parameters{}` tell one
// environment from another of the same name.
//
// EnvironmentDefaults states what an environment does not. It may also have
//   void        sample_parameters(device, environment, Parameters&, RandomStream)
//   const char* unavailable(device, environment)
//   void        step_async(device, environment, const State* states, int count, const T* action)
// where its dynamics differ from episode to episode; where it needs what a machine may lack, a
// simulator for example: a sentence that says what is missing, or null where nothing is; and where
// it is elsewhere: before `count` environments step with their rows of action (count, kActionDim),
// so that step(), called for each of them in this order, finds its result there.
//
// Its actions are all choices (`choice()` of policy/contract.h) or none is.
//
// A safe action, `kSafeAction[]`, is the contract's that it derives from (policy/contract.h). How
// it looks, it may say by shapes, `kPicture[]` (rl/picture.h).
//
// Its header is rl/environments/<name>.h, or lies in a folder there, and has the name in PascalCase
// for the struct, a template over the Scalar: half_cheetah.h has HalfCheetah<T>. Tools find it
// there by the lines that define kName and kEpisodeSteps; one that needs MuJoCo has a line
// `// Requires: mujoco`. Many environments of a kind are an array of states: vector_environment.h.
#pragma once

#include <type_traits>
#include <utility>

#include "rltools/core/device.h"
#include "rltools/core/fields.h"
#include "rltools/core/finite.h"
#include "rltools/core/math.h"
#include "rltools/core/random.h"
#include "rltools/core/require.h"
#include "rltools/policy/contract.h"
#include "rltools/rl/picture.h"

namespace rlt {

// The result of a step: its reward, and whether it ended in a terminal state, from which nothing
// more is to be had. An episode that is cut off is not terminated: after a number of steps, which
// is not the environment's affair, or where the environment says so (`truncated`, of one that
// kTruncates). A step that is lost, of one that kIsExternal, did not take place: the state is as
// before, nothing is learned from it, and the episode is over.
template <class T>
struct StepResult {
  T reward;
  bool terminated;
  bool truncated = false;
  bool lost = false;
};

// The image of an element in a mirror: this one, times 1 or -1.
struct Mirrored {
  int element, sign;
};

constexpr std::uint32_t kUnlimitedSteps = 0xffffffffu;

// Defaults of an environment, which replaces one by a member of the same name.
struct EnvironmentDefaults {
  // Steps after which an episode is cut off, unless somebody asks for another number.
  static constexpr std::uint32_t kEpisodeSteps = kUnlimitedSteps;
  // The mean return from which on it counts as solved; not a number: it does not say.
  static constexpr float kSolvedReturn = math::kQuietNan;
  // About how long a step keeps a laptop's processor busy, where that is long enough for several
  // threads to share the environments of a run.
  static constexpr int kStepWork_us = 0;
  // Ticks of its contract's rate that a step lasts, where it acts less often than the board on
  // which its policies are to act.
  static constexpr int kTicksPerStep = 1;
  // Number of values that observe() writes behind the kObservationDim of the policy: the
  // environment knows them, and its policy is not to see them. Critics learn from all.
  static constexpr int kPrivilegedDim = 0;
  // Number of mirrors in which it is the same. One that has any states the image of each element of
  // observations, as critics see them, and actions:
  //   static constexpr Mirrored mirrored_observation(int mirror, int element)
  //   static constexpr Mirrored mirrored_action(int mirror, int element)
  static constexpr int kMirrors = 0;
  // True if it may truncate an episode by itself at any step, without a terminal state.
  static constexpr bool kTruncates = false;
  // True if another program plays its episodes (environments/external/): its state is then not all
  // of an episode, so that a run that goes on from a checkpoint begins new ones; and a step of it
  // may be lost.
  static constexpr bool kIsExternal = false;
  // Values that are chosen at run time, and are the same for all episodes of a run: one that has
  // settings lists them as hyperparameters (rl/hyperparameters.h) and carries them as its one
  // member, `Settings settings`. They follow the algorithm's in the list of the run's
  // hyperparameters, so that `--set` and the protocol reach them. With which values the fingerprint
  // tries what the environment does (rl/fingerprint.h), it states, so that all is reached that
  // settings switch on:
  //   static constexpr int kProbes
  //   static Settings probe_settings(int probe)        of 0 to kProbes - 1
  using Settings = void;
};

inline const char* unavailable(Generic, const EnvironmentDefaults&) { return nullptr; }

template <class State, class T>
void step_async(Generic, const EnvironmentDefaults&, const State*, int, const T*) {}

// Its parameters are the nominal ones in every episode.
struct NotSampled {};
template <class Parameters>
NotSampled sample_parameters(Generic, const EnvironmentDefaults&, Parameters&, RandomStream) {
  return {};
}

namespace detail {

// True if Expression<E> compiles.
template <template <class> class Expression, class E, class = void>
constexpr bool kIsValid = false;
template <template <class> class Expression, class E>
constexpr bool kIsValid<Expression, E, std::void_t<Expression<E>>> = true;

struct AnyFieldVisitor {
  template <class Field>
  constexpr void operator()(const char*, Field&) const {}
};

template <class E>
const typename E::Parameters& parameters_of();
template <class E>
typename E::State& state_of();

template <class E>
using Reset = decltype(reset(Generic{}, std::declval<const E&>(), parameters_of<E>(), state_of<E>(),
                             RandomStream{}));
template <class E>
using Step = std::enable_if_t<std::is_same_v<
    StepResult<typename E::Scalar>,
    decltype(step(Generic{}, std::declval<const E&>(), parameters_of<E>(), state_of<E>(),
                  std::declval<const typename E::Scalar*>(), RandomStream{}))>>;
template <class E>
using Observe = decltype(observe(Generic{}, std::declval<const E&>(), parameters_of<E>(),
                                 std::declval<const typename E::State&>(),
                                 std::declval<typename E::Scalar*>(), RandomStream{}));
template <class E>
using StateFields = decltype(state_of<E>().for_each_field(AnyFieldVisitor{}));
template <class E>
using Constants = decltype(parameters_of<E>().for_each_field(AnyFieldVisitor{}));
template <class E>
using ProbeSettings =
    decltype(std::declval<typename E::Settings&>() = E::probe_settings(E::kProbes - 1));

}  // namespace detail

namespace detail {

// E, or the defaults where it lacks them: so that the contract's sentence is the only error.
template <class E>
using Stated =
    std::conditional_t<std::is_base_of_v<EnvironmentDefaults, E>, E, EnvironmentDefaults>;

}  // namespace detail

// Number of values that critics see: those of the policy, and the privileged ones.
template <class E>
constexpr int kCriticObservationDim = E::kObservationDim + detail::Stated<E>::kPrivilegedDim;

// Number of outputs of a policy's network.
template <class E>
constexpr int kOutputDim = output_count(E::kActions, E::kActionDim);

// True if its actions are choices.
template <class E>
constexpr bool kIsDiscrete = choice_count(E::kActions, E::kActionDim) > 0;

// Return whether `actions` (rows, ActionDim), where they are discrete, are numbers of choices: a
// loaded state is checked with this before anything is looked up by it.
template <class E, class T>
bool are_choices([[maybe_unused]] const T* actions, [[maybe_unused]] int rows) {
  if constexpr (kIsDiscrete<E>) {
    for (int i = 0; i < rows * E::kActionDim; i++) {
      const int count = choice_count(E::kActions[i % E::kActionDim]);
      const bool is_within = actions[i] >= T(0) && actions[i] < static_cast<T>(count);
      if (!is_within || static_cast<T>(static_cast<int>(actions[i])) != actions[i]) return false;
    }
  }
  return true;
}

// For each output of a network the observation that forbids what it stands for (policy/contract.h);
// -1: none does.
template <class E>
struct ChoiceMasks {
  int of[kOutputDim<E>];
  bool any;

  static constexpr ChoiceMasks make() {
    ChoiceMasks masks{};
    int output = 0;
    for (int i = 0; i < E::kActionDim; i++) {
      const int count = choice_count(E::kActions[i]);
      for (int k = 0; k < (count == 0 ? 1 : count); k++) {
        const int mask = mask_of(E::kObservations, E::kObservationDim, E::kActions[i], k);
        masks.of[output++] = mask;
        masks.any = masks.any || mask >= 0;
      }
    }
    return masks;
  }
};
template <class E>
constexpr ChoiceMasks<E> kChoiceMasks = ChoiceMasks<E>::make();

// Return whether the observation allows what output `output` stands for.
template <class E, class T>
bool is_allowed(const T* observation, int output) {
  if constexpr (kChoiceMasks<E>.any) {
    const int mask = kChoiceMasks<E>.of[output];
    return mask < 0 || observation[mask] >= T(kMinAllowed);
  }
  return true;
}

// Set the environment's action (ActionDim) from a network's outputs (kOutputDim): the number of
// each choice's largest one that the observation allows, or the outputs within [-1, 1]; NaN where
// one is not finite.
template <class E, class T>
void take_outputs(const T* observation, const T* output, T* action) {
  if (!all_finite(output, kOutputDim<E>)) {
    for (int i = 0; i < E::kActionDim; i++) action[i] = T(math::kQuietNan);
    return;
  }
  for (int i = 0, first = 0; i < E::kActionDim; i++) {
    if constexpr (kIsDiscrete<E>) {
      const int count = choice_count(E::kActions[i]);
      action[i] = static_cast<T>(largest_allowed(output + first, count, [&](int number) {
        return is_allowed<E>(observation, first + number);
      }));
      first += count;
    } else {
      action[i] = math::clamp(output[i], T(-1), T(1));
    }
  }
}

// Draw each choice uniformly from those that the observation allows.
template <class E, class T>
void choose_uniformly(RandomStream random, const T* observation, T* action) {
  for (int i = 0, first = 0; i < E::kActionDim; i++) {
    const int count = choice_count(E::kActions[i]);
    std::uint32_t allowed = 0;
    for (int k = 0; k < count; k++) allowed += is_allowed<E>(observation, first + k);
    const bool any = allowed > 0;
    const auto bound = any ? allowed : static_cast<std::uint32_t>(count);
    std::uint32_t left = uniform_index(random, static_cast<std::uint32_t>(i), bound);
    int chosen = 0;
    while (any && !is_allowed<E>(observation, first + chosen)) chosen++;
    for (; left > 0; left--) {
      do chosen++;
      while (any && !is_allowed<E>(observation, first + chosen));
    }
    action[i] = static_cast<T>(chosen);
    first += count;
  }
}

template <class E>
constexpr bool kIsExternal = detail::Stated<E>::kIsExternal;
template <class E>
constexpr bool kHasSettings = !std::is_same_v<typename detail::Stated<E>::Settings, void>;

// True if episodes have dynamics of their own.
template <class E>
constexpr bool kSamplesParameters =
    !std::is_same_v<NotSampled, decltype(sample_parameters(
                                    Generic{}, std::declval<const detail::Stated<E>&>(),
                                    std::declval<typename E::Parameters&>(), RandomStream{}))>;

// Return why E cannot be stepped on this machine, or null; call it before training.
template <class E>
const char* unavailable_here() {
  return unavailable(Generic{}, detail::Stated<E>{});
}

// Set an episode's parameters: the nominal ones, or drawn ones.
template <class Device, class E>
void draw_parameters(Device device, const E& environment, typename E::Parameters& parameters,
                     RandomStream random) {
  parameters = {};
  sample_parameters(device, environment, parameters, random);
}

// Contract of an environment E.
template <class E>
struct EnvironmentContract {
  template <bool Asserts>
  static constexpr bool check() {
    // A pointer in place of an array has as many as it says.
    constexpr int kListed = static_cast<int>(std::extent_v<decltype(E::kObservations)>);
    bool kept = true;
    RLT_REQUIRE((std::is_base_of_v<EnvironmentDefaults, E>),
                "the environment does not derive from EnvironmentDefaults");
    RLT_REQUIRE((detail::kIsValid<detail::Reset, E>),
                "the environment has no function reset(device, environment, parameters, state, "
                "random_stream)");
    RLT_REQUIRE((detail::kIsValid<detail::Step, E>),
                "the environment has no function step(device, environment, parameters, state, "
                "action, random_stream) that returns StepResult<Scalar>");
    RLT_REQUIRE((detail::kIsValid<detail::Observe, E>),
                "the environment has no function observe(device, environment, parameters, state, "
                "observation, random_stream)");
    RLT_REQUIRE((detail::kIsValid<detail::StateFields, E>),
                "the environment's State does not list its fields: RLT_DEFINE_FIELDS(State, ...) "
                "of core/fields.h");
    RLT_REQUIRE((detail::kIsValid<detail::Constants, E>),
                "the environment does not list its constants: RLT_DEFINE_CONSTANTS(Parameters, "
                "...) of core/fields.h");
    RLT_REQUIRE((!kHasSettings<E> || detail::kIsValid<detail::ProbeSettings, E>),
                "the environment has settings and does not state with which of them the "
                "fingerprint tries it: kProbes and static Settings probe_settings(int probe)");
    RLT_REQUIRE(!kIsDiscrete<E> || kOutputDim<E> == choice_count(E::kActions, E::kActionDim),
                "some of the environment's actions are choices and some are not: make all of them "
                "choices, or none");
    RLT_REQUIRE(kListed == 0 || kListed == E::kObservationDim,
                "kObservations must have as many entries as kObservationDim");
    RLT_REQUIRE(detail::Stated<E>::kEpisodeSteps > 0, "kEpisodeSteps must be at least 1");
    RLT_REQUIRE(detail::Stated<E>::kTicksPerStep >= 1,
                "a step lasts a tick at least: kTicksPerStep");
    return kept;
  }
};

}  // namespace rlt
