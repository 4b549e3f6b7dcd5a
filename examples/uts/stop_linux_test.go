package main

import (
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestStopped(t *testing.T) {
	testprogram.TestStopped(t, 4_130_071, "-json", "-tree", "T1", "-processes", "3")
}

func TestKilledAll(t *testing.T) {
	testprogram.TestKilledAll(t, 4130071, "-tree", "T1")
}
