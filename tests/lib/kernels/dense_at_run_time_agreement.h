// The layer of run-time shape on a device against dense_forward()'s reference, bit by bit, over odd
// shapes. Included by one test per device, which compiles its kernel; the checks are compiled once
// for all of them (agreement/).
#pragma once

#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include "rltools/nn/recurrent_at_run_time.h"

namespace dense_at_run_time_agreement {

using namespace rlt;

// The kernel that a device selects.
template <class Device>
using Selected = decltype(dense_forward_at_run_time(
    Device{}, Activation::relu, 3, 64, std::declval<const float*>(), std::declval<const float*>(),
    std::declval<const float*>(), std::declval<float*>()));

// It as a function.
using Kernel = void (*)(Activation activation, int in, int out, const float* weights,
                        const float* bias, const float* input, float* output);

template <class Device>
void kernel(Activation activation, int in, int out, const float* weights, const float* bias,
            const float* input, float* output) {
  dense_forward_at_run_time(Device{}, activation, in, out, weights, bias, input, output);
}

void check_shapes(Kernel kernel);

// dense_forward() itself gives the same bits.
void check_compiled(Kernel kernel);

// A recurrent layer of run-time shape, as a function: in and width, parameters as they lie in
// memory, input, state (which moves on), output.
using RecurrentKernel = void (*)(int in, int width, const float* parameters, const float* input,
                                 float* state, float* output);

template <class Device, int Gates>
void recurrent_kernel(int in, int width, const float* parameters, const float* input, float* state,
                      float* output) {
  float products[2 * Gates * 65];
  recurrent_forward_at_run_time(Device{}, Gates, in, width,
                                recurrent_parameters(Gates, in, width, parameters), input, state,
                                products, state, output);
}

// forward_step() of nn/window_passes.h gives the same bits, over sequences.
void check_recurrent(RecurrentKernel kernel);

// The equations term by term give the same bits, and in double precision nearly the same.
void check_lstm(RecurrentKernel kernel);

// A factor that is no finite number is not left out, and its NaN is not lost.
void check_infinite_numbers(Kernel kernel);

}  // namespace dense_at_run_time_agreement

// One test file per device says which one, and which kernel it selects.
#define RLT_TEST_DENSE_AT_RUN_TIME(Device, Expected)                                               \
  static_assert(std::is_same_v<dense_at_run_time_agreement::Selected<rlt::Device>, Expected>,      \
                #Device " does not select the " #Expected " kernel for layers of run-time shape"); \
  TEST_CASE("layers of run-time shape have the reference's bits") {                                \
    dense_at_run_time_agreement::check_shapes(dense_at_run_time_agreement::kernel<rlt::Device>);   \
    dense_at_run_time_agreement::check_compiled(dense_at_run_time_agreement::kernel<rlt::Device>); \
  }                                                                                                \
  TEST_CASE("recurrent layers of run-time shape have the reference's bits") {                      \
    dense_at_run_time_agreement::check_recurrent(                                                  \
        dense_at_run_time_agreement::recurrent_kernel<rlt::Device, rlt::kGruGates>);               \
    dense_at_run_time_agreement::check_lstm(                                                       \
        dense_at_run_time_agreement::recurrent_kernel<rlt::Device, rlt::kLstmGates>);              \
  }                                                                                                \
  TEST_CASE("layers of run-time shape pass on what is not a finite number") {                      \
    dense_at_run_time_agreement::check_infinite_numbers(                                           \
        dense_at_run_time_agreement::kernel<rlt::Device>);                                         \
  }
