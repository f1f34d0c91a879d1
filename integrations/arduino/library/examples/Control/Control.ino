// A policy in a control loop: replace what reads the sensors and what drives the motors.
#include <PolicyName.h>

static float observation[PolicyNameClass::kObservationDim];
static float action[PolicyNameClass::kActionDim];

// A voltage at a pin as a number between two others. Boards read up to 1023, some up to 4095.
static float readPin(int pin, float lowest, float highest) {
  const float part = static_cast<float>(analogRead(pin)) / 1023.0f;
  return lowest + (part < 1.0f ? part : 1.0f) * (highest - lowest);
}

static void readSensors() {
  // SENSORS
}

static void driveMotors() {
  // MOTORS
  Serial.println(action[0]);
}

void setup() {
  Serial.begin(115200);
  if (!PolicyName.begin()) {
    Serial.println("this board gives other bits than those of training: there is no policy");
    return;
  }
  readSensors();
  const uint32_t start = micros();
  PolicyName.step(start, observation, action);
  Serial.println("this board gives the bits of training; microseconds of a step, and between two:");
  Serial.println(static_cast<float>(micros() - start));
  Serial.println(static_cast<float>(PolicyNameClass::kStepInterval_us));
}

void loop() {
  static uint32_t next_us = micros();
  if (static_cast<int32_t>(micros() - next_us) < 0) return;
  next_us += PolicyNameClass::kStepInterval_us;
  readSensors();
  if (!PolicyName.step(micros(), observation, action)) Serial.println(PolicyName.status());
  driveMotors();
}
