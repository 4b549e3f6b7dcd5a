package source

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestUnknownBootIsADomainOfThisProcess(t *testing.T) {
	got := domainOf("ignored", errors.New("no boot id"))
	if want := "process-" + strconv.Itoa(os.Getpid()) + "-"; !strings.HasPrefix(string(got), want) || string(got) == want {
		t.Errorf("domain %q, want one that starts with %q", got, want)
	}
	if again := domainOf("", errors.New("no boot id")); again != got {
		t.Errorf("the process has two domains, %q and %q", got, again)
	}
	if got := domainOf("7", nil); got != "boot-7" {
		t.Errorf("domain %q of boot 7", got)
	}
}
