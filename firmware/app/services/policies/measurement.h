// The cost of a policy on this board: samples of the counter, a few in each turn of the main loop.
#pragma once

#include "app/link/mavlink_protocol.h"
#include "board_api.h"
#include "rltools/policy/deployment.h"

namespace rlt {

template <class Deployment>
class Measurement {
 public:
  static constexpr std::uint32_t kMaxSamples = 1024;

  explicit Measurement(const PolicyContract& contract) : executor_(contract) {}

  void start(RLT_MEASURED what, std::uint32_t count) {
    what_ = what;
    wanted_ = count;
    count_ = 0;
  }
  bool is_running() const { return count_ < wanted_; }
  RLT_MEASURED what() const { return what_; }
  // Return the number of samples; 0 while the measurement runs.
  std::uint32_t count() const { return is_running() ? 0 : count_; }
  const std::uint32_t* samples() const { return samples_; }

  // Take samples, each of one call, on the image's examples by turns. Return true when it was the
  // last one. A policy that was dropped meanwhile ends the measurement. The hidden state is none
  // from which the policy could continue to act: the executor restarts.
  template <class Device>
  bool take_samples(Device device, Deployment& deployment) {
    for (int i = 0; i < kSamplesAPoll && is_running(); i++) {
      Runner* policy = deployment.acting();
      if (policy == nullptr) {
        wanted_ = count_;
        return true;
      }
      const PolicyView& view = *policy->view();
      const std::uint32_t example = count_ % view.header->example_count;
      const AliasingFloat* observation = example_observation(view, example);
      samples_[count_] = take_sample(device, *policy, observation);
      count_++;
      if (!is_running() && view.recurrence != nullptr) deployment.reset_executor();
    }
    return !is_running();
  }

 private:
  using Runner = typename Deployment::Runner;
  static constexpr int kSamplesAPoll = 8;

  template <class Device>
  std::uint32_t take_sample(Device device, Runner& policy, const AliasingFloat* values) {
    constexpr int kMaxActions = MAVLINK_MSG_RLT_ACTION_FIELD_ACTION_LEN;
    float action[kMaxActions];
    const auto* observation = static_cast<const float*>(values);
    if (what_ == RLT_MEASURED_NOTHING) return cost_of([] {});
    if (what_ == RLT_MEASURED_FORWARD) {
      const auto ignore = [](const float*, int) {};
      return cost_of(
          [&] { policy.forward(device, observation, action, ignore, policy.last_state()); });
    }
    // The contract's observation comes first in an example; past actions are those of the samples
    // before.
    const auto tick = [&] {
      executor_.step(device, now_us_, {observation, now_us_}, action, &policy);
    };
    if (count_ == 0) {
      executor_.reset();
      tick();
    }
    now_us_ += policy.contract().step_interval_us;
    return cost_of(tick);
  }

  template <class Work>
  static std::uint32_t cost_of(Work&& work) {
    const std::uint64_t begin = board::counter();
    work();
    return static_cast<std::uint32_t>(board::counter() - begin);
  }

  typename Deployment::Executor executor_;  // its own, so that the one that acts does not see it
  std::uint32_t now_us_ = 0;
  RLT_MEASURED what_ = RLT_MEASURED_NOTHING;
  std::uint32_t wanted_ = 0, count_ = 0;
  std::uint32_t samples_[kMaxSamples];
};

}  // namespace rlt
