// A running normalizer of observations: normalized = (observation - mean) / sqrt(variance +
// epsilon), with mean and variance over all observations taken in so far.
//
// Batches are merged with Chan, Golub and LeVeque's formula ("Algorithms for computing the sample
// variance", The American Statistician 37, 1983), in double and in the rows' order: neither a large
// mean nor the number of observations costs digits, and no order of threads changes a bit.
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// Bounds the factor at 100 where an element has not varied.
constexpr double kNormalizerEpsilon = 1e-4;

template <class T, int Dimension>
struct Normalizer {
  double count;  // of observations
  double mean[Dimension];
  double sum_of_squares[Dimension];  // of differences from the mean
  // Their result as it is applied: (observation - shift) * scale.
  T shift[Dimension];
  T scale[Dimension];
};

// Reset the normalizer: observations are left as they are.
template <class T, int D>
void initialize(Normalizer<T, D>& normalizer) {
  normalizer.count = 0;
  for (int i = 0; i < D; i++) {
    normalizer.mean[i] = normalizer.sum_of_squares[i] = 0;
    normalizer.shift[i] = T(0);
    normalizer.scale[i] = T(1);
  }
}

// Set shift and scale from mean and variance.
template <class T, int D>
void apply_moments(Normalizer<T, D>& normalizer) {
  for (int i = 0; i < D; i++) {
    const double variance = normalizer.sum_of_squares[i] / normalizer.count;
    normalizer.shift[i] = static_cast<T>(normalizer.mean[i]);
    normalizer.scale[i] = static_cast<T>(1.0 / math::sqrt(variance + kNormalizerEpsilon));
  }
}

// Merge mean and sum of squares of element i, of `added` observations, into the moments.
template <class T, int D>
void merge_moments(Normalizer<T, D>& normalizer, int i, double mean, double sum_of_squares,
                   double added) {
  const double count = normalizer.count, total = count + added;
  const double difference = mean - normalizer.mean[i];
  normalizer.mean[i] += difference * (added / total);
  normalizer.sum_of_squares[i] +=
      sum_of_squares + difference * difference * (count * added / total);
}

// Update the moments with `rows` observations (rows, D).
template <class T, int D>
void update_moments(Generic, Normalizer<T, D>& normalizer, const T* observations, int rows) {
  const double added = rows;
  double mean[D] = {}, sum_of_squares[D] = {};
  for (int row = 0; row < rows; row++) {
    for (int i = 0; i < D; i++) mean[i] += static_cast<double>(observations[row * D + i]);
  }
  for (int i = 0; i < D; i++) mean[i] /= added;
  for (int row = 0; row < rows; row++) {
    for (int i = 0; i < D; i++) {
      const double difference = static_cast<double>(observations[row * D + i]) - mean[i];
      sum_of_squares[i] += difference * difference;
    }
  }
  for (int i = 0; i < D; i++) merge_moments(normalizer, i, mean[i], sum_of_squares[i], added);
  normalizer.count += added;
  apply_moments(normalizer);
}

// Normalize the first Count elements of an observation, as a policy image does.
template <int Count, class T, int D>
void normalize_part(const Normalizer<T, D>& normalizer, const T* observation, T* normalized) {
  for (int i = 0; i < Count; i++) {
    normalized[i] = (observation[i] - normalizer.shift[i]) * normalizer.scale[i];
  }
}
// Set result (Rows, D) to the first Rows of `observations`, or those with these numbers,
// normalized. An operation on rows, as those of rl/batch.h.
template <int Rows, class T, int D>
Generic normalize_rows(Generic device, const Normalizer<T, D>& normalizer, const T* observations,
                       T* result) {
  for (int row = 0; row < Rows; row++) {
    normalize_part<D>(normalizer, observations + row * D, result + row * D);
  }
  return device;
}
template <int Rows, class T, int D>
Generic normalize_rows(Generic device, const Normalizer<T, D>& normalizer, const T* observations,
                       const std::uint32_t* number, T* result) {
  for (int row = 0; row < Rows; row++) {
    normalize_part<D>(normalizer, observations + number[row] * D, result + row * D);
  }
  return device;
}

// Normalize the first D columns of rows (Rows, Columns), in place.
template <int Rows, int Columns, class T, int D>
Generic normalize_columns(Generic device, const Normalizer<T, D>& normalizer, T* rows) {
  static_assert(Columns >= D, "fewer columns than an observation has");
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < D; i++) {
      T& value = rows[row * Columns + i];
      value = (value - normalizer.shift[i]) * normalizer.scale[i];
    }
  }
  return device;
}

// Normalize an observation.
template <class T, int D>
void normalize(const Normalizer<T, D>& normalizer, const T* observation, T* normalized) {
  normalize_part<D>(normalizer, observation, normalized);
}

}  // namespace rlt
