// Package ablation tells what consistent global states are worth to load balancing:
// it takes the reports that a synchronizer recorded in its journal, and has the same
// strategy and the same condition for the end decide on two views of them, the global
// states that the detector finds, and the newest report of each member. The truth is
// known afterwards, from the stamps of all reports: which decisions were wrong can be
// counted. It is pure; who calls it opens the file.
package ablation
