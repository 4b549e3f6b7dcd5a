package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// operatorAddress is where health asks, and what the pages tell run to use.
const operatorAddress = "127.0.0.1:9464"

// maxHealthBytes bounds the answer that is read.
const maxHealthBytes = 1 << 20

const healthHelp = `health asks a run that was started with --http whether it is healthy, and prints
the answer of each part: [+] before a part that is ready, [-] before a part that is
not. It is meant for probes that run a command, such as probes of containers.

Without --live it asks whether the run is ready: every synchronizer can reach
its server, has the members it needs, an epoch, a verdict of each predicate, and
clocks that can be compared. With --live it asks only whether the run still gets
to its messages: if not, start it again.

Exit codes: 0 yes, 1 no, or no answer, 2 wrong usage.`

func newHealth() *cobra.Command {
	var address, keyFile string
	var timeout time.Duration
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a run whether it is ready",
		Long:  healthHelp,
		Example: `  pegasus run pegasus.yaml --http ` + operatorAddress + ` &
  pegasus health
  pegasus health --live --http ` + operatorAddress,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := splitAddress("http", address, operatorAddress); err != nil {
				return err
			}
			if timeout <= 0 {
				return fmt.Errorf("--timeout %v: give a time above 0, such as 2s", timeout)
			}
			page := "readyz"
			if live {
				page = "livez"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			key := ""
			if keyFile != "" {
				var err error
				if key, err = readKey(keyFile); err != nil {
					return fail(err)
				}
			}
			return askHealth(ctx, "http://"+address+"/"+page+"?verbose", address, key, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "http", operatorAddress, "`HOST:PORT` that the run was given as --http")
	addKeyFile(flags, &keyFile, "`FILE` with the key of the run in its first line")
	flags.BoolVar(&live, "live", false, "ask only whether the run still processes its messages; if not, restart it")
	flags.DurationVar(&timeout, "timeout", 2*time.Second, "wait `DURATION` at most for the answer")
	return cmd
}

// askHealth prints the answer of a page and fails unless it is good.
func askHealth(ctx context.Context, url, address, key string, stdout io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("--http %s: %w", address, err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	client := http.Client{ // No proxy of the environment, and the key goes nowhere else.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return fail(fmt.Errorf("health: no answer at %s: %w: is there a run with --http %s?", address, err, address))
	}
	defer answer.Body.Close() //nolint:errcheck // It was only read.
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return fail(fmt.Errorf("health: %s refuses the key, or that there is none: give --http-key-file FILE as the run has it", address))
	case http.StatusForbidden:
		return fail(fmt.Errorf("health: %s does not answer for that host name: give its IP address, or start the run with --http-host", address))
	}
	if _, err := io.Copy(stdout, io.LimitReader(answer.Body, maxHealthBytes)); err != nil {
		return fail(fmt.Errorf("health: %w", err))
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusServiceUnavailable:
		return errTold
	}
	return fail(fmt.Errorf("health: %s answers %s: it is no run of pegasus", address, answer.Status))
}
