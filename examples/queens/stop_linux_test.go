package main

import (
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestStopped(t *testing.T) {
	testprogram.TestStopped(t, 365_596, "-json", "-n", "14", "-processes", "3")
}

func TestKilledAll(t *testing.T) {
	testprogram.TestKilledAll(t, 365596, "-n", "14")
}
