// A source of the board itself.
static_assert(BENCH == 1);
