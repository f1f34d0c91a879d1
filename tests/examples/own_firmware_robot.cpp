// The robot of examples/own_firmware, simulated: writes a row for each turn of its loop:
// what was sensed, the torque and what was reported. Sensors fail from the turn on that the second
// argument says.
#include "robot.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

static uint32_t now_us = 0xffff0000u;  // wraps soon
static double angle_rad = 3.0, velocity_rad_s = 0.0;
static float torque = NAN, sensed[3];
static const char* report = "-";
static bool sensors_fail = false;

uint32_t robot_clock_us() { return now_us; }
uint32_t robot_sensors(float values[3]) {
  values[0] = sensors_fail ? NAN : static_cast<float>(std::cos(angle_rad));
  values[1] = static_cast<float>(std::sin(angle_rad));
  values[2] = static_cast<float>(velocity_rad_s);
  for (int i = 0; i < 3; i++) sensed[i] = values[i];
  return now_us;
}
void robot_motor(float torque_nm) { torque = torque_nm; }
void robot_report(const char* text) { report = text; }

int main(int argc, char** argv) {
  const int turns = std::atoi(argv[1]), fail_from = argc > 2 ? std::atoi(argv[2]) : turns;
  robot_begin();
  for (int turn = 0; turn < turns; turn++) {
    sensors_fail = turn >= fail_from;
    report = "-";
    robot_loop();
    std::printf("%.9g %.9g %.9g %.9g %s\n", static_cast<double>(sensed[0]),
                static_cast<double>(sensed[1]), static_cast<double>(sensed[2]),
                static_cast<double>(torque), report);
    velocity_rad_s += (15.0 * std::sin(angle_rad) + 3.0 * static_cast<double>(torque)) * 0.05;
    velocity_rad_s = std::fmax(-8.0, std::fmin(8.0, velocity_rad_s));
    angle_rad += velocity_rad_s * 0.05;
    now_us += 50000;
  }
}
