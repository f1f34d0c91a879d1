// Shared library over flights of a quadrotor for Python (ctypes): stepped by the caller (flight.h)
// or flown by a policy (policy_flights.h). All memory is the caller's, arrays row-major.
#include "describe.h"
#include "flight.h"
#include "policy_flights.h"
#include "rltools/devices/host_threads.h"

#include <cstddef>
#include <memory>
#include <string>

using namespace rlt::flight;

extern "C" {

void rlt_flight_begin(Flight* flight, const std::uint32_t* settings, std::uint32_t seed,
                      std::uint32_t episode) {
  flight->seed = seed;
  flight->episode = episode;
  flight->tick = 0;
  flight->environment = environment_of(settings);
  begin(flight->environment, seed, episode, flight->parameters, flight->state);
}

void rlt_flight_set_state(Flight* flight, const float* observation) {
  set_state(flight->state, observation);
}

// Set observation (kObservationDim) of this moment, the same in each call.
void rlt_flight_observe(const Flight* flight, float* observation) {
  float row[kRow];
  observe(rlt::Generic{}, flight->environment, flight->parameters, flight->state, row,
          rlt::RandomStream{flight->seed, rlt::Purpose::evaluation_observation, flight->tick,
                            flight->episode});
  for (int i = 0; i < kObservationDim; i++) observation[i] = row[i];
}

// Fly one tick with thrusts (kActionDim) in [0, 1]. Return the Cause of a limit that it broke, or
// 0.
std::uint32_t rlt_flight_step(Flight* flight, const float* thrusts) {
  float action[kActionDim];
  normalize(thrusts, action);
  change(flight->environment, flight->seed, flight->episode, flight->tick, flight->parameters);
  const auto result = fly_on(flight->environment, flight->parameters, flight->state, action,
                             rlt::RandomStream{flight->seed, rlt::Purpose::evaluation_step,
                                               flight->tick, flight->episode});
  flight->tick++;
  return result.terminated ? broken_limit(flight->environment.settings, flight->state) : kSuccess;
}

void rlt_flight_read(const Flight* flight, Reading* reading) {
  read(flight->parameters, flight->state, flight->tick, *reading);
}

void rlt_flight_airframe(const Flight* flight, FlownAirframe* airframe) {
  read(flight->parameters, *airframe);
}

// Return the reason for which the policy cannot act here, and `where` in it; 0 where it can.
int rlt_flight_check_policy(const std::uint8_t* image, std::size_t count, std::uint32_t* where) {
  const auto contract = rlt::policy_contract<Environment>();
  const auto runner = std::make_unique<Pilot<rlt::HostSimd>::Runner>(contract);
  const rlt::PolicyVerdict verdict = runner->accept(rlt::HostSimd{}, image, count);
  *where = verdict.where;
  return static_cast<int>(verdict.reason);
}

// Fly all flights of an order, whose policy can act here; a caller's policy acts in one thread.
void rlt_flight_fly(Order* order) {
  order->next = 0;
  if (order->threads < 2 || order->act != nullptr) return fly_some(rlt::HostSimd{}, *order);
  const rlt::HostThreads device{};
  set_threads(device, static_cast<int>(order->threads));
  rlt::for_each_index(device, static_cast<int>(order->threads),
                      [&](auto worker, int) { fly_some(worker, *order); });
}

const char* rlt_describe() {
  static const std::string text = rlt::describe::text_of([](rlt::describe::Json& json) {
    json.pair("step_interval_us", Environment::kStepInterval_us);
    describe_channels(json, "observations", Environment::kObservations, kObservationDim);
    describe_channels(json, "actions", Environment::kActions, kActionDim);
    describe_parameters(json, "settings", Settings{});
    json.list("airframe", [&] {
      rlt::quadrotor::Airframe<float>{}.for_each_field(
          [&](const char* name, float) { json.write(name); });
    });
    json.list("tables", [&] {
      for (const auto& table : rlt::quadrotor::kTables<float>) json.write(table.name);
    });
    json.list("statuses", [&] {
      for (int i = 0; i < rlt::kExecutorStatusCount; i++) {
        json.write(rlt::executor_status_text(static_cast<rlt::ExecutorStatus>(i)));
      }
    });
    json.pair("flight_bytes", sizeof(Flight));
    json.pair("max_threads", rlt::threads::Pool::kMaxThreads);
    json.object("records", [&] {
      rlt::describe::describe_record<Reading>(json, "Reading");
      rlt::describe::describe_record<FlownAirframe>(json, "Airframe");
      rlt::describe::describe_record<Sample>(json, "Sample");
      rlt::describe::describe_record<Outcome>(json, "Outcome");
      rlt::describe::describe_record<Excursion>(json, "Excursion");
      rlt::describe::describe_record<Order>(json, "Order");
    });
    json.object("functions", [&] {
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_begin);
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_set_state);
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_observe);
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_step);
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_read);
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_airframe);
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_check_policy);
      RLT_DESCRIBE_FUNCTION(json, rlt_flight_fly);
    });
  });
  return text.c_str();
}

}  // extern "C"
