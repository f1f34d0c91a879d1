// Actions that are choices, from the contract through the image to the place where it acts.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "policy_networks.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/executor.h"
#include "rltools/policy/runtime.h"

using namespace policy_networks;

namespace {

constexpr PolicyContract kContract = policy_contract<Chooser>();
constexpr std::size_t kFloats = 64;

// Whose outputs are its bias, whatever is observed.
ChoosingNetwork network_with(const std::vector<float>& outputs) {
  ChoosingNetwork network;
  set_zero(Generic{}, network);
  std::memcpy(network.bias(1), outputs.data(), 4 * outputs.size());
  return network;
}

Bytes image_with(const std::vector<float>& outputs) {
  return image_of_network(Generic{}, network_with(outputs), kContract);
}

PolicyVerdict verdict_at(const PolicyContract& place, Bytes image) {
  PolicyRunner<kFloats> runner(place);
  return runner.accept(Generic{}, image.data(), image.size());
}

// After `change`, with the checksum that goes with it.
template <class Change>
PolicyVerdict after(Change&& change) {
  Bytes image = image_with({1, 2, 3, 0, 1, 2});
  PolicyView view;
  REQUIRE(parse_policy(image.data(), image.size(), view).accepted());
  change(*reinterpret_cast<PolicyImageHeader*>(image.data()),
         const_cast<PolicyImageChannel*>(view.actions),
         const_cast<PolicyImageChoice*>(view.choices));
  auto& header = *reinterpret_cast<PolicyImageHeader*>(image.data());
  header.crc32 = policy_image_crc32(image.data(), image.size());
  return verdict_at(kContract, image);
}

std::vector<float> action_of(const std::vector<float>& outputs) {
  Bytes image = image_with(outputs);
  PolicyRunner<kFloats> runner(kContract);
  REQUIRE(runner.accept(Generic{}, image.data(), image.size()).accepted());
  std::vector<float> action(3);
  CHECK(runner.act(Generic{}, kGood, action.data()) == ActionSource::from_policy);
  return action;
}

}  // namespace

static_assert(choice_count(Chooser::kActions[0]) == 3 && choice_count(Chooser::kActions[1]) == 0 &&
              Chooser::kActions[0].maximum == 2.0f && ChoosingNetwork::kOutputDim == 6);

TEST_CASE("an image has the names of the choices, and outputs for each of them") {
  const Bytes image = image_with({1, 2, 3, 0, 1, 2});
  PolicyView view;
  REQUIRE(parse_policy(image.data(), image.size(), view).accepted());
  CHECK(view.header->flags == kPolicyHasChoices);
  CHECK(view.header->action_dim == 3);
  CHECK(view.output_dim == 6);
  CHECK(std::string(view.actions[0].unit) == "choice");
  CHECK(std::string(view.actions[1].unit) == "N*m");
  const char* const names[] = {"low", "middle", "high", "off", "on"};
  for (int i = 0; i < 5; i++) CHECK(std::string(view.choices[i].name) == names[i]);
  CHECK(check_contract(view, kContract).accepted());
}

TEST_CASE("the largest output of each choice is chosen, of equal ones the first") {
  using Action = std::vector<float>;
  CHECK(action_of({1, 2, 3, 0, 1, 2}) == Action{2, 0.25f, 1});
  CHECK(action_of({-1, -1, -2, 1, 0, 0}) == Action{0, 0.75f, 0});
  CHECK(action_of({-3, 7, 7, -5, -0.0f, 0.0f}) == Action{1, -0.25f, 0});
  CHECK(action_of({-3e38f, -2e38f, 3e38f, 0, 1e-45f, 0}) == Action{2, 0.25f, 0});
}

