// Flies a quadrotor in double, for test_quadrotor_scipy.py.
//   quadrotor_flights STEPS
// Standard input has doubles: the airframe's parameters in the order of their list, the step in
// seconds, the state (18), a disturbing force (3) and torque (3), the commanded parts of the
// greatest thrusts (step, rotor). Standard output has the state after each step.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rltools/rl/environments/quadrotor/dynamics.h"

namespace {

using namespace rlt::quadrotor;

constexpr std::size_t kStateNumbers = sizeof(Body<double>) / sizeof(double);

bool read(double* values, std::size_t count) {
  return std::fread(values, sizeof(double), count, stdin) == count;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::size_t steps = std::strtoul(arguments[1], nullptr, 10);
  Airframe<double> airframe;
  bool complete = true;
  airframe.for_each_field(
      [&](const char*, double& value) { complete = complete && read(&value, 1); });
  double step_s, force[3], torque[3];
  Body<double> body;
  static_assert(sizeof body == kStateNumbers * sizeof(double));
  complete = complete && read(&step_s, 1) && read(body.position_m, kStateNumbers) &&
             read(force, 3) && read(torque, 3);
  if (!complete) return 2;
  Dynamics<double> dynamics;
  derive_dynamics(airframe, step_s, dynamics);
  for (std::size_t i = 0; i < steps; i++) {
    double fraction[4], setpoint[4];
    if (!read(fraction, 4)) return 2;
    rotor_setpoints<double>(dynamics, fraction, setpoint);
    rk4_step<double>(dynamics, body, setpoint, force, torque);
    std::fwrite(body.position_m, sizeof(double), kStateNumbers, stdout);
  }
  return 0;
}
