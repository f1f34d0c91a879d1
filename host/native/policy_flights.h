// Flights of a policy, many at once: the environment in lanes, the policy in the hands of the
// firmware's own deployment and executor, or of the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "flight.h"
#include "rltools/policy/deployment.h"

namespace rlt::flight {

constexpr std::size_t kScratchFloats = 4096;  // policies of up to 2,000 units a layer

// A moment, what was observed of it, and what was done: thrusts, parts of the greatest one, and the
// ExecutorStatus.
using Observation = float[kObservationDim];
using Action = float[kActionDim];
#define RLT_FLIGHT_SAMPLE(X)  \
  X(Reading, reading)         \
  X(Observation, observation) \
  X(Action, action)           \
  X(std::uint32_t, status)
RLT_DEFINE_FIELDS(Sample, RLT_FLIGHT_SAMPLE)

// The outcome of a flight: the ExecutorStatus of the last tick; ticks flown; the tick from which on
// it was within the radius, to the end; the distance within which it was in `needed_ticks` of those
// judged, NaN where it was not judged; the sum of the environment's rewards.
#define RLT_FLIGHT_OUTCOME(X)     \
  X(std::uint32_t, cause)         \
  X(std::uint32_t, status)        \
  X(std::uint32_t, table)         \
  X(std::uint32_t, latency)       \
  X(std::uint32_t, ticks)         \
  X(std::uint32_t, settling_tick) \
  X(float, error_m)               \
  X(float, episode_return)
RLT_DEFINE_FIELDS(Outcome, RLT_FLIGHT_OUTCOME)

// The excursion of a flight: the largest tilt from level, and how far below the lower one of its
// start and its first target it came.
#define RLT_FLIGHT_EXCURSION(X) \
  X(float, max_tilt_rad)        \
  X(float, height_lost_m)
RLT_DEFINE_FIELDS(Excursion, RLT_FLIGHT_EXCURSION)

// A caller's policy at a tick of flights that began at once: thrusts (count, kActionDim) for
// observations (count, kObservationDim) of the order's flights `index` (count). Up to kLanes fly
// together, those of the next kLanes numbers. Not 0: no flight goes on.
using Act = std::uint32_t (*)(std::uint32_t tick, std::uint32_t count, const std::uint32_t* index,
                              const float* observation, float* thrusts);

// Flights of a policy: episodes `first_episode` to `first_episode + count - 1`. A flight succeeds
// where it lasts `ticks`, and is within `radius_m` of its target in `needed_ticks` of the last
// `judged_ticks`. starts (count, kObservationDim): where the vehicle is placed, or null: where the
// episode draws it. excursions (count), or null; with them a flight fails that tilts further than
// `max_tilt_rad`. Settings have four
// bytes each, in the order of the description; the image lies on a four-byte boundary, and counts
// where `act` is null. outcomes (count); samples (count, ticks) as far as they are flown, or null;
// hidden (count, ticks / hidden_ticks rounded up, hidden_dim), or null: at each so many ticks, what
// the step of the image's policy has made of its hidden state. next: the flight to begin.
#define RLT_FLIGHT_ORDER(X)         \
  X(const std::uint32_t*, settings) \
  X(const std::uint8_t*, image)     \
  X(std::size_t, image_bytes)       \
  X(Act, act)                       \
  X(ExecutorLimits, limits)         \
  X(std::uint32_t, seed)            \
  X(std::uint32_t, first_episode)   \
  X(std::uint32_t, count)           \
  X(std::uint32_t, ticks)           \
  X(std::uint32_t, judged_ticks)    \
  X(std::uint32_t, needed_ticks)    \
  X(float, radius_m)                \
  X(float, max_tilt_rad)            \
  X(const float*, starts)           \
  X(Excursion*, excursions)         \
  X(std::uint32_t, threads)         \
  X(Outcome*, outcomes)             \
  X(float*, hidden)                 \
  X(std::uint32_t, hidden_dim)      \
  X(std::uint32_t, hidden_ticks)    \
  X(Sample*, samples)               \
  X(std::atomic<std::uint32_t>, next)
RLT_DEFINE_FIELDS(Order, RLT_FLIGHT_ORDER)

// The environment is stepped in lanes, a flight in each: loops whose passes are independent,
// straight-line code (rl/vector_environment.h). Which flight is in which lane changes no bit.
constexpr int kLanes = 32;

// A policy as firmware has it: built in, with nothing in the slots.
template <class Device>
class Pilot {
 public:
  using Deployment = PolicyDeployment<Device, RamStorage<2048>, kActionDim, kScratchFloats>;
  using Runner = std::remove_pointer_t<decltype(std::declval<Deployment&>().acting())>;

