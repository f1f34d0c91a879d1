// The flight mode of integrations/px4 without PX4: frames, rotors, limits, faults, files.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "policy_files.h"
#include "policy_mode.h"
#include "px4_policies.h"

using namespace rlt;
using namespace rlt::px4;
using namespace px4_policies;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// "Generic Quadcopter" of PX4: airframe 4001.
constexpr Rotor kGenericX[4] = {{1, 1, 0.05f}, {-1, -1, 0.05f}, {1, -1, -0.05f}, {-1, 1, -0.05f}};
using Mode = PolicyMode<Generic>;
using Vector = std::array<double, 3>;

void push(Mode& mode, const Image& image) {
  auto& deployment = mode.deployment();
  REQUIRE(deployment.stage() == SlotError::none);
  REQUIRE(deployment.write(0, image.data(), static_cast<std::uint32_t>(image.size())) ==
          SlotError::none);
  REQUIRE(deployment.finish().accepted());
}
void install(Mode& mode, const Image& image) {
  push(mode, image);
  REQUIRE(mode.deployment().start_trial(0, 1000) == SlotError::none);
  REQUIRE(mode.deployment().confirm(0) == SlotError::none);
}

constexpr double kEast = vehicles::kHalfPi;

// A vehicle that hovers where it is, its nose to the east: measurements that are well, new in every
// tick.
struct Vehicle {
  std::unique_ptr<Mode> mode;
  Inputs in;
  std::uint32_t noise = 1;

  explicit Vehicle(const ModeSettings& settings = {}, const Image& image = image_of(1))
      : mode(new Mode(settings)) {
    if (!image.empty()) install(*mode, image);
    CHECK(mode->set_rotors(kGenericX, 4, false));
    in.now_us = 10000000;
    in.is_armed = in.is_selected = in.is_in_air = true;
    turn_to(kEast);
    in.position.is_valid = true;
    in.position.ned_m[0] = 1.0f;
    in.position.ned_m[1] = -2.0f;
    in.position.ned_m[2] = -3.0f;
    in.position.above_ground_m = 3.0f;
    measure();
  }
  void measure() {
    in.now_us += 2000;
    in.rates.taken_us = in.now_us - 500;
    in.attitude.taken_us = in.now_us - 1000;
    in.position.taken_us = in.now_us - 5000;
    noise = noise * 1664525u + 1013904223u;
    for (float& rate : in.rates.frd_rad_s) rate = 1e-3f * static_cast<float>(noise % 1000);
  }
  Command tick() {
    measure();
    return mode->update(in);
  }
  void fly(int ticks) {
    for (int i = 0; i < ticks; i++) {
      const Command command = tick();
      REQUIRE(command.has_motors);
      REQUIRE(!command.asks_for_fallback);
    }
  }
  void leave() {
    in.is_selected = false;
    CHECK(!tick().has_motors);
  }
  void enter(int ticks) {
    in.is_selected = true;
    fly(ticks);
  }
  void turn_to(double yaw) {
    in.attitude.q[0] = static_cast<float>(std::cos(yaw / 2));
    in.attitude.q[3] = static_cast<float>(std::sin(yaw / 2));
    in.position.heading_rad = static_cast<float>(yaw);
  }
  // The next sample has the bits of the last one.
  Command tick_frozen() {
    const Rates rates = in.rates;
    measure();
    for (int axis = 0; axis < 3; axis++) in.rates.frd_rad_s[axis] = rates.frd_rad_s[axis];
    return mode->update(in);
  }
};

bool is_safe(const Command& command, float thrust = 0.4f) {
  for (const float motor : command.motors) {
    if (motor != doctest::Approx(thrust)) return false;
  }
  return command.has_motors;
}

}  // namespace

// 13-64-64-4, whose policy may be handed this.
Image stating(const EntryEnvelope& entry) {
  return entry_images::with_entry(image_of_network(network_of(1)), entry);
}

// -- frames ---------------------------------------------------------------------------------------

TEST_CASE("in the world along the heading a level vehicle has no rotation") {
  for (float heading = -3.0f; heading < 3.1f; heading += 0.5f) {
    Vehicle vehicle({{}, true, 0.4f});
    vehicle.turn_to(static_cast<double>(heading));
    vehicle.in.position.ned_m_s[0] = std::cos(heading);  // forward
    vehicle.in.position.ned_m_s[1] = std::sin(heading);
    vehicle.fly(1);
    const float* seen = vehicle.mode->observation();
    CHECK(seen[3] == doctest::Approx(1.0).epsilon(1e-5));
    CHECK(seen[4] == doctest::Approx(0.0).scale(1).epsilon(1e-5));
    CHECK(seen[6] == doctest::Approx(1.0).epsilon(1e-5));
    CHECK(seen[9] == doctest::Approx(0.0).scale(1).epsilon(1e-5));
    // and stays where it was at entry
    vehicle.turn_to(static_cast<double>(heading) - 0.3);
    vehicle.fly(1);
    CHECK(seen[9] ==
          doctest::Approx(std::sin(0.15)).epsilon(1e-4));  // to the left, seen from above
  }
}

TEST_CASE("what the policy sees: every channel with its sign") {
  Vehicle vehicle;
  vehicle.fly(1);
  vehicle.turn_to(0.0);
  // 0.1 m north, 0.2 m east, 0.3 m down of the target
  vehicle.in.position.ned_m[0] += 0.1f;
  vehicle.in.position.ned_m[1] += 0.2f;
  vehicle.in.position.ned_m[2] += 0.3f;
  const float velocity[3] = {1.0f, 2.0f, -3.0f};
  for (int i = 0; i < 3; i++) vehicle.in.position.ned_m_s[i] = velocity[i];
  vehicle.measure();
  const float rates[3] = {0.5f, 0.6f, 0.7f};
  for (int i = 0; i < 3; i++) vehicle.in.rates.frd_rad_s[i] = rates[i];
  REQUIRE(vehicle.mode->update(vehicle.in).has_motors);
  const double half = std::sqrt(0.5);  // nose to the north: a quarter turn left of east
  const double expected[13] = {0.2, 0.1, -0.3, 2, 1, 3, half, 0, 0, half, 0.5, -0.6, -0.7};
  for (int i = 0; i < 13; i++) {
    INFO(Contract::kObservations[i].name);
    CHECK(vehicle.mode->observation()[i] == doctest::Approx(expected[i]).epsilon(1e-5).scale(1));
  }
}

