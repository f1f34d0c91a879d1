// layers WIDTH BATCH ZEROS REPETITIONS: the three products of a dense layer WIDTH x WIDTH with ReLU
// on both sides, as JSON: ours, and BLAS's where this is built for the board host-blas, taking
// turns with the core's multiply-add peak. ZEROS percent of the inputs and output gradients are
// zero, as ReLU leaves them. `rlt bench layers` pins this program to a core and evaluates what it
// prints.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "multiply_add_peak.h"
#include "rltools/core/random.h"
#include RLT_DEVICE_HEADER

namespace {

using namespace rlt;
using multiply_add_peak::seconds_now;

using Ours = HostSimd;  // what the tag Host selects, with whichever board this is built for

constexpr int kWidths[] = {16, 32, 64, 128, 256, 512, 1024};
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

template <int Width, int Batch>
struct Layer {
  Floats weights, bias, input, gradient;

  explicit Layer(float zeros)
      : weights(random_values(Width * Width, 1, 0.0f)),
        bias(random_values(Width, 2, 0.0f)),
        input(random_values(Batch * Width, 3, zeros)),
        gradient(random_values(Batch * Width, 4, zeros)) {}
};

// Each product has `run(device, layer, result)`, with what it writes in result: a vector of
// kElements, preceded by nothing else. The tag `Always` is BLAS, whatever the shape.
struct Always {};

template <int Width, int Batch>
struct Forward {
  static constexpr const char* kName = "forward";
  static constexpr int kElements = Batch * Width;
  template <class Device>
  static auto run(Device device, const Layer<Width, Batch>& layer, float* result) {
    return dense_forward<Activation::relu, Batch, Width, Width>(
        device, layer.weights.data(), layer.bias.data(), layer.input.data(), result);
  }
#if defined(RLT_OPENBLAS)
  static void run(Always, const Layer<Width, Batch>& layer, float* result) {
    kernels::blas::forward<Activation::relu, Batch, Width, Width>(
        layer.weights.data(), layer.bias.data(), layer.input.data(), result);
  }
#endif
};

template <int Width, int Batch>
struct WeightGradient {
  static constexpr const char* kName = "weight gradient";
  static constexpr int kElements = Width * Width + Width;  // the weights', then the bias's
  template <class Device>
  static auto run(Device device, const Layer<Width, Batch>& layer, float* result) {
    return dense_backward_weights<Batch, Width, Width>(
        device, layer.input.data(), layer.gradient.data(), result, result + Width * Width);
  }
#if defined(RLT_OPENBLAS)
  static void run(Always, const Layer<Width, Batch>& layer, float* result) {
    kernels::blas::backward_weights<Batch, Width, Width>(layer.input.data(), layer.gradient.data(),
                                                         result, result + Width * Width);
  }
#endif
};

template <int Width, int Batch>
struct InputGradient {
  static constexpr const char* kName = "input gradient";
  static constexpr int kElements = Batch * Width;
  template <class Device>
  static auto run(Device device, const Layer<Width, Batch>& layer, float* result) {
    return dense_backward_input<Activation::relu, Batch, Width, Width>(
        device, layer.weights.data(), layer.gradient.data(), nullptr, layer.input.data(), result);
  }
#if defined(RLT_OPENBLAS)
  static void run(Always, const Layer<Width, Batch>& layer, float* result) {
    kernels::blas::backward_input<Activation::relu, Batch, Width, Width>(
        Blas{}, layer.weights.data(), layer.gradient.data(), nullptr, layer.input.data(), result);
  }
#endif
};

// Operations a second: two per multiply-add of the shape, whatever is skipped.
template <class Product, int Width, int Batch, class Device>
double gflops(Device device, const Layer<Width, Batch>& layer, Floats& result) {
  long runs = 1;
  for (;;) {
    const double started = seconds_now();
    for (long i = 0; i < runs; i++) Product::run(device, layer, result.data());
    const double elapsed = seconds_now() - started;
    if (elapsed >= kProductSeconds / 2) {
      return 2e-9 * Batch * Width * Width * static_cast<double>(runs) / elapsed;
    }
    runs *= 2;
  }
}

// Of the elements of two results, relative to the largest.
[[maybe_unused]] double largest_difference(const Floats& a, const Floats& b) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); i++) {
    difference = std::fmax(difference, std::fabs(static_cast<double>(a[i]) - double(b[i])));
    largest = std::fmax(largest, std::fabs(static_cast<double>(a[i])));
  }
  return difference / largest;
}

