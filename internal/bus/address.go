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
			if strings.Contains(address, "@") && !strings.Contains(one, "@") && strings.Contains(address[:strings.LastIndexByte(address, '@')], ",") {
				err = errors.New("a comma separates servers: in a user, password or token write %2C")
			}
			return nil, fmt.Errorf("address %q: %w", redactAddresses(address), err)
		}
		servers = append(servers, one)
	}
	return servers, nil
}

// example ends an error that cannot say which part to change.
const example = "; want for example nats://127.0.0.1:4222"

// checkServer refuses an address with the part to change. What url.Parse says is not shown: it
// may quote a password.
func checkServer(server string) error {
	scheme, rest, _ := strings.Cut(server, "://")
	at := strings.LastIndexByte(rest, '@')
	host, _, _ := strings.Cut(rest[at+1:], "/")
	switch {
	case at >= 0 && unescaped(rest[:at]):
		return errors.New("the user, password or token has a character that a URL reserves: write %2F for /, %23 for #, %3F for ?, %40 for @ and %25 for %")
	case scheme == "http" || scheme == "https":
		return fmt.Errorf("scheme %q belongs to the server's monitoring page: use nats:// and the port for clients, which is 4222 by default", scheme)
	case !slices.Contains([]string{"nats", "tls", "ws", "wss"}, scheme):
		return fmt.Errorf("scheme %q is none of nats, tls, ws, wss"+example, scheme)
	case slices.Contains([]string{"nats", "tls", "ws", "wss"}, strings.TrimSuffix(host, ":")) && strings.Contains(rest, "/"):
		return fmt.Errorf("the scheme is not written right: write %s://", strings.TrimSuffix(host, ":"))
	case strings.Count(host, ":") > 1 && !strings.HasPrefix(host, "["):
		return errors.New("an IPv6 address stands in brackets: write for example nats://[::1]:4222")
	}
	u, err := url.Parse(server)
	if err != nil {
		return errors.New("not a URL" + example)
	}
	if u.Hostname() == "" {
		return errors.New("no host" + example)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return errors.New("port is not 1 to 65535" + example)
	}
	return nil
}

// unescaped reports whether credentials have a character that has to be escaped in a URL.
func unescaped(credentials string) bool {
	if strings.ContainsAny(credentials, "/?#@") {
		return true
	}
	_, err := url.PathUnescape(credentials)
	return err != nil
}

// redactAddresses hides user, password or token in a list of addresses, also in a list that
// is not well formed. Where there are any it keeps the last server only, since a
// comma may be part of a password.
func redactAddresses(address string) string {
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
