// The macros that Arduino.h defines on one platform or another, and that reach everything included
// after it: those of the AVR, SAMD, STM32, ESP and Teensy cores, in our own words. The core must
// compile behind them.
#pragma once

// Functions.
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define abs(x) ((x) > 0 ? (x) : -(x))
#define round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x) - 0.5))
#define constrain(x, low, high) ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
#define radians(deg) ((deg) * DEG_TO_RAD)
#define degrees(rad) ((rad) * RAD_TO_DEG)
#define sq(x) ((x) * (x))
#define interrupts() (void)0
#define noInterrupts() (void)0
#define clockCyclesPerMicrosecond() (F_CPU / 1000000L)
#define clockCyclesToMicroseconds(a) ((a) / clockCyclesPerMicrosecond())
#define microsecondsToClockCycles(a) ((a) * clockCyclesPerMicrosecond())
#define lowByte(w) ((unsigned char)((w) & 0xff))
#define highByte(w) ((unsigned char)((w) >> 8))
#define bit(b) (1UL << (b))
#define bitRead(value, bit) (((value) >> (bit)) & 0x01)
#define bitSet(value, bit) ((value) |= (1UL << (bit)))
#define bitClear(value, bit) ((value) &= ~(1UL << (bit)))
#define bitToggle(value, bit) ((value) ^= (1UL << (bit)))
#define bitWrite(value, bit, bitvalue) ((bitvalue) ? bitSet(value, bit) : bitClear(value, bit))
#define word(...) makeWord(__VA_ARGS__)
#define _BV(bit) (1 << (bit))
#define F(string_literal) (reinterpret_cast<const __FlashStringHelper*>(PSTR(string_literal)))
#define PSTR(string_literal) (string_literal)
#define cli() (void)0
#define sei() (void)0
#define yield() (void)0
#define isnan(x) ((x) != (x))
#define isinf(x) (!isnan(x) && isnan((x) - (x)))
#define isfinite(x) (!isnan((x) - (x)))
#define digitalPinToPort(pin) (pin)
#define digitalPinToBitMask(pin) (pin)
#define digitalPinToInterrupt(pin) (pin)
#define analogInPinToBit(pin) (pin)
#define portOutputRegister(port) (port)
#define portInputRegister(port) (port)
#define portModeRegister(port) (port)
#define digitalPinToTimer(pin) (pin)
#define _NOP() (void)0

// Constants.
#define HIGH 0x1
#define LOW 0x0
#define INPUT 0x0
#define OUTPUT 0x1
#define INPUT_PULLUP 0x2
#define INPUT_PULLDOWN 0x3
#define PI 3.1415926535897932384626433832795
#define HALF_PI 1.5707963267948966192313216916398
#define TWO_PI 6.283185307179586476925286766559
#define DEG_TO_RAD 0.017453292519943295769236907684886
#define RAD_TO_DEG 57.295779513082320876798154814105
#define EULER 2.718281828459045235360287471352
#define SERIAL 0x0
#define DISPLAY 0x1
#define LSBFIRST 0
#define MSBFIRST 1
#define CHANGE 1
#define FALLING 2
#define RISING 3
#define DEFAULT 1
#define EXTERNAL 0
#define INTERNAL 3
#define F_CPU 600000000L
#define PROGMEM
#define NOT_A_PIN 0
#define NOT_A_PORT 0
#define NOT_ON_TIMER 0
#define NOT_AN_INTERRUPT -1
#define INTERNAL1V1 2
#define INTERNAL2V56 3
#define PA 1
#define PB 2
#define PC 3
#define PD 4
#define PE 5
#define PF 6
#define PG 7
#define PH 8
#define PJ 10
#define PK 11
#define PL 12
#define TIMER0A 1
#define TIMER0B 2
#define TIMER1A 3
#define TIMER1B 4
#define TIMER1C 5
#define TIMER2 6
#define TIMER2A 7
#define TIMER2B 8
#define TIMER3A 9
#define TIMER3B 10
#define TIMER3C 11
#define TIMER4A 12
#define TIMER4B 13
#define TIMER4C 14
#define TIMER4D 15
#define TIMER5A 16
#define TIMER5B 17
#define TIMER5C 18
#define LED_BUILTIN 13
#define NUM_DIGITAL_PINS 55
#define SS 10
#define MOSI 11
#define MISO 12
#define SCK 13
#define SDA 18
#define SCL 19
#define DAC 1
#define ADC 2
#define RNG 3
#define CRC 4
#define DMA 5
#define RTC 6
#define PWM 7
#define TEMP 8
#define USB 9

// ctype.h of newlib.
#define _U 01
#define _L 02
#define _N 04
#define _S 010
#define _P 020
#define _C 040
#define _X 0100
#define _B 0200

// binary.h has all numbers of one to eight digits.
#define B0 0
#define B00 0
#define B000 0
#define B0000 0
#define B00000000 0
#define B1 1
#define B01 1
#define B001 1
#define B0001 1
#define B00000001 1
#define B10 2
#define B010 2
#define B00000010 2
#define B11 3
#define B011 3
#define B00000011 3
#define B100 4
#define B101 5
#define B110 6
#define B111 7
#define B1000 8
#define B11111111 255
