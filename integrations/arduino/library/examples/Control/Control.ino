// A policy in a control loop: replace what reads the sensors and what drives the motors.
#include <PolicyName.h>

static float observation[PolicyNameClass::kObservationDim];
static float action[PolicyNameClass::kActionDim];

static void readSensors() {
  // SENSORS
}

static void driveMotors() {
  // MOTORS
  Serial.println(action[0]);
}

void setup() {
  Serial.begin(115200);
  if (!PolicyName.begin()) Serial.println("this board gives other bits: there is no policy");
}

void loop() {
  static uint32_t next_us = micros();
  if (static_cast<int32_t>(micros() - next_us) < 0) return;
  next_us += PolicyNameClass::kStepInterval_us;
  readSensors();
  if (!PolicyName.step(micros(), observation, action)) Serial.println(PolicyName.status());
  driveMotors();
}