TEST_CASE("the yaw to hold is led to the east the shorter way, from where the vehicle points") {
  const double step = 0.5 * static_cast<double>(kLead_rad_s) * 2e-3;  // of half the angle
  for (double heading = -3.0; heading < 3.1; heading += 0.5) {
    Vehicle vehicle;
    vehicle.turn_to(heading);
    vehicle.fly(1);
    const float* seen = vehicle.mode->observation();
    const auto half_turn = [seen] { return std::atan2(double{seen[9]}, double{seen[6]}); };
    CHECK(std::fabs(half_turn()) < 1.01 * step);  // nothing to turn at first
    double most = 0.0, before = half_turn();
    const double away = std::remainder(kEast - heading, 4.0 * kEast);
    const int ticks = static_cast<int>(std::fabs(away) / (2.0 * step));
    for (int tick = 0; tick < ticks + 2; tick++) {
      if (tick == ticks / 2) {  // and where it is told to stay, it stays
        vehicle.mode->hold_heading(true);
        vehicle.fly(3);
        CHECK(half_turn() == before);
        vehicle.mode->hold_heading(false);
      }
      vehicle.fly(1);
      most = std::fmax(most, std::fabs(half_turn() - before));
      before = half_turn();
    }
    CHECK(most < 1.01 * step);
    // The vehicle has not followed.
    CHECK(half_turn() == doctest::Approx(0.5 * away).epsilon(1e-4).scale(1));
  }
}

// -- rotors ---------------------------------------------------------------------------------------

TEST_CASE("the contract's rotors are PX4's motors of the same place and direction") {
  const float actions[4] = {-1.0f, -0.5f, 0.0f, 0.5f};
  Vehicle vehicle({}, constant_image(actions));
  const Command command = vehicle.tick();
  const float thrusts[4] = {0.0f, 0.5f, 0.75f, 0.25f};
  for (int i = 0; i < 4; i++) CHECK(command.motors[i] == thrusts[i]);
  CHECK(command.collective == 0.375f);
  CHECK(command.taken_us == vehicle.in.rates.taken_us);
}

TEST_CASE("armed, the vehicle keeps the rotors that it had") {
  Rotor swapped[4] = {kGenericX[1], kGenericX[0], kGenericX[2], kGenericX[3]};
  Rotor wrong[4] = {kGenericX[0], kGenericX[1], kGenericX[2], kGenericX[3]};
  wrong[0].moment = -wrong[0].moment;
  const float actions[4] = {-1.0f, -0.5f, 0.0f, 0.5f};
  Vehicle vehicle({}, constant_image(actions));
  Mode& mode = *vehicle.mode;
  for (const Rotor* other : {swapped, wrong}) {
    vehicle.in.is_selected = false;
    CHECK(!mode.set_rotors(other, 4, true));
    vehicle.tick();
    CHECK(mode.refusal() == Reason::rotors_differ);
    CHECK(mode.set_rotors(kGenericX, 4, true));
    vehicle.enter(1);
    CHECK(!mode.set_rotors(other, 4, true));  // it acts: with those that it has
    const Command command = vehicle.tick();
    CHECK(mode.refusal() == Reason::none);
    CHECK(command.motors[1] == 0.5f);
    CHECK(command.motors[0] == 0.0f);
  }
  // Those of the last time that it was not armed, if they were the contract's.
  CHECK(!mode.set_rotors(wrong, 4, false));
  CHECK(!mode.set_rotors(kGenericX, 4, true));
  CHECK(mode.set_rotors(swapped, 4, false));
  CHECK(!mode.set_rotors(kGenericX, 4, true));
  CHECK(mode.set_rotors(swapped, 4, true));
  CHECK(vehicle.tick().motors[1] == 0.0f);
}

// -- what the policy may be handed ----------------------------------------------------------------

namespace {

constexpr EntryEnvelope kEntry = {5.0f, 2.0f, 0.5f, 3.0f, 1.5f};

struct Entry {
  const char* name;
  Reason reason;
  void (*make)(Vehicle&);
};
const Entry kOutside[] = {
    {"too fast in the plane", Reason::too_fast,
     [](Vehicle& v) { v.in.position.ned_m_s[0] = -5.01f; }},
    {"too fast upwards and to the side", Reason::too_fast,
     [](Vehicle& v) { v.in.position.ned_m_s[1] = 3.0f, v.in.position.ned_m_s[2] = -4.01f; }},
    {"tilted, whatever its heading", Reason::too_tilted,
     [](Vehicle& v) {  // 0.51 rad about the body's x, behind a turn of 2 rad
       const double half = 0.255, yaw = 1.0;
       v.in.attitude.q[0] = static_cast<float>(std::cos(yaw) * std::cos(half));
       v.in.attitude.q[1] = static_cast<float>(std::cos(yaw) * std::sin(half));
       v.in.attitude.q[2] = static_cast<float>(std::sin(yaw) * std::sin(half));
       v.in.attitude.q[3] = static_cast<float>(std::sin(yaw) * std::cos(half));
     }},
    {"turning", Reason::turns_too_fast, [](Vehicle& v) { v.in.rates.frd_rad_s[2] = -3.01f; }},
    {"near the ground, measured", Reason::too_low,
     [](Vehicle& v) { v.in.position.above_ground_m = 0.49f; }},
    {"fast, and not as high as that needs", Reason::too_low,
     [](Vehicle& v) { v.in.position.above_ground_m = 1.49f, v.in.position.ned_m_s[0] = 5.0f; }},
    {"a target near the ground", Reason::too_low,
     [](Vehicle& v) {
       const float offset[3] = {0.0f, 0.0f, -2.0f};
       v.mode->set_offset(EntryOffset::pack(offset), v.in.now_us);
     }},
    {"a height that nobody knows", Reason::height_unknown,
     [](Vehicle& v) { v.in.position.above_ground_m = kNan; }},
    {"a target far away", Reason::too_far,
     [](Vehicle& v) {
       const float offset[3] = {1.5f, -1.33f, 0.0f};
       v.mode->set_offset(EntryOffset::pack(offset), v.in.now_us);
     }},
};

}  // namespace

