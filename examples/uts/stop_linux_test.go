package main

import (
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestStopped(t *testing.T) {
	testprogram.TestStopped(t, 4_130_071, "-json", "-tree", "T1", "-processes", "3")
}
