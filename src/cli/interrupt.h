#pragma once

namespace drafthorse {

/// From now on the first Ctrl-C only sets a mark; the second one ends the process.
void catch_interrupt();
/// Whether Ctrl-C was pressed since.
bool interrupted();

}  // namespace drafthorse
