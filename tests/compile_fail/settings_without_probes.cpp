// An environment with settings that does not state with which of them the fingerprint tries it.
// says: the environment has settings and does not state with which of them the fingerprint tries it
#include "rltools/rl/environment.h"
#include "rltools/rl/hyperparameters.h"

#define RLT_LINE_STATE(X) X(float, position)
#define RLT_LINE_CONSTANTS(X) X(float, gain, 0.25f)
#define RLT_LINE_SETTINGS(X) X(float, start, 0, -1, 1, "m", "Where an episode begins.")

RLT_DEFINE_HYPERPARAMETERS(LineSettings, RLT_LINE_SETTINGS)

namespace rlt {

struct Line : EnvironmentDefaults {
  using Scalar = float;
  using Settings = LineSettings;
  RLT_DEFINE_FIELDS(State, RLT_LINE_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_LINE_CONSTANTS)
#if defined(RLT_CORRECTED)
  static constexpr int kProbes = 1;
  static Settings probe_settings(int) { return {}; }
#endif
  Settings settings;
};
inline void reset(Generic, const Line& environment, const Line::Parameters&, Line::State& state,
                  RandomStream) {
  state.position = environment.settings.start;
}
inline StepResult<float> step(Generic, const Line&, const Line::Parameters& parameters,
                              Line::State& state, const float* action, RandomStream) {
  state.position += parameters.gain * action[0];
  return {state.position, false};
}
inline void observe(Generic, const Line&, const Line::Parameters&, const Line::State& state,
                    float* observation, RandomStream) {
  observation[0] = state.position;
}

}  // namespace rlt

int main() { return rlt::EnvironmentContract<rlt::Line>::kKept ? 0 : 1; }
