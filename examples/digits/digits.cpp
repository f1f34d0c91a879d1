// Supervised learning with the core: a network of 64-64-10 learns handwritten digits of 8 x 8
// pixels with softmax cross-entropy and Adam. Usage: digits FILE; run.py writes the file: for the
// training set, then for the test set, u32 count, pixels (count, 64) as f32 in [0, 1], labels
// (count) as u32, little-endian.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "rltools/devices/host.h"
#include "rltools/nn/loss.h"
#include "rltools/nn/mlp.h"

namespace {

constexpr int kPixels = 64, kClasses = 10;
constexpr int kBatchSize = 32, kEpochs = 40;
constexpr std::uint32_t kSeed = 0;
constexpr rlt::AdamParameters<float> kAdam{1e-3f, 0.9f, 0.999f, 1e-8f};

using Network = rlt::Mlp<float, rlt::Dimensions<kPixels, 64, kClasses>, rlt::Activation::relu,
                         rlt::Activation::identity>;

struct DataSet {
  std::vector<float> pixels;  // (count, kPixels)
  std::vector<std::uint32_t> labels;

  std::size_t count() const { return labels.size(); }
  const float* image(std::size_t index) const { return pixels.data() + index * kPixels; }
};

void read(std::FILE* file, void* destination, std::size_t bytes) {
  if (std::fread(destination, 1, bytes, file) == bytes) return;
  std::fprintf(stderr, "digits: the file is cut short: write it again with run.py\n");
  std::exit(1);
}

DataSet read_data_set(std::FILE* file) {
  std::uint32_t count;
  read(file, &count, sizeof count);
  DataSet data{std::vector<float>(std::size_t{count} * kPixels), std::vector<std::uint32_t>(count)};
  read(file, data.pixels.data(), data.pixels.size() * sizeof(float));
  read(file, data.labels.data(), count * sizeof(std::uint32_t));
  return data;
}

// Everything that training needs beside the network: the batch, activations, gradients and the
// optimizer's moments.
struct Trainer {
  rlt::AdamState<Network> optimizer;
  Network gradient;
  rlt::Matrix<float, kBatchSize, kPixels> input;
  rlt::Matrix<float, kBatchSize, kClasses> logits, logits_gradient;
  int labels[kBatchSize];
  rlt::MlpBuffer<Network, kBatchSize> buffer;
  rlt::GradientBuffer<float, kBatchSize, Network::widest_hidden()> gradient_buffer;

  // One step on the batch; returns its mean cross-entropy.
  float train(rlt::Host device, Network& network) {
    rlt::forward(device, network, input, logits, buffer);
    const float loss = rlt::softmax_cross_entropy<kBatchSize, kClasses>(
        device, logits.data(), labels, float{kBatchSize}, logits_gradient.data());
    rlt::set_zero(rlt::Generic{}, gradient);
    rlt::backward(device, network, input, logits, buffer, logits_gradient.data(), gradient, nullptr,
                  gradient_buffer);
    rlt::adam_step(device, kAdam, optimizer, gradient, network);
    return loss;
  }
};

// The epoch's order: Fisher and Yates' shuffle with random numbers that depend on seed and epoch
// only.
std::vector<std::size_t> shuffled(std::size_t count, std::uint32_t epoch) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; i++) order[i] = i;
  for (std::size_t i = count - 1; i > 0; i--) {
    const auto index = static_cast<std::uint32_t>(i);
    const std::uint32_t other =
        rlt::uniform_index({kSeed, rlt::Purpose::shuffle, epoch}, index, index + 1);
    std::swap(order[i], order[other]);
  }
  return order;
}

// The mean loss of one pass over the data, the incomplete last batch left out.
float train_epoch(rlt::Host device, Network& network, Trainer& trainer, const DataSet& data,
                  std::uint32_t epoch) {
  const std::vector<std::size_t> order = shuffled(data.count(), epoch);
  float sum = 0.0f;
  std::size_t batches = 0;
  for (std::size_t first = 0; first + kBatchSize <= data.count(); first += kBatchSize) {
    for (int row = 0; row < kBatchSize; row++) {
      const std::size_t index = order[first + static_cast<std::size_t>(row)];
      for (int i = 0; i < kPixels; i++) trainer.input(row, i) = data.image(index)[i];
      trainer.labels[row] = static_cast<int>(data.labels[index]);
    }
    sum += trainer.train(device, network);
    batches++;
  }
  return sum / static_cast<float>(batches);
}

std::size_t count_correct(rlt::Host device, const Network& network, const DataSet& data) {
  rlt::MlpBuffer<Network, 1> buffer;
  rlt::Matrix<float, 1, kClasses> logits;
  std::size_t correct = 0;
  for (std::size_t i = 0; i < data.count(); i++) {
    const rlt::MatrixView<const float, 1, kPixels> image{data.image(i)};
    rlt::forward(device, network, image, logits, buffer);
    int best = 0;
    for (int c = 1; c < kClasses; c++) best = logits(0, c) > logits(0, best) ? c : best;
    correct += static_cast<std::uint32_t>(best) == data.labels[i];
  }
  return correct;
}

double percent(std::size_t part, std::size_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

int main(int argument_count, char** arguments) {
  std::FILE* file = argument_count == 2 ? std::fopen(arguments[1], "rb") : nullptr;
  if (file == nullptr) {
    std::fprintf(stderr, "usage: digits FILE, which run.py writes\n");
    return 2;
  }
  const DataSet training_set = read_data_set(file);
  const DataSet test_set = read_data_set(file);
  std::fclose(file);

  const rlt::Host device{};
  static Network network;
  static Trainer trainer;
  rlt::initialize_kaiming(device, network, kSeed, 0);
  rlt::initialize(trainer.optimizer);
  for (std::uint32_t epoch = 0; epoch < kEpochs; epoch++) {
    const float loss = train_epoch(device, network, trainer, training_set, epoch);
    if ((epoch + 1) % 10 != 0) continue;
    const std::size_t correct = count_correct(device, network, training_set);
    std::printf("epoch %2u  loss %.4f  training accuracy %.1f %%\n", epoch + 1,
                static_cast<double>(loss), percent(correct, training_set.count()));
  }
  const std::size_t correct = count_correct(device, network, test_set);
  std::printf("test accuracy %.1f %% (%zu of %zu)\n", percent(correct, test_set.count()), correct,
              test_set.count());
  return 0;
}
