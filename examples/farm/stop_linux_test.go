package main

import (
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestStopped(t *testing.T) {
	testprogram.TestStopped(t, 9, "-json", "-weights", "7,5,3,11,2,4,6,1,9", "-processes", "4")
}

func TestKilledAll(t *testing.T) {
	testprogram.TestKilledAll(t, 9, "-weights", "7,5,3,11,2,4,6,1,9", "-processes", "4")
}
