// A value as a distribution over bins z_0 < ... < z_(N-1) at equal distances, which a critic gives
// as logits (Bellemare, Dabney and Munos 2017, arXiv 1707.06887): its mean is the value, and it
// learns by cross-entropy from the distribution of its target, moved and shared out between bins.
//   p_i = exp(l_i) / sum_j exp(l_j),  Q = sum_i p_i z_i,  dQ/dl_i = p_i (z_i - Q)
//   L = -sum_i m_i log p_i,  dL/dl_i = p_i - m_i   where sum_i m_i = 1
// Sums are in the order of the bins.
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// Bins between those of XQC and FlashSAC, which have 101, for returns that a ReturnScale has
// divided.
constexpr double kMaxScaledReturn = 5;
template <int Count>
struct ValueBins {
  static_assert(Count >= 2, "a value has at least two bins");
  static constexpr int kCount = Count;
  static constexpr double kMin = -kMaxScaledReturn, kMax = kMaxScaledReturn;
  static constexpr double kWidth = (kMax - kMin) / (kCount - 1);

  template <class T>
  static constexpr T value(int bin) {
    return static_cast<T>(kMin + kWidth * bin);
  }
};

// Set probabilities, and the logarithm of each row's denominator exp(-largest) sum_j exp(l_j), from
// `logits` (Rows, Bins); the row's largest is taken from its logits.
template <int Rows, int Bins, class T>
Generic softmax_rows(Generic device, T* logits, T* probability, T* log_denominator) {
  for (int row = 0; row < Rows; row++) {
    T* own = logits + row * Bins;
    T largest = own[0];
    for (int i = 1; i < Bins; i++) largest = math::maximum(largest, own[i]);
    for (int i = 0; i < Bins; i++) own[i] -= largest;
  }
  for (int i = 0; i < Rows * Bins; i++) probability[i] = math::exp(logits[i]);
  for (int row = 0; row < Rows; row++) {
    T* own = probability + row * Bins;
    T sum = T(0);
    for (int i = 0; i < Bins; i++) sum += own[i];
    log_denominator[row] = math::log(sum);
    const T factor = T(1) / sum;
    for (int i = 0; i < Bins; i++) own[i] *= factor;
  }
  return device;
}

// Set value (Rows, 1) to the means of `probability` (Rows, Bins::kCount).
template <int Rows, class Bins, class T>
Generic mean_values(Generic device, const T* probability, T* value) {
  for (int row = 0; row < Rows; row++) {
    T sum = T(0);
    for (int i = 0; i < Bins::kCount; i++) {
      sum = math::fma(probability[row * Bins::kCount + i], Bins::template value<T>(i), sum);
    }
    value[row] = sum;
  }
  return device;
}

// Set `projected` (Bins::kCount) to the distribution of offset + factor z where z has
// `probability`: what lies between two bins is shared out to them by its distance from each, and
// what lies beyond all of them goes to the last one. Where a number is NaN, so is the result.
template <class Bins, class T>
void project(T offset, T factor, const T* probability, T* projected) {
  constexpr int kLast = Bins::kCount - 1;
  constexpr T kMin = static_cast<T>(Bins::kMin), kMax = static_cast<T>(Bins::kMax);
  constexpr T kInverseWidth = static_cast<T>(1.0 / Bins::kWidth);
  for (int i = 0; i <= kLast; i++) projected[i] = T(0);
  for (int i = 0; i <= kLast; i++) {
    const T moved = math::clamp(math::fma(factor, Bins::template value<T>(i), offset), kMin, kMax);
    const T position = (moved - kMin) * kInverseWidth;
    int below = position >= T(0) ? static_cast<int>(position) : 0;  // of NaN it is no index
    if (below >= kLast) below = kLast - 1;
    const T above = position - static_cast<T>(below);
    projected[below] = math::fma(probability[i], T(1) - above, projected[below]);
    projected[below + 1] = math::fma(probability[i], above, projected[below + 1]);
  }
}

// Return the sum of the rows' cross-entropies to `target`, of logits and denominators as
// softmax_rows() leaves them, and set the gradient (Rows, Bins) of `share` times it. `gradient` may
// be `probability`.
template <int Rows, int Bins, class T>
T cross_entropy(const T* target, const T* logits, const T* probability, const T* log_denominator,
                T share, T* gradient) {
  T loss = T(0);
  for (int row = 0; row < Rows; row++) {
    T product = T(0);
    for (int i = row * Bins; i < (row + 1) * Bins; i++) {
      product = math::fma(target[i], logits[i], product);
    }
    loss += log_denominator[row] - product;
  }
  for (int i = 0; i < Rows * Bins; i++) gradient[i] = share * (probability[i] - target[i]);
  return loss;
}

// Set the gradient (Rows, Bins::kCount) of the logits from that of the value (Rows, 1).
template <int Rows, class Bins, class T>
Generic mean_values_backward(Generic device, const T* probability, const T* value,
                             const T* value_gradient, T* gradient) {
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < Bins::kCount; i++) {
      const int k = row * Bins::kCount + i;
      gradient[k] =
          value_gradient[row] * probability[k] * (Bins::template value<T>(i) - value[row]);
    }
  }
  return device;
}

}  // namespace rlt
