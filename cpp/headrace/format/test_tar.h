// Tar archives for the tests of this layer, good and bad, built field by field.
// Thread-safety: a TestTar belongs to one thread.
// Ownership: results own their bytes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "headrace/format/tar_reader.h"
#include "headrace/format/tar_scanner.h"

namespace headrace::format {

class TestTar {
 public:
  TestTar& file(std::string name, std::string_view body, std::string prefix = "") {
    return member(std::move(name), '0', octal(body.size(), 11), body, std::move(prefix));
  }
  TestTar& directory(std::string name) { return member(std::move(name), '5', octal(0, 11), ""); }
  TestTar& pax(const std::vector<std::pair<std::string, std::string>>& records, char type = 'x') {
    std::string body;
    for (const auto& [key, value] : records) {
      const std::string rest = " " + key + "=" + value + "\n";
      std::size_t length = rest.size() + 1;
      while (std::to_string(length).size() + rest.size() != length) ++length;
      body += std::to_string(length) + rest;
    }
    return member("pax", type, octal(body.size(), 11), body);
  }
  TestTar& gnu_name(const std::string& name) {
    return member("././@LongLink", 'L', octal(name.size() + 1, 11), name + std::string(1, '\0'));
  }
  // The size as GNU writes it from 8 GiB on.
  TestTar& base256(std::string name, std::string_view body) {
    std::string size(12, '\0');
    size[0] = '\x80';
    for (std::size_t i = 0; i < 8; ++i) {
      size[11 - i] = static_cast<char>(body.size() >> (8 * i));
    }
    return member(std::move(name), '0', size, body);
  }
  TestTar& member(std::string name, char type, std::string size, std::string_view body,
                  std::string prefix = "") {
    std::string block(512, '\0');
    name.resize(std::min<std::size_t>(name.size(), 100));
    block.replace(0, name.size(), name);
    block.replace(100, 7, "0000644");
    block.replace(124, size.size(), size);
    block.replace(136, 11, octal(0, 11));
    block[156] = type;
    block.replace(257, 8,
                  std::string("ustar\0"
                              "00",
                              8));
    block.replace(345, prefix.size(), prefix);
    block.replace(148, 8, "        ");
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    block.replace(148, 6, octal(sum, 6));
    block[154] = '\0';
    bytes_ += block;
    bytes_ += body;
    bytes_.resize((bytes_.size() + 511) / 512 * 512, '\0');
    return *this;
  }
  TestTar& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  // With the blocks that end an archive.
  std::string bytes() const { return bytes_ + std::string(1024, '\0'); }
  const std::string& open_bytes() const { return bytes_; }

  static std::string octal(std::uint64_t value, std::size_t digits) {
    std::string text(digits, '0');
    for (std::size_t i = digits; i > 0; --i, value /= 8) {
      text[i - 1] = static_cast<char>('0' + value % 8);
    }
    return text;
  }

 private:
  std::string bytes_;
};

// Feeds an archive in pieces of `step` bytes.
inline Result<std::vector<TarSample>> scan(std::string_view bytes, std::size_t step = 1 << 20) {
  TarScanner scanner("a.tar");
  std::vector<TarSample> out;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    HR_TRY(scanner.feed(as_bytes(bytes.substr(at, step)), out));
  }
  HR_TRY(scanner.finish(out));
  return out;
}

// A reader over whole archives, as an index would make it.
inline std::shared_ptr<Reader> read_tars(const std::vector<std::string>& archives) {
  auto extents = std::make_shared<std::vector<std::vector<ByteRange>>>();
  WdsSchemaBuilder schema;
  TarTables tables;
  for (const std::string& archive : archives) {
    const auto samples = std::move(scan(archive)).value();
    extents->emplace_back();
    for (const TarSample& sample : samples) {
      schema.add(sample);
      extents->back().push_back({sample.begin, sample.end - sample.begin});
    }
    tables.shards.push_back({"shard-" + std::to_string(tables.shards.size()) + ".tar",
                             archive.size(),
                             samples.size(),
                             {}});
  }
  tables.schema = std::move(schema.finish()).value();
  tables.extents = [extents](std::uint32_t shard) -> Result<std::span<const ByteRange>> {
    return std::span<const ByteRange>((*extents)[shard]);
  };
  tables.owner = extents;
  return std::move(make_tar_reader(std::move(tables))).value();
}

}  // namespace headrace::format
