// Fuzz target: reading and running a policy image (rltools/policy/reader.h, runtime.h). The input
// is a list of edits of an image that the core has written; then, unless the input says otherwise,
// its examples are computed anew and its length and checksum made right, so that it passes these
// checks. Its last observations may ask for past actions, and it may have a hidden state, which a
// place in time gives it.
#include "input.h"

#include <algorithm>
#include <memory>
#include <string>

#include "lstm_images.h"
#include "past_networks.h"
#include "policy_networks.h"
#include "recurrent_networks.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/executor.h"
#include "rltools/policy/runtime.h"

namespace {

using namespace fuzz;
using namespace policy_networks;

constexpr int kMaxEdits = 30;
constexpr std::size_t kImageBytes = 4096, kScratchFloats = 256;
constexpr int kHistory = 6, kMaxActions = 8;

template <Activation Hidden, Activation Output>
Bytes image_of(const PolicyNormalizer& normalizer) {
  using N = Network<Hidden, Output>;
  Bytes image(policy_image_bytes<N>(normalizer.mean != nullptr));
  write<N>(Generic{}, normalizer, image.data());
  return image;
}

const Bytes& valid_image(std::size_t number) {
  static const Bytes images[] = {image_of<Activation::relu, Activation::tanh>(kNormalizer),
                                 image_of<Activation::gelu, Activation::identity>(kNoNormalizer),
                                 image_of<Activation::softplus, Activation::sigmoid>(kNormalizer),
                                 image_of<Activation::identity, Activation::relu>(kNoNormalizer)};
  return images[number];
}
const Bytes& image_with_past_actions(std::size_t number) {
  using past_networks::image_that_asks_for;
  using past_networks::past;
  static const Bytes images[] = {
      image_that_asks_for({past("valve_t-1"), past("torque_t-6")}, 1),
      image_that_asks_for({past("torque_t-1"), past("valve_t-7"), past("valve_t-3")}, 2)};
  return images[number & 1];
}

const Bytes& recurrent_image(std::size_t number) {
  using recurrent_networks::Deep;
  using recurrent_networks::Small;
  static const Bytes images[] = {
      recurrent_networks::image_of<Small>(1, 1), recurrent_networks::image_of<Small>(2, 4),
      recurrent_networks::image_of<Deep>(3, 1), recurrent_networks::image_of<Deep>(4, 2)};
  return images[number];
}

const Bytes& lstm_image() {
  static const Bytes image = lstm_images::lstm_image();
  return image;
}

// A word somewhere, some bytes somewhere, or another length.
void edit(Input& input, Bytes& image) {
  const auto kind = input.take<std::uint8_t>();
  const std::size_t offset = input.take<std::uint16_t>() % image.size();
  switch (kind & 3) {
    case 0: {
      const Bytes bytes = input.take_bytes(kind >> 4);
      std::copy_n(bytes.begin(), std::min(bytes.size(), image.size() - offset),
                  image.begin() + static_cast<std::ptrdiff_t>(offset));
      return;
    }
    case 1: image.resize(std::max<std::size_t>(image.size() - offset, 1)); return;
    case 2: image.resize(std::min(image.size() + offset, kImageBytes)); return;
    default: {
      const auto word = input.take<std::uint32_t>();
      std::memcpy(&image[offset / 4 * 4], &word,
                  std::min<std::size_t>(4, image.size() - offset / 4 * 4));
    }
  }
}

void correct_envelope(Bytes& image) {
  if (image.size() < sizeof(PolicyImageHeader)) return;
  PolicyImageHeader header;
  std::memcpy(&header, image.data(), sizeof(header));
  header.total_bytes = static_cast<std::uint32_t>(image.size());
  std::memcpy(image.data(), &header, sizeof(header));
  header.crc32 = policy_image_crc32(image.data(), image.size());
  std::memcpy(image.data(), &header, sizeof(header));
}

// What the examples would be. False where a number of theirs is not finite.
bool correct_examples(Bytes& image, const PolicyView& policy) {
  const PolicyImageHeader& header = *policy.header;
  // Memory of the very sizes, so that the address sanitizer sees what is used beyond.
  std::vector<float> scratch(scratch_floats_to_run(policy));
  std::vector<float> output(policy.output_dim), action(header.action_dim);
  bool finite = true;
  for (std::uint32_t i = 0; i < header.example_count; i++) {
    const AliasingFloat* observation = example_observation(policy, i);
    const bool begins = policy.recurrence == nullptr || detail::begins_word(policy, i) != 0;
    float* state = begins ? nullptr : next_state(policy, scratch.data());
    const std::uint32_t trace =
        policy_trace(Generic{}, policy, observation, state, output.data(), scratch.data());
    finite = finite && all_finite(output.data(), output.size());
    scale_action(policy, observation, output.data(), action.data());
    finite = finite && all_finite(action.data(), action.size());
    const auto position = reinterpret_cast<const std::uint8_t*>(observation) - image.data();
    std::uint8_t* results = image.data() + position + 4 * header.observation_dim;
    std::memcpy(results, &trace, 4);
    std::memcpy(results + 4, output.data(), 4 * output.size());
    std::memcpy(results + 4 + 4 * output.size(), action.data(), 4 * action.size());
  }
  return finite;
}

// The contract that an image states.
struct StatedContract {
  explicit StatedContract(const PolicyView& policy) {
    const PolicyImageHeader& header = *policy.header;
    for (int i = 0; i < header.observation_dim + header.action_dim; i++) {
      const PolicyImageChannel& channel = policy.observations[i];
      channels.push_back({channel.name, channel.unit, channel.minimum, channel.maximum});
    }
    name_choices(policy);
    contract = {header.step_interval_us, header.observation_dim, header.action_dim, channels.data(),
                channels.data() + header.observation_dim};
  }
  StatedContract(const StatedContract&) = delete;

