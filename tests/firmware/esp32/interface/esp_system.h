// ESP-IDF's, as far as firmware/esp32 uses it.
#pragma once

#include <stdint.h>

typedef int esp_err_t;
#define ESP_OK 0

extern "C" {
[[noreturn]] void esp_system_abort(const char* details);
esp_err_t esp_efuse_mac_get_default(uint8_t* mac);
}
