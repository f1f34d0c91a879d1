// A running normaliser of observations: normalised = (observation - mean) / sqrt(variance +
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
constexpr double kNormaliserEpsilon = 1e-4;

template <class T, int Dimension>
struct Normaliser {
  static constexpr int kDimension = Dimension;

  double count;  // of observations
  double mean[Dimension];
  double sum_of_squares[Dimension];  // of differences from the mean
  // What follows from these, as it is applied: (observation - shift) * scale.
  T shift[Dimension];
  T scale[Dimension];
};

// Nothing taken in: observations are left as they are.
template <class T, int D>
void initialize(Normaliser<T, D>& normaliser) {
  normaliser.count = 0;
  for (int i = 0; i < D; i++) {
    normaliser.mean[i] = normaliser.sum_of_squares[i] = 0;
    normaliser.shift[i] = T(0);
    normaliser.scale[i] = T(1);
  }
}

// Shift and scale from mean and variance.
template <class T, int D>
void apply_moments(Normaliser<T, D>& normaliser) {
  for (int i = 0; i < D; i++) {
    const double variance = normaliser.sum_of_squares[i] / normaliser.count;
    normaliser.shift[i] = static_cast<T>(normaliser.mean[i]);
    normaliser.scale[i] = static_cast<T>(1.0 / math::sqrt(variance + kNormaliserEpsilon));
  }
}

// Takes in `rows` observations (rows, D).
template <class T, int D>
void take_in(Normaliser<T, D>& normaliser, const T* observations, int rows) {
  const double count = normaliser.count, added = rows;
  const double total = count + added;
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
  for (int i = 0; i < D; i++) {
    const double difference = mean[i] - normaliser.mean[i];
    normaliser.mean[i] += difference * (added / total);
    normaliser.sum_of_squares[i] +=
        sum_of_squares[i] + difference * difference * (count * added / total);
  }
  normaliser.count = total;
  apply_moments(normaliser);
}

// The first Count elements of an observation, as a policy image has it.
template <int Count, class T, int D>
void normalise_part(const Normaliser<T, D>& normaliser, const T* observation, T* normalised) {
  for (int i = 0; i < Count; i++) {
    normalised[i] = (observation[i] - normaliser.shift[i]) * normaliser.scale[i];
  }
}
// result (Rows, D) = the first Rows of `observations`, or those with these numbers, normalised. An
// operation on rows, as those of rl/batch.h.
template <int Rows, class T, int D>
Generic normalise_rows(Generic device, const Normaliser<T, D>& normaliser, const T* observations,
                       T* result) {
  for (int row = 0; row < Rows; row++) {
    normalise_part<D>(normaliser, observations + row * D, result + row * D);
  }
  return device;
}
template <int Rows, class T, int D>
Generic normalise_rows(Generic device, const Normaliser<T, D>& normaliser, const T* observations,
                       const std::uint32_t* number, T* result) {
  for (int row = 0; row < Rows; row++) {
    normalise_part<D>(normaliser, observations + number[row] * D, result + row * D);
  }
  return device;
}

// Of rows (Rows, Columns) the first D columns, normalised where they are.
template <int Rows, int Columns, class T, int D>
Generic normalise_columns(Generic device, const Normaliser<T, D>& normaliser, T* rows) {
  static_assert(Columns >= D, "fewer columns than an observation has");
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < D; i++) {
      T& value = rows[row * Columns + i];
      value = (value - normaliser.shift[i]) * normaliser.scale[i];
    }
  }
  return device;
}

// All of it.
template <class T, int D>
void normalise(const Normaliser<T, D>& normaliser, const T* observation, T* normalised) {
  normalise_part<D>(normaliser, observation, normalised);
}

}  // namespace rlt
