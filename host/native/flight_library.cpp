// Shared library over flights of a quadrotor for Python (ctypes): stepped by the caller (flight.h)
// or flown by a policy (policy_flights.h). All memory is the caller's, arrays row-major.
#include "flight.h"
#include "policy_flights.h"
#include "rltools/devices/host_threads.h"

#include <cstddef>
#include <memory>

using namespace rlt::flight;

namespace {

struct Description {
  const rlt::Channel* observations;
  const rlt::Channel* actions;
  const rlt::ParameterInfo* settings;
  std::uint32_t observation_dim, action_dim, setting_count;
  std::uint32_t flight_bytes, reading_bytes, sample_bytes, outcome_bytes, order_bytes;
  std::uint32_t tick_us, table_count, status_count, most_threads;
};

}  // namespace

extern "C" {

void rlt_flight_describe(Description* description) {
  *description = {Environment::kObservations,
                  Environment::kActions,
                  Settings::kInfo,
                  kObservationDim,
                  kActionDim,
                  Settings::kCount,
                  sizeof(Flight),
                  sizeof(Reading),
                  sizeof(Sample),
                  sizeof(Outcome),
                  sizeof(Order),
                  Environment::kStepInterval_us,
                  rlt::quadrotor::kTableCount,
                  rlt::kExecutorStatusCount,
                  rlt::threads::Pool::kMostThreads};
}

// Of table `number`, from 1.
const char* rlt_flight_table_name(std::uint32_t number) {
  return rlt::quadrotor::kTables<float>[number - 1].name;
}

const char* rlt_flight_status_text(std::uint32_t status) {
  return rlt::executor_status_text(static_cast<rlt::ExecutorStatus>(status));
}

void rlt_flight_begin(Flight* flight, const std::uint32_t* settings, std::uint32_t seed,
                      std::uint32_t episode) {
  flight->seed = seed;
  flight->episode = episode;
  flight->tick = 0;
  flight->environment = environment_of(settings);
  begin(flight->environment, seed, episode, flight->parameters, flight->state);
}

// The body is where `observation` (kObservationDim) says, without noise, seen from the target;
// its rotors go on as they do.
void rlt_flight_place(Flight* flight, const float* observation) {
  State& state = flight->state;
  for (int i = 0; i < 3; i++) {
    state.position_m[i] = state.target_position_m[i] + observation[i];
    state.velocity_m_s[i] = state.target_velocity_m_s[i] + observation[3 + i];
    state.angular_velocity_rad_s[i] = observation[10 + i];
  }
  for (int i = 0; i < 4; i++) state.attitude[i] = observation[6 + i];
}

// observation (kObservationDim) of this moment, the same whenever it is asked for
void rlt_flight_observe(const Flight* flight, float* observation) {
  float row[kRow];
  observe(rlt::Generic{}, flight->environment, flight->parameters, flight->state, row,
          rlt::RandomStream{flight->seed, rlt::Purpose::evaluation_observation, flight->tick,
                            flight->episode});
  for (int i = 0; i < kObservationDim; i++) observation[i] = row[i];
}

// One tick with thrusts (kActionDim) in [0, 1]. The Cause of a limit that it broke, or 0.
std::uint32_t rlt_flight_step(Flight* flight, const float* thrusts) {
  float action[kActionDim];
  normalise(thrusts, action);
  const auto result =
      step(rlt::Generic{}, flight->environment, flight->parameters, flight->state, action,
           rlt::RandomStream{flight->seed, rlt::Purpose::evaluation_step, flight->tick,
                             flight->episode});
  flight->tick++;
  return result.terminated ? broken_limit(flight->environment.settings, flight->state) : kSuccess;
}

void rlt_flight_read(const Flight* flight, Reading* reading) {
  read(flight->parameters, flight->state, flight->tick, *reading);
}

// Whether the policy can act here: the reason for which not, 0 where it can, and `where` in it.
int rlt_flight_check_policy(const std::uint8_t* image, std::size_t count, std::uint32_t* where) {
  const auto contract = rlt::policy_contract<Environment>();
  const auto runner = std::make_unique<Pilot<rlt::HostSimd>::Runner>(contract);
  const rlt::PolicyVerdict verdict = runner->accept(rlt::HostSimd{}, image, count);
  *where = verdict.where;
  return static_cast<int>(verdict.reason);
}

// All flights of an order, whose policy can act here.
void rlt_flight_fly(Order* order) {
  order->next = 0;
  if (order->threads < 2) return fly_some(rlt::HostSimd{}, *order);
  const rlt::HostThreads device{};
  set_threads(device, static_cast<int>(order->threads));
  rlt::for_each_index(device, static_cast<int>(order->threads),
                      [&](auto worker, int) { fly_some(worker, *order); });
}

}  // extern "C"
