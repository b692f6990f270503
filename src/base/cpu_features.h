#pragma once

#include <string>

namespace drafthorse {

/// What this CPU and operating system can run.
struct CpuFeatures {
  bool avx2_fma_f16c = false;
  bool avx_vnni = false;
  bool avx512 = false;  ///< F, BW, VL, DQ and VNNI
  bool avx512_bf16 = false;
};

/// Asked of the CPU once, the first time.
const CpuFeatures& cpu_features();
/// "AMD EPYC 9B14", from /proc/cpuinfo; "unknown CPU" elsewhere.
std::string cpu_name();

}  // namespace drafthorse