TEST_CASE("outside of the envelope the mode is refused by name, and what enters it goes on") {
  for (const Entry& entry : kOutside) {
    INFO(entry.name);
    Vehicle vehicle({}, stating(kEntry));
    vehicle.leave();
    CHECK(vehicle.mode->refusal() == Reason::none);
    vehicle.measure();
    entry.make(vehicle);
    CHECK(!vehicle.mode->update(vehicle.in).has_motors);
    CHECK(vehicle.mode->refusal() == entry.reason);  // PX4 hears it before it is asked
    vehicle.in.is_selected = true;
    vehicle.measure();
    entry.make(vehicle);
    const Command command = vehicle.mode->update(vehicle.in);
    CHECK(is_safe(command));
    CHECK(command.asks_for_fallback);
    CHECK(vehicle.mode->fault() == entry.reason);
    CHECK(!vehicle.tick().asks_for_fallback);  // in 50 ms
    CHECK(vehicle.mode->fault() == entry.reason);

    Vehicle acting({}, stating(kEntry));
    acting.fly(3);
    acting.measure();
    entry.make(acting);
    CHECK(acting.mode->update(acting.in).has_motors);  // it was handed over before
    CHECK(acting.mode->fault() == Reason::none);
  }
}

TEST_CASE(
    "at its bounds the policy is handed the vehicle, on the ground and disarmed nobody asks") {
  Vehicle vehicle({}, stating(kEntry));
  vehicle.leave();
  const float offset[3] = {1.2f, 0.0f, 1.6f};  // 2 m
  vehicle.mode->set_offset(EntryOffset::pack(offset), vehicle.in.now_us);
  vehicle.measure();
  vehicle.in.position.ned_m_s[0] = 3.0f;
  vehicle.in.position.ned_m_s[1] = -4.0f;
  vehicle.in.position.above_ground_m = 1.5f;
  for (float& rate : vehicle.in.rates.frd_rad_s) rate = 0.0f;
  vehicle.in.rates.frd_rad_s[1] = 3.0f;
  vehicle.in.is_selected = true;
  CHECK(vehicle.mode->update(vehicle.in).has_motors);
  CHECK(vehicle.mode->fault() == Reason::none);

  Vehicle carried({}, stating(kEntry));
  carried.in.is_armed = carried.in.is_in_air = carried.in.is_selected = false;
  carried.in.position.ned_m_s[0] = 6.0f;
  carried.tick();
  CHECK(carried.mode->refusal() == Reason::none);
  carried.in.is_armed = true;
  carried.tick();
  CHECK(carried.mode->refusal() == Reason::on_ground);
}

TEST_CASE("an image that states no envelope is entered from rest; another policy, another one") {
  Vehicle vehicle({}, image_of_network(network_of(1)));
  CHECK(vehicle.tick().has_motors);
  vehicle.leave();
  vehicle.in.position.ned_m_s[0] = kEntryAtRest.speed_m_s + 0.01f;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::too_fast);
  push(*vehicle.mode, stating(kEntry));
  REQUIRE(vehicle.mode->deployment().start_trial(static_cast<std::uint32_t>(vehicle.in.now_us),
                                                 1000000) == SlotError::none);
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::none);
  CHECK(vehicle.mode->envelope().speed_m_s == kEntry.speed_m_s);
}

TEST_CASE("without a measured height it is that above where the land detector saw the ground") {
  Vehicle vehicle({}, stating(kEntry));
  LocalPosition& position = vehicle.in.position;
  position.above_ground_m = kNan;
  position.has_height = true;
  vehicle.in.is_selected = vehicle.in.is_in_air = false;
  position.ned_m[2] = -10.0f;  // a start on a hill
  vehicle.tick();
  vehicle.in.is_in_air = true;
  position.ned_m[2] = -10.45f;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::too_low);
  position.ned_m[2] = -10.95f;  // it turns, by up to a third of its bound
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::none);
  // The estimator's reset moves both.
  position.delta_m[2] = 20.0f;
  position.ned_m[2] += 20.0f;
  position.z_resets++;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::none);
  position.ned_m[2] += 0.5f;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::too_low);
  // Where one was missed, the ground may be anywhere.
  position.z_resets = static_cast<std::uint8_t>(position.z_resets + 2);
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::height_unknown);
  // What is measured comes first, and what PX4 does not take for valid is none.
  position.above_ground_m = 3.0f;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::none);
  position.above_ground_m = kNan;
  position.has_height = false;
  vehicle.in.is_in_air = false;
  vehicle.tick();
  vehicle.in.is_in_air = true;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::height_unknown);
}

TEST_CASE("moved sticks have Position asked for, each 50 ms, while the policy acts on") {
  Vehicle vehicle;
  vehicle.in.sticks_move = true;
  int asked = 0;
  for (int i = 0; i < 100; i++) {
    const Command command = vehicle.tick();
    CHECK(command.has_motors);
    CHECK(!command.asks_for_fallback);
    CHECK(command.asks_for_position == (i % 25 == 0));
    asked += command.asks_for_position;
  }
  CHECK(asked == 4);
  CHECK(vehicle.mode->fault() == Reason::none);
  vehicle.in.sticks_move = false;
  for (int i = 0; i < 100; i++) CHECK(!vehicle.tick().asks_for_position);
  // A fault's fallback does not wait for it, and then is what is asked for.
  vehicle.in.sticks_move = true;
  CHECK(vehicle.tick().asks_for_position);
  vehicle.in.position.is_valid = false;
  const Command command = vehicle.tick();
  CHECK(command.asks_for_fallback);
  CHECK(!command.asks_for_position);
  // Entered anew, it is asked for at once; outside of the mode never.
  vehicle.in.position.is_valid = true;
  vehicle.in.is_selected = false;
  CHECK(!vehicle.tick().asks_for_position);
  vehicle.in.is_selected = true;
  CHECK(vehicle.tick().asks_for_position);
}

// -- acting ---------------------------------------------------------------------------------------

