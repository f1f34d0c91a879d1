// FreeRTOS's, as far as firmware/esp32 uses it.
#pragma once

#include <freertos/FreeRTOS.h>

typedef void* TaskHandle_t;

extern "C" {
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task);
void vTaskDelay(const TickType_t ticks);
}
