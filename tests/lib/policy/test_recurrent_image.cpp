// Policy images of format 2: the bits of a network with a hidden state, golden sequences, the rules
// one by one, and ten thousand damaged images.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "lstm_images.h"
#include "recurrent_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/executor.h"
#include "rltools/policy/runtime.h"

using namespace rlt;
using namespace recurrent_networks;

namespace {

constexpr int kHistory = 2;
using Runner = PolicyRunner<128, kHistory>;

PolicyImageHeader& header_of(Bytes& image) {
  return *reinterpret_cast<PolicyImageHeader*>(image.data());
}
PolicyImageRecurrence& recurrence_of(Bytes& image) {
  return *reinterpret_cast<PolicyImageRecurrence*>(image.data() + sizeof(PolicyImageHeader));
}
PolicyImageLayer& layer_of(Bytes& image, std::size_t layer) {
  return reinterpret_cast<PolicyImageLayer*>(image.data() + header_of(image).header_bytes)[layer];
}
constexpr std::size_t kStepWords = 1 + Contract::kObservationDim + 1 + 2 * Contract::kActionDim;
std::uint8_t* step_of(Bytes& image, std::size_t step) {
  return image.data() + image.size() - 4 * kStepWords * (kRecurrentExampleCount - step);
}

PolicyVerdict verdict_on(const Bytes& image) {
  static Runner runner(policy_contract<Contract>());
  const PolicyVerdict verdict = runner.accept(Generic{}, image.data(), image.size());
  CHECK((runner.view() != nullptr) == verdict.accepted());
  return verdict;
}
PolicyVerdict verdict_of_resealed(Bytes image) {
  header_of(image).crc32 = policy_image_crc32(image.data(), image.size());
  return verdict_on(image);
}
PolicyVerdict after(const std::function<void(Bytes&)>& change) {
  Bytes image = image_of<Small>(1, 4);
  change(image);
  return verdict_of_resealed(image);
}
void check_malformed(std::uint32_t where, const std::function<void(Bytes&)>& change) {
  const PolicyVerdict verdict = after(change);
  CHECK(verdict.reason == PolicyReason::malformed);
  CHECK(verdict.where == where);
}

std::vector<float> observation(std::uint32_t step) {
  std::vector<float> values;
  for (int i = 0; i < Contract::kObservationDim; i++) {
    const Channel& channel = Contract::kObservations[i];
    values.push_back(uniform<float>({3, Purpose::shuffle, step}, static_cast<std::uint32_t>(i),
                                    channel.minimum, channel.maximum));
  }
  return values;
}

struct Outcomes {
  int acted = 0, not_finite = 0;
};
// Whether the image is accepted; then an executor gives out actions of it, or refuses them.
bool acts_if_accepted(const Bytes& image, Outcomes& outcomes) {
  static Runner runner(policy_contract<Contract>());
  if (!runner.accept(Generic{}, image.data(), image.size()).accepted()) return false;
  Executor<Contract::kActionDim, kHistory> executor(policy_contract<Contract>());
  for (std::uint32_t tick = 1; tick <= 20; tick++) {
    const std::uint32_t now_us = tick * Contract::kStepInterval_us;
    std::vector<float> values = observation(tick);
    if (tick > 15) values[0] = kOverflowingHeight;
    float action[Contract::kActionDim];
    const ExecutorStatus status =
        executor.step(Generic{}, now_us, {values.data(), now_us}, action, &runner);
    outcomes.acted += status == ExecutorStatus::acted;
    outcomes.not_finite += status == ExecutorStatus::output_not_finite;
    for (int i = 0; i < Contract::kActionDim; i++) {
      REQUIRE(action[i] >= Contract::kActions[i].minimum);
      REQUIRE(action[i] <= Contract::kActions[i].maximum);
    }
  }
  return true;
}

template <class Network, class Device>
void check_same_bits(Device device) {
  const Bytes image = image_of<Network>(5, 1);
  PolicyView view;
  REQUIRE(parse_policy(image.data(), image.size(), view).accepted());
  std::vector<float> scratch(scratch_floats_to_accept(view));
  REQUIRE(check_examples(device, view, scratch.data(), scratch.size()).accepted());
  CHECK(check_examples(device, view, scratch.data(), scratch.size() - 1).reason ==
        PolicyReason::too_large);
  std::vector<float> state(state_dim(view), 0.0f);
  REQUIRE(state.size() == static_cast<std::size_t>(Network::kStateDim));
  Stepper<Network> stepper(network_of<Network>(5));
  for (std::uint32_t step = 0; step < 300; step++) {
    if (step % 100 == 50) {
      stepper.reset();
      for (float& value : state) value = 0.0f;
    }
    const std::vector<float> values = observation(step);
    float expected[2], output[2];
    stepper.take();
    stepper.step(values.data(), expected);
    stepper.keep();
    policy_forward(device, view, values.data(), state.data(), output, scratch.data());
    REQUIRE(std::memcmp(output, expected, sizeof(output)) == 0);
    REQUIRE(std::memcmp(state.data(), stepper.next_state.values, 4 * state.size()) == 0);
  }
}

}  // namespace

