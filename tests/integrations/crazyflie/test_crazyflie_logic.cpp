// Who flies a Crazyflie and when: observations in the contract's frames, faults, the way back to
// the stock controller, uploads and trials.
#include "crazyflie_bench.h"

#include <limits>

using namespace crazyflie_bench;

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("the observation is that of the target's frame") {
  // Nose to the left (yaw 90 degrees), and that is what is asked for: level.
  RltSensed sensed = hovering();
  const float half = std::sqrt(0.5f);
  sensed.quaternion[0] = half;
  sensed.quaternion[3] = half;
  sensed.target_yaw_deg = 90.0f;
  // A meter in front of its target as it looks, which is +y of the world
  sensed.target_m[0] = 3.0f;
  sensed.position_m[0] = 3.0f;
  sensed.position_m[1] = 1.0f;
  sensed.velocity_m_s[0] = -2.0f;  // to its left
  sensed.target_m_s[2] = 0.5f;
  sensed.gyro_deg_s[0] = 180.0f;
  sensed.gyro_deg_s[1] = -90.0f;
  sensed.gyro_deg_s[2] = 45.0f;
  float seen[13];
  REQUIRE(crazyflie::observe(sensed, seen));
  const double expected[13] = {1, 0, 0, 0, 2, -0.5, 1, 0, 0, 0, kPi, -kPi / 2, kPi / 4};
  for (int i = 0; i < 13; i++) {
    CAPTURE(i);
    CHECK(seen[i] == doctest::Approx(expected[i]).epsilon(1e-6).scale(1));
  }
}

TEST_CASE("the policy flies when it is enabled and a position is asked for, and not before") {
  Bench bench(constant_policy({0.1f, 0.2f, 0.3f, 0.4f}));
  CHECK(bench.report.has_built_in == 1);
  CHECK(bench.turns(10) == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_NOT_ENABLED);
  bench.settings.enable = 1;
  bench.sensed.is_position_target = false;
  CHECK(bench.turns(10) == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_NO_TARGET);
  bench.sensed.is_position_target = true;
  CHECK(bench.turn() == RLT_PILOT_POLICY);
  CHECK(bench.reason() == RLT_REASON_NONE);
  for (int i = 0; i < 100; i++) {
    REQUIRE(bench.turn() == RLT_PILOT_POLICY);
    for (int rotor = 0; rotor < 4; rotor++) {
      CHECK(bench.decision.thrusts[rotor] == doctest::Approx(0.1 * (rotor + 1)).epsilon(1e-5));
    }
  }
  CHECK(bench.report.late == 0);
  bench.settings.enable = 0;
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK(bench.decision.stock_begins);
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK_FALSE(bench.decision.stock_begins);
  CHECK(bench.report.take_overs == 1);
  CHECK(bench.decision.thrusts[0] == 0.0f);
}

