// A PX4 in a test's hands, which runs the module of integrations/px4: for one test program.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define RLT_PX4_FOLDER folder_of_test().c_str()
static std::string& folder_of_test() {
  static std::string folder;
  return folder;
}
#include "px4_policies.h"
#include "rlt_policy_module.cpp"
#include "rlt_policy_shell.cpp"

using namespace px4_policies;
using px4_test::publish;
using px4_test::Topic;

namespace {

constexpr std::uint8_t kExternal1 = 23, kHold = 4;

int command(std::vector<std::string> words) {
  words.insert(words.begin(), "rlt_policy");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return rlt_policy_main(static_cast<int>(arguments.size()), arguments.data());
}
int command(const char* word) { return command(std::vector<std::string>{word}); }

// A PX4 with a vehicle that hovers; it has started the module.
struct Px4 {
  std::string name;
  vehicle_status_s status{};
  bool rates_come = true;
  std::uint32_t noise = 1;
  std::uint8_t requests = 0;

  explicit Px4(const std::vector<std::pair<const char*, Image>>& files = {
                   {"policy.rltp", image_of(1)}}) {
    char place[] = "/tmp/rlt_px4_XXXXXX";
    name = mkdtemp(place);
    folder_of_test() = name;
    for (const auto& [file, image] : files) write(file, image);
    status.arming_state = vehicle_status_s::ARMING_STATE_DISARMED;
    status.nav_state = kHold;
    status.system_id = 7;
    status.component_id = 1;
    px4_test::speaks_to_ground = false;
    REQUIRE(command("start") == 0);
    REQUIRE(::px4::ScheduledWorkItem::interval_us == 2000);
    publish(status);
    ticks(1);
  }
  ~Px4() {
    set(false, kHold, 1);
    if (::px4::ScheduledWorkItem::scheduled != nullptr) command("stop");
    std::filesystem::remove_all(name);
  }
  void write(const char* file, const Image& image) const {
    std::ofstream stream(name + "/" + file, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(image.data()),
                 static_cast<std::streamsize>(image.size()));
  }
  Image read(const char* file) const {
    std::ifstream stream(name + "/" + file, std::ios::binary);
    return Image(std::istreambuf_iterator<char>(stream), {});
  }
  void ticks(int count) {
    for (int i = 0; i < count; i++) {
      measure();
      px4_usleep(2000);
    }
  }
  void measure() {
    const std::uint64_t taken_us = px4_test::now_us;
    noise = noise * 1664525u + 1013904223u;
    const float rate = 1e-3f * static_cast<float>(noise % 1000);
    if (rates_come) publish(vehicle_angular_velocity_s{taken_us, taken_us, {rate, -rate, rate}});
    publish(vehicle_attitude_s{taken_us, taken_us, {1, 0, 0, 0}});
    publish(position());
  }
  // Where it hovers.
  static vehicle_local_position_s position() {
    vehicle_local_position_s result{};
    result.timestamp = px4_test::now_us;  // and no timestamp_sample
    result.xy_valid = result.z_valid = result.v_xy_valid = result.v_z_valid = true;
    result.z = -2.0f;
    result.dist_bottom_valid = true;
    result.dist_bottom = 2.0f;
    return result;
  }
  // The commander's answer to a registration.
  void accept_registration(std::int8_t mode = kExternal1) {
    const auto& request = Topic<register_ext_component_request_s>::message;
    publish(register_ext_component_reply_s{0, request.request_id, true, 2, mode});
    ticks(1);
  }
  arming_check_reply_s ask(std::uint32_t registrations = 1u << 2) {
    arming_check_request_s request{};
    request.request_id = ++requests;
#if RLT_PX4_HAS_DESCRIPTOR
    request.valid_registrations_mask = registrations;
#else
    (void)registrations;
#endif
    publish(request);
    ticks(1);
    return Topic<arming_check_reply_s>::message;
  }
  void ground(bool contact, bool maybe, bool landed) {
    publish(vehicle_land_detected_s{px4_test::now_us, contact, maybe, landed});
  }
  // An armed vehicle is in the air here, if not said otherwise.
  void set(bool armed, std::uint8_t mode, int ticks_after = 0) {
    ground(!armed, !armed, !armed);
    set_on_ground(armed, mode, ticks_after);
  }
  void set_on_ground(bool armed, std::uint8_t mode, int ticks_after = 0) {
    status.arming_state =
        armed ? vehicle_status_s::ARMING_STATE_ARMED : vehicle_status_s::ARMING_STATE_DISARMED;
    status.nav_state = mode;
    publish(status);
    ticks(ticks_after);
  }
  void fly() { register_and_set(true, kExternal1, 5); }
  void register_and_set(bool armed, std::uint8_t mode, int ticks_after) {
    accept_registration();
    set(armed, mode, ticks_after);
  }
  // A tick with this message behind those of the sensors.
  template <class Message>
  void tick_with(const Message& message) {
    measure();
    publish(message);
    px4_usleep(2000);
  }
};

unsigned motor_messages() { return Topic<actuator_motors_s>::generation; }
std::array<float, 4> thrusts() {
  const float* control = Topic<actuator_motors_s>::message.control;
  return {control[0], control[1], control[2], control[3]};
}
unsigned fallbacks() { return Topic<vehicle_command_s>::generation; }
unsigned registrations() { return Topic<register_ext_component_request_s>::generation; }
unsigned answers() { return Topic<arming_check_reply_s>::generation; }
bool log_has(const char* text) {
  return std::string(px4_test::log).find(text) != std::string::npos;
}

}  // namespace
