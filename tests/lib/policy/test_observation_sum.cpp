// Policies that see sums over time of what they observe: which channels ask for them, what a place
// keeps, and when.
#include <doctest/doctest.h>

#include <vector>

#include "flash_model.h"
#include "past_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/deployment.h"

using namespace rlt;
using namespace past_networks;

namespace {

constexpr std::uint32_t kStep_us = Contract::kStepInterval_us;
using Flash = flash_model::Flash<256, 4>;
template <int HistoryTicks>
using DeploymentOf = PolicyDeployment<Host, Flash, 2, 64, 2, HistoryTicks>;
constexpr std::uint32_t kBlocks = 2 + 2 * 12;
constexpr auto kActed = ExecutorStatus::acted;

int meaning_of(const char* name, const char* unit = "m s", float minimum = -1.0f,
               float maximum = 1.0f) {
  return summed_observation(detail::record_of({name, unit, minimum, maximum}),
                            policy_contract<Contract>());
}

template <int HistoryTicks>
PolicyVerdict verdict_on(const std::vector<Channel>& asked) {
  PolicyRunner<64, HistoryTicks> runner(policy_contract<Contract>());
  const Bytes image = image_that_asks_for(asked, 1);
  return runner.accept(Host{}, image.data(), image.size());
}

// A board whose policy gives out the sum that it sees, as the normalized torque.
class Board {
 public:
  explicit Board(const Channel& asked)
      : deployment(Host{}, flash_, policy_contract<Contract>(), limits()) {
    static LinearNetwork network;
    for (float& value : network.values) value = 0.0f;
    network.weights(0)[5 * 2 + 1] = 1.0f;
    image = image_with(network, {asked});
    deployment.begin(image.data(), static_cast<std::uint32_t>(image.size()));
    REQUIRE(deployment.has_built_in());
  }
  static ExecutorLimits limits() {
    ExecutorLimits limits;
    limits.recovery_ticks = 2;
    return limits;
  }
  // The sum at a tick that observes this speed.
  float at(float speed, std::uint32_t after_us = kStep_us, ExecutorStatus expected = kActed) {
    now_us += after_us;
    const float observation[] = {1.0f, speed, 0.5f, 3.0f, 1e5f};
    float action[2];
    CHECK(deployment.step(now_us, {observation, now_us}, action) == expected);
    return normalized_action(action[1], -0.25f, 0.75f);  // exact: half of that range is 0.5
  }

  Bytes image;
  std::uint32_t now_us = 0;

 private:
  Flash flash_{kBlocks};

 public:
  DeploymentOf<1> deployment;
};

const Channel kSpeedSum{"speed_sum", "m/s s", -0.02f, 0.03f};
float sum_of(float speed, int ticks) { return speed * 2.5e-3f * static_cast<float>(ticks); }

}  // namespace

TEST_CASE("a channel that is named after an observation asks for its sum") {
  CHECK(meaning_of("height_sum") == 0);
  CHECK(meaning_of("speed_sum", "m/s s") == 1);
  CHECK(meaning_of("pressure_sum", "Pa s") == 4);
  CHECK(meaning_of("height_sum", "m s", 0.0f, 1.0f) == 0);
  for (const char* name : {"height", "heightsum", "height_su", "height_sum_", "height_sums",
                           "heigh_sum", "_sum", "valve_sum", "height_sum_sum"}) {
    INFO(name);
    CHECK(meaning_of(name) == -1);
  }
  CHECK(meaning_of("height_sum", "m") == -1);
  CHECK(meaning_of("height_sum", "m ss") == -1);
  CHECK(meaning_of("height_sum", "s") == -1);
  CHECK(meaning_of("height_sum", "m s", 0.1f, 1.0f) == -1);  // it begins at 0
  CHECK(meaning_of("height_sum", "m s", -1.0f, -0.1f) == -1);
}

TEST_CASE("a place with a history keeps up to eight sums, in any order with past actions") {
  CHECK(verdict_on<1>({kSpeedSum}).accepted());
  CHECK(verdict_on<6>({past("valve_t-1"), kSpeedSum, past("torque_t-6"), kSpeedSum}).accepted());
  std::vector<Channel> asked(8, kSpeedSum);
  CHECK(verdict_on<1>(asked).accepted());
  asked.push_back(kSpeedSum);
  const PolicyVerdict verdict = verdict_on<1>(asked);
  CHECK(verdict.reason == PolicyReason::too_large);
  CHECK(verdict.where == 5 + 8);
  CHECK(verdict_on<0>({kSpeedSum}).reason == PolicyReason::other_contract);
}

