// What goes wrong in a world of lossy_world.h, from a seed.
#pragma once

#include <cstdint>

#include "flash_model.h"

namespace lossy_world {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {
    state_ = next() ^ seed << 32;  // streams of neighboring seeds do not overlap
  }
  std::uint64_t next() {  // SplitMix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  bool strikes(double rate) { return static_cast<double>(next() >> 11) * 0x1p-53 < rate; }
  // Often nothing, else up to `most`.
  double rate(double most) {
    return strikes(0.4) ? 0.0 : most * static_cast<double>(next() >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

// What goes wrong in one world: rates of a packet, and moments in packets that the host has sent.
struct Disorder {
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  explicit Disorder(Chance& chance)
      : loss(chance.rate(0.25)),
        copies(chance.rate(0.2)),
        delays(chance.rate(0.2)),
        damage(chance.rate(0.2)),
        other_host(chance.rate(0.2)),
        cut_at(moment(chance, 0.4)),
        cut_us(chance.below(chance.strikes(0.5) ? 2'000'000 : 25'000'000)),
        unplugged(chance.strikes(0.3)),
        reset_at(moment(chance, 0.4)),
        power_cut_at(moment(chance, 0.4)),
        power_cut_bytes(chance.below(1200)),
        left(chance.strikes(0.5) ? flash_model::Left::garbage : flash_model::Left::prefix) {}
  double loss, copies, delays, damage, other_host;
  std::uint64_t cut_at, cut_us;  // the link, for so long
  bool unplugged;                // which the host notices
  std::uint64_t reset_at, power_cut_at, power_cut_bytes;
  flash_model::Left left;

 private:
  static std::uint64_t moment(Chance& chance, double rate) {
    return chance.strikes(rate) ? chance.below(40) : kNever;
  }
};

}  // namespace lossy_world
