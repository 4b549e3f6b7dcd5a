package bus

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// parseServers splits and checks a list of server addresses. nats.go would take
// nearly anything for a host name and find out while dialling.
func parseServers(address string) ([]string, error) {
	var servers []string
	for one := range strings.SplitSeq(address, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		if err := checkServer(one); err != nil {
			return nil, fmt.Errorf("address %q: %w; want for example nats://127.0.0.1:4222", redact(address), err)
		}
		servers = append(servers, one)
	}
	return servers, nil
}

func checkServer(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return errors.New("not a URL") // What url.Parse says may quote a password.
	}
	if !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return fmt.Errorf("scheme %q is none of nats, tls, ws, wss", u.Scheme)
	}
	if u.Hostname() == "" {
		return errors.New("no host")
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return errors.New("port is not 1 to 65535")
	}
	return nil
}

// redact hides user, password or token in a list of addresses, also in one that
// is not well formed. Where there are any it keeps the last server only, since a
// comma may be part of a password.
func redact(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address
	}
	scheme, _, ok := strings.Cut(address[:at], "://")
	if !ok {
		return "xxxxx" + address[at:]
	}
	return scheme + "://xxxxx" + address[at:]
}
