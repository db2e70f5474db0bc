// SIGINT and SIGTERM as a wish to end: the engine drops what is under way, files keep what is in
// them, and the program ends with exit code 3. A second signal ends it at once.
#pragma once

namespace cupel {

// From now on.
void watch_interrupts();
bool interrupt_requested();

}  // namespace cupel
