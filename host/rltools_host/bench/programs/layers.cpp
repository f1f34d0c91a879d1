// layers_<WIDTH> BATCH ZEROS REPETITIONS: the three products of a dense layer WIDTH x WIDTH with
// ReLU on both sides, as JSON: ours, and BLAS's where this is built for the board host-blas, taking
// turns with the core's multiply-add peak. ZEROS percent of the inputs and output gradients are
// zero, as ReLU leaves them. `rlt bench layers` pins these programs to a core and evaluates what
// they print.
//
// One program for each RLT_WIDTH: 16 32 64 128 256 512 1024
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

#include "measuring.h"
#include "multiply_add_peak.h"
#include "rltools/core/random.h"
#include RLT_DEVICE_HEADER

namespace {

using namespace rlt;

using Ours = HostSimd;  // what the tag Host selects, with whichever board this is built for

constexpr int kWidth = RLT_WIDTH;
constexpr int kBatches[] = {1, 32, 100, 256};
constexpr double kPeakSeconds = 0.02, kProductSeconds = 0.01;  // of one repetition

using Floats = std::vector<float>;

Floats random_values(int count, std::uint32_t stream, float zeros) {
  Floats values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; i++) {
    const auto index = static_cast<std::uint32_t>(i);
    const float share = uniform<float>({7, Purpose::shuffle, stream, 1}, index, 0.0f, 1.0f);
    values[index] =
        share < zeros ? 0.0f : uniform<float>({7, Purpose::shuffle, stream, 0}, index, -1.0f, 1.0f);
  }
  return values;
}

// What the products of a layer width x width read.
struct Layer {
  int width, batch;
  Floats weights, bias, input, gradient;

  Layer(int width_, int batch_, float zeros)
      : width(width_),
        batch(batch_),
        weights(random_values(width * width, 1, 0.0f)),
        bias(random_values(width, 2, 0.0f)),
        input(random_values(batch * width, 3, zeros)),
        gradient(random_values(batch * width, 4, zeros)) {}
};

// A product of one shape; `result` has `elements`. BLAS's is null where it is not compiled in.
struct Product {
  using Run = void (*)(const Layer& layer, float* result);
  const char* name;
  int elements;
  Run ours, blas;
  bool blas_is_selected;
};

template <int Width, int Batch, class Device>
auto forward(Device device, const Layer& layer, float* result) {
  return dense_forward<Activation::relu, Batch, Width, Width>(
      device, layer.weights.data(), layer.bias.data(), layer.input.data(), result);
}

// The result are the weights', then the bias's.
template <int Width, int Batch, class Device>
auto weight_gradient(Device device, const Layer& layer, float* result) {
  return dense_backward_weights<Batch, Width, Width>(
      device, layer.input.data(), layer.gradient.data(), result, result + Width * Width);
}

template <int Width, int Batch, class Device>
auto input_gradient(Device device, const Layer& layer, float* result) {
  return dense_backward_input<Activation::relu, Batch, Width, Width>(
      device, layer.weights.data(), layer.gradient.data(), nullptr, layer.input.data(), result);
}

// Whether a product of this shape has BLAS's tag on the device of this build.
#define SELECTS_BLAS(product)                                                               \
  std::is_same_v<decltype(product<Width, Batch>(RLT_DEVICE{}, std::declval<const Layer&>(), \
                                                std::declval<float*>())),                   \
                 Blas>

using Products = std::array<Product, 3>;

template <int Width, int Batch>
Products products() {
  Products all = {{
      {"forward", Batch * Width,
       [](const Layer& layer, float* result) { forward<Width, Batch>(Ours{}, layer, result); },
       nullptr, false},
      {"weight gradient", Width * Width + Width,
       [](const Layer& layer, float* result) {
         weight_gradient<Width, Batch>(Ours{}, layer, result);
       },
       nullptr, false},
      {"input gradient", Batch * Width,
       [](const Layer& layer, float* result) {
         input_gradient<Width, Batch>(Ours{}, layer, result);
       },
       nullptr, false},
  }};
#if defined(RLT_OPENBLAS)  // whatever the shape
  all[0].blas = [](const Layer& layer, float* result) {
    kernels::blas::forward<Activation::relu, Batch, Width, Width>(
        layer.weights.data(), layer.bias.data(), layer.input.data(), result);
  };
  all[1].blas = [](const Layer& layer, float* result) {
    kernels::blas::backward_weights<Batch, Width, Width>(layer.input.data(), layer.gradient.data(),
                                                         result, result + Width * Width);
  };
  all[2].blas = [](const Layer& layer, float* result) {
    kernels::blas::backward_input<Activation::relu, Batch, Width, Width>(
        Blas{}, layer.weights.data(), layer.gradient.data(), nullptr, layer.input.data(), result);
  };
  all[0].blas_is_selected = SELECTS_BLAS(forward);
  all[1].blas_is_selected = SELECTS_BLAS(weight_gradient);
  all[2].blas_is_selected = SELECTS_BLAS(input_gradient);
#endif
  return all;
}

