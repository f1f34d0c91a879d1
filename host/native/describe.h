// The description of a program or a shared library of this folder, as JSON: the channels,
// parameters and names of what it was compiled for, the records that it shares with its caller, and
// its functions. host/rltools_host/build/ reads it: description.py, native.py.
#pragma once

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <type_traits>

#include "rltools/policy/contract.h"
#include "rltools/rl/hyperparameters.h"

namespace rlt::describe {

// A text of JSON that grows.
class Json {
 public:
  const std::string& text() const { return text_; }

  void key(const char* name) { quote(name), text_ += ": ", has_more_ = false; }

  void write(const char* text) { text == nullptr ? void(begin() += "null") : quote(text); }
  void write(std::uint32_t number) { begin() += std::to_string(number); }
  void write(int number) { begin() += std::to_string(number); }
  void write(std::size_t number) { begin() += std::to_string(number); }
  void write(float number) { print("%.9g", static_cast<double>(number)); }
  void write(double number) { print("%.17g", number); }

  template <class Value>
  void pair(const char* name, Value value) {
    key(name);
    write(value);
  }
  // Write an object, with the content that write_content() writes.
  template <class Content>
  void object(const char* name, Content&& write_content) {
    key(name);
    object(write_content);
  }
  template <class Content>
  void object(Content&& write_content) {
    open('{');
    write_content();
    close('}');
  }
  template <class Content>
  void list(const char* name, Content&& write_content) {
    key(name);
    open('[');
    write_content();
    close(']');
  }

 private:
  void open(char bracket) { begin() += bracket, has_more_ = false; }
  void close(char bracket) { text_ += bracket, has_more_ = true; }
  // Begin a value, with a comma between it and the one before.
  std::string& begin() {
    if (has_more_) text_ += ", ";
    has_more_ = true;
    return text_;
  }
  void print(const char* format, double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, format, number);
    begin() += digits;
  }
  void quote(const char* text) {
    begin() += '"';
    for (; *text != '\0'; text++) {
      if (*text == '"' || *text == '\\') text_ += '\\';
      text_ += *text;
    }
    text_ += '"';
  }

  std::string text_;
  bool has_more_ = false;
};

// Return an object of JSON, with the pairs that describe(json) writes.
template <class Describe>
std::string text_of(Describe&& describe) {
  Json json;
  json.object([&] { describe(json); });
  return json.text();
}

inline void describe_channels(Json& json, const char* name, const Channel* channels, int count) {
  json.list(name, [&] {
    for (int i = 0; i < count; i++) {
      json.object([&] {
        json.pair("name", channels[i].name);
        json.pair("unit", channels[i].unit);
        json.pair("minimum", channels[i].minimum);
        json.pair("maximum", channels[i].maximum);
      });
    }
  });
}

// Write the safe action that an environment or a contract states, in its channels' units; else
// nothing.
template <class Contract>
void describe_safe_action(Json& json) {
  json.list("safe_action", [&] {
    const PolicyContract contract = policy_contract<Contract>();
    for (int i = 0; contract.safe_action != nullptr && i < contract.action_dim; i++) {
      json.write(contract.safe_action[i]);
    }
  });
}

// Write the parameters of a list, RLT_DEFINE_HYPERPARAMETERS, with the defaults of `values`.
template <class Parameters>
void describe_parameters(Json& json, const char* name, const Parameters& values) {
  json.list(name, [&] {
    for (int i = 0; i < Parameters::kCount; i++) {
      const ParameterInfo& info = Parameters::info(i);
      const std::uint32_t bits = values.get_bits(i);
      float number;
      __builtin_memcpy(&number, &bits, sizeof number);
      json.object([&] {
        json.pair("name", info.name);
        json.pair("type", data_type_name(info.type));
        info.type == DataType::u32 ? json.pair("default", bits) : json.pair("default", number);
        json.pair("minimum", info.minimum);
        json.pair("maximum", info.maximum);
        json.pair("unit", info.unit);
        json.pair("description", info.description);
      });
    }
  });
}

template <class T>
struct Plain {
  using Type = T;
};
template <class T>
struct Plain<std::atomic<T>> {
  using Type = T;
};

// Return the name of a number's type, as NumPy calls it; "pointer", or "text" for one to
// characters; null for nothing.
template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_void_v<T>) {
    return nullptr;
  } else if constexpr (std::is_same_v<T, const char*>) {
    return "text";
  } else if constexpr (std::is_pointer_v<T>) {
    return "pointer";
  } else if constexpr (std::is_enum_v<T>) {
    return type_name<std::underlying_type_t<T>>();
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 8 ? "f8" : "f4";
  } else if constexpr (std::is_signed_v<T>) {
    static_assert(sizeof(T) == 4);
    return "i4";
  } else {
    static_assert(std::is_unsigned_v<T>);
    return sizeof(T) == 8 ? "u8" : sizeof(T) == 4 ? "u4" : "u1";
  }
}

// Write the positions of a record's fields (core/fields.h): a type is a number's name or a record.
template <class Record>
void describe_layout(Json& json) {
  const Record record{};
  json.object([&] {
    json.pair("bytes", sizeof(Record));
    json.list("fields", [&] {
      record.for_each_field([&](const char* name, const auto& field) {
        using Field = std::remove_const_t<std::remove_reference_t<decltype(field)>>;
        using Element = typename Plain<std::remove_all_extents_t<Field>>::Type;
        const auto offset =
            reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&record);
        json.object([&] {
          json.pair("name", name);
          json.key("type");
          if constexpr (std::is_class_v<Element>) {
            describe_layout<Element>(json);
          } else {
            json.write(type_name<Element>());
          }
          json.pair("elements", std::is_array_v<Field> ? sizeof(Field) / sizeof(Element) : 0);
          json.pair("offset", static_cast<std::size_t>(offset));
        });
      });
    });
  });
}

template <class Record>
void describe_record(Json& json, const char* name) {
  json.key(name);
  describe_layout<Record>(json);
}

// Write a function of C, its result and its arguments.
template <class Result, class... Arguments>
void describe_function(Json& json, const char* name, Result (*)(Arguments...)) {
  json.object(name, [&] {
    json.pair("result", type_name<Result>());
    json.list("arguments", [&] { (json.write(type_name<Arguments>()), ...); });
  });
}
#define RLT_DESCRIBE_FUNCTION(Json, Name) ::rlt::describe::describe_function(Json, #Name, Name)

}  // namespace rlt::describe
