// Shared library over one environment (rl/environment.h) for Python (ctypes): many of it at once,
// as training steps them (rl/vector_environment.h). All memory is the caller's, arrays row-major
// with a row for each environment. Actions are in the units and ranges of the environment's
// channels.
//
// Compiled for each header of rl/environments: RLT_ENVIRONMENT_HEADER, RLT_ENVIRONMENT and the
// scalar RLT_SCALAR, which is float; double is for tests. With RLT_EXPERIMENT, for `rlt check`, it
// is that experiment's environment, with its settings and episodes.
#if defined(RLT_EXPERIMENT)
#include RLT_EXPERIMENT_HEADER
#include "describe_experiment.h"
#else
#include RLT_ENVIRONMENT_HEADER
#endif

#include "describe_environment.h"
#include "rltools/devices/host_threads.h"
#include "rltools/rl/hyperparameters.h"
#include "rltools/rl/vector_environment.h"

#include <atomic>
#include <cstddef>
#include <string>

namespace {

using rlt::describe::Json;
#if defined(RLT_EXPERIMENT)
using Experiment = rlt::RLT_EXPERIMENT;
using T = Experiment::Scalar;
using Environment = Experiment::Environment;
constexpr std::uint32_t kEpisodeSteps = Experiment::kEpisodeSteps;
#else
using T = RLT_SCALAR;
using Environment = rlt::RLT_ENVIRONMENT<T>;
constexpr std::uint32_t kEpisodeSteps = Environment::kEpisodeSteps;
#endif
using State = Environment::State;
constexpr int kRow = rlt::kCriticObservationDim<Environment>;  // the policy's come first
constexpr int kActionDim = Environment::kActionDim;
static_assert(rlt::kIsKept<rlt::EnvironmentContract<Environment>>);

// Resets after the end of an episode: none until the caller's; in the same step; or in the next one
// in place of stepping.
enum Autoreset : std::uint32_t { kDisabled, kSameStep, kNextStep };

// `count` environments and what came of their last step. A seed's first step has number 0; settings
// have four bytes each, in the order of the description. The caller's actions (count, kActionDim)
// are normalized by step(), which takes choices as the nearest number of one. observation (count,
// kRow) is of the present state, final_observation of the state in which an episode has ended
// (kSameStep).
using Parameters = Environment::Parameters;
#define RLT_BATCH(X)                \
  X(std::uint32_t, count)           \
  X(std::uint32_t, threads)         \
  X(std::uint32_t, episode_steps)   \
  X(Autoreset, autoreset)           \
  X(std::uint32_t, seed)            \
  X(std::uint32_t, step_number)     \
  X(const std::uint32_t*, settings) \
  X(State*, state)                  \
  X(Parameters*, parameters)        \
  X(std::uint32_t*, episodes)       \
  X(std::uint32_t*, episode_step)   \
  X(T*, episode_return)             \
  X(T*, action)                     \
  X(T*, observation)                \
  X(T*, final_observation)          \
  X(T*, reward)                     \
  X(std::uint8_t*, terminated)      \
  X(std::uint8_t*, truncated)
RLT_DEFINE_FIELDS(Batch, RLT_BATCH)

template <class E = Environment>
rlt::VectorEnvironment<E, rlt::kAtRunTime> environments_of(const Batch& batch) {
  rlt::VectorEnvironment<E, rlt::kAtRunTime> environments{};
  environments.environment_count = static_cast<int>(batch.count);
  environments.state = batch.state;
  environments.episodes = batch.episodes;
  environments.episode_step = batch.episode_step;
  environments.episode_return = batch.episode_return;
  if constexpr (rlt::kSamplesParameters<E>) environments.values = batch.parameters;
  return environments;
}

// Return the environment with the batch's settings.
template <class E = Environment>
E environment_of(const Batch& batch) {
  E environment{};
  if constexpr (rlt::kHasSettings<E>) {
    for (int i = 0; i < E::Settings::kCount; i++) {
      environment.settings.set_bits(i, batch.settings[i]);
    }
  }
  return environment;
}

template <class E = Environment>
void describe_settings(Json& json) {
  if constexpr (rlt::kHasSettings<E>) {
#if defined(RLT_EXPERIMENT)
    using Settings = typename rlt::detail::SettingsOfExperiment<Experiment>::Type;
#else
    using Settings = typename E::Settings;
#endif
    const typename E::Settings settings = Settings{};
    describe_parameters(json, "settings", settings);
  } else {
    json.list("settings", [&] {});
  }
}

// Write the experiment's own description, where it is compiled for one.
void describe_subject([[maybe_unused]] Json& json) {
#if defined(RLT_EXPERIMENT)
  json.object("experiment", [&] { rlt::describe::describe_experiment<Experiment>(json); });
#endif
}

T* observation_of(const Batch& batch, int index) {
  return batch.observation + static_cast<std::ptrdiff_t>(index) * kRow;
}

// The store to which step_all() writes its results.
struct Store {
  const Batch& batch;