TEST_CASE("an image gives the bits of the network, step by step") {
  check_same_bits<Small>(Generic{});
  check_same_bits<Deep>(Host{});
}

TEST_CASE("an image states its hidden state, the step of training, and two sequences") {
  Bytes image = image_of<Small>(1, 4);
  CHECK(verdict_on(image).accepted());
  CHECK(header_of(image).version == 2);
  CHECK(header_of(image).header_bytes == 160);
  CHECK(header_of(image).example_count == 16);
  const PolicyImageRecurrence& recurrence = recurrence_of(image);
  CHECK(recurrence.state_dim == 4);
  CHECK(recurrence.trained_interval_us == 10000);
  CHECK(recurrence.max_pause_us == 40000);
  CHECK(recurrence.reset_at == 15);
  CHECK(layer_of(image, 0).kind == 0);
  CHECK(layer_of(image, 1).kind == 1);
  CHECK(layer_of(image, 1).input_dim == 6);
  CHECK(layer_of(image, 1).output_dim == 4);
  for (std::uint32_t step = 0; step < 16; step++) {
    std::uint32_t begins;
    std::memcpy(&begins, step_of(image, step), 4);
    CHECK(begins == (step == 0 || step == 10 ? 1 : 0));
  }
}

TEST_CASE("a policy without a hidden state is written in format 1") {
  Bytes image = policy_networks::small_image(Generic{}, 1);
  CHECK(header_of(image).version == 1);
  CHECK(header_of(image).header_bytes == 144);
  CHECK(header_of(image).example_count == 8);
}

TEST_CASE("sequences prove the state: a wrong bit, or a reset elsewhere, is not reproduced") {
  const auto not_reproduced = PolicyReason::example_not_reproduced;
  const auto set_begins = [](std::size_t step, std::uint32_t begins) {
    return after([=](Bytes& image) { std::memcpy(step_of(image, step), &begins, 4); });
  };
  const PolicyVerdict no_reset = set_begins(10, 0), reset_early = set_begins(7, 1);
  CHECK(no_reset.reason == not_reproduced);
  CHECK(no_reset.where == 10);
  CHECK(reset_early.reason == not_reproduced);
  CHECK(reset_early.where == 7);
  // The least bit of a hidden bias of the candidate shows in the trace, if not in the output.
  const PolicyVerdict wrong = after([](Bytes& image) {
    PolicyView view;
    REQUIRE(parse_policy(image.data(), image.size(), view).accepted());
    const auto* first =
        recurrent_parameters(kGruGates, 6, 4, view.parameters + 6 * 6).hidden_bias + 2 * 4;
    image[static_cast<std::size_t>(reinterpret_cast<const std::uint8_t*>(first) - image.data())] ^=
        1;
  });
  CHECK(wrong.reason == not_reproduced);
  CHECK(wrong.where == 0);
}

TEST_CASE("a table that contradicts itself is malformed") {
  const auto change = [](auto member, auto value) {
    return [=](Bytes& image) { recurrence_of(image).*member = value; };
  };
  using R = PolicyImageRecurrence;
  for (const std::uint32_t interval_us : {0u, 2499u, 2501u, 600000001u, 0xffffffffu}) {
    check_malformed(0, change(&R::trained_interval_us, interval_us));
  }
  for (const std::uint32_t pause_us : {0u, 2499u, 600000001u}) {
    check_malformed(0, change(&R::max_pause_us, pause_us));
  }
  CHECK(after(change(&R::max_pause_us, 2500u)).accepted());
  CHECK(after(change(&R::trained_interval_us, 2500u)).accepted());
  for (const std::uint16_t reset_at : {0, 14, 16, 17, 0x8001}) {
    check_malformed(0, change(&R::reset_at, reset_at));
  }
  CHECK(after(change(&R::reset_at, std::uint16_t{1})).accepted());
  check_malformed(0, change(&R::reserved, 1u));
  check_malformed(0, change(&R::state_dim, std::uint16_t{0}));
  check_malformed(3, change(&R::state_dim, std::uint16_t{5}));
  check_malformed(1, [](Bytes& image) { layer_of(image, 1).activation = 1; });
  check_malformed(1, [](Bytes& image) { layer_of(image, 1).kind = 3; });
  check_malformed(3, [](Bytes& image) { layer_of(image, 1).kind = 2; });
  check_malformed(1, [](Bytes& image) { layer_of(image, 1).reserved[0] = 1; });
  check_malformed(1, [](Bytes& image) { layer_of(image, 1).reserved[1] = 1; });
  check_malformed(3, [](Bytes& image) { layer_of(image, 1).kind = 0; });
  check_malformed(0, [](Bytes& image) { std::memset(step_of(image, 0), 0, 4); });
  check_malformed(4, [](Bytes& image) { step_of(image, 4)[0] = 2; });
  check_malformed(4, [](Bytes& image) { step_of(image, 4)[3] = 1; });
  CHECK(after([](Bytes& image) { header_of(image).header_bytes = 144; }).reason ==
        PolicyReason::wrong_size);
}

