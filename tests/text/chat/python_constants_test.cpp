#include "cupel/text/chat/python_constants.h"

#include <gmock/gmock.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::ThrowsMessage;

auto constants(std::string_view source) {
  return python_string_constants(source, "file.py");
}

TEST(PythonConstants, ReadsLiterals) {
  EXPECT_THAT(constants("a = 'x'\n"
                        "b: str = \"it's\"  # why\n"
                        "c = '''one\n\"two\"\n'''\n"
                        "d = r'\\n' ; e = 'not read'\n"
                        "f: Dict[str, int] = U\"u\"\n"
                        "g = 'a' \\\n  'b'\n"),
              ElementsAre(Pair("a", "x"), Pair("b", "it's"), Pair("c", "one\n\"two\"\n"),
                          Pair("d", "\\n"), Pair("f", "u"), Pair("g", "ab")));
}

TEST(PythonConstants, JoinsAdjacentLiteralsInParentheses) {
  EXPECT_THAT(constants("a = (\n    'x\\n'  # first\n\n    \"y\"\n)\nb = (a)\n"),
              ElementsAre(Pair("a", "x\ny"), Pair("b", "x\ny")));
}

TEST(PythonConstants, ReadsDictionaries) {
  EXPECT_THAT(constants("text = 't'\nD: Dict[str, str] = {\n  'low': '',\n  # c\n"
                        "  \"high\": ('a' 'b'),\n  'max': text,\n}\nE = {}\nF = {'k': 1}\n"),
              ElementsAre(Pair("D[high]", "ab"), Pair("D[low]", ""), Pair("D[max]", "t"),
                          Pair("text", "t")));
}

TEST(PythonConstants, ReadsEscapes) {
  EXPECT_THAT(constants("a = '\\\\ \\' \\\" \\x41\\u00e9\\U0001F642 \\101\\0 \\q \\t\\\nend'\n"),
              ElementsAre(Pair("a", std::string("\\ ' \" Aé🙂 A\0 \\q \tend", 24))));
}

TEST(PythonConstants, TreatsEveryLineEndAlike) {
  EXPECT_THAT(constants("a = '''x\r\ny\rz'''\r\nb = 'c'"),
              ElementsAre(Pair("a", "x\ny\nz"), Pair("b", "c")));
}

TEST(PythonConstants, PassesOverEverythingElse) {
  EXPECT_THAT(constants("'''a = \"doc\"\nb = 'x'\n'''\n"
                        "import re\n"
                        "if x == 'y':\n    c = 'indented'\n"
                        "def f(a='x',\n  d='y'):\n    return {'k': [1,\ne]}\n"
                        "g = h = 'chained'\n"
                        "i = 'a' + eos\n"
                        "j = f'{k}'\n"
                        "l = b'bytes'\n"
                        "m = unknown\n"
                        "n = ('tuple',)\n"
                        "o == 'compared'\n"
                        "p['q'] = 'r'\n"
                        "s = '\\N{BULLET}'\n"
                        "# t = 'comment'\n"
                        "u += 'more'\n"),
              IsEmpty());
}

TEST(PythonConstants, TheLastAssignmentCounts) {
  EXPECT_THAT(constants("a = '1'\na = '2'\n"), ElementsAre(Pair("a", "2")));
}

TEST(PythonConstants, NamesTheLineOfWhatDoesNotEnd) {
  EXPECT_THAT(
      [] { constants("a = 'x'\nb = 'open\n"); },
      ThrowsMessage<InputError>(HasSubstr("file.py line 2: expected the end of the string")));
  EXPECT_THAT([] { constants("\nb = '''open\n\n"); },
              ThrowsMessage<InputError>(HasSubstr("file.py line 2")));
  EXPECT_THAT(
      [] { constants("f(\n"); },
      ThrowsMessage<InputError>(HasSubstr("file.py line 1: expected the end of the bracket")));
  EXPECT_THAT([] { constants("a = 'x\\"); }, ThrowsMessage<InputError>(HasSubstr("line 1")));
}

TEST(PythonConstants, BracketsNestAsDeepAsTheyLike) {
  const std::string deep(100000, '(');
  EXPECT_THAT(constants("a = " + deep + "'x'" + std::string(100000, ')') + "\nb = 'y'\n"),
              ElementsAre(Pair("b", "y")));
}

}  // namespace
}  // namespace cupel