  Pilot(Device device, const Order& order)
      : deployment_(device, storage_, policy_contract<Environment>(), order.limits) {
    if (order.act != nullptr) return;
    deployment_.begin(order.image, static_cast<std::uint32_t>(order.image_bytes));
  }
  void take_off() { deployment_.reset_executor(); }
  // Return the image's hidden state, to which the last tick has led.
  const float* hidden() { return deployment_.acting()->last_state(); }
  // Set thrusts (kActionDim) for an observation (kObservationDim) of this moment.
  ExecutorStatus fly(std::uint32_t tick, const float* observation, float* thrusts) {
    const std::uint32_t now_us = tick * Environment::kStepInterval_us;
    return deployment_.tick(now_us, {observation, now_us}, thrusts);
  }

 private:
  RamStorage<2048> storage_{};
  Deployment deployment_;
};

template <class Device>
struct Lanes {
  Parameters parameters[kLanes];
  State state[kLanes];
  std::uint32_t episode[kLanes], tick[kLanes];
  float observation[kLanes * kRow];
  float thrusts[kLanes * kActionDim];
  float action[kLanes * kActionDim];
  StepResult<float> result[kLanes];
  Outcome* outcome[kLanes];
  Sample* samples[kLanes];
  float reference_m[kLanes], lowest_m[kLanes], least_cosine[kLanes];  // of its Excursion
  float* errors_m[kLanes];                                            // (judged_ticks)
  Pilot<Device>* pilot[kLanes];
};

template <class Device>
[[gnu::flatten]] void observe_all(const Environment& environment, std::uint32_t seed, int count,
                                  Lanes<Device>& lanes) {
  const auto* __restrict parameters = lanes.parameters;
  const auto* __restrict state = lanes.state;
  float* __restrict observation = lanes.observation;
  for (int i = 0; i < count; i++) {
    observe(Generic{}, environment, parameters[i], state[i], observation + i * kRow,
            RandomStream{seed, Purpose::evaluation_observation, lanes.tick[i], lanes.episode[i]});
  }
}

template <class Device>
[[gnu::flatten]] void step_all(const Environment& environment, std::uint32_t seed, int count,
                               Lanes<Device>& lanes) {
  const auto* __restrict parameters = lanes.parameters;
  auto* __restrict state = lanes.state;
  const float* __restrict action = lanes.action;
  auto* __restrict result = lanes.result;
  for (int i = 0; i < count; i++) {
    change(environment, seed, lanes.episode[i], lanes.tick[i], lanes.parameters[i]);
  }
  const auto random = [&](int i) {
    return RandomStream{seed, Purpose::evaluation_step, lanes.tick[i], lanes.episode[i]};
  };
  if (has_plus_frame(environment)) {  // of all flights of an order: loops without a branch
    for (int i = 0; i < count; i++) {
      result[i] =
          step_plus(environment, parameters[i], state[i], action + i * kActionDim, random(i));
    }
    return;
  }
  for (int i = 0; i < count; i++) {
    result[i] =
        step(Generic{}, environment, parameters[i], state[i], action + i * kActionDim, random(i));
  }
}

inline float cosine_of_tilt(const State& state) {
  const float x = state.attitude[1], y = state.attitude[2];
  return 1.0f - 2.0f * (x * x + y * y);
}

// Begin the next flight of the order in lane `lane`; return false where there is none.
template <class Device>
bool begin_next(Order& order, const Environment& environment, Lanes<Device>& lanes, int lane) {
  const std::uint32_t index = order.next.fetch_add(1);
  if (index >= order.count) return false;
  lanes.episode[lane] = order.first_episode + index;
  lanes.tick[lane] = 0;
  begin(environment, order.seed, lanes.episode[lane], lanes.parameters[lane], lanes.state[lane]);
  State& state = lanes.state[lane];
  if (order.starts != nullptr) {
    set_state(state, order.starts + static_cast<std::size_t>(index) * kObservationDim);
  }
  lanes.reference_m[lane] = std::min(state.position_m[2], state.target_position_m[2]);
  lanes.lowest_m[lane] = lanes.reference_m[lane];
  lanes.least_cosine[lane] = cosine_of_tilt(state);
  Outcome& outcome = order.outcomes[index];
  outcome = {kSuccess, 0,   lanes.parameters[lane].table, lanes.parameters[lane].latency, 0, 0,
             0.0f,     0.0f};
  lanes.outcome[lane] = &outcome;
  lanes.samples[lane] = order.samples == nullptr
                            ? nullptr
                            : order.samples + static_cast<std::size_t>(index) * order.ticks;
  lanes.pilot[lane]->take_off();
  return true;
}

// Move lane `from` to lane `to`, whose flight is over.
template <class Device>
void move_lane(Lanes<Device>& lanes, int from, int to) {
  if (from == to) return;
  lanes.parameters[to] = lanes.parameters[from];
  lanes.state[to] = lanes.state[from];
  lanes.episode[to] = lanes.episode[from];
  lanes.tick[to] = lanes.tick[from];
  lanes.outcome[to] = lanes.outcome[from];
  lanes.reference_m[to] = lanes.reference_m[from];
  lanes.lowest_m[to] = lanes.lowest_m[from];
  lanes.least_cosine[to] = lanes.least_cosine[from];
  lanes.samples[to] = lanes.samples[from];
  std::swap(lanes.errors_m[to], lanes.errors_m[from]);
  std::swap(lanes.pilot[to], lanes.pilot[from]);
}

// Compute the thrusts of a policy that is an image, for the current observation.
template <class Device>
ExecutorStatus act(const Order& order, Lanes<Device>& lanes, int lane) {
  Pilot<Device>& pilot = *lanes.pilot[lane];
  const std::uint32_t tick = lanes.tick[lane];
  const ExecutorStatus status =
      pilot.fly(tick, lanes.observation + lane * kRow, lanes.thrusts + lane * kActionDim);
  if (order.hidden == nullptr || tick % order.hidden_ticks != 0) return status;
  const std::size_t flight = lanes.episode[lane] - order.first_episode;
  const std::size_t rows = (order.ticks + order.hidden_ticks - 1) / order.hidden_ticks;
  float* kept = order.hidden + (flight * rows + tick / order.hidden_ticks) * order.hidden_dim;
  for (std::uint32_t i = 0; i < order.hidden_dim; i++) kept[i] = pilot.hidden()[i];
  return status;
}

// Compute the thrusts of a caller's policy in all lanes; return false where it stops.
template <class Device>
bool act_all(const Order& order, int count, Lanes<Device>& lanes) {
  std::uint32_t index[kLanes];
  float observation[kLanes * kObservationDim];
  for (int lane = 0; lane < count; lane++) {
    index[lane] = lanes.episode[lane] - order.first_episode;
    for (int i = 0; i < kObservationDim; i++) {
      observation[lane * kObservationDim + i] = lanes.observation[lane * kRow + i];
    }
  }
  return order.act(lanes.tick[0], static_cast<std::uint32_t>(count), index, observation,
                   lanes.thrusts) == 0;
}

// Make the thrusts the environment's action, and keep them.
template <class Device>
void take_action(Lanes<Device>& lanes, int lane, ExecutorStatus status) {
  const float* observation = lanes.observation + lane * kRow;
  const float* thrusts = lanes.thrusts + lane * kActionDim;
  const std::uint32_t tick = lanes.tick[lane];
  lanes.outcome[lane]->status = static_cast<std::uint32_t>(status);
  normalize(thrusts, lanes.action + lane * kActionDim);
  if (lanes.samples[lane] == nullptr) return;
  Sample& sample = lanes.samples[lane][tick];
  read(lanes.parameters[lane], lanes.state[lane], tick, sample.reading);
  for (int i = 0; i < kObservationDim; i++) sample.observation[i] = observation[i];
  for (int i = 0; i < kActionDim; i++) sample.action[i] = thrusts[i];
  sample.status = static_cast<std::uint32_t>(status);
}

// Note the excursion of the flight; return true where it tilts further than it may.
template <class Device>
bool follow_excursion(const Order& order, Lanes<Device>& lanes, int lane) {
  const State& state = lanes.state[lane];
  lanes.lowest_m[lane] = std::min(lanes.lowest_m[lane], state.position_m[2]);
  lanes.least_cosine[lane] = std::min(lanes.least_cosine[lane], cosine_of_tilt(state));
  const float tilt_rad = std::acos(std::clamp(lanes.least_cosine[lane], -1.0f, 1.0f));
  const std::size_t flight = lanes.episode[lane] - order.first_episode;
  order.excursions[flight] = {tilt_rad, lanes.reference_m[lane] - lanes.lowest_m[lane]};
  return tilt_rad > order.max_tilt_rad;
}

// Judge the state reached; return true where the flight is over.
template <class Device>
bool judge_lane(const Order& order, const Settings& settings, Lanes<Device>& lanes, int lane) {
  Outcome& outcome = *lanes.outcome[lane];
  const State& state = lanes.state[lane];
  const std::uint32_t tick = ++lanes.tick[lane];
  outcome.ticks = tick;
  outcome.episode_return += lanes.result[lane].reward;
  outcome.error_m = math::kQuietNan;
  const float error_m = distance_m(state);
  if (!(error_m <= order.radius_m)) outcome.settling_tick = tick;
  if (is_fault(static_cast<ExecutorStatus>(outcome.status))) {
    outcome.cause = kFault;
    return true;
  }
  if (lanes.result[lane].terminated) {
    outcome.cause = broken_limit(settings, state);
    return true;
  }
  if (order.excursions != nullptr && follow_excursion(order, lanes, lane)) {
    outcome.cause = kTilt;
    return true;
  }
  float* errors_m = lanes.errors_m[lane];
  const std::uint32_t unjudged = order.ticks - order.judged_ticks;
  if (tick > unjudged) errors_m[tick - unjudged - 1] = error_m;
  if (tick < order.ticks) return false;
  float* decisive = errors_m + (order.needed_ticks - 1);
  std::nth_element(errors_m, decisive, errors_m + order.judged_ticks);
  outcome.error_m = *decisive;
  outcome.cause = outcome.error_m <= order.radius_m ? kSuccess : kTooFar;
  return true;
}

// Fly flights of the order, until there are none to begin.
template <class Device>
void fly_some(Device device, Order& order) {
  const Environment environment = environment_of(order.settings);
  const auto lanes = std::make_unique<Lanes<Device>>();
  const auto errors_m =
      std::make_unique<float[]>(static_cast<std::size_t>(kLanes) * order.judged_ticks);
  std::unique_ptr<Pilot<Device>> pilots[kLanes];
  int count = 0;
  for (int lane = 0; lane < kLanes; lane++) {
    lanes->errors_m[lane] = errors_m.get() + static_cast<std::size_t>(lane) * order.judged_ticks;
    pilots[lane] = std::make_unique<Pilot<Device>>(device, order);
    lanes->pilot[lane] = pilots[lane].get();
  }
  const bool together = order.act != nullptr;  // all begin at once
  for (;;) {
    if (count == 0) {
      while (count < kLanes && begin_next(order, environment, *lanes, count)) count++;
      if (count == 0) return;
    }
    observe_all(environment, order.seed, count, *lanes);
    if (together && !act_all(order, count, *lanes)) return;
    for (int lane = 0; lane < count; lane++) {
      take_action(*lanes, lane, together ? ExecutorStatus::acted : act(order, *lanes, lane));
    }
    step_all(environment, order.seed, count, *lanes);
    for (int lane = count - 1; lane >= 0; lane--) {
      if (!judge_lane(order, environment.settings, *lanes, lane)) continue;
      if (together || !begin_next(order, environment, *lanes, lane)) {
        move_lane(*lanes, --count, lane);
      }
    }
  }
}

}  // namespace rlt::flight
