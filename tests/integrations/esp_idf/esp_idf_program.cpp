// The component for ESP-IDF on a flash that is played: its functions, from C as well, and the power
// failing at every byte of a push, and of the start after it.
#include <doctest/doctest.h>

#include <algorithm>

#include "esp_idf_contract.h"
#include "esp_idf_flash.h"
#include "rlt_policy.cpp"
#include "rltools/policy/image.h"

using namespace esp_idf_flash;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Net = Mlp<float, Dimensions<3, 8, 2>, Activation::relu, Activation::tanh>;
constexpr float kGood[3] = {1.0f, -2.0f, 0.5f};
constexpr std::uint32_t kStep_us = 2500, kTrial_us = 1000000;
const std::uint8_t kSha[32] = {};

template <class N>
Bytes image_of(const N& network) {
  Bytes image(policy_image_bytes<N>());
  write_policy_image(Generic{}, network, contract_in_c, {nullptr, nullptr},
                     {"valve-test", "Valve-v0", 1, 2, 3, kSha}, image.data());
  return image;
}
Bytes image_of_seed(std::uint32_t seed) {
  static Net network;
  initialize_kaiming(Generic{}, network, seed, 0);
  return image_of(network);
}
// Infinite where the height is near its upper limit.
Bytes overflowing_image() {
  using N = Mlp<float, Dimensions<3, 8, 2>, Activation::relu, Activation::identity>;
  static N network;
  for (float& value : network.values) value = 0.0f;
  network.weights(0)[0] = 1e38f;
  network.weights(1)[0] = 1.0f;
  return image_of(network);
}

struct Action {
  float values[2];
  bool operator==(const Action& other) const {
    return std::memcmp(values, other.values, sizeof(values)) == 0;
  }
};
constexpr Action kSafe{{0.0f, 0.125f}};

Action action_of(const Bytes& image) {
  static PolicyRunner<64, 0, 4096> policy(contract_in_c);
  REQUIRE(policy.accept(Generic{}, image.data(), image.size()).accepted());
  Action action;
  policy.act(Generic{}, kGood, action.values);
  return action;
}

// A chip that has just started: what the component's own variables are, but as often as one likes.
struct Chip {
  Partition opened;
  Mutex locks[2];
  SharedPolicy place;
  std::uint32_t now_us = 0;

  Chip() : place(opened, locks[0], locks[1], contract_in_c) {
    for (Mutex& lock : locks) lock.create();
    if (opened.open("policies") != ESP_OK) throw std::logic_error("the partition is there");
    place.begin();
  }
  ExecutorStatus step(Action& action, const float* observation = kGood) {
    now_us += kStep_us;
    return place.step(now_us, {observation, now_us}, action.values);
  }
  bool acts_as(const Bytes& image) {
    Action action;
    return step(action) == ExecutorStatus::acted && action == action_of(image);
  }
  bool stages(const Bytes& image) {
    const auto bytes = static_cast<std::uint32_t>(image.size());
    SlotError error = place.stage();
    for (std::uint32_t i = 0; i < bytes && error == SlotError::none; i += 100) {
      error = place.write(i, image.data() + i, bytes - i < 100 ? bytes - i : 100);
    }
    return error == SlotError::none && place.finish().accepted();
  }
  bool pushes(const Bytes& image) {
    return stages(image) && place.start_trial(now_us, kTrial_us) == SlotError::none &&
           place.confirm(now_us) == SlotError::none;
  }
  DropReason last_drop() {
    DropReason reason = DropReason::none;
    place.look([&](auto& deployment) { reason = deployment.slots().last_drop(); });
    return reason;
  }
};

const Bytes kOld = image_of_seed(1), kNew = image_of_seed(2), kOlder = image_of_seed(3);

// A flash with kOld active, kOlder previous and so many records more.
Flash prepared(int more_records) {
  flash = Flash{};
  Chip chip;
  for (int i = 0; i < more_records; i += 4)
    REQUIRE(chip.pushes(kOlder));  // none, staged, trial, active
  REQUIRE(chip.pushes(kOlder));
  REQUIRE(chip.pushes(kOld));
  return flash;
}