TEST_CASE("each action goes to its rotor, from each observation") {
  for (int channel = 0; channel < 13; channel++) {
    static Linear network;
    for (float& value : network.values) value = 0.0f;
    for (int i = 0; i < 4; i++) network.weights(0)[channel * 4 + i] = 0.01f * float(i + 1);
    Bench bench(image_of(network));
    bench.settings.enable = 1;
    bench.sensed.position_m[0] = 1.0f;
    bench.sensed.position_m[1] = -0.5f;
    bench.sensed.velocity_m_s[2] = 2.0f;
    bench.sensed.gyro_deg_s[1] = -300.0f;
    bench.turn();
    float seen[13];
    REQUIRE(crazyflie::observe(bench.sensed, seen));
    for (int i = 0; i < 4; i++) {
      CAPTURE(channel);
      CAPTURE(i);
      const double expected = 0.5 + 0.5 * 0.01 * (i + 1) * double{seen[channel]};
      CHECK(bench.decision.thrusts[i] == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("without a policy the stock controller flies on, undisturbed") {
  Bench bench;
  bench.settings.enable = 1;
  bench.turn();  // the first one after the start
  for (int i = 0; i < 10; i++) {
    CHECK(bench.turn() == RLT_PILOT_STOCK);
    CHECK_FALSE(bench.decision.stock_begins);
  }
  CHECK(bench.reason() == RLT_REASON_NO_POLICY);
  CHECK(bench.report.take_overs == 0);
  CHECK(bench.controller.blend_thrust(30000.0f, 65535.0f) == 30000.0f);
}

TEST_CASE("before the built-in image is checked nothing flies and nothing is taken") {
  RltSettings settings{1, 0, 0, 5, 20, 100, 200};
  RltReport report{};
  Controller controller(settings, report);
  RltSensed sensed = hovering();
  RltDecision decision{};
  controller.restart();
  controller.decide(sensed, decision);
  CHECK(decision.pilot == RLT_PILOT_STOCK);
  CHECK(report.reason == RLT_REASON_UPLOAD);
  const std::uint8_t byte = 0;
  CHECK_FALSE(controller.write(0, &byte, 1));
}

TEST_CASE("faults: the last action is held for four ticks, then the stock controller takes over") {
  // What is wrong, and after how many milliseconds the stock controller flies: the policy's ticks
  // are two apart.
  const struct {
    RltReason reason;
    int least, most;
    void (*make)(Bench&);
  } faults[] = {
      // four ticks old, then five ticks
      {RLT_REASON_OBSERVATION, 10, 14, [](Bench& b) { b.gyro_runs = false; }},
      {RLT_REASON_OBSERVATION, 8, 10, [](Bench& b) { b.gyro_age_us = 5000; }},
      {RLT_REASON_OBSERVATION, 8, 10, [](Bench& b) { b.gyro_age_us = -800u; }},
      {RLT_REASON_OBSERVATION, 8, 10, [](Bench& b) { b.sensed.quaternion[0] = kNan; }},
      {RLT_REASON_OBSERVATION, 8, 10, [](Bench& b) { b.sensed.quaternion[0] = 0; }},
      {RLT_REASON_OBSERVATION, 8, 10, [](Bench& b) { b.sensed.position_m[1] = kNan; }},
      // 25 ms: the estimate, and a gyroscope whose numbers stay the same
      {RLT_REASON_OBSERVATION, 25, 40, [](Bench& b) { b.estimate_runs = false; }},
      {RLT_REASON_OBSERVATION, 25, 40, [](Bench& b) { b.gyro_is_noisy = false; }},
      // at once
      {RLT_REASON_OUT_OF_RANGE, 0, 0, [](Bench& b) { b.sensed.position_m[0] = 2.5f; }},
      {RLT_REASON_NO_TARGET, 0, 0, [](Bench& b) { b.sensed.is_position_target = false; }},
      // the contract's range, in the next tick of the policy
      {RLT_REASON_OUT_OF_RANGE, 0, 1, [](Bench& b) { b.sensed.velocity_m_s[0] = 10.1f; }},
  };
  for (const auto& fault : faults) {
    CAPTURE(&fault - faults);
    Bench bench(constant_policy(0.6f));
    bench.fly(200);
    fault.make(bench);
    int count = 0;
    while (bench.turn() == RLT_PILOT_POLICY && count < 1000) {
      CHECK(bench.decision.thrusts[3] == doctest::Approx(0.6));
      count++;
    }
    CHECK(count >= fault.least);
    CHECK(count <= fault.most);
    CHECK(bench.reason() == fault.reason);
    CHECK(bench.decision.stock_begins);
    // All is well again, and the stock controller flies all the same.
    bench.gyro_runs = bench.gyro_is_noisy = bench.estimate_runs = true;
    bench.gyro_age_us = 300;
    bench.sensed = hovering();
    CHECK(bench.turns(100) == RLT_PILOT_STOCK);
    CHECK(bench.reason() == fault.reason);
    bench.land();
    bench.fly(2);
  }
}

TEST_CASE("how far from the target a policy flies is a parameter, along each axis and both ways") {
  for (int axis = 0; axis < 3; axis++) {
    for (const float side : {-1.0f, 1.0f}) {
      Bench bench(constant_policy(0.6f));
      bench.settings.max_error_cm = 300;
      bench.fly(2);
      bench.sensed.position_m[axis] = side * 2.9f;
      CHECK(bench.turns(10) == RLT_PILOT_POLICY);
      bench.sensed.position_m[axis] = side * 3.1f;
      CHECK(bench.turn() == RLT_PILOT_STOCK);
      CHECK(bench.reason() == RLT_REASON_OUT_OF_RANGE);
    }
  }
}

TEST_CASE("faults that are not in a row are held, however many") {
  Bench bench(constant_policy(0.6f));
  bench.settings.enable = 1;
  bench.turns(10);
  for (int i = 0; i < 100; i++) {
    bench.gyro_age_us = i % 8 < 6 ? 5000 : 300;  // three ticks of four
    REQUIRE(bench.turn() == RLT_PILOT_POLICY);
  }
}

TEST_CASE("enabled anew with an unusable estimate it does not start, however well it flew before") {
  Bench bench(constant_policy(0.6f));
  bench.fly(10);
  bench.land();
  bench.sensed.quaternion[0] = kNan;
  bench.settings.enable = 1;
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_OBSERVATION);
  CHECK(bench.report.take_overs == 1);
  CHECK(bench.controller.blend_thrust(20000.0f, 65535.0f) == 20000.0f);
}

TEST_CASE("enabled anew nothing is left of the flight before: its clock, its faults, its policy") {
  Bench bench(constant_policy(0.2f));
  const auto enable_anew = [&] {
    bench.land();
    bench.settings.enable = 1;
  };
  bench.fly(10);
  enable_anew();
  bench.now_us -= 500000;  // the clock was set back meanwhile
  CHECK(bench.turns(10) == RLT_PILOT_POLICY);
  bench.gyro_age_us = 5000;
  REQUIRE(bench.turns(8) == RLT_PILOT_POLICY);  // four faults of the five
  bench.gyro_age_us = 300;
  enable_anew();
  REQUIRE(bench.turns(2) == RLT_PILOT_POLICY);
  bench.gyro_age_us = 5000;
  CHECK(bench.turns(8) == RLT_PILOT_POLICY);
  CHECK(bench.turns(2) == RLT_PILOT_STOCK);
  bench.gyro_age_us = 300;
  bench.land();
  REQUIRE(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
  bench.fly(10);
  CHECK(bench.decision.thrusts[0] == doctest::Approx(0.4));
}

TEST_CASE("a trial without time is over before it flies, and no other policy flies in its place") {
  Bench bench(constant_policy(0.2f));
  REQUIRE(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
  bench.settings.trial_s = 0;
  bench.settings.enable = 1;
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_TRIAL_OVER);
  CHECK(bench.report.last_drop == std::uint8_t(DropReason::deadline));
  CHECK(bench.report.candidate == std::uint8_t(Candidate::none));
  CHECK(bench.turns(10) == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_TRIAL_OVER);
  bench.land();
  bench.fly(10);
  CHECK(bench.decision.thrusts[0] == doctest::Approx(0.2));
  CHECK(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_FAILED);  // not while it flies
  bench.land();
  CHECK(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
}

TEST_CASE("limits: what is exactly at them is within") {
  Bench bench(constant_policy(0.6f));
  bench.settings.enable = 1;
  bench.estimate_runs = false;
  bench.sensed.position_m[0] = 0.01f * float(bench.settings.max_error_cm);
  REQUIRE(bench.turns(2) == RLT_PILOT_POLICY);
  bench.sensed.position_m[0] = std::nextafter(bench.sensed.position_m[0], 3.0f);
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_OUT_OF_RANGE);

  crazyflie::Freshness freshness;
  freshness.restart(1000);
  RltSensed sensed = hovering();
  const auto taken_at = [&](std::uint32_t now_us, bool gyro_changes) {
    if (gyro_changes) sensed.gyro_deg_s[0] += 1.0f;
    sensed.now_us = now_us;
    sensed.gyro_us = now_us - 7;
    return freshness.taken_us(sensed);
  };
  constexpr std::uint32_t kMax_us = crazyflie::Freshness::kMaxUnchanged_us;
  CHECK(taken_at(2000, true) == 1993);
  CHECK(taken_at(2000 + kMax_us, true) == 1993 + kMax_us);
  CHECK(taken_at(2001 + kMax_us, true) == 2000);  // the estimate has stopped
  sensed.position_m[0] += 1.0f;
  CHECK(taken_at(3000 + kMax_us, true) == 2993 + kMax_us);
  const std::uint32_t last_us = 3000 + kMax_us;
  sensed.position_m[0] += 1.0f;
  CHECK(taken_at(last_us + kMax_us, false) == last_us + kMax_us - 7);
  sensed.position_m[0] += 1.0f;
  CHECK(taken_at(last_us + kMax_us + 1, false) == last_us);  // the gyroscope has
}

TEST_CASE("what has stood still on the ground is fresh when the policy starts") {
  Bench bench(constant_policy(0.6f));
  bench.settings.enable = 1;
  bench.turns(10);
  bench.settings.enable = 0;
  bench.gyro_is_noisy = bench.estimate_runs = false;
  bench.turns(1000);
  bench.settings.enable = 1;
  bench.gyro_is_noisy = bench.estimate_runs = true;
  CHECK(bench.turns(100) == RLT_PILOT_POLICY);
}

TEST_CASE("a fault in the first tick: the stock controller is not reset") {
  Bench bench(constant_policy(0.6f));
  bench.turns(10);
  bench.sensed.position_m[0] = 2.5f;
  bench.settings.enable = 1;
  for (int i = 0; i < 10; i++) {
    CHECK(bench.turn() == RLT_PILOT_STOCK);
    CHECK_FALSE(bench.decision.stock_begins);
    CHECK(bench.controller.blend_thrust(20000.0f, 65535.0f) == 20000.0f);
  }
  CHECK(bench.reason() == RLT_REASON_OUT_OF_RANGE);
  CHECK(bench.report.take_overs == 0);
}

TEST_CASE("the thrust goes from the policy's to the stock controller's in equal steps") {
  Bench bench(constant_policy({0.5f, 0.6f, 0.7f, 0.6f}));
  bench.settings.enable = 1;
  bench.turns(10);
  bench.land();
  float last = 0.6f * 65535.0f;
  for (int i = 0; i < 100; i++) {
    const float thrust = bench.controller.blend_thrust(30000.0f, 65535.0f);
    if (i == 0) {
      CHECK(thrust == doctest::Approx(last));
    } else {
      CHECK(last - thrust == doctest::Approx((0.6 * 65535 - 30000) / 100).epsilon(1e-3));
    }
    last = thrust;
  }
  CHECK(bench.controller.blend_thrust(30000.0f, 65535.0f) == 30000.0f);
}

TEST_CASE("the blend is over where the stock controller switches off, and never leaves the range") {
  const auto take_over = [](Bench& bench) {
    bench.settings.enable = 1;
    bench.turns(10);
    bench.land();
  };
  Bench bench(constant_policy(1.0f)), low(constant_policy(0.0f));
  take_over(bench);
  take_over(low);
  CHECK(bench.controller.blend_thrust(60000.0f, 65535.0f) == doctest::Approx(65535.0));
  CHECK(bench.controller.blend_thrust(65000.0f, 65535.0f) == 65535.0f);
  CHECK(bench.controller.blend_thrust(0.0f, 65535.0f) == 0.0f);
  CHECK(bench.controller.blend_thrust(40000.0f, 65535.0f) == 40000.0f);
  CHECK(low.controller.blend_thrust(60000.0f, 65535.0f) == 0.0f);
  CHECK(low.controller.blend_thrust(100.0f, 65535.0f) == 0.0f);
}

TEST_CASE("a policy that is pushed is checked, tried, confirmed, and replaces the built-in one") {
  Bench bench(constant_policy(0.2f));
  CHECK(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
  CHECK(bench.report.candidate == std::uint8_t(Candidate::staged));
  bench.fly(100);
  CHECK(bench.decision.thrusts[0] == doctest::Approx(0.4));
  bench.settings.confirm = 1;
  REQUIRE(bench.turns(2) == RLT_PILOT_POLICY);
  CHECK(bench.settings.confirm == 0);
  CHECK(bench.report.candidate == std::uint8_t(Candidate::none));
  REQUIRE(bench.turns(30000) == RLT_PILOT_POLICY);  // past the trial's end
  bench.settings.roll_back = 1;
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_TRIAL_OVER);
  CHECK(bench.report.last_drop == std::uint8_t(DropReason::rolled_back));
  bench.land();
  bench.fly(2);
  CHECK(bench.decision.thrusts[0] == doctest::Approx(0.2));
}

TEST_CASE("a trial that is not confirmed ends with the stock controller, not with another policy") {
  Bench bench(constant_policy(0.2f));
  REQUIRE(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
  bench.settings.trial_s = 3;
  bench.settings.enable = 1;
  int count = 0;
  while (bench.turn() == RLT_PILOT_POLICY && count < 4000) count++;
  CHECK(count == 3000);
  CHECK(bench.reason() == RLT_REASON_TRIAL_OVER);
  CHECK(bench.report.last_drop == std::uint8_t(DropReason::deadline));
  CHECK(bench.decision.stock_begins);
  CHECK(bench.turns(100) == RLT_PILOT_STOCK);
}

TEST_CASE("a trial may be confirmed after the landing, and ends then too") {
  Bench bench;
  REQUIRE(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
  bench.fly(100);
  bench.land();
  SUBCASE("confirmed") {
    bench.settings.confirm = 1;
    bench.work();
    CHECK(bench.settings.confirm == 0);
    CHECK(bench.report.candidate == std::uint8_t(Candidate::none));
    CHECK(bench.report.active == 1);
    CHECK(bench.report.last_drop == std::uint8_t(DropReason::none));
    bench.now_us += 60000000;
    bench.work();
    bench.fly(2);
  }
  SUBCASE("too late") {
    bench.now_us += 60000000;
    bench.settings.confirm = 1;
    bench.work();
    CHECK(bench.report.last_drop == std::uint8_t(DropReason::deadline));
    bench.settings.enable = 1;
    CHECK(bench.turns(2) == RLT_PILOT_STOCK);
    CHECK(bench.reason() == RLT_REASON_NO_POLICY);
  }
  SUBCASE("rolled back") {
    bench.settings.roll_back = 1;
    bench.work();
    CHECK(bench.report.last_drop == std::uint8_t(DropReason::rolled_back));
    CHECK(bench.report.candidate == std::uint8_t(Candidate::none));
    CHECK(bench.report.active == 0);
  }
}

TEST_CASE("what was pushed is given up before its trial, and after its confirmation") {
  for (const bool is_confirmed : {false, true}) {
    Bench bench(constant_policy(0.2f));
    REQUIRE(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
    if (is_confirmed) {
      bench.fly(10);
      bench.settings.enable = 0;
      bench.settings.confirm = 1;
      bench.turn();
      bench.work();
      REQUIRE(bench.report.active == 1);
    }
    bench.settings.roll_back = 1;
    bench.work();
    CHECK(bench.report.candidate == std::uint8_t(Candidate::none));
    CHECK(bench.report.active == 0);
    CHECK(bench.report.last_drop == std::uint8_t(DropReason::rolled_back));
    bench.fly(10);
    CHECK(bench.decision.thrusts[0] == doctest::Approx(0.2));  // the compiled-in one
  }
}

TEST_CASE("while the policy flies no byte is taken, and the image that acts stays") {
  Bench bench;
  const Bytes image = constant_policy(0.4f);
  REQUIRE(bench.push(image) == RLT_UPLOAD_ACCEPTED);
  bench.settings.enable = 1;
  bench.settings.confirm = 0;
  REQUIRE(bench.turns(10) == RLT_PILOT_POLICY);
  CHECK(bench.report.candidate == std::uint8_t(Candidate::trial));  // also while it flies
  CHECK(bench.report.active == 0);
  CHECK_FALSE(bench.send(constant_policy(0.9f)));
  Bytes read(image.size());
  REQUIRE(bench.controller.read(0, read.data(), static_cast<std::uint32_t>(read.size())));
  CHECK(read == image);
  CHECK(bench.report.upload == RLT_UPLOAD_ACCEPTED);
  REQUIRE(bench.turns(10) == RLT_PILOT_POLICY);
  CHECK(bench.decision.thrusts[0] == doctest::Approx(0.4));
}

TEST_CASE("while an upload is under way the policy does not start") {
  Bench bench(constant_policy(0.2f));
  const Bytes image = constant_policy(0.4f);
  REQUIRE(bench.controller.write(0, image.data(), 100));
  bench.settings.enable = 1;
  CHECK(bench.turns(5) == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_UPLOAD);
  CHECK(bench.report.upload == RLT_UPLOAD_RECEIVING);
  CHECK(bench.report.received_bytes == 100);
  REQUIRE(bench.send(image));  // begun again
  CHECK(bench.report.upload == RLT_UPLOAD_CHECKING);
  const Bytes other(25, 0xee);
  CHECK_FALSE(bench.controller.write(0, other.data(), 25));
  CHECK(bench.turns(5) == RLT_PILOT_STOCK);
  bench.work();
  CHECK(bench.report.upload == RLT_UPLOAD_ACCEPTED);
  CHECK(bench.turns(5) == RLT_PILOT_POLICY);
  CHECK(bench.decision.thrusts[0] == doctest::Approx(0.4));
}

TEST_CASE("parts may come twice, not with gaps, not other ones, and not too many") {
  Bench bench;
  const Bytes image = constant_policy(0.4f);
  const auto write = [&](std::uint32_t at, std::uint32_t count) {
    return bench.controller.write(at, image.data() + at, count);
  };
  CHECK_FALSE(write(25, 25));
  REQUIRE(write(0, 25));
  REQUIRE(write(25, 25));
  REQUIRE(write(25, 25));
  REQUIRE(write(50, 25));
  SUBCASE("gap") { CHECK_FALSE(write(100, 25)); }
  SUBCASE("other bytes") {
    const Bytes other(25, 0xee);
    CHECK_FALSE(bench.controller.write(50, other.data(), 25));
  }
  SUBCASE("too many") {
    std::vector<std::uint8_t> much(kSlotBytes + 1);
    CHECK_FALSE(bench.controller.write(75, much.data(), kSlotBytes));
  }
  CHECK(bench.report.upload == RLT_UPLOAD_FAILED);
  CHECK_FALSE(write(75, 25));
  CHECK(bench.push(image) == RLT_UPLOAD_ACCEPTED);
}

TEST_CASE("an image is checked when its last byte has come, and is read back from its slot") {
  Bench bench;
  const Bytes image = constant_policy(0.4f);
  const auto bytes = static_cast<std::uint32_t>(image.size());
  for (std::uint32_t i = 0; i < bytes; i++) {
    CHECK(bench.report.upload != RLT_UPLOAD_CHECKING);
    REQUIRE(bench.controller.write(i, image.data() + i, 1));
  }
  CHECK(bench.report.upload == RLT_UPLOAD_CHECKING);
  std::uint8_t read[2];
  REQUIRE(bench.controller.read(bytes - 2, read, 2));
  CHECK(std::memcmp(read, image.data() + bytes - 2, 2) == 0);
  CHECK(bench.controller.memory_bytes() == kSlotBytes);
  CHECK(bench.controller.read(kSlotBytes - 1, read, 1));
  CHECK_FALSE(bench.controller.read(kSlotBytes - 1, read, 2));
  CHECK_FALSE(bench.controller.read(kSlotBytes + 1, read, 1));
}

TEST_CASE("the last part may come again when the upload is over, and nothing else") {
  Bench bench;
  const Bytes image = constant_policy(0.4f);
  const auto bytes = static_cast<std::uint32_t>(image.size());
  const auto again = [&] {
    CHECK(bench.controller.write(bytes - 24, image.data() + bytes - 24, 24));
    CHECK_FALSE(bench.controller.write(bytes - 24, image.data(), 24));
    Bytes longer(image.end() - 24, image.end());
    longer.resize(25);  // and what lies behind it in the slot
    REQUIRE(bench.controller.read(bytes, longer.data() + 24, 1));
    CHECK_FALSE(bench.controller.write(bytes - 24, longer.data(), 25));
    CHECK_FALSE(bench.controller.write(bytes, image.data(), 1));
  };
  REQUIRE(bench.send(image, 24));
  again();
  CHECK(bench.report.upload == RLT_UPLOAD_CHECKING);
  bench.work();
  again();
  CHECK(bench.report.upload == RLT_UPLOAD_ACCEPTED);
  bench.fly(10);
  again();
  CHECK(bench.turns(10) == RLT_PILOT_POLICY);
}

TEST_CASE("an image that is not as it should be is refused, and the stock controller flies") {
  Bench bench;
  Bytes image = constant_policy(0.4f);
  bench.settings.enable = 1;
  SUBCASE("a bit") {
    image[image.size() - 100] ^= 1;
    CHECK(bench.push(image) == RLT_UPLOAD_REFUSED);
    CHECK(bench.report.refusal == std::uint8_t(PolicyReason::wrong_crc));
  }
  SUBCASE("another contract") {
    PolicyImageHeader header;
    std::memcpy(&header, image.data(), sizeof(header));
    header.step_interval_us = 10000;
    std::memcpy(image.data(), &header, sizeof(header));
    header.crc32 = policy_image_crc32(image.data(), image.size());
    std::memcpy(image.data(), &header, sizeof(header));
    CHECK(bench.push(image) == RLT_UPLOAD_REFUSED);
    CHECK(bench.report.refusal == std::uint8_t(PolicyReason::other_contract));
  }
  CHECK(bench.turns(5) == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_NO_POLICY);
  CHECK(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
}

TEST_CASE("an output that is not finite: at once, and the policy is dropped") {
  static Linear network;
  for (float& value : network.values) value = 0.0f;
  // Overflows where x + y + z of the position's error is above 13.5 m, which no example reaches.
  for (int channel = 0; channel < 3; channel++) network.weights(0)[channel * 4] = 3.4e38f / 13.5f;
  Bench bench(constant_policy(0.2f));
  bench.settings.max_error_cm = 500;
  REQUIRE(bench.push(image_of(network)) == RLT_UPLOAD_ACCEPTED);
  bench.fly(10);
  for (float& position : bench.sensed.position_m) position = 4.9f;
  CHECK(bench.turns(2) == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_OUTPUT);
  CHECK(bench.report.last_drop == std::uint8_t(DropReason::fault));
}

TEST_CASE("another controller was chosen in between: the stock one begins") {
  Bench bench(constant_policy(0.2f));
  bench.fly(10);
  bench.controller.restart();
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK(bench.decision.stock_begins);
  CHECK(bench.reason() == RLT_REASON_RESTARTED);
  CHECK(bench.controller.blend_thrust(20000.0f, 65535.0f) == 20000.0f);
  CHECK(bench.turn() == RLT_PILOT_STOCK);
  CHECK_FALSE(bench.decision.stock_begins);
  CHECK(bench.push(constant_policy(0.4f)) == RLT_UPLOAD_ACCEPTED);
}

TEST_CASE("the clock wraps, and is set back") {
  Bench bench(constant_policy(0.2f));
  bench.now_us = 0xffffffffu - 50000u;
  bench.fly(1000);
  bench.now_us = 1000000000;
  bench.turns(10);
  bench.now_us = 0;  // parameter usec.reset
  CHECK(bench.turns(20) == RLT_PILOT_STOCK);
  CHECK(bench.reason() == RLT_REASON_OBSERVATION);
}

TEST_CASE("a network of 13-64-64-4 fits its slot, with a normalizer") {
  static Large network;
  initialize_kaiming(Host{}, network, 1, 0);
  Bench bench;
  const Bytes image = image_of(network, true);
  CHECK(image.size() == 23056 + sizeof(PolicyImageEntry));
  CHECK(bench.push(image) == RLT_UPLOAD_ACCEPTED);
  bench.fly(100);
}

TEST_CASE("outside of what the policy may be handed the stock controller stays, by name") {
  static Linear network;
  for (float& value : network.values) value = 0.0f;
  constexpr EntryEnvelope kEntry = {2.0f, 1.0f, 0.5f, 3.0f, 1.5f};
  const Bytes image = image_of(network, false, kEntry);
  const struct {
    RltReason reason;
    void (*make)(Bench&);
  } entries[] = {
      {RLT_REASON_TOO_FAST, [](Bench& b) { b.sensed.velocity_m_s[1] = -2.01f; }},
      {RLT_REASON_TOO_FAR, [](Bench& b) { b.sensed.target_m[0] = 1.01f; }},
      {RLT_REASON_TOO_TILTED,
       [](Bench& b) {
         b.sensed.quaternion[0] = std::cos(0.255f);
         b.sensed.quaternion[1] = std::sin(0.255f);
       }},
      {RLT_REASON_TURNS_TOO_FAST, [](Bench& b) { b.sensed.gyro_deg_s[0] = 173.0f; }},
      {RLT_REASON_TOO_LOW, [](Bench& b) { b.sensed.position_m[2] = b.sensed.target_m[2] = 0.49f; }},
  };
  for (const auto& entry : entries) {
    CAPTURE(entry.reason);
    Bench bench(image);
    bench.sensed.position_m[2] = bench.sensed.target_m[2] = 3.0f;
    const RltSensed good = bench.sensed;
    entry.make(bench);
    bench.settings.enable = 1;
    CHECK(bench.turns(5) == RLT_PILOT_STOCK);
    CHECK(bench.reason() == entry.reason);
    bench.sensed = good;
    CHECK(bench.turns(100) == RLT_PILOT_STOCK);  // not by itself, and the reason stays
    CHECK(bench.reason() == entry.reason);
    CHECK(bench.report.take_overs == 0);
    bench.land();
    bench.fly(50);
    entry.make(bench);
    CHECK(bench.turn() == RLT_PILOT_POLICY);  // it was handed over before
  }
}

TEST_CASE("the envelope is that of the policy that would fly: staged, given up, built in") {
  static Linear network;
  for (float& value : network.values) value = 0.0f;
  Bench bench(image_of(network, false, {3.0f, 1.0f, 0.5f, 3.0f, 0.0f}));
  const auto enters_at = [&](float speed) {
    bench.sensed.velocity_m_s[0] = speed;
    bench.settings.enable = 1;
    const bool enters = bench.turn() == RLT_PILOT_POLICY;
    bench.settings.enable = 0;
    bench.turn();
    return enters;
  };
  CHECK(enters_at(3.0f));
  REQUIRE(bench.push(image_of(network, false, {1.0f, 1.0f, 0.5f, 3.0f, 0.0f})) ==
          RLT_UPLOAD_ACCEPTED);
  CHECK_FALSE(enters_at(1.5f));
  CHECK(bench.report.candidate == static_cast<std::uint8_t>(Candidate::staged));  // no trial
  CHECK(enters_at(1.0f));
  CHECK(bench.report.candidate == static_cast<std::uint8_t>(Candidate::trial));
  CHECK_FALSE(enters_at(1.5f));  // in its trial, enabled anew
  bench.settings.roll_back = 1;
  bench.work();
  CHECK(enters_at(3.0f));  // the built-in one again
  // Of an image that states none: from rest.
  static const std::uint8_t sha[32] = {};
  Bytes silent(policy_image_bytes<Linear>(false));
  write_policy_image(Host{}, network, policy_contract<Contract>(), {nullptr, nullptr},
                     {"hover-test", "Quadrotor-v0", 1, 2, 3, sha}, silent.data());
  REQUIRE(bench.push(silent) == RLT_UPLOAD_ACCEPTED);
  bench.sensed.position_m[2] = bench.sensed.target_m[2] = 1.0f;
  CHECK_FALSE(enters_at(kEntryAtRest.speed_m_s + 0.01f));
  CHECK(enters_at(kEntryAtRest.speed_m_s));
}
