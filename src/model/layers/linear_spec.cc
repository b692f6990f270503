#include "model/layers/linear_spec.h"

namespace drafthorse {

std::int64_t LinearSpec::rows() const {
  std::int64_t sum = 0;
  for (const LinearPart& part : parts) sum += part.rows;
  return sum;
}

std::vector<StackPart> LinearSpec::stack_parts() const {
  std::vector<StackPart> all;
  for (const LinearPart& part : parts)
    all.push_back({part.module + ".weight", part.rows, part.first, part.total_rows()});
  return all;
}

}  // namespace drafthorse
