// The rules of a policy image one by one: an image that breaks a single one, and is right in all
// else, its length and its checksum too.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "rltools/policy/reader.h"

using namespace rlt;

namespace {

struct Layer {
  std::uint16_t input, output;
};

// Parts of an image whose numbers are zero: of two observations and one action by default.
struct Parts {
  std::vector<Layer> layers = {{2, 3}, {3, 1}};
  std::uint16_t observation_dim = 2, action_dim = 1;
  std::uint16_t examples = 2;
  bool has_normalizer = false;
  bool has_entry = false;

  std::size_t entry_offset() const {
    return sizeof(PolicyImageHeader) + layers.size() * sizeof(PolicyImageLayer) +
           channels() * sizeof(PolicyImageChannel);
  }
  std::size_t numbers_offset() const {
    return entry_offset() + (has_entry ? sizeof(PolicyImageEntry) : 0);
  }
  std::size_t channels() const { return std::size_t{observation_dim} + action_dim; }
  std::size_t parameters() const {
    std::size_t count = 0;
    for (const Layer& layer : layers) count += (layer.input + std::size_t{1}) * layer.output;
    return count;
  }
  std::size_t normalizer() const { return has_normalizer ? 2u * observation_dim : 0u; }
};

class Image {
 public:
  explicit Image(const Parts& parts) : parts_(parts) {
    const std::size_t example = parts.observation_dim + 1u + 2u * parts.action_dim;
    const std::size_t numbers = parts.normalizer() + parts.parameters() + parts.examples * example;
    bytes_.resize(parts.numbers_offset() + 4 * numbers);
    PolicyImageHeader& header = this->header();
    std::memcpy(header.magic, kPolicyMagic, sizeof(kPolicyMagic));
    header.version = kPolicyVersion;
    header.header_bytes = sizeof(PolicyImageHeader);
    header.step_interval_us = 20000;
    header.observation_dim = parts.observation_dim;
    header.action_dim = parts.action_dim;
    header.layer_count = static_cast<std::uint16_t>(parts.layers.size());
    header.example_count = parts.examples;
    header.flags =
        (parts.has_normalizer ? kPolicyHasNormalizer : 0) | (parts.has_entry ? kPolicyHasEntry : 0);
    std::strcpy(header.experiment, "e");
    std::strcpy(header.environment, "v");
    for (std::size_t i = 0; i < parts.layers.size(); i++) {
      layer(i).input_dim = parts.layers[i].input;
      layer(i).output_dim = parts.layers[i].output;
    }
    for (std::size_t i = 0; i < parts.channels(); i++) {
      std::strcpy(channel(i).name, "c");
      std::strcpy(channel(i).unit, "1");
      channel(i).maximum = 1.0f;
    }
  }

  PolicyImageHeader& header() { return at<PolicyImageHeader>(0); }
  PolicyImageLayer& layer(std::size_t i) {
    return at<PolicyImageLayer>(sizeof(PolicyImageHeader) + i * sizeof(PolicyImageLayer));
  }
  PolicyImageChannel& channel(std::size_t i) {
    const std::size_t first =
        parts_.entry_offset() - parts_.channels() * sizeof(PolicyImageChannel);
    return at<PolicyImageChannel>(first + i * sizeof(PolicyImageChannel));
  }
  PolicyImageEntry& entry() { return at<PolicyImageEntry>(parts_.entry_offset()); }
  void set_number(std::size_t i, float value) {
    std::memcpy(bytes_.data() + parts_.numbers_offset() + 4 * i, &value, 4);
  }
  std::size_t size() const { return bytes_.size(); }
  void append(std::size_t count) { bytes_.resize(bytes_.size() + count); }

  // The verdict on the first `count` bytes, with length and checksum set to match, and what was
  // read of them.
  PolicyView view;
  PolicyVerdict verdict(std::size_t count) {
    header().total_bytes = static_cast<std::uint32_t>(count);
    header().crc32 = policy_image_crc32(bytes_.data(), count);
    return parse_policy(bytes_.data(), count, view);
  }
  PolicyVerdict verdict() { return verdict(size()); }
  // With one bit of the bytes another one.
  PolicyVerdict verdict_with_flipped(std::size_t bit) const {
    std::vector<std::uint8_t> bytes = bytes_;
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << bit % 8));
    PolicyView other;
    return parse_policy(bytes.data(), bytes.size(), other);
  }

 private:
  template <class Record>
  Record& at(std::size_t offset) {
    return *reinterpret_cast<Record*>(bytes_.data() + offset);
  }

  Parts parts_;
  std::vector<std::uint8_t> bytes_;
};

void check_malformed(const PolicyVerdict& verdict, std::uint32_t where) {
  CHECK(verdict.reason == PolicyReason::malformed);
  CHECK(verdict.where == where);
}