bool starts() {
  try {
    Chip chip;
  } catch (const PowerCut&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the power fails at every byte of a push, and of the start after it") {
  REQUIRE_FALSE(action_of(kOld) == action_of(kNew));
  long starts_seen = 0, erased_records = 0;
  // With 120 records before, the push comes to the end of their sector.
  for (const int records : {0, 120}) {
    const Flash start = prepared(records);
    for (const Left left : {Left::prefix, Left::garbage}) {
      for (std::uint64_t cut = 0;; cut++) {
        flash = start;
        flash.cut_after(cut, left);
        bool was_cut = false, succeeded = false;
        try {
          Chip chip;
          succeeded = chip.pushes(kNew);
        } catch (const PowerCut&) {
          was_cut = true;
        }
        if (!was_cut) {
          REQUIRE(succeeded);
          erased_records += flash.erases - start.erases - 1;
          break;
        }
        const Flash after = flash;
        for (std::uint64_t again = 0;; again++) {
          flash = after;
          flash.cut_after(again, left);
          const bool whole = starts();
          flash.never_cut();
          Chip chip;
          starts_seen++;
          CAPTURE(cut);
          CAPTURE(again);
          Action action;
          REQUIRE(chip.step(action) == ExecutorStatus::acted);
          REQUIRE((action == action_of(kOld) || action == action_of(kNew)));
          if (whole) {
            if (cut % 97 == 0) REQUIRE((chip.pushes(kNew) && chip.acts_as(kNew)));
            break;
          }
        }
      }
    }
  }
  MESSAGE(starts_seen << " starts");
  CHECK(starts_seen > 15000);
  CHECK(erased_records > 0);
}

TEST_CASE("a step writes nothing to the flash; what it decides is written down by the others") {
  // Records are in the first of their sectors, or in the second.
  const Flash starts[] = {prepared(0), prepared(120)};
  const struct {
    Bytes candidate;
    DropReason reason;
    float height;
    std::uint32_t passes_us;
  } cases[] = {{kNew, DropReason::deadline, 1.0f, kTrial_us},
               {overflowing_image(), DropReason::fault, 3.5f, 0}};
  for (const auto& c : cases) {
    for (int i = 0; i < 4; i++) {
      const bool is_written = i % 2 == 1;
      flash = starts[i / 2];
      Chip chip;
      REQUIRE(chip.stages(c.candidate));
      REQUIRE(chip.place.start_trial(chip.now_us, kTrial_us) == SlotError::none);
      const int writes = flash.writes, erases = flash.erases;
      Action action;
      const float observation[3] = {c.height, -2.0f, 0.5f};
      CHECK(chip.step(action) == ExecutorStatus::acted);
      chip.now_us += c.passes_us;
      chip.step(action, observation);
      CHECK(chip.last_drop() == c.reason);
      CHECK(chip.acts_as(kOld));
      CHECK(flash.writes == writes);
      CHECK(flash.erases == erases);
      if (is_written) {
        CHECK(chip.place.poll(chip.now_us));
        CHECK(flash.writes == writes + 1);
        CHECK(chip.place.poll(chip.now_us));
        CHECK(flash.writes == writes + 1);
      }
      Chip restarted;
      CHECK(restarted.last_drop() == (is_written ? c.reason : DropReason::reset));
      CHECK(restarted.acts_as(kOld));
      // The place that the step has left out does not matter to what follows.
      CHECK(chip.pushes(kNew));
      Chip again;
      CHECK(again.acts_as(kNew));
    }
  }
}

TEST_CASE("a new push comes before the reason is written down: it is first") {
  flash = prepared(0);
  Chip chip;
  REQUIRE(chip.stages(kNew));
  REQUIRE(chip.place.start_trial(chip.now_us, kTrial_us) == SlotError::none);
  chip.now_us += kTrial_us;
  CHECK(chip.acts_as(kOld));
  CHECK(chip.place.stage() == SlotError::none);
  Chip restarted;
  CHECK(restarted.last_drop() == DropReason::deadline);
}

TEST_CASE("a partition that does not fit is refused by name") {
  const esp_partition_t good = the_partition;
  Partition opened;
  CHECK(opened.open("others") == ESP_ERR_NOT_FOUND);
  the_partition.encrypted = true;
  CHECK(opened.open("policies") == ESP_ERR_NOT_SUPPORTED);
  the_partition = good;
  the_partition.readonly = true;
  CHECK(opened.open("policies") == ESP_ERR_NOT_SUPPORTED);
  the_partition = good;
  the_partition.erase_size = 512;
  CHECK(opened.open("policies") == ESP_ERR_NOT_SUPPORTED);
  the_partition = good;
  the_partition.size = 3 * kSector;
  CHECK(opened.open("policies") == ESP_ERR_INVALID_SIZE);
  the_partition = good;
  the_partition.type = ESP_PARTITION_TYPE_APP;
  CHECK(opened.open("policies") == ESP_ERR_NOT_FOUND);
  the_partition = good;
  CHECK(opened.open("policies") == ESP_OK);
}

TEST_CASE("its functions in C, from the start to a roll-back") {
  flash = Flash{};
  CHECK(init_in_c("others", nullptr, 0) == ESP_ERR_NOT_FOUND);
  static std::uint8_t built_in[4096] __attribute__((aligned(4)));
  std::copy(kOlder.begin(), kOlder.end(), built_in);
  REQUIRE(init_in_c("policies", built_in, static_cast<std::uint32_t>(kOlder.size())) == ESP_OK);
  CHECK(init_in_c("policies", nullptr, 0) == ESP_ERR_INVALID_STATE);

  std::uint32_t now_us = 0;
  Action action;
  const auto step = [&](const float* observation) {
    now_us += kStep_us;
    return rlt_policy_step(now_us, observation, now_us, action.values);
  };
  rlt_policy_state_t state;
  const auto crc32_of = [](const Bytes& image) {
    std::uint32_t value;
    std::memcpy(&value, image.data() + 12, 4);
    return value;
  };
  CHECK(step(kGood) == RLT_POLICY_ACTED);
  CHECK(action == action_of(kOlder));
  rlt_policy_state(now_us, &state);
  CHECK(state.acts);
  CHECK(state.acting_crc32 == crc32_of(kOlder));
  CHECK(state.slot_bytes == kSector);

  // The limits and the safe action are those of the C.
  CHECK(step(nullptr) == RLT_POLICY_OBSERVATION_MISSING);
  CHECK(action == kSafe);
  CHECK(rlt_policy_is_fault(RLT_POLICY_OBSERVATION_MISSING));
  CHECK_FALSE(rlt_policy_is_fault(RLT_POLICY_HELD));
  CHECK(std::string(rlt_policy_status_text(RLT_POLICY_GIVEN_UP)) ==
        executor_status_text(ExecutorStatus::given_up));
  CHECK(step(kGood) == RLT_POLICY_RECOVERING);
  CHECK(step(kGood) == RLT_POLICY_ACTED);
  for (int i = 0; i < 5; i++) step(kGood);
  CHECK(step(kGood) == RLT_POLICY_OBSERVATION_FROZEN);
  // How old an observation is, is counted from the time at which it was taken.
  now_us += 3 * kStep_us;
  CHECK(rlt_policy_step(now_us, kGood, now_us - 2 * kStep_us - 1, action.values) ==
        RLT_POLICY_OBSERVATION_STALE);

  const auto write = [](const Bytes& image) {
    return rlt_policy_write(0, image.data(), static_cast<std::uint32_t>(image.size()));
  };
  CHECK(rlt_policy_finish(nullptr) == RLT_POLICY_ERR_INCOMPLETE);
  CHECK(write(kNew) == RLT_POLICY_ERR_NOT_IN_ORDER);
  CHECK(rlt_policy_confirm(now_us) == RLT_POLICY_ERR_NO_TRIAL);
  CHECK(rlt_policy_start_trial(now_us, 1) == RLT_POLICY_ERR_NOT_STAGED);
  CHECK(rlt_policy_roll_back() == RLT_POLICY_ERR_NO_PREVIOUS);
  Bytes damaged = kNew;
  damaged[400] ^= 1;
  REQUIRE(rlt_policy_stage() == ESP_OK);
  REQUIRE(write(damaged) == ESP_OK);
  rlt_policy_verdict_t verdict;
  CHECK(rlt_policy_finish(&verdict) == RLT_POLICY_ERR_REFUSED);
  CHECK(verdict.reason == static_cast<int>(PolicyReason::wrong_crc));
  CHECK(std::string(verdict.text) == policy_reason_text(PolicyReason::wrong_crc));
  REQUIRE(rlt_policy_stage() == ESP_OK);
  CHECK(write(Bytes(kSector + 1)) == RLT_POLICY_ERR_TOO_LARGE);

  REQUIRE(rlt_policy_stage() == ESP_OK);
  REQUIRE(write(kNew) == ESP_OK);
  rlt_policy_state(now_us, &state);
  CHECK(state.received_bytes == kNew.size());
  REQUIRE(rlt_policy_finish(nullptr) == ESP_OK);
  REQUIRE(rlt_policy_start_trial(now_us, kTrial_us) == ESP_OK);
  CHECK(rlt_policy_stage() == RLT_POLICY_ERR_IN_TRIAL);
  step(kGood);
  CHECK(action == action_of(kNew));
  rlt_policy_state(now_us, &state);
  CHECK(state.in_trial);
  CHECK(state.candidate == static_cast<int>(Candidate::trial));
  CHECK(state.trial_left_us == kTrial_us - kStep_us);
  REQUIRE(rlt_policy_confirm(now_us) == ESP_OK);
  CHECK(rlt_policy_poll(now_us) == ESP_OK);
  rlt_policy_state(now_us, &state);
  CHECK(state.acting_crc32 == crc32_of(kNew));
  CHECK(state.ticks > 10);

  flash.fail(true);
  CHECK(rlt_policy_stage() == ESP_OK);
  CHECK(write(kOld) == RLT_POLICY_ERR_STORAGE_FAILED);
  flash.fail(false);
  CHECK(rlt_policy_roll_back() == ESP_OK);  // to the built-in one
  step(kGood);
  CHECK(action == action_of(kOlder));
  rlt_policy_state(now_us, &state);
  CHECK(state.last_drop == static_cast<int>(DropReason::rolled_back));
}

TEST_CASE("a contract with too many actions is refused") {
  rlt_contract_t contract = contract_in_c;
  for (const int dimension : {0, CONFIG_RLT_POLICY_MAX_ACTIONS + 1}) {
    contract.action_dim = dimension;
    const rlt_policy_config_t config = {&contract, "policies", {}, nullptr, 0};
    SharedPolicy* const present = policy;
    policy = nullptr;
    CHECK(rlt_policy_init(&config) == ESP_ERR_INVALID_ARG);
    policy = present;
  }
}
