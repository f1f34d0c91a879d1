// The mode as PX4's commander knows it: registered, asked whether the vehicle may be armed in it,
// and what PX4's controllers do meanwhile.
#pragma once

#include <drivers/drv_hrt.h>
#include <px4_platform_common/log.h>
#include <stdint.h>
#include <string.h>
#include <uORB/topics/arming_check_reply.h>
#include <uORB/topics/arming_check_request.h>
#include <uORB/topics/register_ext_component_reply.h>
#include <uORB/topics/register_ext_component_request.h>
#include <uORB/topics/unregister_ext_component.h>
#include <uORB/topics/vehicle_control_mode.h>
#include <uORB/Subscription.hpp>
#if __has_include(<uORB/topics/setpoint_config.h>)
#include <uORB/topics/setpoint_config.h>
#define RLT_PX4_HAS_SETPOINT_CONFIG 1
#else
#define RLT_PX4_HAS_SETPOINT_CONFIG 0
#endif

#include "lasting_publication.h"

namespace rlt::px4 {

constexpr char kModeName[] = "RL Policy";
// Maximum time without a command to the motors: 50 ticks, as old as a position may be. PX4 of
// 2026-08-13 has the field and no code that reads it; docs/flight.md says what happens there.
constexpr uint16_t kMaxSilence_ms = 100;

class CommanderMode {
 public:
  enum class Question { none, arming_check, forgotten };

  int id() const { return mode_id_; }  // -1 where the commander has given none
  bool is_selected(int nav_state) const { return mode_id_ >= 0 && nav_state == mode_id_; }

  // Ask for the mode, again each second until the commander has given it.
  void ask() {
    hear();
    const uint64_t now_us = hrt_absolute_time();
    if (mode_id_ >= 0 || (registered_us_ != 0 && now_us - registered_us_ < kAgain_us)) return;
    registered_us_ = now_us;
    // Not that of another start: its answer may still be there.
    if (request_id_ == 0) request_id_ = now_us;
    request_ = {};
    request_.timestamp = now_us;
    request_.request_id = request_id_;
    strncpy(request_.name, kModeName, sizeof(request_.name) - 1);
    request_.px4_ros2_api_version = register_ext_component_request_s::LATEST_PX4_ROS2_API_VERSION;
    request_.register_arming_check = true;
    request_.register_mode = true;
    request_pub_.publish(request_);
  }

  // Give the mode back, in every tick until the module ends: the commander's answer may still be on
  // its way.
  void give_back() {
    hear();
    if (mode_id_ < 0) return;
    unregister_ext_component_s message{};
    message.timestamp = hrt_absolute_time();
    strncpy(message.name, kModeName, sizeof(message.name) - 1);
    message.arming_check_id = static_cast<int8_t>(arming_check_id_);
    message.mode_id = static_cast<int8_t>(mode_id_);
    message.mode_executor_id = -1;
    unregister_pub_.publish(message);
    mode_id_ = arming_check_id_ = -1;
  }

  // Configure the mode: PX4's controllers rest in it, and the motors are ours.
  void configure() {
#if RLT_PX4_HAS_SETPOINT_CONFIG
    setpoint_config_s message{};
    message.timestamp = hrt_absolute_time();
    message.source_id = static_cast<uint8_t>(mode_id_);
    message.type = setpoint_config_s::TYPE_DIRECT_ACTUATORS;
    message.should_apply = true;
    message.timeout_ms = kMaxSilence_ms;
#else
    vehicle_control_mode_s message{};
    message.timestamp = hrt_absolute_time();
    message.source_id = static_cast<uint8_t>(mode_id_);
    // So that the land detector takes low thrust for landing only where a descent was commanded.
    message.flag_control_climb_rate_enabled = true;
#endif
    configure_pub_.publish(message);
  }

  // Return whether the commander asks for the arming check. One that has forgotten the mode is
  // asked for it again.
  Question question() {
    if (mode_id_ < 0 || !check_sub_.update(&check_)) return Question::none;
    if (counts(check_, arming_check_id_, 0)) return Question::arming_check;
    mode_id_ = arming_check_id_ = -1;
    request_id_ = 0;
    return Question::forgotten;
  }
  void answer(bool may_be_flown) {
    reply_ = {};
    reply_.timestamp = hrt_absolute_time();
    reply_.request_id = check_.request_id;
    reply_.registration_id = static_cast<uint8_t>(arming_check_id_);
    reply_.health_component_index = arming_check_reply_s::HEALTH_COMPONENT_INDEX_NONE;
    reply_.can_arm_and_run = may_be_flown;
    reply_.mode_req_angular_velocity = true;
    reply_.mode_req_attitude = true;
    reply_.mode_req_local_alt = true;
    reply_.mode_req_local_position = true;
    reply_.mode_req_prevent_arming = true;  // no policy takes off
    reply_pub_.publish(reply_);
  }

 private:
  static constexpr uint32_t kAgain_us = 1000000;

  void hear() {
    while (registration_sub_.update(&registration_)) {
      if (registration_.request_id != request_id_ || mode_id_ >= 0) continue;
      if (!registration_.success) continue;
      mode_id_ = registration_.mode_id;
      arming_check_id_ = registration_.arming_check_id;
      configure();
      PX4_INFO("mode %d, arming check %d", mode_id_, arming_check_id_);
    }
  }

  // Return whether a registration counts. Older versions of PX4 do not say which do.
  template <class Check>
  static auto counts(const Check& check, int id, int)
      -> decltype(check.valid_registrations_mask, true) {
    return (check.valid_registrations_mask & (1u << id)) != 0;
  }
  template <class Check>
  static bool counts(const Check&, int, long) {
    return true;
  }

  int mode_id_ = -1, arming_check_id_ = -1;
  uint64_t registered_us_ = 0, request_id_ = 0;

  // Messages are members: a work queue's stack is small.
  arming_check_reply_s reply_{};
  arming_check_request_s check_{};
  register_ext_component_reply_s registration_{};
  register_ext_component_request_s request_{};

  uORB::Subscription check_sub_{ORB_ID(arming_check_request)};
  uORB::Subscription registration_sub_{ORB_ID(register_ext_component_reply)};

  LastingPublication<arming_check_reply_s> reply_pub_{ORB_ID(arming_check_reply)};
  LastingPublication<register_ext_component_request_s> request_pub_{
      ORB_ID(register_ext_component_request)};
  LastingPublication<unregister_ext_component_s> unregister_pub_{ORB_ID(unregister_ext_component)};
#if RLT_PX4_HAS_SETPOINT_CONFIG
  LastingPublication<setpoint_config_s> configure_pub_{ORB_ID(setpoint_config)};
#else
  LastingPublication<vehicle_control_mode_s> configure_pub_{ORB_ID(config_control_setpoints)};
#endif
};

}  // namespace rlt::px4
