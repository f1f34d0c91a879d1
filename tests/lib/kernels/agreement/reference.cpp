#include "agreement/reference.h"

namespace kernel_agreement {

namespace {

std::vector<DenseKernels> dense_table() {
  std::vector<DenseKernels> table = kernels_of_sizes<Generic>();
  for (const auto& kernels : {
           kernels_of_sums<Generic, Activation::identity>(),
           kernels_of_sums<Generic, Activation::relu>(),
           kernels_of_sums<Generic, Activation::tanh>(),
           dense_kernels<Generic, Activation::tanh, 100, 13, 4>(),
           dense_kernels<Generic, Activation::relu, 100, 64, 13>(),
           dense_kernels<Generic, Activation::relu, 100, 13, 64>(),
           kernels_of_blocks<Generic>(),
           // test_kernels_blas.cpp, test_kernels_host_threads.cpp
           dense_kernels<Generic, Activation::relu, 100, 64, 64>(),
           dense_kernels<Generic, Activation::tanh, 1, 257, 257>(),
           dense_kernels<Generic, Activation::relu, 100, 257, 3>(),
       }) {
    table.push_back(kernels);
  }
  return table;
}

template <class Kernels, class IsSame>
const Kernels* find(const std::vector<Kernels>& table, const IsSame& is_same) {
  for (const auto& kernels : table) {
    if (is_same(kernels)) return &kernels;
  }
  return nullptr;
}

}  // namespace

const DenseKernels* reference_of(const DenseKernels& device) {
  static const std::vector<DenseKernels> table = dense_table();
  return find(table, [&](const DenseKernels& kernels) {
    return kernels.activation == device.activation && kernels.batch == device.batch &&
           kernels.in == device.in && kernels.out == device.out;
  });
}

const ActivationKernels* reference_of(const ActivationKernels& device) {
  static const std::vector<ActivationKernels> table = kernels_of_activations<Generic>();
  return find(table, [&](const ActivationKernels& kernels) {
    return kernels.activation == device.activation && kernels.count == device.count;
  });
}

const OptimizerKernels* reference_of(const OptimizerKernels& device) {
  static const std::vector<OptimizerKernels> table = kernels_of_optimizer<Generic>();
  return find(table,
              [&](const OptimizerKernels& kernels) { return kernels.count == device.count; });
}

const RecurrentKernels* reference_of(const RecurrentKernels& device) {
  static const std::vector<RecurrentKernels> table{kernels_of_narrow_recurrent<Generic>(),
                                                   kernels_of_wide_recurrent<Generic>()};
  return find(table,
              [&](const RecurrentKernels& kernels) { return kernels.width == device.width; });
}

}  // namespace kernel_agreement
