// The dense layer's products for processors without floating-point unit, on which integers compute
// every operation. The loop that this replaces is
//
//   for each row r, column c:
//     sum = start(r, c)
//     for k = 0 .. Depth-1: sum = fma(a(r, k), b(k, c), sum)
//     finish(r, c, sum)
//
// where an fma on integers takes its three arguments apart and puts its result together. Here a
// row's factors a(r, .) are taken apart once for all columns, those that are zero are left out, and
// the sum stays apart from term to term, rounded after each: the bits are the same but for the sign
// of a zero (nn/dense.h). What is rare (a subnormal weight or sum, infinity, NaN) goes through
// fma_bits().
#pragma once

#include <cstdint>

#include "rltools/core/math.h"
#include "rltools/nn/activation.h"
#include "rltools/nn/dense.h"
#include "rltools/nn/dense_at_run_time.h"

namespace rlt {

struct SoftFloat : Generic {};

namespace kernels {

// A finite factor that is not zero, and where its row of the second operand begins.
struct SoftTerm {
  const AliasingFloat* row;
  std::uint32_t mantissa;  // bit 30 is set
  std::int32_t exponent;   // less 126, as add_product takes it
  std::uint32_t bits;
};

constexpr int kSoftTerms = 64;  // of a list: 1 KB of stack

// Return the bits of a finite number; kZeroExponent stands for zero.
constexpr inline std::uint32_t pack_finite(const math::UnpackedFloat& x) {
  if (x.exponent == math::kZeroExponent) return x.sign;
  const std::uint32_t fraction = x.mantissa >> 7;
  if (x.exponent < 1) return x.sign | fraction >> (1 - x.exponent);
  return x.sign | (((static_cast<std::uint32_t>(x.exponent) - 1u) << 23) + fraction);
}

constexpr inline bool is_finite(std::uint32_t bits) {
  return (bits & ~math::kSignBit) < math::kInfinityBits;
}

// The sum of the terms factor row[0], from `start` on, one rounding each; `offset` is added to the
// rows. All are bits.
inline std::uint32_t sum_of_terms(const SoftTerm* term, const SoftTerm* end, int offset,
                                  std::uint32_t start) {
  if (!is_finite(start)) {
    for (; term != end; term++) {
      start = math::fma_bits(term->bits, math::to_bits(term->row[offset]), start);
    }
    return start;
  }
  math::UnpackedFloat sum = math::unpack_finite(start);
  for (; term != end; term++) {
    const std::uint32_t y = math::to_bits(term->row[offset]);
    const std::uint32_t y_exponent = y >> 23 & 0xffu;
    if (__builtin_expect(y_exponent - 1u < 254u, 1)) {
      const math::UnroundedSum next = math::add_product(
          sum, term->mantissa, term->exponent, y << 8 | math::kSignBit,
          static_cast<std::int32_t>(y_exponent), (term->bits ^ y) & math::kSignBit);
      std::uint32_t mantissa = math::rounded(next.high);
      std::int32_t exponent = next.exponent;
      if ((mantissa & math::kSignBit) != 0u) {
        mantissa >>= 1;
        exponent++;
      }
      if (__builtin_expect(static_cast<std::uint32_t>(exponent) - 1u < 254u, 1)) {
        sum = {mantissa, exponent, next.sign};
        continue;
      }
    } else if (y << 1 == 0u) {
      continue;
    }
    const std::uint32_t bits = math::fma_bits(term->bits, y, pack_finite(sum));
    if (!is_finite(bits)) return sum_of_terms(term + 1, end, offset, bits);
    sum = math::unpack_finite(bits);
  }
  return pack_finite(sum);
}

// Distances between the factors of a row, the second operand's rows, and its columns.
struct SoftSteps {
  int factor, row, column;
};

// The terms factors(k) rows(k, .) for `count` values of k: the end of the list, or null where a
// factor is infinite or NaN.
inline const SoftTerm* list_soft_terms(const AliasingFloat* factors, const AliasingFloat* rows,
                                       const SoftSteps& steps, int count, SoftTerm* end) {
  for (int k = 0; k < count; k++, factors += steps.factor, rows += steps.row) {
    const std::uint32_t bits = math::to_bits(*factors);
    if (bits << 1 == 0u) continue;
    if (!is_finite(bits)) return nullptr;
    const math::UnpackedFloat x = math::unpack_finite(bits);
    *end++ = {rows, x.mantissa, x.exponent - 126, bits};
  }
  return end;
}

// sums(c) += factors (depth) . rows (depth, columns)
inline void add_soft_row(const AliasingFloat* factors, const AliasingFloat* rows,
                         const SoftSteps& steps, int depth, int columns, float* sums) {
  while (depth > 0) {
    const int count = depth < kSoftTerms ? depth : kSoftTerms;
    SoftTerm terms[kSoftTerms];
    const SoftTerm* end = list_soft_terms(factors, rows, steps, count, terms);
    for (int column = 0; column < columns; column++) {
      const int offset = column * steps.column;
      float& sum = sums[column];
      if (end != nullptr) {
        sum = math::from_bits(sum_of_terms(terms, end, offset, math::to_bits(sum)));
        continue;
      }
      for (int k = 0; k < count; k++) {
        sum = math::fma(factors[k * steps.factor], rows[k * steps.row + offset], sum);
      }
    }
    factors += count * steps.factor;
    rows += count * steps.row;
    depth -= count;
  }
}

// A(sum) of a layer's output; ReLU on bits, without the library's comparison.
template <Activation A>
inline float activation_on_integers(float sum) {
  const std::uint32_t bits = math::to_bits(sum);
  if constexpr (A == Activation::relu) {
    return bits - math::kSignBit <= math::kInfinityBits ? 0.0f : sum;  // -0 to minus infinity
  } else {
    return activation_value<A>(bits == math::kSignBit ? 0.0f : sum);
  }
}

}  // namespace kernels

template <Activation A, int Batch, int In, int Out>
SoftFloat dense_forward(SoftFloat device, const float* weights, const float* bias,
                        const float* input, float* output) {
  for (int sample = 0; sample < Batch; sample++, input += In, output += Out) {
    for (int out = 0; out < Out; out++) output[out] = bias[out];
    kernels::add_soft_row(input, weights, {1, Out, 1}, In, Out, output);
    for (int out = 0; out < Out; out++) {
      output[out] = kernels::activation_on_integers<A>(output[out]);
    }
  }
  return device;
}

template <int Batch, int In, int Out>
SoftFloat dense_backward_weights(SoftFloat device, const float* input, const float* output_gradient,
                                 float* weights_gradient, float* bias_gradient) {
  for (int in = 0; in < In; in++) {
    kernels::add_soft_row(input + in, output_gradient, {In, Out, 1}, Batch, Out,
                          weights_gradient + in * Out);
  }
  add_column_sums<Batch, Out>(output_gradient, bias_gradient);
  return device;
}

template <Activation A, int Batch, int In, int Out>
SoftFloat dense_backward_input(SoftFloat device, const float* weights, const float* output_gradient,
                               const float* pre_activation, const float* input,
                               float* input_gradient) {
  for (int sample = 0; sample < Batch; sample++) {
    float* sums = input_gradient + sample * In;
    for (int in = 0; in < In; in++) sums[in] = 0.0f;
    kernels::add_soft_row(output_gradient + sample * Out, weights, {1, 1, Out}, Out, In, sums);
  }
  activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
  return device;
}

// The layer of run-time shape (nn/dense_at_run_time.h).
inline SoftFloat dense_forward_at_run_time(SoftFloat device, Activation activation, int in, int out,
                                           const AliasingFloat* weights, const AliasingFloat* bias,
                                           const float* input, float* output) {
  for (int o = 0; o < out; o++) output[o] = bias[o];
  kernels::add_soft_row(input, weights, {1, out, 1}, in, out, output);
  if (activation == Activation::relu) {
    for (int o = 0; o < out; o++) {
      output[o] = kernels::activation_on_integers<Activation::relu>(output[o]);
    }
    return device;
  }
  for (int o = 0; o < out; o++) output[o] += 0.0f;  // there is no -0
  activation_at_run_time(device, activation, out, output);
  return device;
}

}  // namespace rlt
