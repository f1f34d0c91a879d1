// An environment for tests whose steps end as a script says: as one whose episodes another program
// plays. It observes which episode it is in and how many steps that has had.
#pragma once

#include <vector>

#include "rltools/rl/environment.h"

namespace rlt {

enum class Ending { none, terminated, truncated, lost };

struct Script {
  std::vector<Ending> endings;  // of the coming steps, of all environments; then none
  std::size_t next = 0;
  const char* unavailable = nullptr;
};
inline Script script;

#define SCRIPTED_STATE(X) \
  X(float, episode)       \
  X(float, steps)

struct Scripted : EnvironmentDefaults {
  using Scalar = float;
  RLT_DEFINE_FIELDS(State, SCRIPTED_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
  static constexpr bool kTruncates = true;
  static constexpr bool kIsExternal = true;
  static constexpr const char* kName = "scripted";
  static constexpr int kObservationDim = 2, kActionDim = 1;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"episode", "1", 0.0f, 1e6f},
                                              {"steps", "1", 0.0f, 1e6f}};
  static constexpr Channel kActions[] = {{"nothing", "1", -1.0f, 1.0f}};
};

// The same, which may not truncate.
struct ScriptedHere : Scripted {
  static constexpr bool kTruncates = false;
  static constexpr bool kIsExternal = false;
};

inline const char* unavailable(Generic, const Scripted&) { return script.unavailable; }

inline void reset(Generic, const Scripted&, const Scripted::Parameters&, Scripted::State& state,
                  RandomStream random) {
  state = {static_cast<float>(random.step), 0};
}
inline StepResult<float> step(Generic, const Scripted&, const Scripted::Parameters&,
                              Scripted::State& state, const float*, RandomStream) {
  const Ending done =
      script.next < script.endings.size() ? script.endings[script.next++] : Ending::none;
  if (done == Ending::lost || script.unavailable != nullptr) return {77, false, false, true};
  state.steps++;
  return {1, done == Ending::terminated, done == Ending::truncated};
}
inline void observe(Generic, const Scripted&, const Scripted::Parameters&,
                    const Scripted::State& state, float* observation, RandomStream) {
  observation[0] = state.episode;
  observation[1] = state.steps;
}

}  // namespace rlt
