#include <algorithm>
#include <cstring>
#include <string>

#include "base/cpu_features.h"
#include "base/error.h"
#include "gtest/gtest.h"
#include "kernels/kernel_table.h"

namespace drafthorse {
namespace {

std::vector<std::string> runnable_names() {
  std::vector<std::string> names;
  for (const KernelTable* table : runnable_kernel_tables()) names.emplace_back(table->name);
  return names;
}

TEST(Dispatch, ScalarComesFirstAndTheDefaultIsTheLast) {
  const auto tables = runnable_kernel_tables();
  EXPECT_STREQ(tables.front()->name, "scalar");
  EXPECT_EQ(&kernel_table(), tables.back());
}

TEST(Dispatch, TheCpuDecidesWhichTablesRun) {
  std::vector<std::string> expected = {"scalar"};
  if (cpu_features().avx2_fma_f16c) expected.insert(expected.end(), {"avx2-base", "avx2"});
  if (cpu_features().avx512) expected.insert(expected.end(), {"avx512-base", "avx512"});
  EXPECT_EQ(runnable_names(), expected);
}

TEST(Dispatch, ATableIsFoundByItsName) {
  for (const std::string& name : runnable_names()) EXPECT_EQ(kernel_table(name).name, name);
}

TEST(Dispatch, AnUnknownNameIsRefusedWithTheNamesThatRun) {
  for (const std::string name : {"sse", "AVX2", "avx", "scalar "}) {
    try {
      kernel_table(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("\"" + name + "\""), std::string::npos) << error.what();
      for (const std::string& known : runnable_names())
        EXPECT_NE(std::string(error.what()).find(known), std::string::npos);
    }
  }
}

TEST(Dispatch, ATableThisCpuLacksIsRefusedWithTheReason) {
  const auto names = runnable_names();
  for (const std::string name : {"avx2", "avx512", "avx2-base", "avx512-base"}) {
    if (std::count(names.begin(), names.end(), name) != 0) continue;
    EXPECT_THROW(kernel_table(name), Error) << name;
  }
}

TEST(Dispatch, EveryEntryOfEveryTableIsThere) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    // After the name the table is nothing but function pointers.
    const auto* bytes = reinterpret_cast<const std::byte*>(table);
    for (std::size_t at = 0; at < sizeof(KernelTable); at += sizeof(void*)) {
      std::uintptr_t pointer = 0;
      std::memcpy(&pointer, bytes + at, sizeof pointer);
      EXPECT_NE(pointer, 0u) << table->name << " entry " << at / sizeof(void*);
    }
  }
}

}  // namespace
}  // namespace drafthorse
