// What firmware/teensy41 and examples/teensy_pwm use of PJRC's core for Teensy 4, for tests without
// it. examples/teensy_pwm_rig.cpp of the tests plays the pins.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INPUT 0
#define OUTPUT 1
#define LOW 0
#define HIGH 1
#define A0 14

extern "C" {
void pinMode(uint8_t pin, uint8_t mode);
void digitalWrite(uint8_t pin, uint8_t value);
int analogRead(uint8_t pin);
void analogReadResolution(unsigned int bits);
void analogWrite(uint8_t pin, int value);
void analogWriteFrequency(uint8_t pin, float frequency);
uint32_t analogWriteResolution(uint32_t bits);
uint32_t micros();

// Fuses of the i.MX RT1062.
extern volatile uint32_t HW_OCOTP_CFG0, HW_OCOTP_CFG1, HW_OCOTP_MAC0, HW_OCOTP_MAC1;
}
