// That a training run goes on from any of its states.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "training_run.h"

namespace training_run {

// Of `calls` calls of train_step(), from each ninth state on nine go on as if the run had not been
// interrupted: with memory that holds nothing, and on `device`.
template <class E, class Device>
void check_goes_on(Device device, std::uint32_t calls) {
  constexpr std::uint32_t kSeed = 6, kPart = 9;
  Run<E> whole(kSeed);
  initialize(Generic{}, whole.training);
  for (std::uint32_t call = 0; call < calls; call++) {
    if (call % kPart == 4) {
      CAPTURE(call);
      Run<E> other(kSeed);
      initialize(Generic{}, other.training);
      std::memset(static_cast<void*>(other.scratch.get()), 0, sizeof *other.scratch);
      other.set_state(whole.state());
      REQUIRE(state_is_consistent(other.training));
      CHECK(state_is_finite(other.training));
      Run<E> same(kSeed);
      initialize(Generic{}, same.training);
      same.set_state(whole.state());
      other.train(Generic{}, kPart);
      same.train(device, kPart);
      REQUIRE(other.state_sha256() == same.state_sha256());
    }
    whole.step(Generic{});
  }
  Run<E> again(kSeed);
  initialize(Generic{}, again.training);
  again.train(Generic{}, calls);
  CHECK(again.state_sha256() == whole.state_sha256());
}

}  // namespace training_run
