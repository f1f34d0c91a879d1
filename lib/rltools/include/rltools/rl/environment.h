// The environment contract. An environment E is a type with `Scalar` (T), `State`, `Parameters`,
// the constants `kName`, `kObservationDim`, `kActionDim`, `kStepInterval_us`, `kObservations[]`,
// `kActions[]`, and these functions in namespace rlt (actions are normalised to [-1, 1]):
//   void          reset(device, environment, parameters, State&, RandomStream)
//   StepResult<T> step(device, environment, parameters, State&, const T* action, RandomStream)
//   void          observe(device, environment, parameters, state, T* observation, RandomStream)
// reset() draws an initial state, which is never a terminal one. step() moves the state on by one
// step interval. What an environment draws, it draws from the stream it is given, which is another
// one at each call.
//
// `State` lists its fields, and `Parameters` the constants of physics and reward, each once
// (core/fields.h): the fields are what a checkpoint stores, and the constants, by the values that
// `Parameters{}` has, what tells one environment from another of the same name. An environment
// whose dynamics are to differ from episode to episode has also
//   void sample_parameters(device, environment, Parameters&, RandomStream)
// One that needs what a machine may lack, a simulator for example, says what is missing by
//   const char* unavailable(device, environment)     a sentence, or null where nothing is
// One that knows more than its policy is to see states how many values that are, `kPrivilegedDim`:
// observe() writes them behind the kObservationDim of the policy, and critics learn from all.
// One that is the same seen in a mirror states how many such mirrors there are, `kMirrors`, and
// what they make of each element of what is observed and done:
//   static constexpr Mirrored mirrored_observation(int mirror, int element)   what critics see, too
//   static constexpr Mirrored mirrored_action(int mirror, int element)
// It may state `kEpisodeSteps`, the number of steps after which an episode is cut off unless
// somebody asks for another, `kSolvedReturn`, the mean return from which on it counts as solved,
// and `kStepWork_us`, about how long a step keeps a laptop's processor busy, where that is long
// enough for several threads to share the environments of a run. A safe action, `kSafeAction[]`, is
// the contract's that it derives from (policy/contract.h).
//
// Its header is rl/environments/<name>.h, or lies in a folder there, and has the name in PascalCase
// for the struct, a template over the Scalar: half_cheetah.h has HalfCheetah<T>. Tools find it
// there by the lines that define kName and kEpisodeSteps; one that needs MuJoCo has a line
// `// Requires: mujoco`.
//
// One that may end an episode by itself at any step, without a terminal state, states
// `kTruncates = true`. One whose episodes another program plays (environments/external/) states
// `kIsElsewhere = true`: its state is not all of an episode, so that a run that goes on from a
// checkpoint begins new ones; and a step of it may be lost.
//
// What is chosen at run time, and is the same for all episodes of a run, are an environment's
// settings: one that has any lists them as hyperparameters (`Settings`, rl/hyperparameters.h) and
// carries them as its one member, `Settings settings`. They follow the algorithm's in the list of
// the run's hyperparameters, so that `--set` and the protocol reach them. All other E have no data.
// With which values of them the fingerprint tries what the environment does (rl/fingerprint.h), the
// environment states, so that all is reached that settings switch on, whatever their defaults:
//   static constexpr int kProbes
//   static Settings probe_settings(int probe)        of 0 to kProbes - 1
// Many environments of a kind are an array of states: vector_environment.h.
#pragma once

#include <type_traits>
#include <utility>

#include "rltools/core/device.h"
#include "rltools/core/fields.h"
#include "rltools/core/random.h"
#include "rltools/policy/contract.h"

