// The storage of policies on these boards: the partition "policies" of the flash
// (boards/esp32_partitions.csv).
#include "esp32/flash.h"
#include "processors/sector_flash.h"

namespace rlt {

namespace {

struct Mapping {
  const esp_partition_t* partition;
  const std::uint8_t* bytes;
};

// Map the partition. The partition table is flashed with the program: without the partition there
// is nothing to run.
Mapping map() {
  const esp_partition_t* partition =
      esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, "policies");
  if (partition == nullptr || partition->size < SectorFlash::kBytes) {
    esp_system_abort("no partition for policies: flash boards/esp32_partitions.csv");
  }
  const void* bytes = nullptr;
  spi_flash_mmap_handle_t handle;
  if (esp_partition_mmap(partition, 0, SectorFlash::kBytes, SPI_FLASH_MMAP_DATA, &bytes, &handle) !=
      ESP_OK) {
    esp_system_abort("the partition for policies cannot be mapped");
  }
  return {partition, static_cast<const std::uint8_t*>(bytes)};
}

// Return the mapping, made on first use: constructors of static objects run before the flash's
// driver does.
const Mapping& mapping() {
  static Mapping mapped{nullptr, nullptr};
  if (mapped.bytes == nullptr) mapped = map();
  return mapped;
}

}  // namespace

const std::uint8_t* SectorFlash::data() const { return mapping().bytes; }

bool SectorFlash::erase(std::uint32_t offset) {
  return esp_partition_erase_range(mapping().partition, offset, kEraseBytes) == ESP_OK;
}

bool SectorFlash::program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
  return esp_partition_write(mapping().partition, offset, source, count) == ESP_OK;
}

}  // namespace rlt