TEST_CASE("the action is that of the image's policy, every tick") {
  const Image image = image_of(1);
  static PolicyRunner<520, 0, 32768> policy(policy_contract<Contract>());
  REQUIRE(policy.accept(Generic{}, image.data(), image.size()).accepted());
  Vehicle vehicle({}, image);
  float last = -1.0f;
  for (int i = 0; i < 500; i++) {
    const Command command = vehicle.tick();
    float action[4];
    REQUIRE(policy.act(Generic{}, vehicle.mode->observation(), action) ==
            ActionSource::from_policy);
    REQUIRE(command.motors[0] == action[0]);
    REQUIRE(command.motors[3] == action[1]);
    REQUIRE(command.motors[1] == action[2]);
    REQUIRE(command.motors[2] == action[3]);
    REQUIRE(action[0] != last);
    last = action[0];
  }
}

TEST_CASE("a call before the next tick is due sends nothing") {
  Vehicle vehicle;
  vehicle.fly(3);
  vehicle.in.now_us += 400;
  CHECK(!vehicle.mode->update(vehicle.in).has_motors);
  CHECK(vehicle.mode->fault() == Reason::none);
}

TEST_CASE("on the ground no rotor turns, whatever else is wrong, until the mode is entered anew") {
  for (const bool has_rates : {true, false}) {
    Vehicle vehicle;
    vehicle.in.is_in_air = false;
    vehicle.in.hover = {vehicle.in.now_us, 0.5f};
    vehicle.measure();
    if (!has_rates) vehicle.in.rates.taken_us = 0;
    const Command command = vehicle.mode->update(vehicle.in);
    CHECK(is_safe(command, 0.0f));
    CHECK(command.collective == 0.0f);
    CHECK(command.asks_for_fallback);
    CHECK(vehicle.mode->fault() == (has_rates ? Reason::on_ground : Reason::rates_missing));
    vehicle.in.is_in_air = true;  // thrown
    for (int i = 0; i < 20; i++) CHECK(is_safe(vehicle.tick(), 0.0f));
    vehicle.leave();
    CHECK(vehicle.mode->refusal() == Reason::none);
    vehicle.enter(10);
    vehicle.in.position.is_valid = false;
    vehicle.in.hover = {vehicle.in.now_us, 0.5f};
    CHECK(is_safe(vehicle.tick(), 0.5f));
  }
}

TEST_CASE("the ground refuses the mode to an armed vehicle only, and behind every other reason") {
  Vehicle vehicle;
  vehicle.in.is_selected = vehicle.in.is_in_air = vehicle.in.is_armed = false;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::none);  // PX4 does not arm in it
  vehicle.in.is_armed = true;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::on_ground);
  vehicle.in.position.is_valid = false;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::position_invalid);
}

TEST_CASE("a policy that touches the ground goes on: PX4 disarms a vehicle that has landed") {
  Vehicle vehicle;
  vehicle.fly(10);
  vehicle.in.is_in_air = false;
  vehicle.fly(10);
  CHECK(vehicle.mode->refusal() == Reason::none);
}

// -- faults ---------------------------------------------------------------------------------------

namespace {

struct Fault {
  const char* name;
  Reason reason;
  void (*make)(Vehicle&);
};
const Fault kFaults[] = {
    {"no rates", Reason::rates_missing, [](Vehicle& v) { v.in.rates.taken_us = 0; }},
    {"old rates", Reason::rates_stale,
     [](Vehicle& v) { v.in.rates.taken_us = v.in.now_us - 10001; }},
    {"rates of the future", Reason::rates_stale,
     [](Vehicle& v) { v.in.rates.taken_us = v.in.now_us + 10001; }},
    {"rates before the last ones", Reason::clock, [](Vehicle& v) { v.in.rates.taken_us -= 4000; }},
    {"infinite rate", Reason::not_finite, [](Vehicle& v) { v.in.rates.frd_rad_s[1] = kInfinity; }},
    {"spinning", Reason::out_of_range, [](Vehicle& v) { v.in.rates.frd_rad_s[2] = 35.1f; }},
    {"no attitude", Reason::attitude_missing, [](Vehicle& v) { v.in.attitude.taken_us = 0; }},
    {"old attitude", Reason::attitude_stale,
     [](Vehicle& v) { v.in.attitude.taken_us = v.in.now_us - 30001; }},
    {"no rotation", Reason::attitude_invalid, [](Vehicle& v) { v.in.attitude.q[0] = 0.9f; }},
    {"attitude is no number", Reason::attitude_invalid,
     [](Vehicle& v) { v.in.attitude.q[3] = kNan; }},
    {"no position", Reason::position_missing, [](Vehicle& v) { v.in.position.taken_us = 0; }},
    {"old position", Reason::position_stale,
     [](Vehicle& v) { v.in.position.taken_us = v.in.now_us - 100001; }},
    {"position not valid", Reason::position_invalid,
     [](Vehicle& v) { v.in.position.is_valid = false; }},
    {"position is no number", Reason::not_finite,
     [](Vehicle& v) { v.in.position.ned_m[2] = kNan; }},
    {"velocity is no number", Reason::not_finite,
     [](Vehicle& v) { v.in.position.ned_m_s[0] = -kInfinity; }},
    {"heading is no number", Reason::not_finite,
     [](Vehicle& v) { v.in.position.heading_rad = kNan; }},
    {"far from the target", Reason::out_of_range,
     [](Vehicle& v) { v.in.position.ned_m[0] += 5.1f; }},
    {"fast", Reason::out_of_range, [](Vehicle& v) { v.in.position.ned_m_s[2] = 10.1f; }},
    {"policy being loaded", Reason::loading, [](Vehicle& v) { v.in.is_loading = true; }},
};

}  // namespace

TEST_CASE("every fault: safe motors and the fallback in the tick that sees it, until PX4 leaves") {
  for (const Fault& fault : kFaults) {
    INFO(fault.name);
    Vehicle vehicle;
    vehicle.fly(10);
    const Inputs well = vehicle.in;
    vehicle.measure();
    fault.make(vehicle);
    const Command first = vehicle.mode->update(vehicle.in);
    CHECK(is_safe(first));
    CHECK(first.asks_for_fallback);
    CHECK(vehicle.mode->fault() == fault.reason);
    CHECK(vehicle.mode->refusal() == fault.reason);
    // it stays even where all is well again, and PX4 is asked again 20 times a second
    const std::uint64_t now_us = vehicle.in.now_us;
    vehicle.in = well;
    vehicle.in.now_us = now_us;
    int asked = 0;
    for (int i = 0; i < 500; i++) {
      const Command command = vehicle.tick();
      CHECK(is_safe(command));
      asked += command.asks_for_fallback;
    }
    CHECK(asked == 20);
    CHECK(vehicle.mode->refusal() == fault.reason);
    // PX4 leaves the mode: no motors of ours, and it may come back
    vehicle.leave();
    CHECK(vehicle.mode->refusal() == Reason::none);
    vehicle.enter(10);
  }
}