TEST_CASE("in time, what is not finite is answered with the safe choice") {
  Bytes image = image_with({1, 2, 3, 0, 1, 2});
  PolicyRunner<kFloats, 4> runner(kContract);
  REQUIRE(runner.accept(Generic{}, image.data(), image.size()).accepted());
  Executor<3, 4> executor(kContract);
  float action[3];
  CHECK(executor.step(Generic{}, 0, {kGood, 0}, action, &runner) == ExecutorStatus::acted);
  CHECK((action[0] == 2 && action[2] == 1));
  float bad[Contract::kObservationDim];
  std::memcpy(bad, kGood, sizeof bad);
  bad[1] = math::kQuietNan;
  CHECK(executor.step(Generic{}, 2500, {bad, 2500}, action, &runner) ==
        ExecutorStatus::observation_not_finite);
  for (int i = 0; i < 3; i++) CHECK(action[i] == Chooser::kSafeAction[i]);
}

TEST_CASE("what an observation forbids is not chosen, unless all of an action's choices are") {
  const auto chosen = [](const std::vector<float>& outputs, const std::vector<float>& seen) {
    constexpr PolicyContract kMasked = policy_contract<MaskedChooser>();
    Bytes image = image_of_network(Generic{}, network_with(outputs), kMasked);
    PolicyRunner<kFloats> runner(kMasked);
    REQUIRE(runner.accept(Generic{}, image.data(), image.size()).accepted());
    std::vector<float> action(3);
    CHECK(runner.act(Generic{}, seen.data(), action.data()) == ActionSource::from_policy);
    return std::vector<float>{action[0], action[2]};
  };
  using Chosen = std::vector<float>;
  const std::vector<float> outputs = {2, 1, 3, 0, 1, 2};
  // gear:high, speed, horn:on, gear:low, horn:off
  CHECK(chosen(outputs, {1, 0, 1, 1, 1}) == Chosen{2, 1});
  CHECK(chosen(outputs, {0, 0, 1, 1, 1}) == Chosen{0, 1});
  CHECK(chosen(outputs, {0, 0, 0, 0, 1}) == Chosen{1, 0});  // no mask forbids the middle
  CHECK(chosen(outputs, {0.5f, 0, 0.49f, 1, 0.5f}) == Chosen{2, 0});
  CHECK(chosen(outputs, {1, 0, 0, 1, 0}) == Chosen{2, 1});  // both are forbidden: neither is
}

TEST_CASE("an output that is not finite is answered with the safe choice") {
  ChoosingNetwork network = network_with({1, 2, 3, 0, 1, 2});
  network.weights(0)[0] = 2;  // of the height: too large a one overflows
  network.weights(1)[0] = 1;
  Bytes image = image_of_network(Generic{}, network, kContract);
  PolicyRunner<kFloats> runner(kContract);
  REQUIRE(runner.accept(Generic{}, image.data(), image.size()).accepted());
  float observation[Contract::kObservationDim] = {3e38f}, action[3];
  CHECK(runner.act(Generic{}, observation, action) == ActionSource::output_not_finite);
  for (int i = 0; i < 3; i++) CHECK(action[i] == Chooser::kSafeAction[i]);
}

TEST_CASE("a contract without a safe action takes the first of all choices") {
  PolicyContract contract = kContract;
  contract.safe_action = nullptr;
  float action[3];
  take_safe_action(contract, action);
  CHECK((action[0] == 0 && action[1] == 0.25f && action[2] == 0));
}

TEST_CASE("a policy may see its own last choices, from -1 for the first to 1 for the last") {
  Bytes image = image_with({1, 2, 3, 0, 1, 2});
  PolicyRunner<kFloats, 4> runner(kContract);
  REQUIRE(runner.accept(Generic{}, image.data(), image.size()).accepted());
  const ActionHistory<4, 3> history(3);
  float normalized[3], action[3];
  REQUIRE(runner.forward_in_time(Generic{}, kGood, history, {}, normalized, action));
  CHECK((normalized[0] == 1 && normalized[1] == 0 && normalized[2] == 1));
}

