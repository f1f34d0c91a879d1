// Flights of a policy (flight.h) as a module of WebAssembly that imports nothing: what a page flies
// a quadrotor with, a tick of the contract at a time, in the hands of the firmware's own executor.
// Numbers are passed as they are; arrays and texts by their address in the module's memory, all of
// it static. A setting's index is that of the flight library's description.
#include "flight.h"
#include RLT_DEVICE_HEADER
#include "rltools/core/self_test.h"
#include "rltools/policy/executor.h"
#include "rltools/policy/runtime.h"

#define RLT_EXPORT(Name) extern "C" [[clang::export_name(#Name)]]

using namespace rlt::flight;

namespace {

const rlt::RLT_DEVICE device{};
constexpr std::uint32_t kImageBytes = 1u << 20;
constexpr std::size_t kScratchFloats = 4096;  // policies of up to 2,000 units a layer

alignas(16) std::uint8_t image[kImageBytes];        // as the caller writes it
alignas(16) std::uint8_t flown_image[kImageBytes];  // that of the policy that flies
std::uint32_t flown_bytes = 0;
constexpr rlt::PolicyContract kContract = rlt::policy_contract<Environment>();
rlt::PolicyRunner<kScratchFloats, rlt::kHistoryTicks> pilot{kContract};
rlt::Executor<kActionDim> executor{kContract};

Flight flight{};
Reading reading;
float thrusts[kActionDim];
std::uint32_t judged_from = 0, ticks_within = 0;
float radius_m = 0.0f;

// Draw the dynamics. An episode draws a wind of up to the setting; somebody who moves the setting
// means this much.
void draw_dynamics() {
  rlt::draw_parameters(rlt::Generic{}, flight.environment, flight.parameters,
                       {flight.seed, rlt::Purpose::evaluation_parameters, flight.episode});
  auto& wind = flight.parameters.wind_m_s2;
  const float drawn = rlt::quadrotor::length(wind[0], wind[1], wind[2]);
  const float wanted = rlt::quadrotor::wind_of(flight.environment.settings).wind_m_s2;
  for (float& axis : wind) axis *= drawn > 0.0f ? wanted / drawn : 0.0f;
}

}  // namespace

// 0 where this module computes the bits of every other device here; else what differs.
RLT_EXPORT(arithmetic_fault) int arithmetic_fault() {
  return static_cast<int>(rlt::find_arithmetic_fault());
}
RLT_EXPORT(arithmetic_fault_text) const char* arithmetic_fault_text(int fault) {
  return rlt::arithmetic_fault_text(static_cast<rlt::ArithmeticFault>(fault));
}

// ---- The policy ---------------------------------------------------------------------------------

RLT_EXPORT(image_buffer) std::uint8_t* image_buffer() { return image; }
RLT_EXPORT(image_capacity) std::uint32_t image_capacity() { return sizeof(image); }

// Takes the image of `count` bytes in image_buffer(), after all checks of a board; 0 or the reason.
// Where it is refused, the policy before flies on.
RLT_EXPORT(open_policy) int open_policy(std::uint32_t count) {
  if (count > kImageBytes) return static_cast<int>(rlt::PolicyReason::too_large);
  const rlt::PolicyReason reason = pilot.accept(device, image, count).reason;
  if (reason == rlt::PolicyReason::accepted) {
    __builtin_memcpy(flown_image, image, count);
    flown_bytes = count;
  }
  if (flown_bytes > 0) pilot.accept(device, flown_image, flown_bytes);
  return static_cast<int>(reason);
}
RLT_EXPORT(policy_reason_text) const char* policy_reason_text(int reason) {
  return rlt::policy_reason_text(static_cast<rlt::PolicyReason>(reason));
}

// ---- The drone and its surroundings -------------------------------------------------------------

