// Espressif's Arduino core (github.com/espressif/arduino-esp32, 2.0), and of ESP-IDF below it what
// this board uses, as a system header: our warnings are not for them.
#pragma once
#pragma GCC system_header

#include <Arduino.h>
#include <esp_system.h>
#include <esp_timer.h>
#include <freertos/FreeRTOS.h>
#include <freertos/task.h>