TEST_CASE("what is within the limits is no fault") {
  Vehicle vehicle;
  vehicle.fly(1);
  vehicle.measure();
  vehicle.in.rates.taken_us = vehicle.in.now_us - 2400;  // PX4's 400 Hz, and some
  vehicle.in.attitude.taken_us = vehicle.in.now_us - 30000;
  vehicle.in.position.taken_us = vehicle.in.now_us - 100000;
  vehicle.in.position.ned_m[0] += 4.9f;
  vehicle.in.rates.frd_rad_s[0] = -34.9f;
  CHECK(!vehicle.mode->update(vehicle.in).asks_for_fallback);
  CHECK(vehicle.mode->fault() == Reason::none);
}

TEST_CASE("faults on the ground refuse the mode, and no motor turns") {
  for (const Fault& fault : kFaults) {
    if (fault.reason == Reason::clock || fault.reason == Reason::out_of_range) continue;
    INFO(fault.name);
    Vehicle vehicle;
    vehicle.in.is_armed = false;
    vehicle.tick();
    CHECK(vehicle.mode->refusal() == Reason::none);
    vehicle.measure();
    fault.make(vehicle);
    const Command command = vehicle.mode->update(vehicle.in);
    CHECK(!command.has_motors);
    CHECK(!command.asks_for_fallback);
    CHECK(vehicle.mode->refusal() == fault.reason);
  }
}

TEST_CASE("rates with the same bits are frozen; the same sample seen again is not") {
  Vehicle vehicle;
  vehicle.fly(1);
  for (int i = 0; i < 4; i++) {  // one sample seen five times, 8 ms old in the end
    vehicle.in.now_us += 2000;
    vehicle.in.attitude.taken_us = vehicle.in.position.taken_us = vehicle.in.now_us;
    CHECK(!vehicle.mode->update(vehicle.in).asks_for_fallback);
  }
  vehicle.fly(1);
  for (std::uint32_t i = 1; i <= kMaxEqualRates; i++) {
    CHECK(vehicle.tick_frozen().asks_for_fallback == (i == kMaxEqualRates));
  }
  CHECK(vehicle.mode->fault() == Reason::rates_frozen);
}

TEST_CASE("rates that were frozen and change again are well") {
  Vehicle vehicle;
  vehicle.in.is_selected = false;
  for (std::uint32_t i = 0; i <= kMaxEqualRates + 5; i++) vehicle.tick_frozen();
  CHECK(vehicle.mode->refusal() == Reason::rates_frozen);
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::none);
}

TEST_CASE("the mode that is entered anew begins as the first time") {
  Vehicle vehicle;
  vehicle.fly(10);
  vehicle.in.position.is_valid = false;
  CHECK(vehicle.tick().asks_for_fallback);
  vehicle.leave();
  CHECK(vehicle.mode->fault() == Reason::none);
  vehicle.in.is_selected = true;
  CHECK(vehicle.tick().asks_for_fallback);  // at once, not 50 ms after the last time
  vehicle.in.position.is_valid = true;
  // The time in between is no tick that was missed.
  vehicle.leave();
  vehicle.enter(10);
  vehicle.in.is_selected = false;
  for (int i = 0; i < 5000; i++) vehicle.tick();
  vehicle.enter(10);
  CHECK(vehicle.mode->deployment().executor().counts().missed == 0);
}

TEST_CASE("without a policy there is no mode") {
  Vehicle vehicle({}, {});
  CHECK(is_safe(vehicle.tick()));
  CHECK(vehicle.mode->refusal() == Reason::no_policy);
}

TEST_CASE("an output that is not finite: the policy is refused until another one comes") {
  Vehicle vehicle({}, overflowing_image());
  vehicle.fly(2);
  vehicle.in.position.ned_m[2] -= 4.95f;  // up
  const Command command = vehicle.tick();
  CHECK(is_safe(command));
  CHECK(command.asks_for_fallback);
  vehicle.in.is_selected = false;
  vehicle.in.position.ned_m[2] += 4.95f;
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::policy_failed);
  install(*vehicle.mode, image_of(2));
  vehicle.mode->policy_changed();
  vehicle.tick();
  CHECK(vehicle.mode->refusal() == Reason::none);
}

TEST_CASE("a candidate that fails is dropped, and the policy before it may act") {
  Vehicle vehicle;
  push(*vehicle.mode, overflowing_image());
  REQUIRE(vehicle.mode->deployment().start_trial(static_cast<std::uint32_t>(vehicle.in.now_us),
                                                 60000000) == SlotError::none);
  vehicle.fly(2);
  vehicle.in.position.ned_m[2] -= 4.95f;
  CHECK(is_safe(vehicle.tick()));
  CHECK(vehicle.mode->fault() == Reason::policy_failed);
  CHECK(vehicle.mode->deployment().slots().last_drop() == DropReason::fault);
  vehicle.leave();
  CHECK(vehicle.mode->refusal() == Reason::none);
}

TEST_CASE("a trial that ends in the air ends the mode; on the ground it is the old policy's turn") {
  for (const bool flies : {true, false}) {
    Vehicle vehicle;
    push(*vehicle.mode, image_of(2));
    vehicle.in.is_selected = flies;
    REQUIRE(vehicle.mode->deployment().start_trial(static_cast<std::uint32_t>(vehicle.in.now_us),
                                                   20000) == SlotError::none);
    for (int i = 0; i < 9; i++) CHECK(!vehicle.tick().asks_for_fallback);
    CHECK(vehicle.mode->deployment().is_in_trial());
    const Command command = vehicle.tick();
    CHECK(!vehicle.mode->deployment().is_in_trial());
    CHECK(command.asks_for_fallback == flies);
    CHECK(vehicle.mode->refusal() == (flies ? Reason::trial_over : Reason::none));
  }
}

