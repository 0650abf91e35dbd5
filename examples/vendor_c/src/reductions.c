/* Sums of many terms in a stated order (section 6 and 11): what tessxHello declares is what runs here. */
#include "acme.h"

static Number pairwise(int dtype, const Number* terms, size_t count, Number* scratch) {
  for (size_t i = 0; i < count; i++) scratch[i] = terms[i];
  while (count > 1) {
    for (size_t i = 0; i < count / 2; i++) scratch[i] = number_add(dtype, scratch[2 * i], scratch[2 * i + 1]);
    if (count % 2) scratch[count / 2] = scratch[count - 1];
    count = (count + 1) / 2;
  }
  return scratch[0];
}

Number reduce_sum(int dtype, Order order, const Number* terms, size_t count, Number* scratch) {
  if (!count) return (Number){.i = 0};
  if (order == PAIRWISE) return pairwise(dtype, terms, count, scratch);
  size_t first = order == RING ? 1 % count : 0;
  Number sum = terms[first];
  for (size_t step = 1; step < count; step++) sum = number_add(dtype, sum, terms[(first + step) % count]);
  return sum;
}
