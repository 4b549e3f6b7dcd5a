// Package config has the sections of a configuration as values, and the checks
// that each makes of itself while it is decoded: members, silence, states, memory,
// predicates, signals, balance. What sections mean together is checked where they
// are compiled, in internal/plan; whole files are read in internal/configfile.
//
// A [Section] also travels: a synchronizer sends the one below it to its members,
// so that they need no file.
package config
