// PX4's topics on the vehicle, as inputs of the mode (policy_mode.h).
#pragma once

#include <uORB/topics/hover_thrust_estimate.h>
#include <uORB/topics/manual_control_setpoint.h>
#include <uORB/topics/trajectory_setpoint.h>
#include <uORB/topics/vehicle_angular_velocity.h>
#include <uORB/topics/vehicle_attitude.h>
#include <uORB/topics/vehicle_land_detected.h>
#include <uORB/topics/vehicle_local_position.h>
#include <uORB/Subscription.hpp>

#include "policy_mode.h"

namespace rlt::px4 {

class MeasurementTopics {
 public:
  // Read what has come since the last call; all else stays as it is.
  void read(Inputs& inputs) {
    if (rates_sub_.update(&rates_)) {
      inputs.rates.taken_us =
          rates_.timestamp_sample != 0 ? rates_.timestamp_sample : rates_.timestamp;
      for (int i = 0; i < 3; i++) inputs.rates.frd_rad_s[i] = rates_.xyz[i];
    }
    if (attitude_sub_.update(&attitude_)) {
      inputs.attitude.taken_us =
          attitude_.timestamp_sample != 0 ? attitude_.timestamp_sample : attitude_.timestamp;
      for (int i = 0; i < 4; i++) inputs.attitude.q[i] = attitude_.q[i];
    }
    if (position_sub_.update(&position_)) {
      const vehicle_local_position_s& from = position_;
      LocalPosition& to = inputs.position;
      to.taken_us = from.timestamp_sample != 0 ? from.timestamp_sample : from.timestamp;
      to.is_valid = from.xy_valid && from.z_valid && from.v_xy_valid && from.v_z_valid;
      const float position[3] = {from.x, from.y, from.z}, velocity[3] = {from.vx, from.vy, from.vz};
      const float delta[3] = {from.delta_xy[0], from.delta_xy[1], from.delta_z};
      for (int i = 0; i < 3; i++) {
        to.ned_m[i] = position[i];
        to.ned_m_s[i] = velocity[i];
        to.delta_m[i] = delta[i];
      }
      to.has_height = from.z_valid;
      to.above_ground_m = from.dist_bottom_valid ? from.dist_bottom : math::kQuietNan;
      to.heading_rad = from.heading;
      to.delta_heading_rad = from.delta_heading;
      to.xy_resets = from.xy_reset_counter;
      to.z_resets = from.z_reset_counter;
      to.heading_resets = from.heading_reset_counter;
    }
    if (setpoint_sub_.update(&setpoint_)) {
      inputs.setpoint.taken_us = setpoint_.timestamp;
      for (int i = 0; i < 3; i++) inputs.setpoint.ned_m[i] = setpoint_.position[i];
    }
    if (ground_sub_.update(&ground_)) {
      inputs.is_in_air = !(ground_.landed || ground_.maybe_landed || ground_.ground_contact);
    }
    if (hover_sub_.update(&hover_)) {
      inputs.hover = {hover_.valid ? hover_.timestamp : 0, hover_.hover_thrust};
    }
    if (sticks_sub_.update(&sticks_)) inputs.sticks_move = sticks_.valid && sticks_.sticks_moving;
  }

 private:
  // Messages are members: a work queue's stack is small.
  hover_thrust_estimate_s hover_{};
  manual_control_setpoint_s sticks_{};
  trajectory_setpoint_s setpoint_{};
  vehicle_angular_velocity_s rates_{};
  vehicle_attitude_s attitude_{};
  vehicle_land_detected_s ground_{};
  vehicle_local_position_s position_{};

  uORB::Subscription hover_sub_{ORB_ID(hover_thrust_estimate)};
  uORB::Subscription sticks_sub_{ORB_ID(manual_control_setpoint)};
  uORB::Subscription setpoint_sub_{ORB_ID(trajectory_setpoint)};
  uORB::Subscription rates_sub_{ORB_ID(vehicle_angular_velocity)};
  uORB::Subscription attitude_sub_{ORB_ID(vehicle_attitude)};
  uORB::Subscription ground_sub_{ORB_ID(vehicle_land_detected)};
  uORB::Subscription position_sub_{ORB_ID(vehicle_local_position)};
};

}  // namespace rlt::px4