TEST_CASE("a recurrent layer stands in format 2 only, and format 2 has one") {
  Bytes dense = policy_networks::small_image(Generic{}, 1);
  layer_of(dense, 0).kind = 1;
  CHECK(verdict_of_resealed(dense).reason == PolicyReason::malformed);
  Bytes image(sizeof(PolicyImageHeader) + 15);
  std::memcpy(image.data(), image_of<Small>(1, 1).data(), image.size());
  header_of(image).total_bytes = static_cast<std::uint32_t>(image.size());
  CHECK(verdict_of_resealed(image).reason == PolicyReason::wrong_size);
}

TEST_CASE("a place without time or memory for the state refuses the image") {
  const Bytes image = image_of<Small>(1, 1);
  static PolicyRunner<128, 0, 8192> policy(policy_contract<Contract>());
  CHECK(policy.accept(Generic{}, image.data(), image.size()).reason ==
        PolicyReason::state_not_kept);
  // Layers 2 x 6, products 6 x 4, the state after a step, before it and the kept one 4
  // each.
  constexpr std::size_t kFloats = 2 * 6 + 6 * 4 + 3 * 4;
  PolicyRunner<kFloats, kHistory> enough(policy_contract<Contract>());
  PolicyRunner<kFloats - 1, kHistory> too_small(policy_contract<Contract>());
  CHECK(enough.accept(Generic{}, image.data(), image.size()).accepted());
  CHECK(too_small.accept(Generic{}, image.data(), image.size()).reason == PolicyReason::too_large);
}

TEST_CASE("ten thousand damaged images are refused, or act like any other") {
  const Bytes images[] = {image_of<Small>(1, 1), image_of<Deep>(2, 4), image_of<Overflowing>(3, 2),
                          lstm_images::lstm_image()};
  std::uint32_t draw = 0;
  const auto random = [&draw](std::size_t below) {
    return random_word({9, Purpose::shuffle, draw++}, 0) % below;
  };
  // Of an image: header with what it says of the hidden state, layers, channels, normalizer and
  // parameters, examples.
  enum Part { header, layers, channels, parameters, examples, kParts };
  const auto begin_of = [](Bytes& image, std::size_t part) -> std::size_t {
    const std::size_t first = header_of(image).header_bytes,
                      layer_count = 8 * header_of(image).layer_count;
    const std::size_t channel_bytes = 48 * (Contract::kObservationDim + Contract::kActionDim);
    const std::size_t begins[] = {0,
                                  first,
                                  first + layer_count,
                                  first + layer_count + channel_bytes,
                                  image.size() - 4 * kStepWords * header_of(image).example_count,
                                  image.size()};
    return begins[part];
  };
  const auto damage = [&](std::uint8_t& byte) {
    constexpr std::uint8_t kInteresting[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    byte = random(2) == 0 ? kInteresting[random(5)]
                          : static_cast<std::uint8_t>(byte ^ 1u << random(8));
  };
  int unsealed = 0, refused[kParts] = {}, accepted[kParts] = {}, proven = 0;
  Outcomes outcomes;
  for (int number = 0; number < 10000; number++) {
    Bytes image = images[random(4)];
    const Bytes whole = image;
    const std::size_t kind = random(10), part = random(kParts);
    if (kind == 0) {
      image.resize(random(image.size()));
    } else if (kind == 1) {
      image.resize(image.size() + 1 + random(200));
    } else if (kind == 2) {
      for (std::size_t i = 0; i <= random(8); i++) damage(image[random(image.size())]);
    } else {  // by somebody who knows the checksum
      const std::size_t begin = begin_of(image, part), end = begin_of(image, part + 1);
      for (std::size_t i = 0; i <= random(3); i++) damage(image[begin + random(end - begin)]);
    }
    if (image == whole) continue;
    if (kind <= 2) {
      REQUIRE_FALSE(verdict_on(image).accepted());
      unsealed++;
      continue;
    }
    if (kind >= 8) {  // and who writes examples anew, so that what is computed is right
      lstm_images::prove(image);
    } else {
      lstm_images::seal(image);
    }
    if (acts_if_accepted(image, outcomes)) {
      accepted[part]++;
      proven += kind >= 8;
    } else {
      refused[part]++;
    }
  }
  CHECK(unsealed > 2500);
  for (const int count : refused) CHECK(count > 200);
  CHECK(accepted[header] > 200);  // names, hashes and seeds are anybody's
  CHECK(proven > 500);
  CHECK(accepted[parameters] > 200);
  CHECK(outcomes.acted > 10000);
  CHECK(outcomes.not_finite > 1000);
}