TEST_CASE("a sum is that of the ticks before on which the policy acted") {
  Board board(kSpeedSum);
  CHECK(board.at(1.0f) == 0.0f);
  CHECK(board.at(2.0f) == doctest::Approx(sum_of(1.0f, 1)));
  CHECK(board.at(-1.0f) == doctest::Approx(sum_of(1.0f, 3)));
  board.at(4.0f, kStep_us / 2, ExecutorStatus::held);  // no tick
  CHECK(board.at(0.0f, kStep_us / 2) == doctest::Approx(sum_of(1.0f, 2)));
  board.at(-5.0f, kStep_us, ExecutorStatus::observation_out_of_range);
  board.at(4.0f, kStep_us, ExecutorStatus::recovering);
  CHECK(board.at(0.0f) == doctest::Approx(sum_of(1.0f, 2)));
  CHECK(board.at(0.0f, 5 * kStep_us) == doctest::Approx(sum_of(1.0f, 2)));  // missed ones are none
}

TEST_CASE("a sum stays within its channel's range, and comes back from there at once") {
  Board board(kSpeedSum);
  for (int i = 0; i < 10; i++) board.at(4.0f);
  CHECK(board.at(-2.0f) == doctest::Approx(0.03f));
  CHECK(board.at(0.0f) == doctest::Approx(0.03f - sum_of(2.0f, 1)));
  for (int i = 0; i < 10; i++) board.at(-4.0f);
  CHECK(board.at(0.0f) == doctest::Approx(-0.02f));
}

TEST_CASE("sums begin at 0 again after a reset, and with another policy") {
  Board board(kSpeedSum);
  for (int i = 0; i < 4; i++) board.at(1.0f);
  SUBCASE("a reset") { board.deployment.reset_executor(); }
  SUBCASE("a trial") {
    const auto bytes = static_cast<std::uint32_t>(board.image.size());
    REQUIRE(board.deployment.stage() == SlotError::none);
    REQUIRE(board.deployment.write(0, board.image.data(), bytes) == SlotError::none);
    REQUIRE(board.deployment.finish().accepted());
    CHECK(board.at(0.0f) == doctest::Approx(sum_of(1.0f, 4)));
    REQUIRE(board.deployment.start_trial(board.now_us, 1000000) == SlotError::none);
  }
  CHECK(board.at(2.0f) == 0.0f);
  CHECK(board.at(0.0f) == doctest::Approx(sum_of(2.0f, 1)));
}

TEST_CASE("each sum has a place of its own, whatever else is asked for") {
  const Channel height{"height_sum", "m s", -1.0f, 1.0f};
  using N = Mlp<float, Dimensions<Contract::kObservationDim + 3, Contract::kActionDim>,
                Activation::relu, Activation::identity>;
  static N network;
  for (float& value : network.values) value = 0.0f;
  network.weights(0)[5 * 2] = 1.0f;      // the speed's sum to the valve
  network.weights(0)[7 * 2 + 1] = 1.0f;  // the height's to the torque
  const Bytes image = image_with(network, {kSpeedSum, past("valve_t-1"), height});
  Flash flash(kBlocks);
  DeploymentOf<1> deployment(Host{}, flash, policy_contract<Contract>());
  deployment.begin(image.data(), static_cast<std::uint32_t>(image.size()));
  float action[2];
  const float observation[] = {2.0f, -1.0f, 0.5f, 3.0f, 1e5f};
  for (std::uint32_t i = 1; i <= 4; i++) {
    deployment.step(i * kStep_us, {observation, i * kStep_us}, action);
  }
  CHECK(normalized_action(action[0], 0.0f, 1.0f) ==
        doctest::Approx(sum_of(-1.0f, 3)).epsilon(1e-4));
  CHECK(normalized_action(action[1], -0.25f, 0.75f) == doctest::Approx(sum_of(2.0f, 3)));
}
