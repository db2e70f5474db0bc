// The probes phase and copy: prompts whose right answer stands in them.
#pragma once

#include "cupel/eval/probe/probe.h"

namespace cupel {

struct PhaseOptions {
  // {key} is three digits that must be the first number of the answer; {filler} makes the prompt
  // longer. The default suits models of any training; a small model needs the form it learned.
  std::string form = "The pass key is {key}. Remember it.{filler}\nThe pass key is";
  std::string filler = " the";  // one token: prompts of every length
  int longest = 1024;           // tokens of the longest prompt
  bool bos = true;
  std::vector<std::string> stop = {"\n"};
  int max_new_tokens = 12;
  int concurrency = 0;
};

// Throws InputError for a form without its places or a senseless length.
void check(const PhaseOptions& options);

// One prompt at each of the 16 shortest lengths, and from 4 below to 4 above each multiple of 128
// up to `longest`. Lengths are those that the target counts; three first prompts show what the
// filler adds. Fault: 1 for a wrong answer. Throws InputError as check() does, and where the
// filler does not make prompts longer.
ProbeResult probe_phase(Target& target, const PhaseOptions& options);

struct CopyOptions {
  // {text} is numbers of three digits with blanks between them.
  std::string form = "Text: 417 823 112\nCopy: 417 823 112\n\nText: {text}\nCopy:";
  std::vector<int> sizes = {16, 64, 256};  // numbers to copy
  int prompts = 8;                         // of each size
  bool bos = true;
  std::vector<std::string> stop = {"\n"};
  int concurrency = 0;
};

// Throws InputError for a form without {text} or senseless sizes.
void check(const CopyOptions& options);

// Fault: 1 for a copy that is not exact, blanks around it aside. The lines tell how far it went.
// Throws InputError as check() does.
ProbeResult probe_copy(Target& target, const CopyOptions& options);

}  // namespace cupel
