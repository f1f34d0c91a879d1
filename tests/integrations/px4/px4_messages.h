// PX4's messages, with the fields that the module uses; for px4_interface.h.
#pragma once

#include <stdint.h>

struct actuator_motors_s {
  uint64_t timestamp, timestamp_sample;
  uint16_t reversible_flags;
  float control[12];
};
struct arming_check_reply_s {
  static constexpr uint8_t HEALTH_COMPONENT_INDEX_NONE = 0;
  uint64_t timestamp;
  uint8_t request_id, registration_id, health_component_index, num_events;
  bool can_arm_and_run;
  bool mode_req_angular_velocity, mode_req_attitude, mode_req_local_alt, mode_req_local_position;
  bool mode_req_prevent_arming;
};
struct arming_check_request_s {
  uint64_t timestamp;
  uint8_t request_id;
#if RLT_PX4_HAS_DESCRIPTOR
  uint32_t valid_registrations_mask;
#endif
};
struct manual_control_setpoint_s {
  uint64_t timestamp;
  bool valid, sticks_moving;
};
struct parameter_update_s {
  uint64_t timestamp;
};
struct register_ext_component_reply_s {
  uint64_t timestamp, request_id;
  bool success;
  int8_t arming_check_id, mode_id;
};
struct register_ext_component_request_s {
  static constexpr uint16_t LATEST_PX4_ROS2_API_VERSION = 1;
  uint64_t timestamp, request_id;
  char name[25];
  uint16_t px4_ros2_api_version;
  bool register_arming_check, register_mode;
};
struct setpoint_config_s {
  static constexpr uint16_t TYPE_DIRECT_ACTUATORS = 1;
  uint64_t timestamp;
  uint16_t type;
  uint8_t source_id;
  bool should_apply;
  uint16_t timeout_ms;
};
struct trajectory_setpoint_s {
  uint64_t timestamp;
  float position[3];
};
struct unregister_ext_component_s {
  uint64_t timestamp;
  char name[25];
  int8_t arming_check_id, mode_id, mode_executor_id;
};
struct vehicle_angular_velocity_s {
  uint64_t timestamp, timestamp_sample;
  float xyz[3];
};
struct hover_thrust_estimate_s {
  uint64_t timestamp, timestamp_sample;
  float hover_thrust;
  bool valid;
};
struct vehicle_attitude_s {
  uint64_t timestamp, timestamp_sample;
  float q[4];
};
struct vehicle_command_s {
  static constexpr uint32_t VEHICLE_CMD_SET_NAV_STATE = 100001;
  uint64_t timestamp;
  float param1;
  uint32_t command;
  uint8_t target_system, target_component, source_system;
  uint16_t source_component;
};
struct vehicle_control_mode_s {
  uint64_t timestamp;
  bool flag_control_climb_rate_enabled, flag_control_allocation_enabled;
  uint8_t source_id;
};
struct vehicle_land_detected_s {
  uint64_t timestamp;
  bool ground_contact, maybe_landed, landed;
};
struct vehicle_local_position_s {
  uint64_t timestamp, timestamp_sample;
  bool xy_valid, z_valid, v_xy_valid, v_z_valid;
  float x, y, z, delta_xy[2], delta_z, vx, vy, vz, heading, delta_heading;
  uint8_t xy_reset_counter, z_reset_counter, heading_reset_counter;
  bool dist_bottom_valid;
  float dist_bottom;
};
struct vehicle_status_s {
  static constexpr uint8_t ARMING_STATE_DISARMED = 1, ARMING_STATE_ARMED = 2;
  static constexpr uint8_t NAVIGATION_STATE_POSCTL = 2;
  uint64_t timestamp;
  uint8_t arming_state, nav_state, system_id, component_id;
};
struct vehicle_thrust_setpoint_s {
  uint64_t timestamp, timestamp_sample;
  float xyz[3];
};
