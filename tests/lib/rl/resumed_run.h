// That a training run goes on from any of its states.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "rltools/rl/policy_of_training.h"
#include "training_run.h"

namespace training_run {

// The image of what acts when training is over: what is learned next need not show all of it.
template <class E>
std::vector<std::uint8_t> policy_image(Run<E>& run) {
  static std::uint8_t image[kPolicyImageBytes<E>];
  build_policy_image(Generic{}, run.training, {}, image);
  return {std::begin(image), std::end(image)};
}

// Of `calls` calls of train_step(), from each ninth state on nine are those of the run that was not
// interrupted: with memory that holds nothing, and on `device`.
template <class E, class Device>
void check_goes_on(Device device, std::uint32_t calls) {
  constexpr std::uint32_t kSeed = 6, kPart = 9;
  Run<E> whole(kSeed);
  initialize(Generic{}, whole.training);
  std::unique_ptr<Run<E>> resumed;
  for (std::uint32_t call = 0; call < calls; call++) {
    if (call % kPart == 4) {
      CAPTURE(call);
      if (resumed != nullptr) {
        REQUIRE(resumed->state_sha256() == whole.state_sha256());
        REQUIRE(policy_image(*resumed) == policy_image(whole));
      }
      resumed = std::make_unique<Run<E>>(kSeed);
      initialize(Generic{}, resumed->training);
      std::memset(static_cast<void*>(resumed->scratch.get()), 0, sizeof *resumed->scratch);
      resumed->set_state(whole.state());
      REQUIRE(state_is_consistent(resumed->training));
      CHECK(state_is_finite(resumed->training));
      REQUIRE(policy_image(*resumed) == policy_image(whole));
      resumed->train(device, kPart);
    }
    whole.step(Generic{});
  }
  Run<E> again(kSeed);
  initialize(Generic{}, again.training);
  again.train(Generic{}, calls);
  CHECK(again.state_sha256() == whole.state_sha256());
}

}  // namespace training_run