void print_list(const char* name, const std::vector<double>& values) {
  std::printf(", \"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); i++) {
    std::printf("%s%.9g", i ? ", " : "", values[i]);
  }
  std::printf("]");
}

template <class Product, int Width, int Batch>
void measure(const Layer<Width, Batch>& layer, int repetitions, std::vector<double>& peaks) {
  Floats result(Product::kElements);
  Product::run(Ours{}, layer, result.data());
  std::vector<double> ours;
  std::printf("{\"name\": \"%s\"", Product::kName);
#if defined(RLT_OPENBLAS)
  Floats other(Product::kElements);
  Product::run(Always{}, layer, other.data());
  using Selected = decltype(Product::run(RLT_DEVICE{}, layer, other.data()));
  std::printf(", \"blas_is_selected\": %s, \"largest_difference\": %.9g",
              std::is_same_v<Selected, Blas> ? "true" : "false", largest_difference(result, other));
  std::vector<double> blas;
#endif
  for (int repetition = 0; repetition < repetitions; repetition++) {
    peaks.push_back(multiply_add_peak::peak_gflops(kPeakSeconds));
    std::fill(result.begin(), result.end(), 0.0f);  // gradients add up
    ours.push_back(gflops<Product>(Ours{}, layer, result));
#if defined(RLT_OPENBLAS)
    std::fill(other.begin(), other.end(), 0.0f);
    blas.push_back(gflops<Product>(Always{}, layer, other));
#endif
  }
  print_list("ours_gflops", ours);
#if defined(RLT_OPENBLAS)
  print_list("blas_gflops", blas);
#endif
  std::printf("}");
}

template <int Width, int Batch>
void run(float zeros, int repetitions) {
  const Layer<Width, Batch> layer(zeros);
  std::vector<double> peaks;
  std::printf("{\"lanes\": %d, \"products\": [", kernels::kLanes);
  measure<Forward<Width, Batch>>(layer, repetitions, peaks);
  std::printf(", ");
  measure<WeightGradient<Width, Batch>>(layer, repetitions, peaks);
  std::printf(", ");
  measure<InputGradient<Width, Batch>>(layer, repetitions, peaks);
  std::printf("], \"blas\": ");
#if defined(RLT_OPENBLAS)
  std::printf("{\"library\": \"%s\", \"kernels\": \"%s\"}", openblas_get_config(),
              openblas_get_corename());
#else
  std::printf("null");
#endif
  print_list("peak_gflops", peaks);
  std::printf("}\n");
}

template <int Width, std::size_t... Batch>
bool run_batch(int batch, float zeros, int repetitions, std::index_sequence<Batch...>) {
  return ((batch == kBatches[Batch] && (run<Width, kBatches[Batch]>(zeros, repetitions), true)) ||
          ...);
}

template <std::size_t... Width>
bool run_width(int width, int batch, float zeros, int repetitions, std::index_sequence<Width...>) {
  return ((width == kWidths[Width] &&
           run_batch<kWidths[Width]>(batch, zeros, repetitions,
                                     std::make_index_sequence<std::size(kBatches)>())) ||
          ...);
}

}  // namespace

int main(int argument_count, char** arguments) {
  const auto number = [&](int index) {
    return argument_count == 5 ? std::atoi(arguments[index]) : -1;
  };
  const int width = number(1), batch = number(2), zeros = number(3), repetitions = number(4);
  const bool valid = zeros >= 0 && zeros <= 100 && repetitions >= 1;
  if (!valid || !run_width(width, batch, 0.01f * static_cast<float>(zeros), repetitions,
                           std::make_index_sequence<std::size(kWidths)>())) {
    std::fprintf(stderr, "usage: layers WIDTH BATCH ZEROS REPETITIONS\n");
    return 2;
  }
  return 0;
}
