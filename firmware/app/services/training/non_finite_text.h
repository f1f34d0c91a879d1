// Why training stopped, where an environment gave a number that is not finite: the text that names
// the state before its step, and the action (docs/protocol.md, "Texts").
#pragma once

#include <cstddef>
#include <cstdint>

#include "rltools/core/finite.h"
#include "rltools/rl/evaluation.h"

namespace rlt {

// A number as text. Six significant digits; the last of them may be off by one.
class NumberText {
 public:
  explicit NumberText(float value) {
    const float size = math::absolute(value);
    if (value < 0.0f) put('-');
    if (value != value) {
      put("nan");
    } else if (!is_finite(size)) {
      put("inf");
    } else if (size == 0.0f) {
      put('0');
    } else {
      put_positive(size);
    }
  }
  explicit NumberText(std::uint32_t value) { put_integer(value); }

  const char* text() const { return text_; }

 private:
  static constexpr std::uint32_t kMinDigits = 100000, kMaxDigits = 1000000;  // of six digits

  void put(char character) { text_[length_++] = character; }
  void put(const char* characters) {
    while (*characters != '\0') put(*characters++);
  }
  void put_integer(std::uint32_t value) {
    std::uint32_t unit = 1;
    while (value / unit >= 10) unit *= 10;
    for (; unit > 0; unit /= 10) put(digit(value / unit % 10));
  }
  static char digit(std::uint32_t value) { return static_cast<char>('0' + value); }

  // Put a positive number. The powers of ten up to 1e10 are exact, and so each product and quotient
  // is rounded once.
  void put_positive(float size) {
    int exponent = 5;  // of ten, of the first digit
    for (; size >= 1e10f; exponent += 8) size /= 1e8f;
    for (; size < 1e-4f; exponent -= 8) size *= 1e8f;
    float scale = 1.0f;
    int power = 0;
    while (size * scale < static_cast<float>(kMinDigits)) scale *= 10.0f, power++;
    if (power > 0) {
      size *= scale;
    } else {
      while (size / scale >= static_cast<float>(kMaxDigits)) scale *= 10.0f, power--;
      size /= scale;
    }
    exponent -= power;
    auto digits = static_cast<std::uint32_t>(size + 0.5f);
    if (digits >= kMaxDigits) digits /= 10, exponent++;
    int count = 6;
    for (; digits % 10 == 0; count--) digits /= 10;
    if (exponent >= -4 && exponent < 6) return put_fixed(digits, count, exponent);
    put_fixed(digits, count, 0);
    put('e');
    if (exponent < 0) put('-');
    put_integer(static_cast<std::uint32_t>(exponent < 0 ? -exponent : exponent));
  }

  // Put `count` digits, the first of them at 10^exponent.
  void put_fixed(std::uint32_t digits, int count, int exponent) {
    std::uint32_t unit = 1;
    for (int i = 1; i < count; i++) unit *= 10;
    if (exponent < 0) put("0.");
    for (int i = -1; i > exponent; i--) put('0');
    for (int power = exponent; unit > 0 || power >= 0; power--, unit /= 10) {
      if (power == -1 && exponent >= 0) put('.');
      put(unit > 0 ? digit(digits / unit % 10) : '0');
    }
  }

  char text_[16] = {};
  std::size_t length_ = 0;
};

// Words up to a limit; `...` stands for those that find no room.
template <std::size_t Size>
class WordsText {
 public:
  const char* text() const { return text_; }

  // Let what follows fill the text up to here.
  void set_limit(std::size_t limit) {
    limit_ = limit;
    is_cut_ = false;
  }
  void add(const char* before, const char* word) {
    constexpr const char* kCut = " ...";
    constexpr std::size_t kCutLength = 4;
    if (is_cut_) return;
    const std::size_t length = length_of(before) + length_of(word);
    is_cut_ = length_ + length + kCutLength > limit_;
    if (is_cut_) return put(kCut);
    put(before);
    put(word);
  }

 private:
  static std::size_t length_of(const char* text) {
    std::size_t length = 0;
    while (text[length] != '\0') length++;
    return length;
  }
  void put(const char* text) {
    while (*text != '\0') text_[length_++] = *text++;
  }

  char text_[Size + 1] = {};
  std::size_t length_ = 0, limit_ = Size;
  bool is_cut_ = false;
};

namespace detail {

// Names and values of a struct's fields.
template <class Text>
struct AddFields {
  Text& text;
  const char* before = " ";

  template <class Number>
  void operator()(const char* name, const Number& value) {
    begin(name);
    add(value);
  }
  template <class Number, std::size_t Count>
  void operator()(const char* name, const Number (&values)[Count]) {
    begin(name);
    for (const Number& value : values) add(value);
  }

  void begin(const char* name) {
    text.add(before, name);
    before = ", ";
  }
  void add(float value) { text.add(" ", NumberText(value).text()); }
  void add(double value) { add(static_cast<float>(value)); }
  void add(std::uint32_t value) { text.add(" ", NumberText(value).text()); }
  void add(std::uint8_t value) { add(std::uint32_t{value}); }
};

}  // namespace detail

constexpr std::size_t kNonFiniteTextBytes = 240;
using NonFiniteText = WordsText<kNonFiniteTextBytes>;

// Return the text on a step of E's environment: `state` is the one before it. `where` is "" or " of
// an evaluation".
template <class E>
NonFiniteText non_finite_text(const typename E::Environment::State& state,
                              const NonFiniteTransition<typename E::Environment>& non_finite,
                              const char* where) {
  using Environment = typename E::Environment;
  constexpr std::size_t kStateEnds = 180;  // so that there is room for an action
  NonFiniteText text;
  text.set_limit(kStateEnds);
  text.add("training stopped: ", non_finite.is_reward ? "a reward" : "an observation");
  text.add(where, " is not finite; ");
  text.add("state", "");
  detail::AddFields<NonFiniteText> fields{text};
  if constexpr (kKeepsContracts<E>) {  // else the compiler has said what is missing
    state.for_each_field(fields);
  }
  text.set_limit(kNonFiniteTextBytes);
  if (non_finite.is_first) {
    text.add("; ", "before any action");
    return text;
  }
  text.add("; ", "action");
  for (int i = 0; i < Environment::kActionDim; i++) {
    text.add(i == 0 ? " " : ", ", Environment::kActions[i].name);
    text.add(" ", NumberText(static_cast<float>(non_finite.action[i])).text());
  }
  return text;
}
template <class E>
NonFiniteText non_finite_text(const Training<E>& training, const StepReport<E>& report) {
  const auto& non_finite = report.non_finite;
  return non_finite_text<E>(training.learner.environments.state[non_finite.environment], non_finite,
                            "");
}
template <class E>
NonFiniteText non_finite_text(const Evaluation<E>& evaluation) {
  return non_finite_text<E>(evaluation.environment_state, evaluation.non_finite,
                            " of an evaluation");
}

}  // namespace rlt
