// Shared library over one environment (rl/environment.h) for Python (ctypes): many of it at once,
// as training steps them (rl/vector_environment.h). All memory is the caller's, arrays row-major
// with a row for each environment. Actions are in the units and ranges of the environment's
// channels.
//
// Compiled for each header of rl/environments: RLT_ENVIRONMENT_HEADER, RLT_ENVIRONMENT and the
// scalar RLT_SCALAR, which is float; double is for tests.
#include RLT_ENVIRONMENT_HEADER

#include "rltools/devices/host_threads.h"
#include "rltools/rl/hyperparameters.h"
#include "rltools/rl/vector_environment.h"

#include <atomic>
#include <cstddef>

namespace {

using T = RLT_SCALAR;
using Environment = rlt::RLT_ENVIRONMENT<T>;
using State = Environment::State;
constexpr int kRow = rlt::kCriticObservationDim<Environment>;  // the policy's come first
constexpr int kActionDim = Environment::kActionDim;
static_assert(rlt::EnvironmentContract<Environment>::kKept);

struct StateField {
  const char* name;
  const char* type;  // NumPy's
  std::uint32_t offset;
  std::uint32_t elements;  // 0: a number, no array
};

struct Description {
  const char* name;
  const rlt::Channel* observations;
  const rlt::Channel* actions;
  const StateField* state_fields;
  const rlt::ParameterInfo* settings;
  std::uint32_t observation_dim, privileged_dim, action_dim, state_field_count, setting_count;
  std::uint32_t state_bytes, parameter_bytes, scalar_bytes;
  std::uint32_t step_interval_us, episode_steps;
  std::uint32_t most_threads;
};

// What is done where an episode has ended: nothing until the next reset; a new one is begun in the
// same step, or in the next one in place of stepping.
enum Autoreset : std::uint32_t { kDisabled, kSameStep, kNextStep };

// `count` environments and what came of their last step.
struct Batch {
  std::uint32_t count;
  std::uint32_t threads;
  std::uint32_t episode_steps;
  Autoreset autoreset;
  std::uint32_t seed;
  std::uint32_t step_number;      // since the seed was given
  const std::uint32_t* settings;  // four bytes each, in the order of the description
  State* state;
  Environment::Parameters* parameters;
  std::uint32_t* episodes;
  std::uint32_t* episode_step;
  T* episode_return;
  T* action;             // (count, kActionDim), as the caller gives them; step() normalises them
  T* observation;        // (count, kRow), of the present state
  T* final_observation;  // the same, of the state in which an episode has ended (kSameStep)
  T* reward;
  std::uint8_t* terminated;
  std::uint8_t* truncated;
};

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

// The environment with the batch's settings.
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

// The list of its settings, or null.
template <class E = Environment>
constexpr const rlt::ParameterInfo* setting_list() {
  if constexpr (rlt::kHasSettings<E>) return E::Settings::kInfo;
  return nullptr;
}
template <class E = Environment>
constexpr std::uint32_t setting_count() {
  if constexpr (rlt::kHasSettings<E>) return E::Settings::kCount;
  return 0;
}

T* observation_of(const Batch& batch, int index) {
  return batch.observation + static_cast<std::ptrdiff_t>(index) * kRow;
}

// Where step_all() puts what it finds.
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

std::atomic<std::uint32_t> present_threads{0};  // of the pool, which all batches share

// function(device), with the threads that the batch asks for.
template <class Function>
void with_device(const Batch& batch, Function&& function) {
  if (batch.threads < 2) return function(rlt::Generic{});
  const rlt::HostThreads device{};
  if (present_threads.exchange(batch.threads) != batch.threads) {
    set_threads(device, static_cast<int>(batch.threads));
  }
  function(device);
}

// A row as it is in an episode's first state.
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

void normalise_actions(const Batch& batch) {
  T* action = batch.action;
  for (std::uint32_t i = 0; i < batch.count; i++) {
    for (int k = 0; k < kActionDim; k++) {
      const rlt::Channel& channel = Environment::kActions[k];
      *action = rlt::normalised_action(*action, channel.minimum, channel.maximum);
      action++;
    }
  }
}

struct FieldList {
  static constexpr int kMost = 64;
  StateField fields[kMost];
  std::uint32_t count = 0;

  FieldList() {
    static const State state{};
    state.for_each_field([this](const char* name, const auto& field) {
      using Field = std::remove_const_t<std::remove_reference_t<decltype(field)>>;
      using Element = std::remove_all_extents_t<Field>;
      constexpr bool kIsReal = std::is_floating_point_v<Element>;
      const auto offset =
          reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&state);
      if (count == kMost) __builtin_trap();
      fields[count++] = {
          name,
          kIsReal ? (sizeof(Element) == 8 ? "f8" : "f4") : (sizeof(Element) == 4 ? "u4" : "u1"),
          static_cast<std::uint32_t>(offset),
          std::is_array_v<Field> ? static_cast<std::uint32_t>(sizeof(Field) / sizeof(Element)) : 0};
    });
  }
};

}  // namespace

extern "C" {

void rlt_environment_describe(Description* description) {
  static const FieldList state_fields;
  *description = {Environment::kName,
                  Environment::kObservations,
                  Environment::kActions,
                  state_fields.fields,
                  setting_list(),
                  Environment::kObservationDim,
                  Environment::kPrivilegedDim,
                  kActionDim,
                  state_fields.count,
                  setting_count(),
                  sizeof(State),
                  rlt::kSamplesParameters<Environment> ? sizeof(Environment::Parameters) : 0,
                  sizeof(T),
                  Environment::kStepInterval_us,
                  std::uint32_t{Environment::kEpisodeSteps},
                  rlt::threads::Pool::kMostThreads};
}

// Why it cannot be stepped on this machine, in one sentence, or null.
const char* rlt_environment_unavailable() { return rlt::unavailable_here<Environment>(); }

// The first episode of every environment, of this seed.
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

// The next episode of every environment.
void rlt_environment_begin_next(Batch* batch) {
  auto environments = environments_of(*batch);
  const Environment environment = environment_of(*batch);
  for (int index = 0; index < environments.count(); index++) {
    begin_next(rlt::Generic{}, environment, *batch, environments, index);
  }
}

// The present observation of every environment, after its state was written from outside.
void rlt_environment_observe(Batch* batch) {
  const rlt::Generic device{};
  const auto environments = environments_of(*batch);
  const Environment environment = environment_of(*batch);
  for (int index = 0; index < environments.count(); index++) {
    observe_first(device, environment, environments, index, batch->seed,
                  observation_of(*batch, index));
  }
}

// Every environment takes its action. Returns how many episodes have ended.
std::uint32_t rlt_environment_step(Batch* batch) {
  normalise_actions(*batch);
  with_device(*batch, [&](auto device) { step_with(device, *batch); });
  batch->step_number++;
  std::uint32_t ended = 0;
  for (std::uint32_t i = 0; i < batch->count; i++) {
    ended += batch->terminated[i] | batch->truncated[i];
  }
  return ended;
}

}  // extern "C"
