// Prints a flight of QuadrotorTick<float> as the core's own functions give it, one number after
// another with all its bits (tests/host/drones/flight/test_simulator.py compares a flight of the
// library). Arguments: seed, episode, ticks. The thrusts follow from what was observed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/quadrotor.h"

namespace {

void print(const float* values, int count) {
  for (int i = 0; i < count; i++) std::printf("%a ", static_cast<double>(values[i]));
}

}  // namespace

int main(int argc, char** argv) {
  using Environment = rlt::QuadrotorTick<float>;
  if (argc != 4) return 2;
  const auto number = [&](int i) {
    return static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
  };
  const std::uint32_t seed = number(1), episode = number(2), ticks = number(3);
  const rlt::Generic device{};
  Environment environment;
  environment.settings.airframe = rlt::quadrotor::kAnyCrazyflie;
  environment.settings.latency_ms = 20;
  environment.settings.noise = 1;
  environment.settings.gust_m_s2 = 1;
  environment.settings.loss = 0.1f;
  environment.settings.start_tilt = 180;
  Environment::Parameters parameters;
  Environment::State state;
  sample_parameters(device, environment, parameters,
                    rlt::RandomStream{seed, rlt::Purpose::evaluation_parameters, episode});
  reset(device, environment, parameters, state,
        rlt::RandomStream{seed, rlt::Purpose::evaluation_reset, episode});
  for (std::uint32_t tick = 0; tick < ticks; tick++) {
    float row[rlt::kCriticObservationDim<Environment>];
    observe(device, environment, parameters, state, row,
            rlt::RandomStream{seed, rlt::Purpose::evaluation_observation, tick, episode});
    print(row, Environment::kObservationDim);
    // A quarter each, more where it falls, and a turn: exact in float and in [0, 1].
    float action[4];
    for (int i = 0; i < 4; i++) {
      const float thrust = (row[5] < 0.0f ? 0.625f : 0.25f) + (i == 0 ? 0.125f : 0.0f);
      action[i] = 2.0f * thrust - 1.0f;
    }
    step(device, environment, parameters, state, action,
         rlt::RandomStream{seed, rlt::Purpose::evaluation_step, tick, episode});
    print(state.position_m, 3);
    print(state.attitude, 4);
    print(state.rotor_speed, 4);
    print(state.gust_m_s2, 3);
    std::printf("\n");
  }
  std::printf("%u %u\n", parameters.table, parameters.latency);
  return 0;
}
