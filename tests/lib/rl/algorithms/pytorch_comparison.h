// Compares a training run's updates with PyTorch's, from the files that tests/goldens/generate*.py
// write.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "golden_file.h"
#include "golden_run.h"
#include "numeric_differentiation.h"

namespace golden {

// As in generate.py: of what is computed element by element a part is stored.
constexpr std::size_t kStride = 7, kInputStride = 35;

inline Array every(std::size_t stride, const Array& values) {
  Array result;
  for (std::size_t i = 0; i < values.size(); i += stride) result.push_back(values[i]);
  return result;
}

inline double root_mean_square_difference(const Array& actual, const Array& expected) {
  if (actual.size() != expected.size()) return HUGE_VAL;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < actual.size(); i++) {
    difference += std::pow(actual[i] - expected[i], 2);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);  // relative to the root mean square of `expected`
}

// How far results may be from PyTorch's in double, relative to their size.
struct Tolerances {
  double inputs, losses, moments, parameters, targets;
  bool each_element;  // or the root mean square over an array's elements
};

class PyTorchComparison {
 public:
  // `prefix` is that of all the names in the file.
  PyTorchComparison(const std::string& file, const std::string& prefix,
                    const Tolerances& tolerances)
      : tolerances_(tolerances), file_(file), prefix_(prefix) {}

  // The updates' inputs are those that PyTorch had.
  void check_input(const std::string& name, const Array& values) {
    INFO("inputs have changed, run tests/goldens/generate*.py: ", name);
    inputs_[name] = values;
    CHECK(numeric::relative_difference(every(kInputStride, values), expected("inputs/" + name)) <=
          tolerances_.inputs);
  }

  void check_loss(const std::string& name, float value) const {
    CAPTURE(name);
    CHECK(value == doctest::Approx(expected(name)[0]).epsilon(tolerances_.losses));
  }

  void check_array(const std::string& name, const Array& actual, double tolerance) const {
    CAPTURE(name);
    CHECK(difference(actual, expected(name)) <= tolerance);
  }

  // What the updates have added to the network's parameters since the input `initial`.
  template <class Network>
  void check_step(const std::string& name, const std::string& initial, const Network& network,
                  std::size_t stride, double tolerance) const {
    CAPTURE(name);
    const Array before = every(stride, inputs_.at(initial));
    Array actual = every(stride, to_array(network.values, Network::kParameterCount));
    Array result = expected(name);
    REQUIRE(result.size() == before.size());
    for (std::size_t i = 0; i < before.size(); i++) {
      actual[i] -= before[i];
      result[i] -= before[i];
    }
    CHECK(difference(actual, result) <= tolerance);
  }

  template <class Optimizer>
  void check_moments(const std::string& name, const Optimizer& state,
                     std::size_t stride = kStride) const {
    constexpr int kCount = decltype(state.first_moment)::kParameterCount;
    check_array(name + "/first_moment", every(stride, to_array(state.first_moment.values, kCount)),
                tolerances_.moments);
    check_array(name + "/second_moment",
                every(stride, to_array(state.second_moment.values, kCount)), tolerances_.moments);
  }

  const Tolerances tolerances_;

 private:
  const Array& expected(const std::string& name) const { return file_[prefix_ + name]; }

  double difference(const Array& actual, const Array& expected) const {
    return tolerances_.each_element ? numeric::relative_difference(actual, expected)
                                    : root_mean_square_difference(actual, expected);
  }

  const File file_;
  const std::string prefix_;
  std::map<std::string, Array> inputs_;
};

}  // namespace golden
