// The fully connected layer whose shape is known at run time only, for one sample, reference
// implementation: what a policy image of any shape is run with. kernels/<target>/ overrides it; the
// bits are those of dense_forward() in nn/dense.h.
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"
#include "rltools/nn/activation.h"

namespace rlt {

// A float that may lie in an array of bytes, as those of a policy image do.
typedef float __attribute__((__may_alias__)) AliasingFloat;

namespace detail {

template <Activation A>
inline void activate(int count, float* values) {
  if constexpr (has_activation(A) && A != Activation::identity) {
    for (int i = 0; i < count; i++) values[i] = activation_value<A>(values[i]);
  }
}

}  // namespace detail

#define RLT_ACTIVATE(Name, NeedsInput, Value, Derivative) \
  case Activation::Name: detail::activate<Activation::Name>(count, values); break;

// values (count) = A(values), in place; has_activation(A)
inline Generic activation_at_run_time(Generic device, Activation activation, int count,
                                      float* values) {
  switch (activation) { RLT_ACTIVATION_LIST(RLT_ACTIVATE) }
  return device;
}

// output (out) = A(input (in) . weights (in, out) + bias (out))
// Each element starts at its bias and accumulates over the inputs in order; there is no -0.
inline Generic dense_forward_at_run_time(Generic device, Activation activation, int in, int out,
                                         const AliasingFloat* weights, const AliasingFloat* bias,
                                         const float* input, float* output) {
  for (int o = 0; o < out; o++) {
    float sum = bias[o];
    for (int i = 0; i < in; i++) sum = math::fma(input[i], weights[i * out + o], sum);
    output[o] = sum + 0.0f;
  }
  return activation_at_run_time(device, activation, out, output);
}

}  // namespace rlt