RLT_EXPORT(get_setting) std::uint32_t get_setting(int index) {
  return flight.environment.settings.get_bits(index);
}
// Says whether the value lies within its bounds. It counts in the flight that is flown, too, once
// change_dynamics() is called.
RLT_EXPORT(set_setting) bool set_setting(int index, std::uint32_t bits) {
  return flight.environment.settings.set_bits(index, bits);
}
// The settings' own values become those of a published table, from 1.
RLT_EXPORT(take_table) void take_table(std::uint32_t table) {
  Settings& settings = flight.environment.settings;
  const auto airframe = rlt::quadrotor::chosen_airframe<float>(
      table, rlt::quadrotor::custom_airframe<float>(settings));
  settings.airframe = 0;
#define RLT_TAKE(Type, Name, Default, Minimum, Maximum, Unit, Description) \
  settings.Name = airframe.Name;
  RLT_QUADROTOR_AIRFRAME(RLT_TAKE)
#undef RLT_TAKE
}
RLT_EXPORT(change_dynamics) void change_dynamics() { draw_dynamics(); }

// ---- A flight -----------------------------------------------------------------------------------

// By the settings, as the seed draws its episode; `is_exact`: with all of the wind that they allow.
RLT_EXPORT(begin_flight)
void begin_flight(std::uint32_t seed, std::uint32_t episode, bool is_exact) {
  flight.seed = seed;
  flight.episode = episode;
  flight.tick = 0;
  begin(flight.environment, seed, episode, flight.parameters, flight.state);
  if (is_exact) draw_dynamics();
  executor.reset();
  judged_from = ticks_within = 0;
  for (float& thrust : thrusts) thrust = 0.0f;
}
// From the tick `from` on, ticks within the radius are counted.
RLT_EXPORT(judge_flight) void judge_flight(std::uint32_t from, float radius) {
  judged_from = from;
  radius_m = radius;
  ticks_within = 0;
}
RLT_EXPORT(judged_ticks_within) std::uint32_t judged_ticks_within() { return ticks_within; }

// So many ticks, or fewer where the flight ends; the Cause of that, 0 where it goes on.
RLT_EXPORT(fly) std::uint32_t fly(std::uint32_t ticks) {
  for (; ticks > 0; ticks--) {
    float observation[kRow], action[kActionDim];
    observe(rlt::Generic{}, flight.environment, flight.parameters, flight.state, observation,
            rlt::RandomStream{flight.seed, rlt::Purpose::evaluation_observation, flight.tick,
                              flight.episode});
    const std::uint32_t now_us = flight.tick * Environment::kStepInterval_us;
    const auto status = executor.step(device, now_us, {observation, now_us}, thrusts, &pilot);
    normalize(thrusts, action);
    change(flight.environment, flight.seed, flight.episode, flight.tick, flight.parameters);
    const auto result = fly_on(
        flight.environment, flight.parameters, flight.state, action,
        rlt::RandomStream{flight.seed, rlt::Purpose::evaluation_step, flight.tick, flight.episode});
    flight.tick++;
    if (flight.tick > judged_from && distance_m(flight.state) <= radius_m) ticks_within++;
    if (rlt::is_fault(status)) return kFault;
    if (result.terminated) return broken_limit(flight.environment.settings, flight.state);
  }
  return kSuccess;
}

// A push: the velocity changes by this, in the world.
RLT_EXPORT(push) void push(float x_m_s, float y_m_s, float z_m_s) {
  flight.state.velocity_m_s[0] += x_m_s;
  flight.state.velocity_m_s[1] += y_m_s;
  flight.state.velocity_m_s[2] += z_m_s;
}

// Return the state at this moment: Reading of flight.h, and the thrusts commanded last.
RLT_EXPORT(read_flight) const Reading* read_flight() {
  read(flight.parameters, flight.state, flight.tick, reading);
  return &reading;
}
RLT_EXPORT(commanded_thrusts) const float* commanded_thrusts() { return thrusts; }
// Return the length of a tick, s.
RLT_EXPORT(tick_s) float tick_s() {
  return static_cast<float>(Environment::kStepInterval_us * 1e-6);
}