TEST_CASE("the safe thrust is a setting within 0 and 1") {
  for (const float thrust : {-1.0f, 0.25f, 2.0f}) {
    Vehicle vehicle({{}, false, thrust}, {});
    CHECK(is_safe(vehicle.tick(), std::fmin(1.0f, std::fmax(0.0f, thrust))));
  }
}

TEST_CASE("after a fault the rotors get the thrust of hover, where PX4 has estimated it lately") {
  const auto given = [](const HoverThrust& hover, std::uint64_t later_us = 0) {
    Vehicle vehicle;
    vehicle.fly(10);
    vehicle.in.hover = hover;
    vehicle.in.hover.taken_us += hover.taken_us == 0 ? 0 : vehicle.in.now_us;
    vehicle.in.position.is_valid = false;
    vehicle.in.now_us += later_us;
    const Command command = vehicle.tick();
    CHECK(command.collective == doctest::Approx(command.motors[0]));
    CHECK(is_safe(command, command.motors[0]));
    return command.motors[0];
  };
  CHECK(given({1, 0.49f}) == 0.49f);
  CHECK(given({1, 0.1f}) == 0.1f);
  CHECK(given({1, 0.9f}) == 0.9f);
  CHECK(given({1, 0.49f}, 997000) == 0.49f);
  CHECK(given({1, 0.49f}, 999000) == 0.4f);  // a second old
  CHECK(given({1000000, 0.49f}) == 0.4f);    // of the future
  CHECK(given({0, 0.49f}) == 0.4f);          // there is none
  for (const float part : {0.09f, 0.91f, -0.49f, kNan, kInfinity}) CHECK(given({1, part}) == 0.4f);
}

TEST_CASE("the thrust of hover follows PX4's estimate while the fault lasts") {
  Vehicle vehicle;
  vehicle.fly(10);
  vehicle.in.position.is_valid = false;
  CHECK(is_safe(vehicle.tick()));
  vehicle.in.hover = {vehicle.in.now_us, 0.55f};
  CHECK(is_safe(vehicle.tick(), 0.55f));
  for (int i = 0; i < 501; i++) vehicle.tick();
  CHECK(is_safe(vehicle.tick()));
}

TEST_CASE("a storm: motors are always finite and within 0 and 1") {
  Vehicle vehicle;
  std::uint32_t random = 7;
  int acted = 0, faults = 0;
  for (int i = 0; i < 20000; i++) {
    vehicle.measure();
    const Inputs well = vehicle.in;
    random = random * 1664525u + 1013904223u;
    if ((random >> 8) % 16 == 0) kFaults[(random >> 16) % std::size(kFaults)].make(vehicle);
    vehicle.in.is_selected = (random >> 24) % 8 != 0;
    const Command command = vehicle.mode->update(vehicle.in);
    for (const float motor : command.motors) REQUIRE((motor >= 0.0f && motor <= 1.0f));
    REQUIRE(command.has_motors <= vehicle.in.is_selected);
    acted += command.has_motors && vehicle.mode->fault() == Reason::none;
    faults += vehicle.mode->fault() != Reason::none;
    const std::uint64_t now_us = vehicle.in.now_us;
    vehicle.in = well;
    vehicle.in.now_us = now_us;
  }
  CHECK(acted > 2000);
  CHECK(faults > 2000);
}

// -- the target -----------------------------------------------------------------------------------

namespace {

float error(const Vehicle& vehicle, int ned_axis) {
  const float* seen = vehicle.mode->observation();
  return ned_axis == 0 ? seen[1] : ned_axis == 1 ? seen[0] : -seen[2];
}

}  // namespace

TEST_CASE("the target is where the mode was entered, then the setpoint") {
  Vehicle vehicle;
  vehicle.in.setpoint = {vehicle.in.now_us, {9.0f, 9.0f, 9.0f}};  // from before
  vehicle.fly(3);
  for (int axis = 0; axis < 3; axis++) CHECK(error(vehicle, axis) == 0.0f);
  vehicle.in.setpoint = {vehicle.in.now_us, {2.0f, kNan, -4.5f}};
  vehicle.fly(1);
  CHECK(error(vehicle, 0) == -1.0f);
  CHECK(error(vehicle, 1) == 0.0f);
  CHECK(error(vehicle, 2) == 1.5f);
  vehicle.fly(400);  // it is held when no more come
  CHECK(error(vehicle, 0) == -1.0f);
  CHECK(vehicle.mode->refused_setpoints() == 0);
}

TEST_CASE("an offset says where the next target is, seen from the vehicle, once") {
  for (const bool turns : {false, true}) {
    for (float heading = -3.0f; heading < 3.1f; heading += 0.7f) {
      Vehicle vehicle({{}, turns, 0.4f});
      vehicle.in.position.heading_rad = heading;
      vehicle.leave();
      const float offset[3] = {1.25f, -0.504f, 2.0f};
      vehicle.mode->set_offset(EntryOffset::pack(offset), vehicle.in.now_us);
      vehicle.enter(1);
      // The vehicle is where the target is not.
      const float* seen = vehicle.mode->observation();
      const double led = turns ? 1e-5 : 2e-3;  // by a tick, to the east
      CHECK(seen[0] == doctest::Approx(-1.25).epsilon(led).scale(1));
      CHECK(seen[1] == doctest::Approx(0.50).epsilon(led).scale(1));
      CHECK(seen[2] == doctest::Approx(-2.0).epsilon(1e-5));
      // The vehicle moves to it, in the world: forward along the heading.
      const double along = static_cast<double>(heading);
      const Vector forward{std::cos(along), std::sin(along), 0};
      const Vector left{std::sin(along), -std::cos(along), 0};
      const float here[3] = {1.0f, -2.0f, -3.0f};
      for (std::size_t i = 0; i < 3; i++) {
        vehicle.in.position.ned_m[i] =
            here[i] + static_cast<float>(1.25 * forward[i] - 0.50 * left[i] - (i == 2 ? 2.0 : 0.0));
      }
      vehicle.fly(1);
      for (int i = 0; i < 3; i++) CHECK(std::abs(seen[i]) < 1e-5f);
      // Entered again, the target is where it is.
      vehicle.leave();
      for (int i = 0; i < 3; i++) vehicle.in.position.ned_m[i] = here[i];
      vehicle.enter(1);
      for (int i = 0; i < 3; i++) CHECK(seen[i] == 0.0f);
    }
  }
}

