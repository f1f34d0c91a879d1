// A policy in somebody's own control loop. `robot.h` is theirs: a clock, sensors, a motor.
#include "robot.h"

#include "pendulum_td3_image.h"  // rlt export RUN --to c-image
#include "rltools/policy/deployment.h"
#include "rltools/this_processor.h"

using namespace rlt;

static const Channel kSensors[] = {
    {"cos_angle", "1", -1, 1}, {"sin_angle", "1", -1, 1}, {"velocity", "rad/s", -8, 8}};
static const Channel kMotors[] = {{"torque", "N*m", -2, 2}};

static const PolicyContract kContract{50000, 3, 1, kSensors, kMotors};

static RamStorage<512> storage;  // larger where policies are to be pushed: README.md
static PolicyDeployment<ThisProcessor, decltype(storage), 1, 256> policy(ThisProcessor{}, storage,
                                                                         kContract);

void robot_begin() { policy.begin(pendulum_td3_image, sizeof(pendulum_td3_image)); }

void robot_loop() {
  float sensors[3], torque_nm = 0;
  const std::uint32_t taken_us = robot_sensors(sensors);
  const ExecutorStatus status = policy.step(robot_clock_us(), {sensors, taken_us}, &torque_nm);
  robot_motor(torque_nm);  // the safe action where something is wrong
  if (is_fault(status)) robot_report(executor_status_text(status));
}
