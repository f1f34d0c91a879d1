// The core on a processor without floating-point unit. Prints one line for each part, "<name>
// <checksum>", the same on every machine; what self_test.h finds with the core's fma and with the
// library's, "fault <whose> <text>"; and, where instructions are counted, "instructions <name>
// <count>".
#include "../../lib/core/fma_cases.h"
#include "../../lib/core/math_sample.h"
#include "machine.h"
#include "pendulum_td3.h"
#include "rltools/core/self_test.h"
#include "rltools/core/sha256.h"
#include RLT_DEVICE_HEADER

using namespace rlt;

namespace {

using Device = RLT_DEVICE;

void print_hexadecimal(const std::uint8_t* bytes, int count) {
  char text[3] = {};
  for (int i = 0; i < count; i++) {
    text[0] = "0123456789abcdef"[bytes[i] >> 4];
    text[1] = "0123456789abcdef"[bytes[i] & 15];
    machine::print(text);
  }
  machine::print("\n");
}

void report(const char* name, std::uint32_t checksum) {
  machine::print(name);
  machine::print(" ");
  const std::uint8_t bytes[] = {
      static_cast<std::uint8_t>(checksum >> 24), static_cast<std::uint8_t>(checksum >> 16),
      static_cast<std::uint8_t>(checksum >> 8), static_cast<std::uint8_t>(checksum)};
  print_hexadecimal(bytes, 4);
}

struct LibraryArithmetic : CoreArithmetic {
  static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
};

void report_fault(const char* whose, ArithmeticFault fault) {
  machine::print("fault ");
  machine::print(whose);
  machine::print(" ");
  machine::print(arithmetic_fault_text(fault));
  machine::print("\n");
}

// ---- The library's operations, on all pairs of fma_cases.h's patterns and on random numbers

constexpr std::uint32_t kPairs = fma_cases::kSignedCount * fma_cases::kSignedCount;
constexpr std::uint32_t kRandomPairs = 20000;

std::uint32_t word_of(float x) { return math::to_bits(math_sample::canonical(x)); }

template <class Operation>
std::uint32_t crc_of_pairs(Operation operation) {
  std::uint32_t crc = 0;
  for (std::uint32_t i = 0; i < kPairs + kRandomPairs; i++) {
    fma_cases::Arguments x{};
    if (i < kPairs) {
      x.a = fma_cases::signed_pattern(i / fma_cases::kSignedCount);
      x.b = fma_cases::signed_pattern(i % fma_cases::kSignedCount);
    } else {
      x = fma_cases::random_case(i - kPairs);
      x.b = i % 2u == 0u ? x.b : x.c;
    }
    const std::uint32_t word = operation(math::from_bits(x.a), math::from_bits(x.b));
    crc = crc32(&word, sizeof word, crc);
  }
  return crc;
}

// Positive and normal, with exponents from 2^-256 to 2^256.
double number_of(std::uint64_t random) {
  const std::uint64_t exponent = 1023u - 256u + (random >> 52) % 512u;
  const std::uint64_t bits = exponent << 52 | (random & 0x000fffffffffffffu);
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

template <class Operation>
std::uint32_t crc_of_doubles(Operation operation) {
  std::uint32_t crc = 0;
  for (std::uint32_t i = 0; i < kRandomPairs; i++) {
    const double result =
        operation(number_of(fma_cases::mixed(2u * i)), number_of(fma_cases::mixed(2u * i + 1u)));
    crc = crc32(&result, sizeof result, crc);
  }
  return crc;
}

void report_library() {
  report("add", crc_of_pairs([](float x, float y) { return word_of(x + y); }));
  report("subtract", crc_of_pairs([](float x, float y) { return word_of(x - y); }));
  report("multiply", crc_of_pairs([](float x, float y) { return word_of(x * y); }));
  report("divide", crc_of_pairs([](float x, float y) { return word_of(x / y); }));
  report("sqrt", crc_of_pairs([](float x, float y) {
           return word_of(math::sqrt(x)) ^ word_of(math::sqrt(y)) * 3u;
         }));
  report("compare", crc_of_pairs([](float x, float y) {
           return static_cast<std::uint32_t>(x < y) | static_cast<std::uint32_t>(x <= y) << 1 |
                  static_cast<std::uint32_t>(x == y) << 2 | static_cast<std::uint32_t>(x > y) << 3;
         }));
  report("floor", crc_of_pairs([](float x, float) { return word_of(math::floor(x)); }));
  report("convert", crc_of_pairs([](float x, float y) {
           return word_of(static_cast<float>(static_cast<std::int32_t>(math::to_bits(x)))) ^
                  word_of(static_cast<float>(static_cast<double>(x) * static_cast<double>(y)));
         }));
  report("double_multiply", crc_of_doubles([](double x, double y) { return x * y; }));
  report("double_subtract", crc_of_doubles([](double x, double y) { return x - y; }));
  report("double_divide", crc_of_doubles([](double x, double y) { return x / y; }));
  report("double_sqrt", crc_of_doubles([](double x, double) { return math::sqrt(x); }));
}

// ---- The core's functions: one in kThin of math_sample.h's arguments

constexpr std::uint32_t kThin = 331;

template <float (*kFunction)(float)>
std::uint32_t crc_of_thin_sample() {
  std::uint32_t crc = 0;
  for (std::uint32_t i = 0; i < math_sample::kCount; i += kThin) {
    const float y = kFunction(math_sample::argument(i));
    crc = crc32(&y, sizeof y, crc);
  }
  return crc;
}

void report_functions() {
  const auto fma = [](float a, float b, float c) { return math::fma(a, b, c); };
  report("fma_triples", fma_cases::crc_of_triples(fma));
  report("fma_random", fma_cases::crc_of_random_cases(fma));
  report("exp", crc_of_thin_sample<math::exp>());
  report("log", crc_of_thin_sample<math::log>());
  report("log1p", crc_of_thin_sample<math::log1p>());
  report("tanh", crc_of_thin_sample<math::tanh>());
  report("sigmoid", crc_of_thin_sample<math::sigmoid>());
  report("softplus", crc_of_thin_sample<math::softplus>());
  report("elu", crc_of_thin_sample<math::elu>());
  report("erf", crc_of_thin_sample<math::erf>());
  report("sin", crc_of_thin_sample<math::sin>());
  report("cos", crc_of_thin_sample<math::cos>());
}

// ---- Training

// Batches of 20 instead of 100, and less memory: updates begin after 100 steps.
struct SmallRun : PendulumTd3 {
  static constexpr int kBatchSize = 20;
  static constexpr int kTileRows = 10;
  static constexpr int kReplayCapacity = 200;
};
constexpr std::uint32_t kSteps = 112;

Learner<SmallRun> learner;
Replay<SmallRun> replay;
Scratch<SmallRun> scratch;

void report_training() {
  Training<SmallRun> training{{}, learner, replay, scratch};
  training.hyperparameters.seed = 5;
  const Device device{};
  initialize(device, training);
  std::uint32_t crc = 0;
  for (std::uint32_t i = 0; i < 20; i++) {
    Matrix<float, 1, 3> observation;
    Matrix<float, 1, 1> action;
    fill_uniform(Generic{}, {7, Purpose::shuffle, i}, observation.data(), 3, -3.0f, 3.0f);
    act(device, training, observation, action);
    crc = crc32(action.data(), sizeof(float), crc);
  }
  report("actions", crc);
  bool finite = true;
  for (std::uint32_t i = 0; i < kSteps; i++) finite &= train_step(device, training).finite;
  report("updates", training.learner.progress.updates << 1 | static_cast<std::uint32_t>(finite));
  Sha256 hash;
  for_each_state_tensor(
      training, [&](const TensorInfo& info, void* data) { hash.update(data, info.bytes()); });
  std::uint8_t digest[Sha256::kDigestBytes];
  hash.finish(digest);
  machine::print("state_sha256 ");
  print_hexadecimal(digest, Sha256::kDigestBytes);
}

// ---- Instructions of a layer's product

constexpr int kBatch = 20, kWidth = 64;
float weights[kWidth * kWidth], bias[kWidth], input[kBatch * kWidth], output[kBatch * kWidth];

// What the library offers: each product rounds before its sum.
[[gnu::noinline]] void multiply_and_add() {
  for (int sample = 0; sample < kBatch; sample++) {
    for (int out = 0; out < kWidth; out++) {
      float sum = bias[out];
      for (int in = 0; in < kWidth; in++) {
        sum += input[sample * kWidth + in] * weights[in * kWidth + out];
      }
      output[sample * kWidth + out] = sum;
    }
  }
}

template <class Product>
void report_instructions(const char* name, Product product) {
  const std::uint64_t before = machine::instructions();
  product();
  const std::uint64_t counted = machine::instructions() - before;
  if (counted == 0) return;
  char text[24];
  char* first = text + sizeof text;
  *--first = 0;
  *--first = '\n';
  for (std::uint64_t rest = counted; rest > 0; rest /= 10) {
    *--first = static_cast<char>('0' + rest % 10);
  }
  machine::print("instructions ");
  machine::print(name);
  machine::print(" ");
  machine::print(first);
}

template <class ProductDevice>
void product_of(ProductDevice device) {
  dense_forward<Activation::identity, kBatch, kWidth, kWidth>(device, weights, bias, input, output);
}

void report_products() {
  fill_uniform(Generic{}, {1, Purpose::shuffle, 1}, weights, kWidth * kWidth, -1.0f, 1.0f);
  fill_uniform(Generic{}, {1, Purpose::shuffle, 2}, bias, kWidth, -1.0f, 1.0f);
  fill_uniform(Generic{}, {1, Purpose::shuffle, 3}, input, kBatch * kWidth, -1.0f, 1.0f);
  report_instructions("library", multiply_and_add);
  report_instructions("reference", [] { product_of(Generic{}); });
  report_instructions("kernel", [] { product_of(Device{}); });
  report("product", crc32(output, sizeof output, 0));
  activation_forward<Activation::relu, kBatch * kWidth>(Generic{}, input, input);
  report_instructions("library_half_zero", multiply_and_add);
  report_instructions("reference_half_zero", [] { product_of(Generic{}); });
  report_instructions("kernel_half_zero", [] { product_of(Device{}); });
  report("product_half_zero", crc32(output, sizeof output, 0));
}

}  // namespace

int main() {
  report_fault("core", find_arithmetic_fault());
  report_fault("library", find_arithmetic_fault<LibraryArithmetic>());
  report_library();
  report_functions();
  report_products();
  report_training();
  machine::finish();
}
