#include "ops/embedding.h"

#include "base/check.h"
#include "ops/row_ranges.h"

namespace drafthorse {

void embed(const StoredMatrix& table, std::span<const std::int32_t> ids, Rows out, const ExecContext& exec) {
  const auto count = static_cast<std::int64_t>(ids.size());
  DRAFTHORSE_CHECK(out.rows == count && out.cols == table.cols,
                   out.rows << " x " << out.cols << " for " << count << " ids");
  for (const std::int32_t id : ids)
    DRAFTHORSE_CHECK(id >= 0 && id < table.rows, "token id " << id << " of " << table.rows);
  const std::size_t row_bytes = static_cast<std::size_t>(table.cols) * element_bytes(table.type);
  for_ranges(exec, count, table.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::byte* source =
          table.bytes.data() + static_cast<std::size_t>(ids[static_cast<std::size_t>(i)]) * row_bytes;
      if (table.type == ElementType::kF64) {  // no kernel of its own: rare
        to_float(table.type, source, static_cast<std::size_t>(table.cols), out.row(i));
      } else {
        exec.kernels.to_float(table.type, source, out.row(i), table.cols);
      }
    }
  });
}

}  // namespace drafthorse
