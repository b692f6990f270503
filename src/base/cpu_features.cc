#include "base/cpu_features.h"

#include <cpuid.h>

#include <fstream>
#include <string>

namespace drafthorse {
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

bool bit(unsigned word, int index) { return ((word >> index) & 1u) != 0; }

/// The register state the operating system saves (XCR0).
unsigned saved_state() {
  if (!bit(cpuid(1, 0).ecx, 27)) return 0;  // OSXSAVE
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

CpuFeatures ask() {
  CpuFeatures f;
  const unsigned state = saved_state();
  const bool ymm = (state & 0x6u) == 0x6u;
  const bool zmm = (state & 0xe6u) == 0xe6u;
  const Registers one = cpuid(1, 0);
  const Registers seven = cpuid(7, 0);
  const Registers seven_one = cpuid(7, 1);
  f.avx2_fma_f16c = ymm && bit(one.ecx, 12) && bit(one.ecx, 29) && bit(seven.ebx, 5);
  f.avx_vnni = f.avx2_fma_f16c && bit(seven_one.eax, 4);
  f.avx512 = f.avx2_fma_f16c && zmm && bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 30) &&
             bit(seven.ebx, 31) && bit(seven.ecx, 11);
  f.avx512_bf16 = f.avx512 && bit(seven_one.eax, 5);
  return f;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = ask();
  return features;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

}  // namespace drafthorse
