// A compiler behind the Tessera conformance suite: fill in the methods that yours has.
//
// What each method takes and returns: docs/protocol.md of the project, under `language`.
#include <cctype>
#include <set>

#include "protocol.hpp"

using namespace protocol;

// Claim only what works.
const char hello[] = R"({"protocol":{"minimum":1,"maximum":1},)"
                     R"("implementation":{"name":"my-implementation","version":"0.1"},)"
                     R"("documents":["language_ir"],)"
                     R"("capabilities":{},)"
                     // several processes may answer at once; take it away where they share a device
                     R"("parallel":true,)"
                     R"("arithmetic":{"level":"strict"}})";

const std::set<std::string> declarations = {"func", "kernel", "type", "let", "const", "mesh"};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }

// Words and single characters, without blanks and comments.
std::vector<std::string> tokens_of(const std::string& source) {
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < source.size();) {
    const auto closing = source.compare(at, 2, "/*") ? std::string::npos : source.find("*/", at + 2);
    if (std::isspace(static_cast<unsigned char>(source[at]))) {
      ++at;
    } else if (!source.compare(at, 2, "//")) {
      at = std::min(source.find('\n', at), source.size());
    } else if (closing != std::string::npos) {
      at = closing + 2;
    } else {
      std::size_t end = at + 1;
      while (is_letter(source[at]) && end < source.size() && (is_letter(source[end]) || std::isdigit(source[end]))) ++end;
      tokens.push_back(source.substr(at, end - at));
      at = end;
    }
  }
  return tokens;
}

// The modules and their declarations, in source order. This one knows modules that declare nothing.
std::string parse(const Json& params) {
  std::vector<std::string> tokens = tokens_of(params["source"].string);
  std::string modules;
  for (std::size_t at = 0; at < tokens.size(); at += 4) {
    tokens.resize(std::max(tokens.size(), at + 4));
    const std::string &name = tokens[at + 1], &next = tokens[at + 3];
    if (tokens[at] != "module" || !is_letter(name[0]) || tokens[at + 2] != "{") {
      return rejected("syntax", "parse", "expected module NAME {");
    }
    if (declarations.count(next)) return unsupported("declarations of " + next);
    if (next != "}") return rejected("syntax", "parse", "expected a declaration or }, found " + next);
    modules += (modules.empty() ? "" : ",") + ("{\"name\":" + quoted(name) + ",\"declarations\":[]}");
  }
  return returned("{\"modules\":[" + modules + "]}");
}

int main() { return serve(hello, {{"language.parse", parse}}); }
