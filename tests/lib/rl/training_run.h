// A training run for tests: owns the three parts of an experiment's state, and hashes and copies
// that state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "rltools/core/sha256.h"
#include "rltools/rl/training.h"

namespace training_run {

using namespace rlt;

template <class E>
struct Run {
  std::unique_ptr<Learner<E>> learner = std::make_unique<Learner<E>>();
  std::unique_ptr<Replay<E>> replay = std::make_unique<Replay<E>>();
  std::unique_ptr<Scratch<E>> scratch = std::make_unique<Scratch<E>>();
  Training<E> training{{}, *learner, *replay, *scratch};

  Run() = default;
  explicit Run(std::uint32_t seed) { training.hyperparameters.seed = seed; }

  // Compiled once: a step inlined at every call would take the compiler long.
  template <class Device>
  [[gnu::noinline]] StepReport<E> step(Device device) {
    return train_step(device, training);
  }
  template <class Device>
  void train(Device device, std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; i++) step(device);
  }

  // Full names of the state's tensors, in the documented order.
  std::vector<std::string> tensor_names() {
    std::vector<std::string> names;
    for_each_state_tensor(training, [&](const TensorInfo& info, void*) {
      names.emplace_back();
      write_full_name(info, [&](char c) { names.back() += c; });
    });
    return names;
  }

  // The state's bytes in the documented order: the checkpoint's payload.
  std::vector<std::uint8_t> state() {
    std::vector<std::uint8_t> bytes;
    for_each_state_tensor(training, [&](const TensorInfo& info, void* data) {
      for_each_piece(info, data, [&](const std::uint8_t* piece, std::uint32_t count) {
        bytes.insert(bytes.end(), piece, piece + count);
      });
    });
    return bytes;
  }
  void set_state(const std::vector<std::uint8_t>& bytes) {
    std::size_t offset = 0;
    for_each_state_tensor(training, [&](const TensorInfo& info, void* data) {
      for_each_piece(info, data, [&](std::uint8_t* piece, std::uint32_t count) {
        std::copy_n(bytes.data() + offset, count, piece);
        offset += count;
      });
    });
  }

  std::string state_sha256() {
    Sha256 hash;
    const std::vector<std::uint8_t> bytes = state();
    hash.update(bytes.data(), bytes.size());
    std::uint8_t digest[Sha256::kDigestBytes];
    hash.finish(digest);
    std::string text;
    for (const std::uint8_t byte : digest) {
      char hexadecimal[3];
      std::snprintf(hexadecimal, sizeof hexadecimal, "%02x", byte);
      text += hexadecimal;
    }
    return text;
  }
};

// The hash of the state after so many steps of a new run.
template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps) {
  Run<E> run(7);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

}  // namespace training_run
