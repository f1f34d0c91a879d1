// A push into slots of policies, from the first byte to the confirmation.
#pragma once

#include <vector>

#include "rltools/policy/slots.h"

namespace slot_push {

// The first step's error.
template <class Slots>
rlt::SlotError push(Slots& slots, const std::vector<std::uint8_t>& image) {
  using rlt::SlotError;
  const auto accept = [](const std::uint8_t*, std::uint32_t) { return true; };
  SlotError error = slots.stage();
  if (error == SlotError::none) {
    error = slots.write(0, image.data(), static_cast<std::uint32_t>(image.size()));
  }
  if (error == SlotError::none) error = slots.finish(accept);
  if (error == SlotError::none) error = slots.start_trial(0, 1000);
  if (error == SlotError::none) error = slots.confirm(1);
  return error;
}

}  // namespace slot_push