namespace rlt {

// What a step gave: its reward, and whether it ended in a terminal state, from which nothing more
// is to be had. An episode that is cut off is not terminated: after a number of steps, which is
// not the environment's affair, or where the environment says so (`truncated`, of one that
// kTruncates). A step that is lost, of one that kIsElsewhere, did not take place: the state is as
// before, nothing is learnt from it, and the episode is over.
template <class T>
struct StepResult {
  T reward;
  bool terminated;
  bool truncated = false;
  bool lost = false;
};

// What an element is in a mirror: this one, times 1 or -1.
struct Mirrored {
  int element, sign;
};

namespace detail {

template <class...>
using VoidType = void;

template <class E>
using StateOf = typename E::State;
template <class E>
using ScalarOf = typename E::Scalar;

template <class E>
using ParametersOf = typename E::Parameters;

template <class E, class = void>
struct HasReset : std::false_type {};
template <class E>
struct HasReset<E, VoidType<decltype(reset(
                       Generic{}, std::declval<const E&>(), std::declval<const ParametersOf<E>&>(),
                       std::declval<StateOf<E>&>(), std::declval<RandomStream>()))>>
    : std::true_type {};

template <class E, class = void>
struct StepResultOf {
  using Type = void;
};
template <class E>
struct StepResultOf<
    E, VoidType<decltype(step(Generic{}, std::declval<const E&>(),
                              std::declval<const ParametersOf<E>&>(), std::declval<StateOf<E>&>(),
                              std::declval<const ScalarOf<E>*>(), std::declval<RandomStream>()))>> {
  using Type = decltype(step(Generic{}, std::declval<const E&>(),
                             std::declval<const ParametersOf<E>&>(), std::declval<StateOf<E>&>(),
                             std::declval<const ScalarOf<E>*>(), std::declval<RandomStream>()));
};
template <class E>
constexpr bool kHasStep = std::is_same_v<typename StepResultOf<E>::Type, StepResult<ScalarOf<E>>>;

template <class E, class = void>
struct HasObserve : std::false_type {};
template <class E>
struct HasObserve<E, VoidType<decltype(observe(
                         Generic{}, std::declval<const E&>(),
                         std::declval<const ParametersOf<E>&>(), std::declval<const StateOf<E>&>(),
                         std::declval<ScalarOf<E>*>(), std::declval<RandomStream>()))>>
    : std::true_type {};

template <class E, class = void>
struct SamplesParameters : std::false_type {};
template <class E>
struct SamplesParameters<E, VoidType<decltype(sample_parameters(Generic{}, std::declval<const E&>(),
                                                                std::declval<ParametersOf<E>&>(),
                                                                std::declval<RandomStream>()))>>
    : std::true_type {};

template <class E, class = void>
struct MayBeUnavailable : std::false_type {};
template <class E>
struct MayBeUnavailable<E, VoidType<decltype(unavailable(Generic{}, std::declval<const E&>()))>>
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
    E, VoidType<decltype(std::declval<ParametersOf<E>&>().for_each_field(AnyFieldVisitor{}))>>
    : std::true_type {};

}  // namespace detail

// About how long a step keeps a processor busy, where the environment says so.
template <class E, class = void>
struct StepWork {
  static constexpr int kMicroseconds = 0;
};
template <class E>
struct StepWork<E, detail::VoidType<decltype(E::kStepWork_us)>> {
  static constexpr int kMicroseconds = E::kStepWork_us;
};

// How many values observe() writes behind those of the policy.
template <class E, class = void>
struct PrivilegedDim {
  static constexpr int kValue = 0;
};
template <class E>
struct PrivilegedDim<E, detail::VoidType<decltype(E::kPrivilegedDim)>> {
  static constexpr int kValue = E::kPrivilegedDim;
};
template <class E>
constexpr int kPrivilegedDim = PrivilegedDim<E>::kValue;
// ... and in all: what critics see.
template <class E>
constexpr int kCriticObservationDim = E::kObservationDim + kPrivilegedDim<E>;

// How many mirrors it is the same in.
template <class E, class = void>
struct MirrorCount {
  static constexpr int kValue = 0;
};
template <class E>
struct MirrorCount<E, detail::VoidType<decltype(E::kMirrors)>> {
  static constexpr int kValue = E::kMirrors;
};
template <class E>
constexpr int kMirrors = MirrorCount<E>::kValue;

// Whether it ends episodes that are not terminated, and whether another program plays them.
template <class E, class = void>
struct Truncates : std::false_type {};
template <class E>
struct Truncates<E, detail::VoidType<decltype(E::kTruncates)>> : std::bool_constant<E::kTruncates> {
};
template <class E, class = void>
struct IsElsewhere : std::false_type {};
template <class E>
struct IsElsewhere<E, detail::VoidType<decltype(E::kIsElsewhere)>>
    : std::bool_constant<E::kIsElsewhere> {};
template <class E>
constexpr bool kTruncates = Truncates<E>::value;
template <class E>
constexpr bool kIsElsewhere = IsElsewhere<E>::value;

// Whether it has settings.
template <class E, class = void>
struct HasSettings : std::false_type {};
template <class E>
struct HasSettings<E, detail::VoidType<typename E::Settings>> : std::true_type {};
template <class E>
constexpr bool kHasSettings = HasSettings<E>::value;

namespace detail {

template <class E, class = void>
struct StatesProbes : std::false_type {};
template <class E>
struct StatesProbes<E, VoidType<decltype(std::declval<typename E::Settings&>() =
                                             E::probe_settings(E::kProbes - 1))>> : std::true_type {
};

}  // namespace detail

// Whether episodes have dynamics of their own.
template <class E>
constexpr bool kSamplesParameters = detail::SamplesParameters<E>::value;

// Why E cannot be stepped on this machine, or null: to be asked before training.
template <class E>
const char* unavailable_here() {
  if constexpr (detail::MayBeUnavailable<E>::value) return unavailable(Generic{}, E{});
  return nullptr;
}

// An episode's parameters, where they are the nominal ones or are to be drawn.
template <class Device, class E>
void draw_parameters(Device device, const E& environment, typename E::Parameters& parameters,
                     RandomStream random) {
  parameters = {};
  if constexpr (kSamplesParameters<E>) sample_parameters(device, environment, parameters, random);
}

// The steps of an episode where the environment says so, else kUnlimitedSteps.
constexpr std::uint32_t kUnlimitedSteps = 0xffffffffu;
template <class E, class = void>
struct EpisodeSteps {
  static constexpr std::uint32_t kValue = kUnlimitedSteps;
};
template <class E>
struct EpisodeSteps<E, detail::VoidType<decltype(E::kEpisodeSteps)>> {
  static constexpr auto kValue = static_cast<std::uint32_t>(E::kEpisodeSteps);
  static_assert(E::kEpisodeSteps > 0, "kEpisodeSteps must be at least 1");
};

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
  static_assert(detail::HasReset<E>::value,
                "the environment has no function reset(device, environment, parameters, state, "
                "random_stream)");
  static_assert(detail::kHasStep<E>,
                "the environment has no function step(device, environment, parameters, state, "
                "action, random_stream) that returns StepResult<Scalar>");
  static_assert(detail::HasObserve<E>::value,
                "the environment has no function observe(device, environment, parameters, state, "
                "observation, random_stream)");
  static_assert(detail::HasStateFields<E>::value,
                "the environment's State does not list its fields: RLT_DEFINE_FIELDS(State, ...) "
                "of core/fields.h");
  static_assert(detail::HasConstants<E>::value,
                "the environment does not list its constants: RLT_DEFINE_CONSTANTS(Parameters, "
                "...) of core/fields.h");
  static constexpr bool kSettingsAreProbed = !kHasSettings<E> || detail::StatesProbes<E>::value;
  static_assert(kSettingsAreProbed,
                "the environment has settings and does not state with which of them the "
                "fingerprint tries it: kProbes and static Settings probe_settings(int probe)");
  static constexpr bool kKept = detail::HasReset<E>::value && detail::kHasStep<E> &&
                                detail::HasObserve<E>::value && detail::HasStateFields<E>::value &&
                                detail::HasConstants<E>::value && kSettingsAreProbed;
  static constexpr bool kChecked = true;
};

}  // namespace rlt
