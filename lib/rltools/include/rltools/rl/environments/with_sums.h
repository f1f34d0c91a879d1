// An environment whose observation ends with the sums over time of its first K elements: what a
// policy needs to know of where something pushes steadily, as a wind does. A sum is that of the
// steps before, of each the element times the step's duration, and never beyond `kSumLimit` times
// the unit and a second; 0 at an episode's beginning. All else is E's:
//   using Environment = WithSums<WindyQuadrotor<float>, 3>;
// Their channels are those by which an executor gives a policy its sums (policy/observation_sum.h).
// What is summed up is without the sensors' noise, which a sum evens out: E says it by
//   T exact_observation(environment, const State&, int element)
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/unrolled.h"
#include "rltools/policy/observation_sum.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environments/added_channels.h"

namespace rlt {

namespace detail {

// The observations of E, and the sums of the first K: `level` in m gives `level_sum` in `m s`.
template <class E, int K>
struct SumChannels {
  struct Texts {
    ConstantText<kChannelNameBytes> names[K];
    ConstantText<kChannelUnitBytes> units[K];
  };

  static constexpr Texts make_texts() {
    Texts texts{};
    for (int i = 0; i < K; i++) {
      texts.names[i].add(E::kObservations[i].name).add(kSumName);
      texts.units[i].add(E::kObservations[i].unit).add(kSumUnit);
    }
    return texts;
  }
  static constexpr Texts kTexts = make_texts();
  static constexpr bool texts_fit() {
    for (int i = 0; i < K; i++) {
      if (!kTexts.names[i].fits() || !kTexts.units[i].fits()) return false;
    }
    return true;
  }

  static constexpr ChannelList<E::kObservationDim + K> make_channels() {
    ChannelList<K> own{};
    for (int i = 0; i < K; i++) {
      own.of[i] = {kTexts.names[i].characters, kTexts.units[i].characters, -kSumLimit, kSumLimit};
    }
    return with_channels<E>(own);
  }
  static constexpr auto kChannels = make_channels();

  static constexpr auto kEnvironmentName =
      ConstantText<kEnvironmentNameBytes>{}.add(E::kName).add(" +sums");
};

}  // namespace detail

template <class E, int K>
struct WithSums : E {
  static_assert(K >= 1 && K <= kMaxSums && K <= E::kObservationDim,
                "sums are those of the first 1 to 8 observations");
  static_assert(detail::SumChannels<E, K>::texts_fit(),
                "an observation's name or unit is too long: with `_sum` and ` s` after it, it has "
                "23 and 15 bytes at most");
  static constexpr const char* kName = detail::SumChannels<E, K>::kEnvironmentName.characters;
  static constexpr int kObservationDim = E::kObservationDim + K;
  static constexpr const Channel (&kObservations)[kObservationDim] =
      detail::SumChannels<E, K>::kChannels.of;

  // Return the image of an element; mirrors are E's, if it has any.
  static constexpr Mirrored mirrored_observation(int mirror, int element) {
    const int sum = element - E::kObservationDim;
    if (sum < 0) return E::mirrored_observation(mirror, element);
    const Mirrored mirrored = E::mirrored_observation(mirror, sum < K ? sum : element - K);
    return {mirrored.element + (sum < K ? E::kObservationDim : K), mirrored.sign};
  }

  struct State : E::State {
    using Sums = typename E::Scalar[K];
    Sums sums;
    RLT_ADDED_FIELD_VISITS(E::State, sums)
  };
};

template <class Device, class E, int K>
void reset(Device device, const WithSums<E, K>& environment,
           const typename E::Parameters& parameters, typename WithSums<E, K>::State& state,
           RandomStream random) {
  reset(device, static_cast<const E&>(environment), parameters,
        static_cast<typename E::State&>(state), random);
  for (auto& sum : state.sums) sum = typename E::Scalar(0);
}

template <class Device, class E, int K>
StepResult<typename E::Scalar> step(Device device, const WithSums<E, K>& environment,
                                    const typename E::Parameters& parameters,
                                    typename WithSums<E, K>::State& state,
                                    const typename E::Scalar* action, RandomStream random) {
  using T = typename E::Scalar;
  constexpr T kStep_s = sum_step_s<T>(E::kStepInterval_us, E::kTicksPerStep);
  const auto& inner = static_cast<const E&>(environment);
  unrolled<K>([&](int i) {
    const T value = exact_observation(inner, static_cast<const typename E::State&>(state), i);
    state.sums[i] = next_sum(state.sums[i], value, kStep_s, T(-kSumLimit), T(kSumLimit));
  });
  return step(device, inner, parameters, static_cast<typename E::State&>(state), action, random);
}

template <class Device, class E, int K>
void observe(Device device, const WithSums<E, K>& environment,
             const typename E::Parameters& parameters, const typename WithSums<E, K>::State& state,
             typename E::Scalar* observation, RandomStream random) {
  observe(device, static_cast<const E&>(environment), parameters,
          static_cast<const typename E::State&>(state), observation, random);
  detail::insert_observations<E, K>(state.sums, observation);
}

}  // namespace rlt