// Operations a second: two per multiply-add of the shape, whatever is skipped.
double gflops(Product::Run run, const Layer& layer, Floats& result) {
  const double run_s = seconds_per_run(kProductSeconds / 2, [&] { run(layer, result.data()); });
  return 2e-9 * layer.batch * layer.width * layer.width / run_s;
}

// Of the elements of two results, relative to the largest.
double largest_difference(const Floats& a, const Floats& b) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); i++) {
    difference = std::fmax(difference, std::fabs(static_cast<double>(a[i]) - double(b[i])));
    largest = std::fmax(largest, std::fabs(static_cast<double>(a[i])));
  }
  return difference / largest;
}

void measure(const Product& product, const Layer& layer, int repetitions,
             std::vector<double>& peaks) {
  Floats result(static_cast<std::size_t>(product.elements)), other = result;
  product.ours(layer, result.data());
  std::vector<double> ours, blas;
  std::printf("{\"name\": \"%s\"", product.name);
  if (product.blas != nullptr) {
    product.blas(layer, other.data());
    std::printf(", \"blas_is_selected\": %s, \"largest_difference\": %.9g",
                product.blas_is_selected ? "true" : "false", largest_difference(result, other));
  }
  for (int repetition = 0; repetition < repetitions; repetition++) {
    peaks.push_back(multiply_add_peak::peak_gflops(kPeakSeconds));
    std::fill(result.begin(), result.end(), 0.0f);  // gradients add up
    ours.push_back(gflops(product.ours, layer, result));
    if (product.blas != nullptr) {
      std::fill(other.begin(), other.end(), 0.0f);
      blas.push_back(gflops(product.blas, layer, other));
    }
  }
  std::printf(", ");
  print_list("ours_gflops", ours);
  if (product.blas != nullptr) {
    std::printf(", ");
    print_list("blas_gflops", blas);
  }
  std::printf("}");
}

void run(const Products& products, const Layer& layer, int repetitions) {
  std::vector<double> peaks;
  std::printf("{\"lanes\": %d, \"products\": [", kernels::kLanes);
  for (const Product& product : products) {
    if (&product != &products[0]) std::printf(", ");
    measure(product, layer, repetitions, peaks);
  }
  std::printf("], \"blas\": ");
#if defined(RLT_OPENBLAS)
  std::printf("{\"library\": \"%s\", \"kernels\": \"%s\"}", openblas_get_config(),
              openblas_get_corename());
#else
  std::printf("null");
#endif
  std::printf(", ");
  print_list("peak_gflops", peaks);
  std::printf("}\n");
}

template <std::size_t... Batch>
bool run_batch(int batch, float zeros, int repetitions, std::index_sequence<Batch...>) {
  return ((batch == kBatches[Batch] &&
           (run(products<kWidth, kBatches[Batch]>(), Layer(kWidth, batch, zeros), repetitions),
            true)) ||
          ...);
}

}  // namespace

int main(int argument_count, char** arguments) {
  const auto number = [&](int index) {
    return argument_count == 4 ? std::atoi(arguments[index]) : -1;
  };
  const int batch = number(1), zeros = number(2), repetitions = number(3);
  const bool valid = zeros >= 0 && zeros <= 100 && repetitions >= 1;
  if (!valid || !run_batch(batch, 0.01f * static_cast<float>(zeros), repetitions,
                           std::make_index_sequence<std::size(kBatches)>())) {
    std::fprintf(stderr, "usage: layers_%d BATCH ZEROS REPETITIONS\n", kWidth);
    return 2;
  }
  return 0;
}