TEST_CASE("an image is refused for other choices, and a place without choices refuses it") {
  const Bytes image = image_with({1, 2, 3, 0, 1, 2});
  const auto refused = [&](const Channel& gear, const Channel& horn, std::uint32_t where) {
    const Channel actions[] = {gear, Chooser::kActions[1], horn};
    PolicyContract other = kContract;
    other.actions = actions;
    const PolicyVerdict verdict = verdict_at(other, image);
    CHECK(verdict.reason == PolicyReason::other_contract);
    CHECK(verdict.where == where);
    CHECK(contract_crc32(other) != contract_crc32(kContract));
  };
  const Channel &gear = Chooser::kActions[0], &horn = Chooser::kActions[2];
  refused(choice("gear", "low|middle|highest"), horn, 5);
  refused(choice("gear", "low|middle|hig"), horn, 5);
  refused(choice("gear", "low|high|middle"), horn, 5);
  refused(choice("gear", "low|high"), horn, 5);
  refused({"gear", "1", 0.0f, 2.0f}, horn, 5);
  refused(gear, choice("horn", "on|off"), 7);
  refused(gear, {"horn", "choice", 0.0f, 1.0f}, 7);
  CHECK(verdict_at(kContract, image).accepted());
}

TEST_CASE("an image that says that it chooses, and cannot, is malformed") {
  using Header = PolicyImageHeader;
  using Actions = PolicyImageChannel*;
  using Choices = PolicyImageChoice*;
  const auto malformed = [](auto&& change) {
    return after(change).reason == PolicyReason::malformed;
  };
  CHECK(after([](Header&, Actions, Choices) {}).accepted());
  CHECK(malformed([](Header& header, Actions, Choices) { header.flags = 0; }));
  CHECK(malformed([](Header& header, Actions, Choices) { header.flags = 4 | kPolicyHasChoices; }));
  for (const float maximum :
       {0.0f, 0.5f, 1.5f, 3.0f, 255.0f, 256.0f, -1.0f, 3e38f, math::kQuietNan, math::kInfinity}) {
    CAPTURE(maximum);
    CHECK(malformed([=](Header&, Actions actions, Choices) { actions[0].maximum = maximum; }));
  }
  CHECK(malformed([](Header&, Actions actions, Choices) { actions[0].minimum = 1; }));
  CHECK(malformed([](Header&, Actions actions, Choices) {
    actions[0].unit[0] = actions[2].unit[0] = 'C';  // none is a choice
  }));
  CHECK(malformed([](Header&, Actions actions, Choices) { actions[1].unit[1] = '|'; }));
  CHECK(malformed([](Header&, Actions, Choices choices) { choices[3].name[0] = '\0'; }));
  CHECK(malformed([](Header&, Actions, Choices choices) { choices[4].name[23] = 'x'; }));
  CHECK(malformed([](Header&, Actions, Choices choices) { choices[4].name[1] = '|'; }));
}

TEST_CASE("what a contract of choices cannot be is known before an image is written") {
  static_assert(detail::channels_fit(Chooser::kActions, 3));
  static_assert(!detail::choices_fit(choice("gear", "low||high")));
  static_assert(!detail::choices_fit(choice("gear", "low|")));
  static_assert(!detail::choices_fit({"gear", "low|high", 0.0f, 2.0f}));
  static_assert(!detail::choices_fit({"gear", "low|high", 1.0f, 2.0f}));
  static_assert(!detail::choices_fit(choice("gear", "low|a name of twenty-four by")));
  static_assert(detail::choices_fit(choice("gear", "low|a name of 23 bytes, ok.")));
  std::string most = "a";
  for (int i = 1; i < kMaxChoices; i++) most += "|a";
  CHECK(detail::choices_fit(choice("gear", most.c_str())));
  CHECK_FALSE(detail::choices_fit(choice("gear", (most + "|a").c_str())));
}
