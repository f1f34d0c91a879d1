// A Teensy 4.1 balances a pendulum: a potentiometer in, a motor's bridge out (README.md).
#include <Arduino.h>

#include "pendulum_rig.h"
#include "pendulum_td3_image.h"  // rlt export RUN --to c-image
#include "rltools/devices/cortex_m7.h"
#include "rltools/policy/deployment.h"

using namespace rlt;

static const uint8_t kAnglePin = 14, kPwmPin = 2, kReversePin = 3, kEnablePin = 4;  // A0 is 14
static const uint32_t kSampling_us = contracts::Pendulum::kStepInterval_us;

static RamStorage<512> storage;  // the image is in the program
static PolicyDeployment<CortexM7, RamStorage<512>, 1, 256> policy(
    CortexM7{}, storage, policy_contract<contracts::Pendulum>());
static rig::Pendulum pendulum;
static uint32_t next_us;

static void drive(const rig::Motor& motor) {
  digitalWrite(kEnablePin, motor.is_enabled ? HIGH : LOW);
  digitalWrite(kReversePin, motor.is_reverse ? HIGH : LOW);
  analogWrite(kPwmPin, motor.duty);
}

void setup() {
  pinMode(kEnablePin, OUTPUT);
  pinMode(kReversePin, OUTPUT);
  analogReadResolution(12);
  analogWriteResolution(12);
  analogWriteFrequency(kPwmPin, 20000);  // above what one hears
  drive(rig::motor_for(0, true));
  policy.begin(pendulum_td3_image, sizeof(pendulum_td3_image));
  next_us = micros();
}

void loop() {
  const uint32_t now_us = micros();
  if (static_cast<int32_t>(now_us - next_us) < 0) return;
  next_us += kSampling_us;
  float observation[3], torque_nm = 0;
  const bool is_there = pendulum.observe(analogRead(kAnglePin), now_us, observation);
  const ExecutorStatus status =
      policy.step(now_us, {is_there ? observation : nullptr, now_us}, &torque_nm);
  drive(rig::motor_for(torque_nm, is_fault(status)));
}
