// Package ruletest tests the rules of a configuration. A file of tests says how
// the states of members continue over time, on which clocks and over what network,
// and what the predicates have to come to; docs/rule-tests.md describes it.
//
// A test runs the synchronizer's machine and the members' machines in the
// simulated world of package sim, each as it runs outside. Time passes as told
// and chance comes from a seed, so that a test gives the same result each time.
//
//	file, err := ruletest.Parse("pegasus_test.yaml", src, read)
//	for _, t := range file.Tests {
//		result := t.Run()
//		...
//	}
package ruletest
