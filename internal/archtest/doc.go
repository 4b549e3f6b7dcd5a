// Package archtest holds the rules about the tree as data, and tests that check
// the tree against them: who may import whom, where third-party modules may be
// used, and what every package and file must have. A package is added together
// with its row in Imports.
package archtest