// An image after one change.
template <class Change>
PolicyVerdict after(Change&& change, const Parts& parts = {}) {
  Image image(parts);
  change(image);
  return image.verdict();
}

}  // namespace

TEST_CASE("an image that breaks no rule is accepted, with and without a normalizer") {
  Parts parts;
  CHECK(Image(parts).verdict().accepted());
  parts.has_normalizer = true;
  CHECK(Image(parts).verdict().accepted());
}

TEST_CASE("a step takes a microsecond at least, and ten minutes at most") {
  const auto with = [](std::uint32_t interval_us) {
    return after([&](Image& image) { image.header().step_interval_us = interval_us; });
  };
  CHECK(with(1).accepted());
  CHECK(with(600000000).accepted());
  for (const std::uint32_t interval_us : {0u, 600000001u, 0x80000000u, 0xffffffffu}) {
    check_malformed(with(interval_us), 0);
  }
}

TEST_CASE("names and units are texts that end within their field, with zeros behind") {
  check_malformed(after([](Image& image) { image.header().experiment[0] = '\0'; }), 0);
  check_malformed(after([](Image& image) { image.header().environment[0] = '\0'; }), 0);
  check_malformed(after([](Image& image) { std::memset(image.header().experiment, 'x', 32); }), 0);
  check_malformed(after([](Image& image) { std::memset(image.header().environment, 'x', 32); }), 0);
  check_malformed(after([](Image& image) { image.header().environment[31] = 'x'; }), 0);
  check_malformed(after([](Image& image) { image.channel(0).name[0] = '\0'; }), 0);
  check_malformed(after([](Image& image) { image.channel(1).name[23] = 'x'; }), 1);
  check_malformed(after([](Image& image) { image.channel(1).unit[0] = '\0'; }), 1);
  check_malformed(after([](Image& image) { std::memset(image.channel(2).unit, 'x', 16); }), 2);
  CHECK(after([](Image& image) { std::memset(image.header().experiment, 'x', 31); }).accepted());
}

TEST_CASE("layers follow on each other, from the observations to the actions") {
  Parts parts;
  parts.layers = {{3, 3}, {3, 1}};
  check_malformed(Image(parts).verdict(), 0);
  parts.layers = {{2, 3}, {4, 1}};
  check_malformed(Image(parts).verdict(), 1);
  parts.layers = {{2, 3}, {3, 2}};
  check_malformed(Image(parts).verdict(), 2);
  parts.layers = {{2, 0}, {0, 1}};
  check_malformed(Image(parts).verdict(), 0);
  for (int i = 0; i < 2; i++) {
    check_malformed(after([&](Image& image) { image.layer(1).reserved[i] = 1; }), 1);
  }
  for (const std::uint8_t kind : {1, 2, 255}) {  // format 1 has dense layers only
    check_malformed(after([&](Image& image) { image.layer(1).kind = kind; }), 1);
  }
  for (int number = kActivationCount; number < 256; number++) {
    CAPTURE(number);
    const auto unknown = [=](Image& image) {
      image.layer(1).activation = static_cast<std::uint8_t>(number);
    };
    check_malformed(after(unknown), 1);
  }
  CHECK(after([](Image& image) { image.layer(1).activation = kActivationCount - 1; }).accepted());
}

TEST_CASE("there are observations, actions, layers and examples") {
  Parts parts;
  parts.examples = 0;
  check_malformed(Image(parts).verdict(), 0);
  parts.examples = 1;
  CHECK(Image(parts).verdict().accepted());
  parts.observation_dim = 0;
  parts.layers = {{0, 3}, {3, 1}};
  check_malformed(Image(parts).verdict(), 0);
  parts = {};
  parts.action_dim = 0;
  parts.layers = {{2, 0}};
  check_malformed(Image(parts).verdict(), 0);
  parts = {};
  parts.observation_dim = 1;
  parts.layers = {};
  check_malformed(Image(parts).verdict(), 0);
  // As many as can be counted of them, which the image has no room for.
  check_malformed(after([](Image& image) { image.header().observation_dim = 65535; }), 0);
  check_malformed(after([](Image& image) { image.header().action_dim = 65535; }), 0);
  check_malformed(after([](Image& image) { image.header().layer_count = 65535; }), 0);
  check_malformed(after([](Image& image) { image.header().example_count = 65535; }), 0);
}

