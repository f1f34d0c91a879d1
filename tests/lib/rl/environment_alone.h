// An environment of the core stepped alone, with the streams that environment `index` of many has:
// what step_all() and begin_all() must give, bit for bit.
#pragma once

#include <vector>

#include "rltools/core/random.h"
#include "rltools/rl/environment.h"

namespace rlt {

using Observation = std::vector<float>;

template <class E>
class Alone {
 public:
  struct Step {
    float reward;
    bool terminated, truncated;
    Observation reached;
    bool ended() const { return terminated || truncated; }
  };

  Alone(std::uint32_t seed, int index, std::uint32_t episode_steps, const E& environment = {})
      : environment_(environment),
        seed_(seed),
        index_(static_cast<std::uint32_t>(index)),
        episode_steps_(episode_steps) {
    begin();
  }

  Step take(std::uint32_t number, const float* action) {
    const auto result = step(Generic{}, environment_, parameters_, state_, action,
                             {seed_, Purpose::environment_step, number, index_});
    episode_step_++;
    episode_return_ += result.reward;
    Step done{result.reward, result.terminated,
              !result.terminated && episode_step_ == episode_steps_,
              see({seed_, Purpose::observation, number, index_})};
    present_ = done.reached;
    if (done.ended()) {
      episode_++;
      returns.push_back(episode_return_);
      begin();
    }
    return done;
  }

  const Observation& present() const { return present_; }
  float strength() const { return parameters_.strength; }
  std::vector<float> returns;  // of the episodes that have ended

 private:
  void begin() {
    draw_parameters(Generic{}, environment_, parameters_,
                    {seed_, Purpose::environment_parameters, episode_, index_});
    reset(Generic{}, environment_, parameters_, state_,
          RandomStream{seed_, Purpose::environment_reset, episode_, index_});
    episode_step_ = 0;
    episode_return_ = 0;
    present_ = see({seed_, Purpose::first_observation, episode_, index_});
  }
  Observation see(RandomStream random) const {
    Observation observation(kCriticObservationDim<E>);
    observe(Generic{}, environment_, parameters_, state_, observation.data(), random);
    return observation;
  }

  E environment_;
  std::uint32_t seed_, index_, episode_steps_, episode_ = 0, episode_step_ = 0;
  float episode_return_ = 0;
  typename E::State state_{};
  typename E::Parameters parameters_;
  Observation present_;
};

}  // namespace rlt