TEST_CASE("an offset waits ten seconds, and does not move the target that there is") {
  for (const bool is_old : {false, true}) {
    Vehicle vehicle;
    vehicle.fly(1);
    const float offset[3] = {1.0f, 0.0f, 0.0f};
    vehicle.mode->set_offset(EntryOffset::pack(offset), vehicle.in.now_us);
    vehicle.fly(1);
    const float* seen = vehicle.mode->observation();
    CHECK(seen[0] == 0.0f);
    vehicle.leave();
    vehicle.in.now_us += is_old ? 10000000 : 9900000;
    vehicle.enter(1);
    CHECK(seen[0] == (is_old ? 0.0f : doctest::Approx(-1.0)));
  }
}

TEST_CASE("offsets are packed to whole centimeters, and no further than 5 m") {
  for (int steps = -500; steps <= 500; steps++) {
    const float value = 0.01f * static_cast<float>(steps);
    const float offset[3] = {value, -value, 0.004f};
    float seen[3];
    EntryOffset::unpack(EntryOffset::pack(offset), seen);
    CHECK(seen[0] == value);
    CHECK(seen[1] == -value);
    CHECK(seen[2] == 0.0f);
  }
  for (const float far : {5.01f, -5.01f, 1e30f, kInfinity, -kInfinity, kNan}) {
    for (int i = 0; i < 3; i++) {
      float offset[3] = {};
      offset[i] = far;
      CHECK(EntryOffset::pack(offset) == 0);
    }
  }
  const float zero[3] = {};
  CHECK(EntryOffset::pack(zero) != 0);
  const float offset[3] = {-1.2f, 0.9f, 2.0f};
  CHECK(EntryOffset::distance_m(EntryOffset::pack(offset)) == doctest::Approx(2.5));
}

TEST_CASE("setpoints at their limits are followed, behind them not") {
  Vehicle vehicle({}, stating({10.0f, 2.5f, 1.0f, 5.0f, 1.0f}));
  vehicle.in.position.ned_m[0] = 1.0f;
  vehicle.fly(1);
  vehicle.in.setpoint = {vehicle.in.now_us, {kInfinity, -2.5f, kNan}};
  vehicle.fly(1);
  CHECK(error(vehicle, 0) == 0.0f);
  CHECK(error(vehicle, 1) == 0.5f);
  vehicle.measure();
  vehicle.in.setpoint = {vehicle.in.now_us - 500000, {3.5f, -2.0f, kNan}};  // 2.5 m
  vehicle.mode->update(vehicle.in);
  CHECK(error(vehicle, 0) == -2.5f);
  vehicle.measure();
  vehicle.in.setpoint = {vehicle.in.now_us - 500001, {1.0f, kNan, kNan}};
  vehicle.mode->update(vehicle.in);
  CHECK(error(vehicle, 0) == -2.5f);
  CHECK(vehicle.mode->refused_setpoints() == 0);
  vehicle.in.setpoint = {vehicle.in.now_us, {3.500001f, kNan, kNan}};
  vehicle.fly(1);
  CHECK(vehicle.mode->refused_setpoints() == 1);
  vehicle.in.setpoint = {vehicle.in.now_us, {3.0f, -0.4f, kNan}};  // it is a distance
  vehicle.fly(1);
  CHECK(vehicle.mode->refused_setpoints() == 2);
}

TEST_CASE("a reset of the estimator shifts the target once, and one from before the entry never") {
  for (const bool acts : {true, false}) {
    Vehicle vehicle({{}, true, 0.4f});
    vehicle.in.is_selected = acts;
    vehicle.tick();
    LocalPosition& position = vehicle.in.position;
    for (int axis = 0; axis < 3; axis++) {
      position.delta_m[axis] = 0.5f;
      position.ned_m[axis] += 0.5f;
    }
    position.delta_heading_rad = 0.25f;
    vehicle.turn_to(static_cast<double>(position.heading_rad) + 0.25);
    position.xy_resets++;
    position.z_resets++;
    position.heading_resets++;
    vehicle.tick();
    vehicle.enter(3);
    for (int i = 0; i < 3; i++) CHECK(std::fabs(vehicle.mode->observation()[i]) < 1e-6f);
    CHECK(std::fabs(vehicle.mode->observation()[9]) < 1e-6f);
  }
}

TEST_CASE("the target moves with the estimator's resets") {
  Vehicle vehicle;
  vehicle.fly(2);
  LocalPosition& position = vehicle.in.position;
  const float delta[3] = {4.0f, -6.0f, 7.0f};
  for (int axis = 0; axis < 3; axis++) {
    position.delta_m[axis] = delta[axis];
    position.ned_m[axis] += delta[axis];
  }
  position.xy_resets++;
  position.z_resets--;  // wraps: 255 were missed
  vehicle.fly(1);
  for (int axis = 0; axis < 3; axis++) CHECK(error(vehicle, axis) == 0.0f);
  position.ned_m[0] += 0.5f;
  position.ned_m[2] += 0.25f;
  vehicle.fly(1);
  CHECK(error(vehicle, 0) == 0.5f);
  CHECK(error(vehicle, 2) == 0.25f);
}

TEST_CASE("reasons have texts that fit a message to the ground") {
  std::map<std::string, int> texts;
  for (int i = 0; i < kReasonCount; i++) {
    const std::string text = reason_text(static_cast<Reason>(i));
    CHECK(text.size() <= 39);
    CHECK(text != "unknown reason");
    texts[text]++;
  }
  CHECK(texts.size() == kReasonCount);
}

// -- files ----------------------------------------------------------------------------------------

namespace {

// A folder whose power fails after so many changes, or whose card refuses one of them. Renaming
// takes the place of what is there, as some file systems have it.
struct Folder {
  std::map<std::string, Image> files;
  int changes_left = 1000;
  int refused_change = -1;
  std::size_t ends_at = 1000000;  // a byte that cannot be read

