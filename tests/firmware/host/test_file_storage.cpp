// The storage of a board that is a process: what is in its file when the process has ended.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <sys/wait.h>

#include "host/file_storage.h"
#include "rltools/policy/slots.h"
#include "slot_push.h"

using namespace rlt;

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr const char* kVariable = "RLT_POLICY_STORAGE";

// A file for one test, which does not exist at first, named by the variable.
class File {
 public:
  File() {
    char folder[] = "/tmp/rlt-storage-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    folder_ = folder;
    path = folder_ + "/policies.bin";
    setenv(kVariable, path.c_str(), 1);
  }
  ~File() {
    unsetenv(kVariable);
    unlink(path.c_str());
    rmdir(folder_.c_str());
  }
  Bytes content() const {
    std::ifstream stream(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(stream), {});
  }

  std::string path;

 private:
  std::string folder_;
};

std::unique_ptr<FileStorage> opened() { return std::make_unique<FileStorage>(); }

// Exit code of a process that opens the storage.
int code_of_another() {
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    opened();
    std::_Exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("without the variable it is memory, erased at first") {
  unsetenv(kVariable);
  const auto storage = opened();
  CHECK(storage->size() % FileStorage::kEraseBytes == 0);
  CHECK(Bytes(storage->data(), storage->data() + storage->size()) == Bytes(storage->size(), 0xff));
  const std::uint8_t unit[FileStorage::kProgramBytes] = {1, 2, 3};
  CHECK(storage->program(32, unit, sizeof(unit)));
  CHECK(storage->data()[33] == 2);
  CHECK(storage->erase(0));
  CHECK(storage->data()[33] == 0xff);
}

TEST_CASE("what is programmed and erased is in the file, at its place") {
  const File file;
  const auto storage = opened();
  std::uint8_t unit[FileStorage::kProgramBytes];
  for (std::uint8_t& byte : unit) byte = 7;
  const std::uint32_t image = FileStorage::kRecordBytes + 64;
  CHECK(storage->program(0, unit, sizeof(unit)));
  CHECK(storage->program(image, unit, sizeof(unit)));
  Bytes content = file.content();
  REQUIRE(content.size() == image + sizeof(unit));
  CHECK(content[31] == 7);
  CHECK(content[image] == 7);
  CHECK(storage->erase(0));
  content = file.content();
  CHECK(Bytes(content.begin(), content.begin() + FileStorage::kEraseBytes) ==
        Bytes(FileStorage::kEraseBytes, 0xff));
  CHECK(content[image] == 7);
}

TEST_CASE("slots are found again, and a file that ends early is erased memory behind its end") {
  const File file;
  const Bytes image(1000, 42);
  {
    const auto storage = opened();
    PolicySlots<FileStorage> slots(*storage);
    REQUIRE(slots.begin());
    CHECK(slots.slot_bytes() == FileStorage::kSlotBytes);
    REQUIRE(slot_push::push(slots, image) == SlotError::none);
  }
  const auto storage = opened();
  PolicySlots<FileStorage> slots(*storage);
  REQUIRE(slots.begin());
  REQUIRE(slots.active().bytes == 1000);
  CHECK(Bytes(slots.active().data, slots.active().data + 1000) == image);
  CHECK(storage->data()[storage->size() - 1] == 0xff);
}

TEST_CASE("one process at a time has the file") {
  const File file;
  auto storage = opened();
  CHECK(code_of_another() == 1);
  storage.reset();
  CHECK(code_of_another() == 0);
}

TEST_CASE("a file that cannot be opened ends the process") {
  const File file;
  setenv(kVariable, "/nowhere/policies.bin", 1);
  CHECK(code_of_another() == 1);
}
