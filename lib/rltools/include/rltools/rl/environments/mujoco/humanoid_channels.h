// The 376 observations of Humanoid-v4 by name: positions and velocities of the joints, then for
// each body its inertia and its velocity, the torque of each actuated joint, and the contact forces
// on each body. The names of what bodies and joints have are put together by the compiler.
#pragma once

#include "rltools/policy/format.h"
#include "rltools/rl/environments/mujoco/task.h"

namespace rlt::mujoco {

constexpr int kHumanoidBodyCount = 14;
constexpr int kHumanoidJointCount = 17;  // beside the root, which is free
constexpr int kHumanoidObservationDim = 376;

constexpr const char* kHumanoidBodies[kHumanoidBodyCount] = {
    "world",           "torso",           "lwaist",         "pelvis",        "right_thigh",
    "right_shin",      "right_foot",      "left_thigh",     "left_shin",     "left_foot",
    "right_upper_arm", "right_lower_arm", "left_upper_arm", "left_lower_arm"};

constexpr const char* kHumanoidJoints[kHumanoidJointCount] = {
    "abdomen_z",      "abdomen_y",       "abdomen_x",       "right_hip_x", "right_hip_z",
    "right_hip_y",    "right_knee",      "left_hip_x",      "left_hip_z",  "left_hip_y",
    "left_knee",      "right_shoulder1", "right_shoulder2", "right_elbow", "left_shoulder1",
    "left_shoulder2", "left_elbow"};

// About the body's position in the world, by axis or pair of axes.
struct HumanoidQuantity {
  const char* suffix;
  const char* unit;
  float maximum;
};
constexpr HumanoidQuantity kInertia[10] = {{"_ixx", "kg*m^2", 1e4f}, {"_iyy", "kg*m^2", 1e4f},
                                           {"_izz", "kg*m^2", 1e4f}, {"_ixy", "kg*m^2", 1e4f},
                                           {"_ixz", "kg*m^2", 1e4f}, {"_iyz", "kg*m^2", 1e4f},
                                           {"_mx", "kg*m", 1e4f},    {"_my", "kg*m", 1e4f},
                                           {"_mz", "kg*m", 1e4f},    {"_mass", "kg", 100.0f}};
constexpr HumanoidQuantity kBodyVelocity[6] = {{"_wx", "rad/s", kMaxAngularVelocity_rad_s},
                                               {"_wy", "rad/s", kMaxAngularVelocity_rad_s},
                                               {"_wz", "rad/s", kMaxAngularVelocity_rad_s},
                                               {"_vx", "m/s", kMaxVelocity_m_s},
                                               {"_vy", "m/s", kMaxVelocity_m_s},
                                               {"_vz", "m/s", kMaxVelocity_m_s}};
constexpr HumanoidQuantity kContactForce[6] = {{"_tx", "N*m", 1e6f}, {"_ty", "N*m", 1e6f},
                                               {"_tz", "N*m", 1e6f}, {"_fx", "N", 1e6f},
                                               {"_fy", "N", 1e6f},   {"_fz", "N", 1e6f}};
constexpr float kMaxJointTorque_nm = 1000.0f;

struct HumanoidNames {
  char text[kHumanoidObservationDim][kChannelNameBytes] = {};
  int count = 0;

  constexpr void add(const char* first, const char* second) {
    int length = 0;
    for (; *first != '\0'; first++) text[count][length++] = *first;
    for (; *second != '\0'; second++) text[count][length++] = *second;
    text[count++][length] = '\0';  // does not compile where the name is too long
  }
};

constexpr Channel kHumanoidRoot[5] = {
    length("root_z"), quaternion("root_quaternion_w"), quaternion("root_quaternion_x"),
    quaternion("root_quaternion_y"), quaternion("root_quaternion_z")};
constexpr Channel kHumanoidRootVelocity[6] = {
    velocity("root_velocity_x"),     velocity("root_velocity_y"),
    velocity("root_velocity_z"),     angular_velocity("root_rate_x"),
    angular_velocity("root_rate_y"), angular_velocity("root_rate_z")};
constexpr const char* kHumanoidRootForces[6] = {"root_force_x",  "root_force_y",  "root_force_z",
                                                "root_torque_x", "root_torque_y", "root_torque_z"};

// Call add(first part of the name, second part, unit, maximum) for each observation, in order.
template <class Add>
constexpr void for_each_humanoid_observation(Add&& add) {
  for (const Channel& c : kHumanoidRoot) add(c.name, "", c.unit, c.maximum);
  for (const char* joint : kHumanoidJoints) add(joint, "", "rad", kMaxAngle_rad);
  for (const Channel& c : kHumanoidRootVelocity) add(c.name, "", c.unit, c.maximum);
  for (const char* joint : kHumanoidJoints) {
    add(joint, "_rate", "rad/s", kMaxAngularVelocity_rad_s);
  }
  for (const char* body : kHumanoidBodies) {
    for (const auto& q : kInertia) add(body, q.suffix, q.unit, q.maximum);
  }
  for (const char* body : kHumanoidBodies) {
    for (const auto& q : kBodyVelocity) add(body, q.suffix, q.unit, q.maximum);
  }
  for (int i = 0; i < 6; i++) {
    add(kHumanoidRootForces[i], "", i < 3 ? "N" : "N*m", kMaxJointTorque_nm);
  }
  for (const char* joint : kHumanoidJoints) add(joint, "_torque", "N*m", kMaxJointTorque_nm);
  for (const char* body : kHumanoidBodies) {
    for (const auto& q : kContactForce) add(body, q.suffix, q.unit, q.maximum);
  }
}

constexpr HumanoidNames humanoid_names() {
  HumanoidNames names;
  for_each_humanoid_observation(
      [&](const char* first, const char* second, const char*, float) { names.add(first, second); });
  return names;
}
inline constexpr HumanoidNames kHumanoidNames = humanoid_names();
static_assert(kHumanoidNames.count == kHumanoidObservationDim);

struct HumanoidChannels {
  Channel channel[kHumanoidObservationDim] = {};
};

constexpr HumanoidChannels humanoid_channels() {
  HumanoidChannels channels;
  int i = 0;
  for_each_humanoid_observation([&](const char*, const char*, const char* unit, float maximum) {
    channels.channel[i] = {kHumanoidNames.text[i], unit, -maximum, maximum};
    i++;
  });
  return channels;
}
inline constexpr HumanoidChannels kHumanoidChannels = humanoid_channels();

}  // namespace rlt::mujoco