  // A choice's unit in a contract is its names, with bars between them.
  void name_choices(const PolicyView& policy) {
    if (policy.choices == nullptr) return;
    const PolicyImageChoice* choice = policy.choices;
    names.reserve(policy.header->action_dim);
    for (int i = 0; i < policy.header->action_dim; i++) {
      Channel& channel = channels[std::size_t{policy.header->observation_dim} + i];
      const int count = detail::choice_count(policy.actions[i]);
      if (count == 0) continue;
      std::string text;
      for (int k = 0; k < count; k++) text += (k == 0 ? "" : "|") + std::string(choice++->name);
      names.push_back(text);
      channel.unit = names.back().c_str();
    }
  }

  std::vector<Channel> channels;
  std::vector<std::string> names;
  PolicyContract contract;
};

void check_action(const PolicyContract& contract, const std::vector<float>& action) {
  for (int i = 0; i < contract.action_dim; i++) {
    const float value = action[static_cast<std::size_t>(i)];
    require(is_finite(value), "an action is finite");
  }
}

void act(const PolicyContract& contract, const Bytes& image, bool must_be_accepted, Input& input) {
  const auto place = std::make_unique<PolicyRunner<kScratchFloats, 0, kImageBytes>>(contract);
  const PolicyVerdict verdict = place->accept(Generic{}, image.data(), image.size());
  if (must_be_accepted) {
    require(verdict.accepted() || verdict.reason == PolicyReason::too_large,
            "an image is accepted whose every part is right");
  }
  require(verdict.accepted() == (place->view() != nullptr), "what is not accepted is not there");
  std::vector<float> observation(static_cast<std::size_t>(contract.observation_dim));
  std::vector<float> action(static_cast<std::size_t>(contract.action_dim));
  for (int turn = 0; turn < 3; turn++) {
    for (float& value : observation) value = input.take<float>();
    const ActionSource source = place->act(Generic{}, observation.data(), action.data());
    require(verdict.accepted() || source == ActionSource::no_policy, "no action without a policy");
    check_action(contract, action);
  }
}

// Return the contract of a board on which an image acts that states `contract`: without its past
// actions, of which `max_ticks` are the earliest.
PolicyContract board_contract(const PolicyView& policy, PolicyContract contract, int& max_ticks) {
  for (max_ticks = 0; contract.observation_dim > 1; contract.observation_dim--) {
    const auto& last = policy.observations[contract.observation_dim - 1];
    const auto ticks = static_cast<int>(past_action(last, contract).ticks);
    if (ticks == 0) break;
    max_ticks = std::max(max_ticks, ticks);
  }
  return contract;
}

void act_in_time(const PolicyView& policy, const PolicyContract& stated, const Bytes& image,
                 bool must_be_accepted, Input& input) {
  int max_ticks;
  const PolicyContract contract = board_contract(policy, stated, max_ticks);
  if (contract.action_dim > kMaxActions) return;
  PolicyRunner<kScratchFloats, kHistory> runner(contract);
  const PolicyVerdict verdict = runner.accept(Generic{}, image.data(), image.size());
  if (must_be_accepted) {
    const auto reason =
        max_ticks > kHistory ? PolicyReason::history_too_long : PolicyReason::accepted;
    require(verdict.reason == reason || verdict.reason == PolicyReason::too_large,
            "an image is accepted exactly when what it asks for is kept");
  }
  Executor<kMaxActions, kHistory> executor(contract);
  std::vector<float> observation(static_cast<std::size_t>(contract.observation_dim));
  std::vector<float> action(static_cast<std::size_t>(contract.action_dim));
  for (std::uint32_t turn = 0; turn < 10; turn++) {
    for (int i = 0; i < contract.observation_dim; i++) {
      const Channel& channel = contract.observations[i];
      const float part = static_cast<float>(input.take<std::uint8_t>()) / 250.0f;
      observation[static_cast<std::size_t>(i)] =
          channel.minimum + part * (channel.maximum - channel.minimum);
    }
    const std::uint32_t now_us = turn * contract.step_interval_us;
    const ExecutorStatus status =
        executor.step(Generic{}, now_us, {observation.data(), now_us}, action.data(), &runner);
    require(verdict.accepted() || status != ExecutorStatus::acted, "no action without a policy");
    check_action(contract, action);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  Input input(bytes, count);
  const auto choice = input.take<std::uint8_t>();
  const bool is_in_time = (choice & (16 | 32 | 64)) != 0;
  Bytes edited = choice & 64   ? lstm_image()
                 : choice & 32 ? recurrent_image(choice & 3)
                 : choice & 16 ? image_with_past_actions(choice & 3)
                               : valid_image(choice & 3);
  const auto edits = input.take<std::uint8_t>() % (kMaxEdits + 1);
  for (int i = 0; i < edits && !input.is_empty(); i++) edit(input, edited);
  // A copy of its very size, so that the address sanitizer sees what is read behind it.
  Bytes image(edited);
  if (!(choice & 4)) correct_envelope(image);
  PolicyView policy;
  bool right = parse_policy(image.data(), image.size(), policy).accepted();
  if (right && !(choice & 8)) {
    right = correct_examples(image, policy);
    correct_envelope(image);
    require(parse_policy(image.data(), image.size(), policy).accepted() == right,
            "an image is accepted exactly when its examples' numbers are finite");
  }
  if (!right) {
    act(policy_contract<Contract>(), image, false, input);
  } else {
    const StatedContract stated(policy);
    if (is_in_time) {
      act_in_time(policy, stated.contract, image, !(choice & 8), input);
    } else {
      act(stated.contract, image, !(choice & 8), input);
    }
  }
  return 0;
}
