#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace drafthorse {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("drafthorse_mapped_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(MappedFileTest, ShowsTheWholeFile) {
  const std::string text(10000, 'x');
  const MappedFile file(write("a", text));
  ASSERT_EQ(file.bytes().size(), text.size());
  EXPECT_EQ(std::memcmp(file.bytes().data(), text.data(), text.size()), 0);
}

TEST_F(MappedFileTest, ReleasedPagesReadTheSameAgain) {
  const std::string text(100000, 'y');
  const MappedFile file(write("a", text));
  file.release(file.bytes());
  file.release(file.bytes().subspan(5, 10));  // less than a page: nothing to do
  EXPECT_EQ(std::memcmp(file.bytes().data(), text.data(), text.size()), 0);
}

TEST_F(MappedFileTest, AnEmptyFileIsEmpty) { EXPECT_TRUE(MappedFile(write("e", "")).bytes().empty()); }

TEST_F(MappedFileTest, MovingKeepsTheBytes) {
  MappedFile first(write("a", "abc"));
  const std::byte* address = first.bytes().data();
  const MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().data(), address);
  EXPECT_TRUE(first.bytes().empty());
}

TEST_F(MappedFileTest, ErrorsNameThePath) {
  EXPECT_THROW(MappedFile((folder_ / "none").string()), Error);
  try {
    MappedFile file(folder_.string());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), folder_.string() + ": not a regular file");
  }
}

TEST_F(MappedFileTest, ANamedPipeIsRefusedAndNotWaitedFor) {
  const std::string path = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(MappedFile{path}, Error);
  EXPECT_THROW(read_text_file(path), Error);
}

TEST_F(MappedFileTest, ALinkThatLeadsNowhereIsListedAndCannotBeOpened) {
  const std::string path = (folder_ / "link").string();
  EXPECT_FALSE(is_listed(path));
  std::filesystem::create_symlink("gone", path);
  EXPECT_TRUE(is_listed(path));
  EXPECT_THROW(read_text_file(path), Error);
  EXPECT_FALSE(is_listed(path + "/below"));
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_TRUE(is_listed((folder_ / "loop" / "below").string()));
}

TEST_F(MappedFileTest, TextIsLimited) {
  const std::string path = write("t", "hello");
  EXPECT_EQ(read_text_file(path), "hello");
  EXPECT_THROW(read_text_file(path, 4), Error);
}

}  // namespace
}  // namespace drafthorse
