// Structs whose fields are listed once: the list declares them, and for_each_field() visits each by
// its name and type, so that what is stored, hashed or printed is the fields and nothing between
// them.
//   #define RLT_BALL_STATE(X) X(float, height_m) X(float, velocity_m_s)
//   RLT_DEFINE_FIELDS(State, RLT_BALL_STATE)
// A field is a float, double, uint32_t or uint8_t, or an array of one under a name of its own:
//   using Vector = float[3];
#pragma once

#define RLT_DECLARE_FIELD(Type, Name) Type Name;
#define RLT_VISIT_FIELD(Type, Name) visit(#Name, this->Name);
#define RLT_DECLARE_CONSTANT(Type, Name, Value) Type Name = Value;
#define RLT_VISIT_CONSTANT(Type, Name, Value) visit(#Name, this->Name);

// for_each_field(visitor) calls visitor(const char* name, field&) in the list's order.
#define RLT_FIELD_VISITS(List, Visit)                                     \
  template <class Visitor>                                                \
  constexpr void for_each_field([[maybe_unused]] Visitor&& visit) {       \
    List(Visit)                                                           \
  }                                                                       \
  template <class Visitor>                                                \
  constexpr void for_each_field([[maybe_unused]] Visitor&& visit) const { \
    List(Visit)                                                           \
  }

// The same in a struct that adds a field to those of its base.
#define RLT_ADDED_FIELD_VISITS(Base, Name)                                      \
  template <class Visitor>                                                      \
  [[gnu::always_inline]] constexpr void for_each_field(Visitor&& visit) {       \
    Base::for_each_field(visit);                                                \
    visit(#Name, Name);                                                         \
  }                                                                             \
  template <class Visitor>                                                      \
  [[gnu::always_inline]] constexpr void for_each_field(Visitor&& visit) const { \
    Base::for_each_field(visit);                                                \
    visit(#Name, Name);                                                         \
  }

// `struct Struct` with the fields of List, X(type, name) each.
#define RLT_DEFINE_FIELDS(Struct, List)                             \
  struct Struct {                                                   \
    List(RLT_DECLARE_FIELD) RLT_FIELD_VISITS(List, RLT_VISIT_FIELD) \
  };

// `struct Struct` with the constants of List, X(type, name, value) each.
#define RLT_DEFINE_CONSTANTS(Struct, List)                                \
  struct Struct {                                                         \
    List(RLT_DECLARE_CONSTANT) RLT_FIELD_VISITS(List, RLT_VISIT_CONSTANT) \
  };

// The list of a struct that has none.
#define RLT_NO_FIELDS(X)
