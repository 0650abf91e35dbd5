// The line protocol of the Tessera conformance suite in C++17, without any library: one JSON-RPC 2.0 message a line.
//
// docs/protocol.md of the project describes it. Standard output carries messages only: log to standard error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace protocol {

// JSON

struct Json {
  enum Kind { nothing, truth, number, text, array, object } kind = nothing;
  double value = 0;  // of a truth value 0 or 1
  std::string string;
  std::vector<Json> items;
  std::map<std::string, Json> members;

  // The member of an object; nothing where there is none.
  const Json& operator[](const std::string& key) const {
    static const Json none;
    auto found = members.find(key);
    return found == members.end() ? none : found->second;
  }
};

class Reader {
 public:
  explicit Reader(const std::string& line) : at_(line.c_str()) {}

  Json read() {
    Json json;
    skip();
    if (*at_ == '{' || *at_ == '[') {
      read_list(json);
    } else if (*at_ == '"') {
      json.kind = Json::text;
      json.string = read_text();
    } else if (*at_ == 't' || *at_ == 'f') {
      json.kind = Json::truth;
      json.value = *at_ == 't';
      at_ += *at_ == 't' ? 4 : 5;
    } else if (*at_ == 'n') {
      at_ += 4;
    } else {
      char* end;
      json.kind = Json::number;
      json.value = std::strtod(at_, &end);
      require(end != at_, "a value is missing");
      at_ = end;
    }
    return json;
  }

 private:
  void read_list(Json& json) {
    json.kind = *at_ == '{' ? Json::object : Json::array;
    const char closing = *at_ == '{' ? '}' : ']';
    for (++at_, skip(); *at_ != closing;) {
      if (json.kind == Json::object) {
        std::string key = read_text();
        skip();
        require(*at_++ == ':', "a key has no value");
        json.members[key] = read();
      } else {
        json.items.push_back(read());
      }
      skip();
      require(*at_ == ',' || *at_ == closing, "a list has no end");
      if (*at_ == ',') ++at_, skip();
    }
    ++at_;
  }

  std::string read_text() {
    std::string text;
    for (++at_; *at_ != '"';) {
      require(*at_, "a text has no end");
      if (*at_ != '\\') {
        text += *at_++;
        continue;
      }
      const char escape = at_[1];
      at_ += 2;
      if (escape == 'u') {
        unsigned code = read_unit();
        if (code >= 0xD800 && code < 0xDC00 && *at_ == '\\') {
          at_ += 2;
          code = 0x10000 + ((code - 0xD800) << 10) + (read_unit() - 0xDC00);
        }
        append_utf8(text, code);
      } else {
        const std::string from = "bfnrt", to = "\b\f\n\r\t";
        const auto place = from.find(escape);
        text += place == std::string::npos ? escape : to[place];
      }
    }
    ++at_;
    return text;
  }

  unsigned read_unit() {
    const std::string digits(at_, 4);
    at_ += 4;
    return static_cast<unsigned>(std::stoul(digits, nullptr, 16));
  }

