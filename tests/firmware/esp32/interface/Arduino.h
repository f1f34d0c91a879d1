// What firmware/esp32 uses of Espressif's Arduino core, for tests without it. esp32_program.cpp
// plays the ports on this machine.
#pragma once

#include <stddef.h>
#include <stdint.h>

class HardwareSerial {
 public:
  size_t setRxBufferSize(size_t bytes);
  void begin(unsigned long baud);
  int available();
  size_t read(uint8_t* destination, size_t capacity);
  size_t write(const uint8_t* source, size_t count);
};

class HWCDC {
 public:
  size_t setRxBufferSize(size_t bytes);
  size_t setTxBufferSize(size_t bytes);
  void setTxTimeoutMs(uint32_t timeout);
  void begin(unsigned long baud = 0);
  int available();
  size_t read(uint8_t* destination, size_t capacity);
  size_t write(const uint8_t* source, size_t count);
};

#if defined(ARDUINO_USB_CDC_ON_BOOT)
extern HWCDC Serial;
#else
extern HardwareSerial Serial;
#endif

size_t getArduinoLoopTaskStackSize();