TEST_CASE("every flipped bit is noticed, and what cannot be read first is named first") {
  Image image{Parts{}};
  REQUIRE(image.verdict().accepted());
  for (std::size_t bit = 0; bit < image.size() * 8; bit++) {
    CAPTURE(bit);
    const PolicyReason expected = bit < 32   ? PolicyReason::bad_magic
                                  : bit < 48 ? PolicyReason::unknown_version
                                  : bit < 96 ? PolicyReason::wrong_size
                                             : PolicyReason::wrong_crc;
    CHECK(image.verdict_with_flipped(bit).reason == expected);
  }
}

TEST_CASE("an image is as long as its tables say") {
  for (const bool has_normalizer : {false, true}) {
    Parts parts;
    parts.has_normalizer = has_normalizer;
    Image longer(parts), shorter(parts);
    longer.append(4);
    check_malformed(longer.verdict(), 0);
    check_malformed(shorter.verdict(shorter.size() - 4), 0);
  }
}

TEST_CASE("what lies behind an image is not read as its tables") {
  Image image{Parts{}};
  image.layer(1).input_dim = 9;  // which would be the second layer's fault, were it read
  check_malformed(image.verdict(sizeof(PolicyImageHeader) + sizeof(PolicyImageLayer)), 0);
}

TEST_CASE("the flags that exist are accepted, and nothing in their and the reserved word's place") {
  check_malformed(after([](Image& image) { image.header().flags = 2; }), 0);
  check_malformed(after([](Image& image) { image.header().flags = 0x80000000u; }), 0);
  check_malformed(after([](Image& image) { image.header().reserved = 1; }), 0);
}

TEST_CASE("an image may state what its policy may be handed, and else that is from rest") {
  for (const bool has_normalizer : {false, true}) {
    Parts parts;
    parts.has_normalizer = has_normalizer;
    Image without(parts);
    REQUIRE(without.verdict().accepted());
    CHECK_FALSE(without.view.states_entry);
    CHECK(std::memcmp(&without.view.entry, &kEntryAtRest, sizeof(EntryEnvelope)) == 0);

    parts.has_entry = true;
    Image image(parts);
    image.entry() = {5.0f, 2.5f, 0.75f, 0.0f, 1.5f, 0};
    image.set_number(0, 42.0f);  // the first behind it
    REQUIRE(image.verdict().accepted());
    CHECK(image.view.states_entry);
    constexpr EntryEnvelope kStated = {5.0f, 2.5f, 0.75f, 0.0f, 1.5f};
    CHECK(std::memcmp(&image.view.entry, &kStated, sizeof(kStated)) == 0);
    CHECK((has_normalizer ? image.view.mean : image.view.parameters)[0] == 42.0f);

    float* bounds = &image.entry().speed_m_s;
    for (std::uint32_t i = 0; i < 5; i++) {
      CAPTURE(i);
      const float stated = bounds[i];
      for (const float value :
           {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        bounds[i] = value;
        CHECK(image.verdict().reason == PolicyReason::not_finite);
        CHECK(image.verdict().where == i);
      }
      bounds[i] = -1e-6f;
      check_malformed(image.verdict(), i);
      bounds[i] = stated;
    }
    image.entry().reserved = 1;
    check_malformed(image.verdict(), 0);
    image.entry().reserved = 0;
    image.header().flags &= ~kPolicyHasEntry;  // its bytes are none of the other sections'
    check_malformed(image.verdict(), 0);
  }
}

TEST_CASE("each number but a trace is finite") {
  Parts parts;
  parts.has_normalizer = true;
  const std::size_t examples = parts.normalizer() + parts.parameters();
  const std::size_t of_example = 2 + 1 + 2;
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t i = 0; i < examples + 2 * of_example; i++) {
      CAPTURE(i);
      const PolicyVerdict verdict = after([&](Image& image) { image.set_number(i, value); }, parts);
      const bool is_trace = i >= examples && (i - examples) % of_example == 2;
      CHECK((verdict.reason == PolicyReason::not_finite) == !is_trace);
      CHECK(verdict.accepted() == is_trace);
      // Its number in the normalizer or among the parameters, or that of its example.
      const std::size_t own = i < parts.normalizer() ? i : i - parts.normalizer();
      if (!is_trace) CHECK(verdict.where == (i < examples ? own : (i - examples) / of_example));
    }
  }
}

TEST_CASE("a channel's range is finite, its span too, and not empty") {
  const auto of_range = [](float minimum, float maximum) {
    return after([&](Image& image) {
      image.channel(1).minimum = minimum;
      image.channel(1).maximum = maximum;
    });
  };
  check_malformed(of_range(1.0f, 1.0f), 1);
  check_malformed(of_range(1.0f, -1.0f), 1);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& verdict :
       {of_range(-infinity, 0.0f), of_range(0.0f, infinity), of_range(-3e38f, 3e38f)}) {
    CHECK(verdict.reason == PolicyReason::not_finite);
    CHECK(verdict.where == 1);
  }
}
