// ESP-IDF's (4.4), as far as firmware/esp32 uses it.
#pragma once

#include <esp_system.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { ESP_PARTITION_TYPE_APP = 0, ESP_PARTITION_TYPE_DATA = 1 } esp_partition_type_t;
typedef enum { ESP_PARTITION_SUBTYPE_ANY = 0xff } esp_partition_subtype_t;
typedef enum { SPI_FLASH_MMAP_DATA, SPI_FLASH_MMAP_INST } spi_flash_mmap_memory_t;
typedef uint32_t spi_flash_mmap_handle_t;

typedef struct {
  esp_partition_type_t type;
  esp_partition_subtype_t subtype;
  uint32_t address;
  uint32_t size;
} esp_partition_t;

extern "C" {
const esp_partition_t* esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype, const char* label);
esp_err_t esp_partition_write(const esp_partition_t* partition, size_t offset, const void* source,
                              size_t size);
esp_err_t esp_partition_erase_range(const esp_partition_t* partition, size_t offset, size_t size);
esp_err_t esp_partition_mmap(const esp_partition_t* partition, size_t offset, size_t size,
                             spi_flash_mmap_memory_t memory, const void** out_ptr,
                             spi_flash_mmap_handle_t* out_handle);
}
