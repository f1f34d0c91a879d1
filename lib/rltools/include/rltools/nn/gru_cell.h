// One element of a gated recurrent unit (gru.h), from the products of its column.
#pragma once

#include "rltools/core/math.h"

namespace rlt {

template <class T>
struct GruCell {
  T reset, keep, candidate, next;
};

// reset_sum and keep_sum are of both products; `input` and `hidden` those of the candidate,
// `before` is h. There is no -0.
template <class T>
[[gnu::always_inline]] inline GruCell<T> gru_cell(T reset_sum, T keep_sum, T input, T hidden,
                                                  T before) {
  const T reset = math::sigmoid(reset_sum);
  const T keep = math::sigmoid(keep_sum);
  const T candidate = math::tanh(math::fma(reset, hidden, input));
  return {reset, keep, candidate, math::fma(keep, before - candidate, candidate) + T(0)};
}

}  // namespace rlt
