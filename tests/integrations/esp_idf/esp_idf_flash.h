// ESP-IDF's partitions and mutexes, played, on a flash whose power can fail at any byte.
#pragma once

#include <cstring>

#include "esp_idf_interface.h"
#include "flash_model.h"

namespace esp_idf_flash {

using flash_model::Left;
using flash_model::PowerCut;
constexpr std::uint32_t kSector = 4096;

struct Flash : flash_model::Flash<kSector, 32> {
  Flash() : flash_model::Flash<kSector, 32>(4) {}
  void never_cut() { cut_after(kNever, Left::prefix); }

  int writes = 0, erases = 0;
};

inline Flash flash;
inline esp_partition_t the_partition{nullptr,
                                     ESP_PARTITION_TYPE_DATA,
                                     ESP_PARTITION_SUBTYPE_DATA_UNDEFINED,
                                     0x110000,
                                     4 * kSector,
                                     kSector,
                                     "policies",
                                     false,
                                     false};

}  // namespace esp_idf_flash

extern "C" {

const esp_partition_t* esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype,
                                                const char* label) {
  const esp_partition_t& found = esp_idf_flash::the_partition;
  const bool fits = type == found.type &&
                    (subtype == found.subtype || subtype == ESP_PARTITION_SUBTYPE_ANY) &&
                    std::strcmp(label, found.label) == 0;
  return fits ? &found : nullptr;
}

esp_err_t esp_partition_write(const esp_partition_t*, std::size_t offset, const void* src,
                              std::size_t size) {
  auto& flash = esp_idf_flash::flash;
  flash.writes++;
  const bool is_done =
      flash.program(static_cast<std::uint32_t>(offset), static_cast<const std::uint8_t*>(src),
                    static_cast<std::uint32_t>(size));
  return is_done ? ESP_OK : ESP_FAIL;
}

esp_err_t esp_partition_erase_range(const esp_partition_t*, std::size_t offset, std::size_t size) {
  auto& flash = esp_idf_flash::flash;
  if (size != esp_idf_flash::kSector) throw flash_model::Misuse("erased in parts of a sector");
  flash.erases++;
  return flash.erase(static_cast<std::uint32_t>(offset)) ? ESP_OK : ESP_FAIL;
}

esp_err_t esp_partition_mmap(const esp_partition_t* partition, std::size_t offset, std::size_t size,
                             esp_partition_mmap_memory_t memory, const void** out_ptr,
                             esp_partition_mmap_handle_t* out_handle) {
  if (offset + size > partition->size || memory != ESP_PARTITION_MMAP_DATA) return ESP_FAIL;
  *out_ptr = esp_idf_flash::flash.bytes() + offset;
  *out_handle = 1;
  return ESP_OK;
}

// A mutex that is taken twice would never be given.
SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t* memory) {
  memory->words[0] = nullptr;
  return reinterpret_cast<SemaphoreHandle_t>(memory);
}
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks) {
  auto& memory = *reinterpret_cast<StaticSemaphore_t*>(semaphore);
  if (memory.words[0] != nullptr || ticks != portMAX_DELAY) throw std::logic_error("never given");
  memory.words[0] = &memory;
  return 1;
}
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore) {
  auto& memory = *reinterpret_cast<StaticSemaphore_t*>(semaphore);
  if (memory.words[0] != &memory) throw std::logic_error("not taken");
  memory.words[0] = nullptr;
  return 1;
}
}