  T* reached(int index, const rlt::Transition<T>& transition) const {
    batch.reward[index] = transition.reward;
    batch.terminated[index] = transition.terminated;
    batch.truncated[index] = transition.truncated;
    if (!transition.ended() || batch.autoreset != kSameStep) return observation_of(batch, index);
    return batch.final_observation + static_cast<std::ptrdiff_t>(index) * kRow;
  }
  T* begun(int index) const { return observation_of(batch, index); }
};

std::atomic<std::uint32_t> current_threads{0};  // of the pool, which all batches share

// Call function(device), with the threads that the batch asks for.
template <class Function>
void with_device(const Batch& batch, Function&& function) {
  if (batch.threads < 2) return function(rlt::Generic{});
  const rlt::HostThreads device{};
  if (current_threads.exchange(batch.threads) != batch.threads) {
    set_threads(device, static_cast<int>(batch.threads));
  }
  function(device);
}

// Set a row as it is in an episode's first state.
void nothing_has_happened(const Batch& batch, int index) {
  batch.reward[index] = T(0);
  batch.terminated[index] = batch.truncated[index] = 0;
}

template <class Device, class Environments>
void begin_next(Device device, const Environment& environment, const Batch& batch,
                Environments& environments, int index) {
  const Store store{batch};
  begin_next_episode(device, environment, environments, index, batch.seed, store);
  nothing_has_happened(batch, index);
}

template <class Device>
void step_with(Device device, const Batch& batch) {
  const Store store{batch};
  auto environments = environments_of(batch);
  const Environment environment = environment_of(batch);
  if (batch.autoreset == kSameStep) {
    return step_all(device, environment, environments, batch.seed, batch.step_number,
                    batch.episode_steps, batch.action, store);
  }
  rlt::for_each_environment<Environment>(device, environments.count(), [&](auto worker, int index) {
    const bool has_ended = batch.terminated[index] || batch.truncated[index];
    if (batch.autoreset == kNextStep && has_ended) {
      return begin_next(worker, environment, batch, environments, index);
    }
    step_and_observe(worker, environment, environments, index, batch.seed, batch.step_number,
                     batch.episode_steps, batch.action, store);
  });
}

void normalize_actions(const Batch& batch) {
  T* action = batch.action;
  for (std::uint32_t i = 0; i < batch.count; i++) {
    for (int k = 0; k < kActionDim; k++) {
      const rlt::Channel& channel = Environment::kActions[k];
      *action = rlt::kIsDiscrete<Environment>
                    ? rlt::math::clamp(rlt::math::floor(*action + T(0.5)), T(0),
                                       static_cast<T>(channel.maximum))
                    : rlt::normalized_action(*action, channel.minimum, channel.maximum);
      action++;
    }
  }
}

}  // namespace

extern "C" {

// Begin the first episode of every environment, of this seed.
void rlt_environment_reset(Batch* batch, std::uint32_t seed) {
  batch->seed = seed;
  batch->step_number = 0;
  with_device(*batch, [&](auto device) {
    auto environments = environments_of(*batch);
    begin_all(device, environment_of(*batch), environments, seed,
              [&](int index) { return observation_of(*batch, index); });
    for (int index = 0; index < environments.count(); index++) nothing_has_happened(*batch, index);
  });
}

// Begin the next episode of every environment.
void rlt_environment_begin_next(Batch* batch) {
  auto environments = environments_of(*batch);
  const Environment environment = environment_of(*batch);
  for (int index = 0; index < environments.count(); index++) {
    begin_next(rlt::Generic{}, environment, *batch, environments, index);
  }
}

// Set the current observation of every environment, after its state was written from outside.
void rlt_environment_observe(Batch* batch) {
  const rlt::Generic device{};
  const auto environments = environments_of(*batch);
  const Environment environment = environment_of(*batch);
  for (int index = 0; index < environments.count(); index++) {
    observe_first(device, environment, environments, index, batch->seed,
                  observation_of(*batch, index));
  }
}

// Step every environment by its action. Return the number of episodes that have ended.
std::uint32_t rlt_environment_step(Batch* batch) {
  normalize_actions(*batch);
  with_device(*batch, [&](auto device) { step_with(device, *batch); });
  batch->step_number++;
  std::uint32_t ended = 0;
  for (std::uint32_t i = 0; i < batch->count; i++) {
    ended += batch->terminated[i] | batch->truncated[i];
  }
  return ended;
}

const char* rlt_describe() {
  static const std::string text = rlt::describe::text_of([](Json& json) {
    rlt::describe::describe_environment<Environment>(json, kEpisodeSteps);
    json.pair("unavailable", rlt::unavailable_here<Environment>());
    describe_settings(json);
    json.pair("privileged_dim", Environment::kPrivilegedDim);
    json.pair("ticks_per_step", Environment::kTicksPerStep);
    describe_subject(json);
    json.pair("scalar", rlt::describe::type_name<T>());
    json.pair("parameter_bytes",
              rlt::kSamplesParameters<Environment> ? sizeof(Environment::Parameters) : 0);
    json.pair("max_threads", rlt::threads::Pool::kMaxThreads);
    json.object("records", [&] {
      rlt::describe::describe_record<State>(json, "State");
      rlt::describe::describe_record<Batch>(json, "Batch");
    });
    json.object("functions", [&] {
      RLT_DESCRIBE_FUNCTION(json, rlt_environment_reset);
      RLT_DESCRIBE_FUNCTION(json, rlt_environment_begin_next);
      RLT_DESCRIBE_FUNCTION(json, rlt_environment_observe);
      RLT_DESCRIBE_FUNCTION(json, rlt_environment_step);
    });
  });
  return text.c_str();
}

}  // extern "C"
