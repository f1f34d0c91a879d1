// The Crazyflie's controller on a bench: what the firmware would tell it, and images to push.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "../../lib/policy/entry_images.h"
#include "controller_logic.h"
#include "rltools/devices/host.h"
#include "rltools/policy/image.h"

namespace crazyflie_bench {

using namespace rlt;
using Contract = contracts::Quadrotor;
using Bytes = std::vector<std::uint8_t>;
using Linear = Mlp<float, Dimensions<Contract::kObservationDim, Contract::kActionDim>,
                   Activation::identity, Activation::identity>;
using Large = Mlp<float, Dimensions<Contract::kObservationDim, 64, 64, Contract::kActionDim>,
                  Activation::relu, Activation::tanh>;
constexpr std::uint32_t kSlotBytes = 112 * 256;
using Controller = crazyflie::Controller<Host, kSlotBytes, 144>;

// The contract's ranges: what these tests are about is what comes after the entry.
constexpr EntryEnvelope kAnyEntry = {20.0f, 10.0f, 3.15f, 70.0f, 0.0f};

template <class Network>
Bytes image_of(const Network& network, bool has_normalizer = false,
               const EntryEnvelope& entry = kAnyEntry) {
  static const std::uint8_t sha[32] = {};
  static const PolicyOrigin origin{"hover-test", "Quadrotor-v0", 1, 2, 3, sha};
  static float mean[Contract::kObservationDim], inverse_std[Contract::kObservationDim];
  for (float& value : inverse_std) value = 1.0f;
  const PolicyNormalizer normalizer{has_normalizer ? mean : nullptr,
                                    has_normalizer ? inverse_std : nullptr};
  Bytes image(policy_image_bytes<Network>(has_normalizer));
  write_policy_image(Host{}, network, policy_contract<Contract>(), normalizer, origin,
                     image.data());
  return entry_images::with_entry(image, entry);
}

// Whatever it sees, it gives rotor i the thrust thrusts[i].
inline Bytes constant_policy(const float (&thrusts)[4]) {
  static Linear network;
  for (float& value : network.values) value = 0.0f;
  for (int i = 0; i < 4; i++) network.bias(0)[i] = 2.0f * thrusts[i] - 1.0f;
  return image_of(network);
}
inline Bytes constant_policy(float thrust) {
  return constant_policy({thrust, thrust, thrust, thrust});
}

// At its target, level, at rest; the gyroscope's noise aside.
inline RltSensed hovering() {
  RltSensed sensed{};
  sensed.quaternion[0] = 1.0f;
  sensed.is_position_target = true;
  return sensed;
}

struct Bench {
  RltSettings settings{0, 0, 0, 5, 20, 100, 200};
  RltReport report{};
  Controller controller{settings, report};
  RltSensed sensed = hovering();
  RltDecision decision{};
  std::uint32_t now_us = 1000000;
  std::uint32_t gyro_age_us = 300;
  int turn_count = 0;
  bool gyro_runs = true, gyro_is_noisy = true, estimate_runs = true;

  Bytes built_in;  // in flash

  explicit Bench(const Bytes& image = {}) : built_in(image) {
    controller.restart();
    controller.begin(built_in.empty() ? nullptr : built_in.data(),
                     static_cast<std::uint32_t>(built_in.size()));
  }

  // One turn of the stabilizer, a millisecond after the last.
  RltPilot turn() {
    now_us += 1000;
    turn_count++;
    sensed.now_us = now_us;
    if (gyro_runs) sensed.gyro_us = now_us - gyro_age_us;
    if (gyro_is_noisy) sensed.gyro_deg_s[2] += turn_count % 2 == 0 ? 0.01f : -0.01f;
    if (turn_count % 10 == 0 && estimate_runs) sensed.position_m[2] += 1e-6f;
    controller.decide(sensed, decision);
    return decision.pilot;
  }
  RltPilot turns(int count) {
    for (int i = 0; i < count; i++) turn();
    return decision.pilot;
  }
  void fly(int count) {
    settings.enable = 1;
    REQUIRE(turns(count) == RLT_PILOT_POLICY);
  }
  void land() {
    settings.enable = 0;
    REQUIRE(turn() == RLT_PILOT_STOCK);
  }
  bool send(const Bytes& image, std::uint32_t part = 25) {
    const auto bytes = static_cast<std::uint32_t>(image.size());
    for (std::uint32_t i = 0; i < bytes; i += part) {
      if (!controller.write(i, image.data() + i, bytes - i < part ? bytes - i : part)) return false;
    }
    return true;
  }
  RltUpload push(const Bytes& image) {
    if (!send(image)) return RLT_UPLOAD_FAILED;
    work();
    return static_cast<RltUpload>(report.upload);
  }
  void work() { controller.work(now_us); }
  RltReason reason() const { return static_cast<RltReason>(report.reason); }
};

}  // namespace crazyflie_bench
