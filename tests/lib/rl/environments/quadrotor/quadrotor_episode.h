// An episode of a quadrotor, step by step, for its tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/quadrotor.h"

namespace rlt {

using Flight = Quadrotor<float>;
using Tick = QuadrotorTick<float>;

// Undisturbed, from hover at the target.
template <class E>
E calm() {
  E environment;
  environment.settings.start_share = 0.0f;
  return environment;
}

template <class E>
struct Episode {
  explicit Episode(const E& of, std::uint32_t number = 0) : environment(of), episode(number) {
    draw_parameters(Generic{}, environment, parameters,
                    {9, Purpose::environment_parameters, episode});
    reset(Generic{}, environment, parameters, state,
          RandomStream{9, Purpose::environment_reset, episode});
  }
  StepResult<float> take(const std::vector<float>& action) {
    return step(Generic{}, environment, parameters, state, action.data(),
                RandomStream{9, Purpose::environment_step, steps++, episode});
  }
  StepResult<float> hover() {
    return take(std::vector<float>(4, 2.0f * parameters.hover_fraction - 1.0f));
  }
  std::vector<float> see() const {
    std::vector<float> observation(kCriticObservationDim<E>);
    observe(Generic{}, environment, parameters, state, observation.data(),
            RandomStream{9, Purpose::observation, steps, episode});
    return observation;
  }

  E environment;
  std::uint32_t episode, steps = 0;
  typename E::Parameters parameters;
  typename E::State state;
};

inline float norm(const float* v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

}  // namespace rlt
