// This file is empty. It lets the compiler accept the function nanotime, whose
// body is in the runtime.
