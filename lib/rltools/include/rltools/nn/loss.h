// Losses and their gradients with respect to the prediction: mean squared error, Huber's, softmax
// cross-entropy.
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"
#include "rltools/core/tensor.h"

namespace rlt {

// Sum over `prediction` (Rows, Columns) of (prediction - target)^2 / divisor; with divisor =
// samples * Columns of the whole batch the tiles of a batch add up to its mean. The gradient is
// written to `gradient`.
template <int Count, class T>
T mean_squared_error(Generic, const T* prediction, const T* target, T divisor, T* gradient) {
  T sum = T(0);
  for (int i = 0; i < Count; i++) {
    const T difference = prediction[i] - target[i];
    sum = math::fma(difference, difference, sum);
    gradient[i] = T(2) * difference / divisor;
  }
  return sum / divisor;
}

// Huber's loss (Huber 1964, "Robust estimation of a location parameter") with the bound 1: of each
// difference half its square, and beyond 1 its size less a half, so that no gradient is larger than
// 1. Divisor, tiles and gradient as above.
template <int Count, class T>
T huber_loss(Generic, const T* prediction, const T* target, T divisor, T* gradient) {
  T sum = T(0);
  for (int i = 0; i < Count; i++) {
    const T difference = prediction[i] - target[i];
    const T bounded = math::clamp(difference, T(-1), T(1));
    sum = math::fma(bounded, difference - T(0.5) * bounded, sum);
    gradient[i] = bounded / divisor;
  }
  return sum / divisor;
}

// Softmax cross-entropy of `logits` (Samples, Classes) against class numbers; with divisor =
// samples of the whole batch the tiles of a batch add up to its mean. The gradient is written to
// `gradient` (Samples, Classes).
template <int Samples, int Classes, class T>
T softmax_cross_entropy(Generic, const T* logits, const int* label, T divisor, T* gradient) {
  T loss = T(0);
  for (int sample = 0; sample < Samples; sample++) {
    const T* row = logits + sample * Classes;
    T* gradient_row = gradient + sample * Classes;
    T largest = row[0];
    for (int c = 1; c < Classes; c++) largest = row[c] > largest ? row[c] : largest;
    T sum = T(0);
    for (int c = 0; c < Classes; c++) {
      gradient_row[c] = math::exp(row[c] - largest);
      sum += gradient_row[c];
    }
    loss += (math::log(sum) + largest - row[label[sample]]) / divisor;
    for (int c = 0; c < Classes; c++) {
      const T probability = gradient_row[c] / sum;
      gradient_row[c] = (c == label[sample] ? probability - T(1) : probability) / divisor;
    }
  }
  return loss;
}

}  // namespace rlt
