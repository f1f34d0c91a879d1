// What an executor is given in a storm of ticks: nine kinds of input, in bursts.
#pragma once

#include <cstdint>

namespace storm {

enum Input {
  good,
  not_a_number,
  infinite,
  out_of_range,
  stale,
  future,
  missing,
  frozen,
  bad_output,
  kInputs
};

// Of one tick after the other. random(below): the next number of a stream.
class Bursts {
 public:
  template <class Random>
  Input next(const Random& random) {
    if (left_-- == 0) {
      input_ = random(2) == 0 ? good : static_cast<Input>(random(kInputs));
      left_ = random(12);
    }
    return input_;
  }

 private:
  Input input_ = good;
  std::uint32_t left_ = 0;
};

// Return the age of an observation, up to `max_us` more than the executor lets through.
template <class Random>
std::uint32_t age_us(Input input, std::uint32_t step_us, std::uint32_t max_us,
                     const Random& random) {
  if (input == stale) return 2 * step_us + 1 + random(max_us);
  return input == future ? 0u - step_us - random(max_us) : 0u;
}

}  // namespace storm
