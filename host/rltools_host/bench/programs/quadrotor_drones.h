// The quadrotor's dynamics alone: drones of the published Crazyflies, each with parameters of its
// own, stepped in lanes by 2 ms under constant commands. Their states stay in lanes. No
// observation, reward or episode: what rl/environments/quadrotor.h adds is measured beside it.
#pragma once

#include <cstdint>

#include "rltools/core/lanes.h"
#include "rltools/core/random.h"
#include "rltools/rl/environments/quadrotor/dynamics.h"

namespace rlt {
namespace environment_steps {

template <int N>
class Drones {
 public:
  static constexpr const char* kName = "Quadrotor-dynamics";
  static_assert(N % kLaneCount == 0, "whole lanes");

  Drones() {
    for (int i = 0; i < N; i++) {
      const RandomStream random{0, Purpose::environment_parameters, 0,
                                static_cast<std::uint32_t>(i)};
      auto airframe = quadrotor::kTables<float>[i % 5].airframe;
      float spread[4], spin[4];
      uniforms(random, spread, 0.8f, 1.2f);
      standard_normals(random, spin);
      airframe.mass_kg *= spread[0];
      airframe.inertia_x *= spread[1];
      airframe.inertia_z *= spread[2];
      airframe.lag_up_s *= spread[3];
      auto body = quadrotor::level_hover(airframe);
      for (int k = 0; k < 3; k++) body.angular_velocity_rad_s[k] = spin[k];
      const float setpoint = quadrotor::hover_setpoint(airframe, 0.0f);
      const float setpoints[4] = {setpoint, setpoint, setpoint, setpoint};
      auto& group = groups_[i / kLaneCount];
      const int lane = i % kLaneCount;
      write_lane(group.dynamics, lane, quadrotor::dynamics_of(airframe, 0.002f));
      write_lane(group.body, lane, body);
      write_array(group.setpoints, lane, setpoints);
    }
  }

  void step(std::uint64_t steps) {
    for (std::uint64_t done = 0; done < steps; done += N) {
      for (auto& group : groups_) step_lanes(group.dynamics, group.setpoints, group.body);
    }
  }
  static std::uint32_t episodes() { return 0; }
  double sum() const {
    double total = 0;
    for (const auto& group : groups_) {
      for (const float height : group.body.word[2]) total += static_cast<double>(height);
    }
    return total;
  }

 private:
  using Body = quadrotor::Body<float>;
  using Dynamics = quadrotor::Dynamics<float>;
  struct Group {
    Lanes<kWords<Body>> body;
    Lanes<kWords<Dynamics>> dynamics;
    Lanes<4> setpoints;
  };

  RLT_LOOP_OVER_LANES static void step_lanes(const Lanes<kWords<Dynamics>>& __restrict dynamics,
                                             const Lanes<4>& __restrict setpoints,
                                             Lanes<kWords<Body>>& __restrict bodies) {
    for (int i = 0; i < kLaneCount; i++) {
      Dynamics own;
      Body body;
      float setpoint[4];
      const float none[3] = {0.0f, 0.0f, 0.0f};
      read_lane(dynamics, i, own);
      read_lane(bodies, i, body);
      read_array(setpoints, i, setpoint);
      quadrotor::rk4_step<float>(own, body, setpoint, none, none);
      write_lane(bodies, i, body);
    }
  }

  Group groups_[N / kLaneCount];
};

}  // namespace environment_steps
}  // namespace rlt
