// A PX4 in a test's hands: what its estimator publishes comes in, actuator_motors goes out, and the
// module in between is the one that ships. The interfaces are those of px4_interface.h.
#include <string>

#define RLT_PX4_FOLDER folder_of_test().c_str()
static std::string& folder_of_test() {
  static std::string folder;
  return folder;
}
#include "rlt_policy_module.cpp"
#include "rlt_policy_shell.cpp"

namespace {

using px4_test::publish;
using px4_test::Topic;

constexpr uint8_t kOurMode = 23, kHold = 4;

int command(const char* word) {
  std::string name = "rlt_policy", text = word;
  char* arguments[] = {name.data(), text.data()};
  return rlt_policy_main(2, arguments);
}

}  // namespace

// The module's mode, which is private: an explicit instantiation may name it.
auto& mode_of(RltPolicy& module);
template <auto Member>
struct Reach {
  friend auto& mode_of(RltPolicy& module) { return *(module.*Member); }
};
template struct Reach<&RltPolicy::mode_>;

extern "C" {

struct Measured {
  float rates[3];                  // FRD, rad/s
  float q[4];                      // w, x, y, z, from FRD to NED
  float position[3], velocity[3];  // NED
  float heading;                   // clockwise from north, rad
};

// Starts the module with the policies of a folder on a vehicle with these CA_ROTORn_PX, _PY, _KM.
// True where PX4 may select its mode.
bool flight_start(const char* folder, const float* rotors, int heading) {
  folder_of_test() = folder;
  for (int i = 0; i < 12; i++) px4_test::rotors[i / 3][i % 3] = rotors[i];
  ParamInt<px4::params::RLT_HEADING>::value = heading;
  publish(vehicle_status_s{0, vehicle_status_s::ARMING_STATE_DISARMED, kHold, 1, 1});
  return command("start") == 0;
}
void flight_register() {
  const uint64_t request = Topic<register_ext_component_request_s>::message.request_id;
  publish(register_ext_component_reply_s{0, request, true, 2, kOurMode});
}
// What the arming check says of the mode, in the tick behind the next.
void flight_ask() {
  arming_check_request_s request{};
  request.request_id = 1;
#if RLT_PX4_HAS_DESCRIPTOR
  request.valid_registrations_mask = 1u << 2;
#endif
  publish(request);
}
bool flight_may_be_selected() { return Topic<arming_check_reply_s>::message.can_arm_and_run; }

void flight_select(bool is_ours) {
  const uint8_t arming =
      is_ours ? vehicle_status_s::ARMING_STATE_ARMED : vehicle_status_s::ARMING_STATE_DISARMED;
  publish(vehicle_land_detected_s{0, !is_ours, !is_ours, !is_ours});
  publish(vehicle_status_s{0, arming, is_ours ? kOurMode : kHold, 1, 1});
}

// Not while it is armed.
void flight_stop() {
  flight_select(false);
  px4_usleep(2000);
  command("stop");
}

// A tick, 2 ms after the last. `motors` (4): of PX4's numbers. True where the policy gave them.
bool flight_tick(const Measured* m, float* motors) {
  const uint64_t now_us = px4_test::now_us;
  publish(vehicle_angular_velocity_s{now_us, now_us, {m->rates[0], m->rates[1], m->rates[2]}});
  publish(vehicle_attitude_s{now_us, now_us, {m->q[0], m->q[1], m->q[2], m->q[3]}});
  vehicle_local_position_s position{};
  position.timestamp = position.timestamp_sample = now_us;
  position.xy_valid = position.z_valid = position.v_xy_valid = position.v_z_valid = true;
  position.x = m->position[0];
  position.y = m->position[1];
  position.z = m->position[2];
  position.vx = m->velocity[0];
  position.vy = m->velocity[1];
  position.vz = m->velocity[2];
  position.heading = m->heading;
  position.dist_bottom_valid = true;
  position.dist_bottom = -m->position[2];  // the ground is at 0
  publish(position);
  const unsigned commands = Topic<vehicle_command_s>::generation;
  const unsigned before = Topic<actuator_motors_s>::generation;
  px4_usleep(2000);
  for (int i = 0; i < 4; i++) motors[i] = Topic<actuator_motors_s>::message.control[i];
  return Topic<actuator_motors_s>::generation == before + 1 &&
         Topic<vehicle_command_s>::generation == commands;
}

bool flight_observation(float* observation) {
#if RLT_PX4_HAS_DESCRIPTOR
  RltPolicy& module = *ModuleBase::get_instance<RltPolicy>(RltPolicy::desc);
#else
  RltPolicy& module = *ModuleBase<RltPolicy>::get_instance();
#endif
  for (int i = 0; i < 13; i++) observation[i] = mode_of(module).observation()[i];
  return true;
}
}