  bool change() { return refused_change-- != 0 && changes_left-- > 0; }
  bool exists(const char* name) { return files.count(name) != 0; }
  bool remove(const char* name) { return change() && files.erase(name) == 1; }
  bool rename(const char* from, const char* to) {
    if (!exists(from) || !change()) return false;
    files[to] = files[from];
    files.erase(from);
    return true;
  }
  template <class Take>
  bool read(const char* name, Take&& take) {
    if (!exists(name)) return false;
    const Image& image = files[name];
    for (std::size_t i = 0; i < image.size(); i += 100) {
      if (i >= ends_at) return false;
      const std::size_t end = image.size() < ends_at ? image.size() : ends_at;
      const std::size_t count = end - i < 100 ? end - i : 100;
      if (!take(static_cast<std::uint32_t>(i), image.data() + i,
                static_cast<std::uint32_t>(count))) {
        return false;
      }
    }
    return image.size() <= ends_at;
  }
};

Image acting(Mode& mode) {
  const SlotImage image = mode.deployment().slots().acting();
  return image.data == nullptr ? Image{} : Image(image.data, image.data + image.bytes);
}
Image after_start(Folder folder) {
  folder.changes_left = 1000;
  const auto mode = std::make_unique<Mode>(ModeSettings{});
  load_policy(folder, mode->deployment());
  return acting(*mode);
}

}  // namespace

TEST_CASE("at start policy.rltp acts, or else previous.rltp, or else none") {
  Folder folder;
  CHECK(after_start(folder).empty());
  folder.files["candidate.rltp"] = image_of(3);
  CHECK(after_start(folder).empty());  // it was never tried
  folder.files["previous.rltp"] = image_of(2);
  CHECK(after_start(folder) == image_of(2));
  folder.files["policy.rltp"] = image_of(1);
  CHECK(after_start(folder) == image_of(1));
  folder.files["policy.rltp"][700] ^= 1;
  CHECK(after_start(folder) == image_of(2));
}

TEST_CASE("the verdict says what is wrong with the file") {
  const auto verdict_of = [](const Image& image) {
    Folder folder;
    if (!image.empty()) folder.files["policy.rltp"] = image;
    const auto mode = std::make_unique<Mode>(ModeSettings{});
    return load_policy(folder, mode->deployment());
  };
  CHECK(!verdict_of({}).was_read);
  CHECK(verdict_of(image_of(1)).accepted());
  CHECK(verdict_of(slow_image()).image.verdict.reason == PolicyReason::other_contract);
  CHECK(verdict_of(Image(32769)).image.error == SlotError::too_large);
  Image damaged = image_of(1);
  damaged.back() ^= 1;
  CHECK(verdict_of(damaged).image.verdict.reason == PolicyReason::wrong_crc);
}

TEST_CASE("the verdict is that of policy.rltp where neither file is taken") {
  Folder folder;
  folder.files["policy.rltp"] = Image(32769);
  folder.files["previous.rltp"] = slow_image();
  const auto mode = std::make_unique<Mode>(ModeSettings{});
  CHECK(load_policy(folder, mode->deployment()).image.error == SlotError::too_large);
}

TEST_CASE("a file that cannot be read to its end is not tried, and the next one is") {
  Folder folder;
  Image longer = image_of(1);
  longer.resize(longer.size() + 200);  // its image is whole
  folder.files["candidate.rltp"] = longer;
  folder.ends_at = longer.size() - 200;
  const auto mode = std::make_unique<Mode>(ModeSettings{});
  const FileVerdict verdict = stage_file(folder, kCandidateFile, mode->deployment());
  CHECK(!verdict.accepted());
  CHECK(mode->deployment().start_trial(0, 1000) == SlotError::not_staged);
  folder.ends_at = 1000000;
  folder.files["candidate.rltp"] = image_of(2);
  CHECK(stage_file(folder, kCandidateFile, mode->deployment()).accepted());
}

TEST_CASE("a card that refuses a change leaves a policy that acts, and says so") {
  Folder before;
  before.files["policy.rltp"] = image_of(1);
  before.files["candidate.rltp"] = image_of(2);
  before.files["previous.rltp"] = image_of(3);
  for (int refused = 0; refused < 3; refused++) {  // remove, rename, rename
    Folder folder = before;
    folder.refused_change = refused;
    CHECK(!keep_candidate(folder));
    CHECK(after_start(folder) == image_of(1));
    CHECK(folder.files["candidate.rltp"] == image_of(2));
  }
  for (int refused = 0; refused < 2; refused++) {  // remove, rename
    Folder folder = before;
    folder.refused_change = refused;
    CHECK(!restore_previous(folder));
    CHECK(folder.files["previous.rltp"] == image_of(3));
    CHECK((folder.files.count("policy.rltp") == 1) == (refused == 0));
  }
}

TEST_CASE("after a power cut at any moment, the old or the new policy acts") {
  for (const bool has_previous : {false, true}) {
    Folder before;
    before.files["policy.rltp"] = image_of(1);
    before.files["candidate.rltp"] = image_of(2);
    if (has_previous) before.files["previous.rltp"] = image_of(3);
    for (int changes = 0; changes <= 4; changes++) {
      Folder folder = before;
      folder.changes_left = changes;
      const bool done = keep_candidate(folder);
      CHECK(done == (changes >= (has_previous ? 3 : 2)));
      CHECK(after_start(folder) == (done ? image_of(2) : image_of(1)));
      if (!done) continue;
      for (int more = 0; more <= 3; more++) {
        Folder back = folder;
        back.changes_left = more;
        CHECK(restore_previous(back) == (more >= 2));
        CHECK(after_start(back) == (more >= 1 ? image_of(1) : image_of(2)));
      }
    }
  }
  Folder first;
  CHECK(!keep_candidate(first));
  CHECK(!restore_previous(first));
  first.files["candidate.rltp"] = image_of(1);
  CHECK(keep_candidate(first));
  CHECK(after_start(first) == image_of(1));
}

TEST_CASE("a candidate that was replaced since it was tried is another one") {
  Folder folder;
  const Image image = image_of(1);
  const auto bytes = static_cast<std::uint32_t>(image.size());
  CHECK(!is_candidate(folder, image.data(), bytes));
  folder.files["candidate.rltp"] = image;
  CHECK(is_candidate(folder, image.data(), bytes));
  folder.files["candidate.rltp"].push_back(0);
  CHECK(!is_candidate(folder, image.data(), bytes));
  folder.files["candidate.rltp"].resize(image.size() - 1);
  CHECK(!is_candidate(folder, image.data(), bytes));
  folder.files["candidate.rltp"] = image_of(2);
  CHECK(!is_candidate(folder, image.data(), bytes));
}