  static void append_utf8(std::string& text, unsigned code) {
    if (code < 0x80) {
      text += static_cast<char>(code);
      return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    text += static_cast<char>((0xFF << (7 - more) & 0xFF) | code >> 6 * more);
    while (more--) text += static_cast<char>(0x80 | (code >> 6 * more & 0x3F));
  }

  void skip() {
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n') ++at_;
  }

  static void require(bool condition, const char* what) {
    if (!condition) throw std::runtime_error(what);
  }

  const char* at_;
};

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

// Tensors: the words of all elements as little-endian bytes, row-major

struct Tensor {
  std::string dtype;
  std::vector<std::size_t> shape;
  std::vector<std::uint8_t> data;
};

// The bytes of one word; an element of complex64 or complex128 is two words.
inline std::size_t word_bytes(const std::string& dtype) {
  static const std::map<std::string, std::size_t> widths = {
      {"fp64", 8}, {"int64", 8},     {"complex128", 8}, {"fp32", 4}, {"tf32", 4},
      {"int32", 4}, {"complex64", 4}, {"fp16", 2},       {"bf16", 2}, {"int16", 2}};
  const auto found = widths.find(dtype);
  return found == widths.end() ? 1 : found->second;
}

// A tensor of a request; a large one comes as a file of its bytes.
inline Tensor read_tensor(const Json& message) {
  const Json& value = message["$tensor"];
  Tensor tensor{value["dtype"].string, {}, {}};
  for (const Json& extent : value["shape"].items) tensor.shape.push_back(static_cast<std::size_t>(extent.value));
  if (value["file"].kind == Json::text) {
    std::ifstream file(value["file"].string, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + value["file"].string);
    tensor.data.assign(std::istreambuf_iterator<char>(file), {});
    return tensor;
  }
  const std::string& bits = value["bits"].string;
  const std::size_t width = word_bytes(tensor.dtype);
  for (std::size_t at = 0; at + 1 < bits.size(); at += 2) {
    tensor.data.push_back(static_cast<std::uint8_t>(std::stoul(bits.substr(at, 2), nullptr, 16)));
  }
  for (std::size_t at = 0; at < tensor.data.size(); at += width) {  // digits begin with the most significant byte
    std::reverse(tensor.data.begin() + at, tensor.data.begin() + at + width);
  }
  return tensor;
}

inline std::string written(const Tensor& tensor) {
  static const char digits[] = "0123456789abcdef";
  const std::size_t width = word_bytes(tensor.dtype);
  std::string shape, bits;
  for (const std::size_t extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  for (std::size_t at = 0; at < tensor.data.size(); ++at) {
    const std::uint8_t byte = tensor.data[at / width * width + (width - 1 - at % width)];
    (bits += digits[byte >> 4]) += digits[byte & 15];
  }
  return "{\"$tensor\":{\"dtype\":" + quoted(tensor.dtype) + ",\"shape\":[" + shape + "],\"bits\":\"" + bits + "\"}}";
}

// Outcomes

inline std::string returned(const std::string& value) { return "{\"returned\":" + value + "}"; }

inline std::string returned(const std::vector<Tensor>& outputs) {
  std::string list;
  for (const Tensor& each : outputs) list += (list.empty() ? "" : ",") + written(each);
  return returned("{\"outputs\":[" + list + "]}");
}

inline std::string unsupported(const std::string& feature) {
  return "{\"unsupported\":{\"feature\":" + quoted(feature) + "}}";
}

// `code` is a category of diagnostics, such as syntax, or a status, such as TESS_ERR_INVALID_VALUE.
inline std::string rejected(const std::string& code, const std::string& phase, const std::string& message) {
  const bool status = code.rfind("TESS_", 0) == 0;
  const std::string diagnostic = "{\"category\":" + quoted(code) + ",\"message\":" + quoted(message) + "}";
  return "{\"rejected\":{\"code\":" + quoted(code) + ",\"phase\":" + quoted(phase) + ",\"message\":" + quoted(message) +
         ",\"diagnostics\":[" + (status ? "" : diagnostic) + "]}}";
}

// Methods and sessions

using Methods = std::map<std::string, std::function<std::string(const Json&)>>;

// Answer requests until the session is closed; a method that is not among `methods` reads as unsupported.
inline int serve(const std::string& hello, const Methods& methods) {
  std::ios::sync_with_stdio(false);
  for (std::string line, name; name != "session.close" && std::getline(std::cin, line);) {
    const Json request = Reader(line).read();
    name = request["method"].string;
    const auto method = methods.find(name);
    std::string result = unsupported(name);
    if (name == "session.open") {
      result = hello;
    } else if (method != methods.end()) {
      result = method->second(request["params"]);
    } else if (name.rfind("session.", 0) == 0) {
      result = returned("{}");
    }
    const auto id = std::to_string(static_cast<long long>(request["id"].value));
    std::cout << "{\"jsonrpc\":\"2.0\",\"id\":" << id << ",\"result\":" << result << "}\n" << std::flush;
  }
  return 0;
}

}  // namespace protocol
