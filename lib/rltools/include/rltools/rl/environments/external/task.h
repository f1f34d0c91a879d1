// Environments whose episodes another program plays: the functions of an environment
// (rl/environment.h) for every struct that derives from external::Task, as requests to that
// program. The host tools write such a struct for a Gymnasium task (docs/gymnasium_tasks.md):
//   using Observation = float[kObservationDim];
//   RLT_DEFINE_FIELDS(State, RLT_EXTERNAL_STATE)
//   RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
//   static constexpr std::uint32_t kTask[4] = {…};  // the digest of what is compiled of it
// beside the constants of every environment. Observations are kept in the state, so that to observe
// costs nothing. Actions are sent in the channels' units, as a policy on a board has them.
//
// For experiments with the line `// Requires: hosted`. All requests come from one thread.
#pragma once

#include "rltools/policy/contract.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environments/external/connection.h"

#define RLT_EXTERNAL_STATE(X) \
  X(Observation, observation) \
  X(std::uint32_t, slot)

namespace rlt {
namespace external {

struct Task : EnvironmentDefaults {
  static constexpr bool kTruncates = true;
  static constexpr bool kIsExternal = true;
};

template <class E>
using IfTask = std::enable_if_t<std::is_base_of_v<Task, E>, int>;

// Slots: a run's environments have their numbers, an evaluation's is another.
constexpr std::uint32_t kEvaluationSlot = 0x80000000u;

inline std::uint32_t slot_of(const RandomStream& random) {
  return random.purpose == Purpose::evaluation_reset ? kEvaluationSlot : random.substream;
}

// Return the connection, made when it is first needed.
template <class E>
Connection& connection_of() {
  static Connection connection{E::kObservationDim, E::kActionDim, E::kTask};
  return connection;
}

}  // namespace external

template <class E, external::IfTask<E> = 0>
const char* unavailable(Generic, const E&) {
  return external::connection_of<E>().unavailable();
}

// Reset the other program's environment. Gymnasium's seed is a number of the stream.
template <class E, external::IfTask<E> = 0>
void reset(Generic, const E&, const typename E::Parameters&, typename E::State& state,
           RandomStream random) {
  state = {};
  state.slot = external::slot_of(random);
  external::Connection& connection = external::connection_of<E>();
  connection.ask({external::Request::reset, state.slot, random_word(random, 0), 0});
  external::AnswerHeader answer{};
  connection.take(answer, state.observation);
}

// Request the steps of all environments at once, so that the other program is not waited for in
// each of them.
template <class E, external::IfTask<E> = 0>
void step_async(Generic, const E&, const typename E::State* states, int count,
                const float* action) {
  external::Connection& connection = external::connection_of<E>();
  connection.ask({external::Request::step, states[0].slot, 0, static_cast<std::uint32_t>(count)});
  for (int i = 0; i < count; i++, action += E::kActionDim) {
    float physical[E::kActionDim];
    for (int k = 0; k < E::kActionDim; k++) {
      const Channel& channel = E::kActions[k];
      physical[k] =
          kIsDiscrete<E> ? action[k] : physical_action(action[k], channel.minimum, channel.maximum);
    }
    connection.put(physical, sizeof physical);
  }
}

template <class E, external::IfTask<E> = 0>
StepResult<float> step(Generic device, const E& environment, const typename E::Parameters&,
                       typename E::State& state, const float* action, RandomStream) {
  external::Connection& connection = external::connection_of<E>();
  if (!connection.is_awaiting()) step_async(device, environment, &state, 1, action);
  external::AnswerHeader answer{};
  const bool answered = connection.take(answer, state.observation);
  if (!answered || answer.answer == external::Answer::lost) return {0, false, false, true};
  return {answer.reward, answer.terminated != 0, answer.truncated != 0};
}

template <class E, external::IfTask<E> = 0>
void observe(Generic, const E&, const typename E::Parameters&, const typename E::State& state,
             float* observation, RandomStream) {
  __builtin_memcpy(observation, state.observation, sizeof state.observation);
}

}  // namespace rlt
