#include <string>

#include "base/cpu_features.h"
#include "base/error.h"
#include "kernels/avx2/table.h"
#include "kernels/avx512/table.h"
#include "kernels/kernel_table.h"
#include "kernels/scalar/table.h"

namespace drafthorse {
namespace {

/// One name a user may ask for.
struct Choice {
  const KernelTable& table;
  bool runnable;
  const char* needs;
};

/// From the narrowest to the best.
std::vector<Choice> choices() {
  const CpuFeatures& cpu = cpu_features();
  return {{scalar::kTable, true, "nothing"},
          {avx2::kBaseTable, cpu.avx2_fma_f16c, "AVX2, FMA and F16C"},
          {cpu.avx_vnni ? avx2::kVnniTable : avx2::kTable, cpu.avx2_fma_f16c, "AVX2, FMA and F16C"},
          {avx512::kBaseTable, cpu.avx512, "AVX-512 F, BW, VL, DQ and VNNI"},
          {cpu.avx512_bf16 ? avx512::kBf16Table : avx512::kTable, cpu.avx512, "AVX-512 F, BW, VL, DQ and VNNI"}};
}

}  // namespace

const KernelTable& kernel_table(std::string_view name) {
  const std::vector<Choice> all = choices();
  std::string runnable;
  const Choice* best = nullptr;
  for (const Choice& choice : all) {
    if (!name.empty() && name == choice.table.name) {
      if (choice.runnable) return choice.table;
      throw Error("kernels: \"" + std::string(name) + "\" needs " + choice.needs + ", which this CPU (" + cpu_name() +
                  ") does not have");
    }
    if (!choice.runnable) continue;
    best = &choice;
    runnable += (runnable.empty() ? "" : ", ") + std::string(choice.table.name);
  }
  if (name.empty()) return best->table;
  throw Error("kernels: \"" + std::string(name) + "\" is not a kernel table; this CPU can run: " + runnable);
}

std::vector<const KernelTable*> runnable_kernel_tables() {
  std::vector<const KernelTable*> tables;
  for (const Choice& choice : choices()) {
    if (choice.runnable) tables.push_back(&choice.table);
  }
  return tables;
}

}  // namespace drafthorse
